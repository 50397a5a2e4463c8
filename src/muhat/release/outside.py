"""How many records lie outside the set that was found for them: a noisy count, and what it means.

Records outside a ball that was learnt count as the nearest point of it. How much the mean would
move with them is not known, and no interval covers it; how many they are is, up to noise.

On a line it can be said where the mean of all records lies, if none is too far out: each adds what
it lies beyond its end, so m of them move a mean of n by at most m times the farthest/n. Proof:
docs/proofs/unbounded.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from muhat import _check
from muhat._plain import Key, Plain
from muhat.domains import Domain
from muhat.errors import InvalidInput
from muhat.mechanisms.learning.outside_count import OutsideCount

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


EACH, BOTH = 0.99, 0.98
"""That of either end of the clipped mean, of the most records on either side, and of the least
number of all: they hold together with 95 % at least. The second is that of two ends."""

FAR = 3.0
"""Records are taken to lie no farther beyond the ends than so many times their distance."""


@dataclass(frozen=True)
class RecordMean:
    """From `lower` to `upper` lies the mean of the records, if none is beyond `least` … `most`.

    With a confidence of 95 %.
    """

    lower: float
    upper: float
    least: float
    most: float

    def __post_init__(self) -> None:
        for name in ("lower", "upper", "least", "most"):
            object.__setattr__(self, name, _check.real(name, getattr(self, name)))
        if not (self.lower <= self.upper and self.least <= self.most):
            raise InvalidInput("the ends of an interval are in order.")

    def to_dict(self) -> dict[str, Any]:
        """The interval and its condition as JSON."""
        return {
            "confidence": CONFIDENCE,
            "lower": self.lower,
            "upper": self.upper,
            "if_none_beyond": [self.least, self.most],
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> RecordMean:
        """What `to_dict` described."""
        least, most = fields["if_none_beyond"]
        return cls(fields["lower"], fields["upper"], least, most)


def record_mean(
    clipped: tuple[float, float],
    interval: Domain,
    outside: OutsideCount,
    n: float,
    magnitude: float,
) -> RecordMean:
    """What follows from an interval for the mean of at least n clipped records, and the counts.

    `clipped` has the confidence of `BOTH`, n that of `EACH`. Without counts for each side all
    records outside may lie on either.
    """
    half, center = float(interval.half_widths[0]), float(interval.center[0])
    reach = FAR * 2 * half
    least = min(max(center - half - reach, -magnitude), center - half)
    most = max(min(center + half + reach, magnitude), center + half)
    left, right = (max(count, 0.0) for count in outside.most_on_sides(EACH))
    number = max(n, 1.0)
    return RecordMean(
        clipped[0] - left * (center - half - least) / number,
        clipped[1] + right * (most - center - half) / number,
        least,
        most,
    )
