"""What is released beside sums: noisy sums of squares, and noisy numbers of recorded values.

With u = (x − centre)/half-width in [−1, 1] the sum of 1 − u² is released, in which the noise is
small beside what the sampling error needs (docs/proofs/population.md). In a ball it is the sum of
1/d − u² for each column, or of 1 − |u|² for all of them together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muhat._arrays import Floats
from muhat._plain import Plain
from muhat.errors import InvalidInput
from muhat.noise.spread import Spread


@dataclass(frozen=True, eq=False)
class Squares(Plain):
    """Σ(base − u²) of every column with noise, of shape (d,); `spread` describes the noise.

    Of shape (1,), beside a centre of shape (d,), it is Σ(base − |u|²) of all columns together.
    """

    lacking: Floats
    spread: Spread
    center: Floats
    half_widths: Floats
    base: float = 1.0

    def __post_init__(self) -> None:
        shape = self.lacking.shape
        if self.center.shape != self.half_widths.shape or shape not in ((1,), self.center.shape):
            raise InvalidInput("sums of squares have a centre and a half-width a column.")
        if not np.isfinite(self.lacking).all() or self.spread.scales.shape != shape:
            raise InvalidInput("sums of squares are finite, and their noise is known.")

    @property
    def together(self) -> bool:
        """Whether all columns have one sum of squares."""
        return len(self.lacking) < len(self.center)


@dataclass(frozen=True, eq=False)
class Recorded(Plain):
    """How many values there were, with noise: one number a column, or one for all records.

    `value` and `standard_error` have the shape (d,), or (1,) if no column lacks a value.
    """

    value: Floats
    standard_error: Floats

    def __post_init__(self) -> None:
        if self.value.ndim != 1 or self.value.shape != self.standard_error.shape:
            raise InvalidInput("numbers of recorded values have a standard error each.")
        if not (np.isfinite(self.value).all() and (self.standard_error >= 0).all()):
            raise InvalidInput("numbers of recorded values are finite, and so are their errors.")
