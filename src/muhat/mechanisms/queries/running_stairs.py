"""Running sums with stairs on every event: the least pure noise for each of them.

Terms are integers q_t that one event moves by at most Q. y = q + s with independent stairs s of
step Q hides every event by itself, and A·y = A·q + A·s, all of them whole numbers, is a function of
y. c events of a person are c numbers that move, each hidden with ε/c. Without sums of events beside
them, it errs less than Laplace noise where ε is large or few events are added up. Proof:
docs/proofs/streams.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from muhat import _check
from muhat._arrays import Floats, Integers
from muhat._plain import Key, Plain
from muhat.mechanisms.queries.running_laplace import LONGEST, PureSums
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.least_stairs import least_stairs
from muhat.noise.stairs import Stairs
from muhat.privacy import Privacy


@dataclass(frozen=True, eq=False)
class StairsRunningNoise(
    PureSums,
    Plain,
    keys=(
        "mechanism",
        "size",
        "exponents",
        Key("reaches", text=True),
        "law",
        "contributions",
        "apart",
        "window",
        "decay",
    ),
):
    """The noise of n sums of one coordinate, all of them private together."""

    mechanism: ClassVar[str] = "stairs-sums"
    name: ClassVar[str] = "stairs on events"
    size: int
    exponents: tuple[int, ...]
    reaches: tuple[int, ...]
    law: Stairs
    contributions: int
    apart: int = 1
    window: int | None = None
    decay: Fraction | None = None

    def __post_init__(self) -> None:
        _check.count("size", self.size, most=LONGEST)
        _check.count("contributions", self.contributions)
        if len(self.exponents) != 1 or len(self.reaches) != 1:
            raise AssertionError("stairs are for events of one number")

    def made_for(self, promise: Privacy) -> bool:
        """Whether every event is hidden, and all of a person's together: exactly."""
        share = _share(promise, self.contributions)
        return self.law.keeps(share, Fraction(self.reaches[0]))

    def draw(self) -> Integers:
        """The noise on every sum in units (over 2^shift), of shape (n, 1)."""
        # One by one: each hides one event, whose share of the promise is its own.
        drawn = [int(self.law.sample(1)[0]) for _ in range(self.size)]
        return np.array(self.events.sums(drawn), np.int64)[:, None]

    @cached_property
    def standard_deviations(self) -> Floats:
        """Of the noise on every sum, of shape (n, 1)."""
        events = self.events
        shares = np.ldexp(np.array(events.whole(self.size), float), -events.shift)
        rows = np.sqrt(np.cumsum(shares**2)) * (1 + 2.0**-40)
        unit = math.ldexp(math.sqrt(self.law.second_moment), self.exponents[0])
        return np.asarray(rows[:, None] * unit)


def _share(promise: Privacy, contributions: int) -> Privacy | Strength:
    """What is left for each event of a person."""
    if contributions == 1:
        return promise
    return Strength.of(promise, NoiseKind.PURE).part(Fraction(1, contributions))


def stairs_for(promise: Privacy, contributions: int, reach: int) -> Stairs | None:
    """The least stairs for each event; None where they are not worth their table."""
    return least_stairs(_share(promise, contributions), reach)
