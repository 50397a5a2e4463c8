"""What is known about where people's records lie while a ball is sought, and what is asked next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from muhat import _check
from muhat._plain import Key, Plain


class ChainStep(StrEnum):
    """What a round asks for."""

    FIRST = "first radius"
    CENTER = "center"
    RADIUS = "radius"
    FAR = "far outside"
    WIDE = "wide radius"
    FINE = "last center"
    LAST = "last radius"
    OUTSIDE = "outside"
    MEAN = "mean"

    @property
    def is_mean(self) -> bool:
        """Whether devices send their records, clipped and randomised; else their distances."""
        return self in (ChainStep.CENTER, ChainStep.FINE, ChainStep.MEAN)


@dataclass(frozen=True)
class Place(
    Plain,
    keys=(Key("next", "step"), "center", "radius", "noise", "asked", Key("outside", optional=True)),
):
    """What is known about where the records lie, and what is asked next.

    Attributes:
        step: what is asked next.
        center: a point near the records.
        radius: most records were seen within it, around this centre or the one before.
        noise: the root mean square error of the centre.
        asked: how many people have been asked so far.
        outside: the part of people far outside, later of those outside the last ball, and its
            standard error.
    """

    step: ChainStep
    center: tuple[float, ...]
    radius: float
    noise: float
    asked: int
    outside: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        _check.positive("radius", self.radius)
        _check.positive("noise", self.noise)
        _check.count("asked", self.asked, least=0)
        if self.outside is not None:
            _check.positive("the error of outside", self.outside[1])
