"""The mean of a distribution after Huang, Liang and Yi (2021), section 3.4.

The records are thought of as independent draws with a mean μ, |μ_j| ≤ magnitude, and a variance
in every direction between σ_min² and σ_max², as of a normal law. Then no record is longer than

    R' = √d·magnitude + σ_max·√(d + 2√(dL) + 2L),   L = ln(4n/β),

but with probability β/4, and nothing finer than σ_min/√n matters: these replace the range and the
resolution of the searches of `ShiftedClipped`. The promise is kept for all records whatever; only
the error rests on what is thought of them. The error against μ is larger than that against the
empirical mean by the sampling error, about √(tr Σ/n), which no privacy changes.

`faithful` keeps the paper's longer R' = √d·magnitude + 2σ_max·√(d + L), shortens records to it,
and rounds them to σ_min/√n. Proof: docs/proofs/papers-estimators.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from muhat.data.grids import MOST_CELLS, UniformGrid
from muhat.errors import InvalidInput
from muhat.mechanisms.learning.clipping_stage import FAILURE
from muhat.mechanisms.learning.radius_grids import Radii, geometric_radii
from muhat.mechanisms.learning.shifted import ShiftedClipped


@dataclass(frozen=True, eq=False)
class Statistical(
    ShiftedClipped, keys=("sharing", "grid", "median", "median_rank", "stage", "scale", "bound")
):
    """Section 3.4 as a method, for public bounds (σ_min, σ_max) on the scale."""

    scale: tuple[float, float] = (1.0, 1.0)

    name = "statistical"

    @property
    def summary(self) -> str:
        low, high = self.scale
        return f"{super().summary}, for deviations between {low:g} and {high:g}"

    @property
    def resolution(self) -> float:
        """σ_min/√n, the paper's bucket."""
        return self.scale[0] / math.sqrt(self.sharing.n)

    @cached_property
    def bound(self) -> float:
        """R', which no record is longer than, but with probability β/4."""
        dim = self.sharing.dim
        log = math.log(4 * self.sharing.n / FAILURE)
        if self.faithful:
            length = 2 * math.sqrt(dim + log)
        else:
            length = math.sqrt(dim + 2 * math.sqrt(dim * log) + 2 * log)
        return math.sqrt(dim) * self.sharing.magnitude + self.scale[1] * length

    @property
    def ball(self) -> float | None:
        """R' if faithful: longer records are shortened to it before anything else."""
        return self.bound if self.faithful else None

    @property
    def whole_numbers(self) -> tuple[int, float]:
        """u = ⌈R'·√n/σ_min⌉ and the unit σ_min/√n."""
        return math.ceil(self.bound / self.resolution), self.resolution

    @cached_property
    def grid(self) -> UniformGrid:
        """Where the medians of rotated coordinates are searched: none of them is beyond √d̄·R'."""
        if self.faithful:
            return super().grid
        root = math.sqrt(self.padded)
        return self._grid(root * self.bound, root * self.resolution)

    @property
    def radii(self) -> Radii:
        return geometric_radii(2 * self.bound, self.resolution, pure=self.sharing.pure)

    @property
    def assumptions(self) -> tuple[str, ...]:
        low, high = self.scale
        clipped = f"values beyond ±{self.bound:g} are clipped to that"
        if self.faithful:
            clipped = f"records longer than {self.bound:g} are shortened to that"
        return (
            clipped,
            f"the error, not the promise, rests on independent records whose mean lies within "
            f"±{self.sharing.magnitude:g} and whose deviation in every direction lies between "
            f"{low:g} and {high:g}",
            *super().assumptions,
        )

    def check(self) -> None:
        """Make every kind of step once; refuse scales too far apart for whole numbers."""
        if self.faithful and 2 * self.sharing.dim * self.whole_numbers[0] >= MOST_CELLS:
            raise InvalidInput(
                "magnitude, n and scale make more whole numbers than the paper's searches have "
                "room for here; raise the lower scale, or leave faithful out."
            )
        super().check()
