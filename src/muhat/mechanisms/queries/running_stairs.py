"""Running sums with stairs on every event: the least pure noise for each of them.

Terms are integers q_t that one event moves by at most Q. y = q + s with independent stairs s of
step Q hides every event by itself, and A·y = A·q + A·s, all of them whole numbers, is a function of
y. c events of a person are c numbers that move, each hidden with ε/c. Without sums of events beside
them, it errs less than Laplace noise where ε is large or few events are added up. Proof:
docs/proofs/streams.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

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

    def moment(self, order: float) -> Floats:
        """At most (E|x|^q)^{1/q} of the noise x of an answer, in its deviations, of shape (n, 1).

        That of the next even order, from its cumulants: those of sums are sums, each event's times
        the q-th power of what it counts. Infinite beyond the orders that floats tell.
        """
        even = 2 * math.ceil(order / 2)
        if even > LARGEST_ORDER:
            return np.full((self.size, 1), math.inf)
        events = self.events
        shares = np.ldexp(np.array(events.whole(self.size), float), -events.shift)
        orders = range(2, even + 1, 2)
        one = self.law.moments(orders) / self.law.variance(1) ** (np.array(orders) / 2)
        cumulants = _cumulants(one)[:, None] * [np.cumsum(shares**q) for q in orders]
        cumulants /= np.cumsum(shares**2) ** (np.array(orders)[:, None] / 2)
        return np.asarray(_moments(cumulants)[-1, :, None] ** (1 / even) * (1 + 1e-9))


LARGEST_ORDER = 24
"""Of moments that are worked out of cumulants."""


def _cumulants(moments: Floats) -> Floats:
    """κ₂, κ₄, … of a symmetric number from its moments of the same orders: κ = m − Σ C·κ·m."""
    found: list[float] = []
    for place, moment in enumerate(moments, 1):
        found.append(moment - sum(_mixed(found, [1.0, *moments], place)))
    return np.array(found)


def _moments(cumulants: Floats) -> Floats:
    """The moments from cumulants, whose first axis they are on."""
    found = [np.ones(cumulants.shape[1])]
    for place, cumulant in enumerate(cumulants, 1):
        found.append(cumulant + sum(_mixed(list(cumulants[: place - 1]), found, place)))
    return np.array(found[1:])


def _mixed(cumulants: Sequence[Any], moments: Sequence[Any], place: int) -> Iterator[Any]:
    """C(2n − 1, 2k − 1)·κ_2k·m_(2n−2k) for k < n."""
    for k, cumulant in enumerate(cumulants, 1):
        yield math.comb(2 * place - 1, 2 * k - 1) * cumulant * moments[place - k]


def _share(promise: Privacy, contributions: int) -> Privacy | Strength:
    """What is left for each event of a person."""
    if contributions == 1:
        return promise
    return Strength.of(promise, NoiseKind.PURE).part(Fraction(1, contributions))


def stairs_for(promise: Privacy, contributions: int, reach: int) -> Stairs | None:
    """The least stairs for each event; None where they are not worth their table."""
    return least_stairs(_share(promise, contributions), reach)
