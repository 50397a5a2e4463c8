"""Noisy numbers of recorded values: what a mean, or a sum, was made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat._arrays import Floats
from muhat.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class Recorded:
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

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {"value": self.value.tolist(), "standard_error": self.standard_error.tolist()}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Recorded:
        """What `to_dict` described."""
        value, error = fields["value"], fields["standard_error"]
        return cls(np.array(value, np.float64), np.array(error, np.float64))
