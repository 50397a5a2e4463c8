"""A moment that is assumed of the distribution of the records."""

from __future__ import annotations

from dataclasses import dataclass

from muhat._arrays import Floats
from muhat._plain import Plain


@dataclass(frozen=True, eq=False)
class Moment(Plain):
    """E|X_j − μ_j|^order ≤ scales_j^order for every column j; an assumption nobody can check."""

    order: float
    scales: Floats

    def describe(self) -> str:
        """The assumption, as a condition."""
        sizes = [f"{scale:g}" for scale in self.scales]
        shown = (
            sizes[0]
            if len(set(sizes)) == 1
            else f"({', '.join(sizes[:5])}{', …' * (len(sizes) > 5)})"
        )
        if self.order == 2:
            return f"the standard deviation is at most {shown}"
        return f"E|X − μ|^{self.order:g} ≤ ψ^{self.order:g} with ψ = {shown}"
