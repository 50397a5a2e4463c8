"""Noisy numbers of recorded values: what a mean, or a sum, was made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muhat._arrays import Floats
from muhat._plain import Plain
from muhat.errors import InvalidInput


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
        if not (np.isfinite(self.value).all() and (self.standard_error > 0).all()):
            raise InvalidInput("numbers of recorded values are finite, and so are their errors.")
