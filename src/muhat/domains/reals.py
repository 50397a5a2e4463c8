"""Records that nobody has bounded: what is public about them is how many numbers they have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from muhat import _check
from muhat._plain import Key, Plain
from muhat.domains.vectors import dimension
from muhat.errors import InvalidInput

LARGEST_MAGNITUDE = 1e100
"""Squares of distances must stay floats, those of the smallest radius too."""


@dataclass(frozen=True, init=False)
class Reals(Plain, keys=(Key("domain", "kind"), "dim", "magnitude"), exact=True):
    """R^d, with a generous public bound on every coordinate: |x_j| ≤ magnitude.

    Not a `Domain`: noise is never calibrated to it. Centre and radius of the records are learnt
    privately inside it, so the magnitude may be far too large; ten times larger costs next to
    nothing. None stands for no bound at all.

    It says the same everywhere: every value lies within ±magnitude, and so does every mean. What
    becomes of a value beyond it all the same, a release says in its assumptions: where a ball is
    learnt it counts as ±magnitude; means of bounded bias ask for their means to lie there, not for
    the records; symmetric ones for neither.

    >>> Reals(dim=3, magnitude=1e6)
    Reals(dim=3, magnitude=1e+06)
    """

    kind: ClassVar[str] = "reals"
    dim: int
    magnitude: float | None

    def __init__(self, dim: int, magnitude: float | None = None) -> None:
        object.__setattr__(self, "dim", dimension(dim))
        size = None if magnitude is None else _check.positive("magnitude", magnitude)
        if size is not None and not 1 / LARGEST_MAGNITUDE <= size <= LARGEST_MAGNITUDE:
            raise InvalidInput(
                "must lie between 1e-100 and 1e100",
                parameter="magnitude",
                value=f"{size:g}",
                hint="Measure the columns in another unit.",
            )
        object.__setattr__(self, "magnitude", size)

    def __repr__(self) -> str:
        size = "None" if self.magnitude is None else f"{self.magnitude:g}"
        return f"Reals(dim={self.dim}, magnitude={size})"
