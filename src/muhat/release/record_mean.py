"""Where the mean of all records lies, those outside a learnt interval included, on a condition.

The interval of a clipped mean says nothing of what the records outside add. On a line it can be
said, if none of them lies too far out: each adds what it lies beyond its end, so m of them move a
mean of n by at most m times the farthest/n. Proof: docs/proofs/unbounded.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from muhat import _check
from muhat.domains import Domain
from muhat.errors import InvalidInput
from muhat.mechanisms.learning.outside_count import OutsideCount

CONFIDENCE = 0.95
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
