"""What is known about where people's records lie while a ball is sought, and what is asked next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from muhat import _check
from muhat.errors import InvalidInput


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
class Place:
    """What is known about where the records lie, and what is asked next.

    Attributes:
        step: what is asked next.
        center: a point near the records.
        radius: most records were seen within it, around this centre or the one before.
        noise: the root mean square error of the centre.
        asked: how many people have been asked so far.
        outside: the share of people far outside, later of those outside the last ball, and its
            standard error.
    """

    step: ChainStep
    center: tuple[float, ...]
    radius: float
    noise: float
    asked: int
    outside: tuple[float, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The place as plain data."""
        return {
            "next": self.step.value,
            "center": list(self.center),
            "radius": self.radius,
            "noise": self.noise,
            "asked": self.asked,
            **({} if self.outside is None else {"outside": list(self.outside)}),
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Place:
        """What `to_dict` described."""
        try:
            return cls(
                ChainStep(
                    _check.one_of("next", fields["next"], [step.value for step in ChainStep])
                ),
                tuple(_check.real("a coordinate of the centre", each) for each in fields["center"]),
                _check.positive("radius", fields["radius"]),
                _check.positive("noise", fields["noise"]),
                _check.count("asked", fields["asked"], least=0),
                _outside(fields.get("outside")),
            )
        except (KeyError, TypeError, ValueError):
            raise InvalidInput("what earlier rounds have learnt is not well described.") from None


def _outside(pair: Any) -> tuple[float, float] | None:
    """A share and its standard error."""
    if pair is None:
        return None
    share, error = pair
    return _check.real("outside", share), _check.positive("the error of outside", error)
