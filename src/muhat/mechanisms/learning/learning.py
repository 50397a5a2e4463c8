"""Ways to average records that nobody has bounded, and what comes out of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from muhat._arrays import Floats
from muhat.domains import Domain
from muhat.mechanisms.learning.moment_error import MomentError
from muhat.mechanisms.learning.outside_count import OutsideCount
from muhat.mechanisms.learning.sharing import Sharing
from muhat.mechanisms.learning.steps import Step
from muhat.mechanisms.sums.ratio import Ratio
from muhat.noise.spread import Spread

if TYPE_CHECKING:
    from muhat.data import Source


@dataclass(frozen=True)
class RandomPart:
    """The complete records that were averaged: a random part of them, if some are missing.

    `number` is how many complete ones there are, with noise of a standard deviation, `averaged`
    how many of them were, and `bias` bounds the bias of every column for so many.
    """

    number: float
    standard_error: float
    averaged: int
    bias: float


@dataclass(frozen=True, eq=False)
class Learnt:
    """What came out of a method; all of it is private output.

    `noise` is None if nothing is known about the error, `ball` if the method has none. It is a
    ratio, with the noisy number of records in it, where records may be missing. If a part of the
    value was shrunk, the noise is about `unshrunk`, the value before. `outside` counts the
    records outside the ball, None if nobody asked. Where a moment is assumed, `error` and `rmse`
    are what follows about the population. `part` says which records were averaged, if not all
    complete ones. With a `failure`, the reason why there is no value, the
    values are not-a-number.
    """

    value: Floats
    noise: Spread | Ratio | None
    ball: Domain | None
    steps: tuple[Step, ...]
    failure: str | None = None
    unshrunk: Floats | None = None
    outside: OutsideCount | None = None
    error: MomentError | None = None
    rmse: float | None = None
    part: RandomPart | None = None

    def count(self, name: str) -> int:
        """How often a step of this name was taken."""
        return sum(step.name == name for step in self.steps)


class Method(Protocol):
    """A way to average such records, complete before any data is seen."""

    @property
    def name(self) -> str:
        """What users call it."""

    @property
    def summary(self) -> str:
        """What it does, in a few words."""

    @property
    def sharing(self) -> Sharing:
        """The promise that its steps share, and the records it is for."""

    @property
    def shares(self) -> dict[str, float]:
        """The share of the promise that each step takes, by its name."""

    @property
    def final_share(self) -> float:
        """The share that the mean itself has on the common path."""

    @property
    def is_enough(self) -> bool:
        """Whether every step works almost surely with this many records."""

    @property
    def least_n(self) -> int:
        """The least number of records for which every step works almost surely."""

    def check(self) -> None:
        """Make every kind of step once: what cannot be made is refused before any charge."""

    def admit(self, source: Source) -> None:
        """Refuse a source that cannot be read as often as it takes, from its metadata alone."""

    def run(self, source: Source) -> Learnt:
        """Read the records as often as it takes; the whole promise has been charged."""

    def to_dict(self) -> dict[str, Any]:
        """All that decides the release, for the plan's digest."""
