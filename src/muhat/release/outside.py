"""How many records lie outside the set that was found for them: a noisy count, and what it means.

Records outside a ball that was learnt count as the nearest point of it. How much the mean would
move with them is not known, and no interval covers it; how many they are is, up to noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from muhat import _check
from muhat._plain import Key, Plain
from muhat.errors import InvalidInput

CONFIDENCE = 0.95
"""That of the two ends together."""

SMALL = 0.02
"""If more than this part of the records may lie outside, it is said that their mean may be
elsewhere; otherwise, that what they add is not in the interval."""


_KEYS = (
    *("value", "confidence", "lower", "upper", "records"),
    *(Key("small", "is_small"), Key("noisy", optional=True)),
)


@dataclass(frozen=True)
class Outside(Plain, keys=_KEYS):
    """From `lower` to `upper` of so many records lie outside, with a confidence of 95 %.

    `value` is the noisy count without bias, which may be below 0; `records` is how many there are,
    `noisy` if that is known up to noise only, None if it is secret and unknown.

    >>> Outside.of(value=-3.0, half_width=15.0, records=10_000).describe()
    '0 to 12 of 10,000 records lie outside; what they add is not in the interval.'
    """

    value: float
    lower: float
    upper: float
    records: int | None
    noisy: bool = False

    confidence: ClassVar[float] = CONFIDENCE

    def __post_init__(self) -> None:
        for name in ("value", "lower", "upper"):
            object.__setattr__(self, name, _check.real(name, getattr(self, name)))
        if self.records is not None:
            object.__setattr__(self, "records", _check.count("records", self.records, least=0))
        if not 0 <= self.lower <= self.upper:
            raise InvalidInput("a count lies between two ends, of which none is below 0.")

    @classmethod
    def of(
        cls, value: float, half_width: float, records: int | None, *, noisy: bool = False
    ) -> Outside:
        """The ends around a count, as far as there are records."""
        lower, upper = max(value - half_width, 0.0), max(value + half_width, 0.0)
        if records is not None and not noisy:
            lower, upper = min(lower, float(records)), min(upper, float(records))
        return cls(value, lower, upper, records, noisy)

    @property
    def is_small(self) -> bool:
        """Whether at most two in a hundred records may lie outside."""
        return self.records is not None and self.upper <= SMALL * self.records

    def describe(self) -> str:
        """What to know about the interval, in a sentence."""
        ends = f"{math.floor(self.lower):,} to {math.ceil(self.upper):,}"
        about = "about " * self.noisy
        people = "records" if self.records is None else f"of {about}{self.records:,} records"
        if self.is_small:
            return f"{ends} {people} lie outside; what they add is not in the interval."
        return (
            f"{ends} {people} lie outside: the interval is that of the clipped mean, and the mean "
            "of the records themselves may be elsewhere."
        )
