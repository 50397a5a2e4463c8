"""Running sums with Laplace noise: pure privacy, on every event and on a few sums of events.

Terms are integers q_t that one person moves by at most Q, in units of h = 2^e. The strategy is
[D; S] of `workloads.cells_and_sums`, in whole numbers whose columns add up to the same `level`:

    y = (D·q + z, S·q + w),   z, w independent Laplace variables of scale 2^54, rounded,

is ε-private if c·Q·level ≤ 2^54·ε. Released are the sums A·x̂ of the estimates

    x̂ = D⁻¹a + G·(b − S·D⁻¹a)   of   y = (a, b),

which are A·q + N, N = A·D⁻¹z + H·(w − S·D⁻¹z), whatever H = A·G is: it is rounded to multiples of
2^−60 first. As A·q is an integer vector, A·q + ⌊N + ½⌋ = ⌊A·x̂ + ½⌋ is a fixed function of y. So
it is with other whole numbers in the place of A: sums over windows, and sums that decay. A sum over
events to come is part of y, and never needed to answer: docs/proofs/streams.md has the proof, for
terms that are chosen in view of earlier answers too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from operator import mul
from typing import Any, ClassVar

import numpy as np

from muhat import _check
from muhat._arrays import Floats, Integers
from muhat._integers import whole_root_down
from muhat._plain import Key, Plain
from muhat.mechanisms.queries.event_weights import Weights
from muhat.mechanisms.queries.running_optimum import SOLVED_CLOSELY, solved
from muhat.noise import FRACTION_BITS
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.laplace import Laplace
from muhat.privacy import Privacy
from muhat.workloads.cells_and_sums import (
    LARGEST_SOLVED,
    LEVEL,
    CellsAndSums,
    Decoded,
    strategy_for,
)
from muhat.workloads.toeplitz_floor import prefix_floor

LONGEST = 1 << 16
"""Longer streams would have too many sums, and too large ones, to draw at the start."""

NOISE_BITS = 30
"""The noise on one term is about 2^30 units, so that a strategy has 2^24 steps."""

_BITS = 160
_DECODER_BITS = 60
LAW = Laplace()
RUNNING = Weights()


class PureSums:
    """What pure noise on sums of events knows of them, whatever its law."""

    kind: ClassVar[NoiseKind] = NoiseKind.PURE
    size: int
    exponents: tuple[int, ...]
    window: int | None
    decay: Fraction | None

    @property
    def dim(self) -> int:
        """The number of coordinates."""
        return len(self.exponents)

    @property
    def events(self) -> Weights:
        """What events count in the sums after them."""
        return Weights(self.window, self.decay)

    def floor(self, p: float) -> float:
        """What ‖√variances‖_p cannot be below, with unit sensitivity.

        That of the solver, or of the closed form for long running sums.
        """
        if self.events == RUNNING and self.size > SOLVED_CLOSELY:
            return prefix_floor(self.size, p)
        return solved(self.size, p, self.events).floor


@dataclass(frozen=True, eq=False)
class LaplaceRunningNoise(
    PureSums,
    Plain,
    keys=(
        "mechanism",
        "size",
        "exponents",
        Key("reaches", text=True),
        "levels",
        "sums",
        "strength_squared",
        "contributions",
        "apart",
        "window",
        "decay",
    ),
):
    """The noise of n sums of d coordinates, all of them ε-private together.

    `levels` are what the columns of each coordinate's strategy add up to, `sums` the parts of 2^20
    that sums of events take of them, each the same on blocks of events.
    """

    mechanism: ClassVar[str] = "laplace-prefix"
    name: ClassVar[str] = "laplace noise, cells and sums"
    size: int
    exponents: tuple[int, ...]
    reaches: tuple[int, ...]
    levels: tuple[int, ...]
    sums: tuple[tuple[int, ...], ...]
    strength_squared: Fraction
    contributions: int
    apart: int = 1
    window: int | None = None
    decay: Fraction | None = None

    def __post_init__(self) -> None:
        _check.count("size", self.size, most=LONGEST)
        _check.count("contributions", self.contributions)
        columns = [sum(column) for column in zip(*self.sums, strict=True)]
        if min(self.levels) < LEVEL or any(not 0 <= total < LEVEL for total in columns):
            raise AssertionError("the strategy leaves nothing for an event by itself")
        if any(part < 0 for row in self.sums for part in row):
            raise AssertionError("a strategy has no negative entries")
        moved = sum(
            reach * level for reach, level in zip(self.reaches, self.levels, strict=True)
        ) * Fraction(self.contributions)
        if not LAW.keeps(Strength(self.kind, self.strength_squared), moved):
            raise AssertionError("a person moves the strategy farther than the promise allows")

    def made_for(self, promise: Privacy) -> bool:
        """Whether it is as strong as the promise allows."""
        return self.strength_squared == Strength.of(promise, self.kind).squared

    def strategy(self, coordinate: int) -> CellsAndSums:
        """The whole numbers of one coordinate; its columns add up to its level."""
        level = self.levels[coordinate]
        block = -(-self.size // LARGEST_SOLVED)
        parts = np.array(self.sums, object).reshape(len(self.sums), -(-self.size // block))
        sums = (parts * level // LEVEL).astype(np.int64)
        each = np.repeat(sums, block, axis=1)[:, : self.size]
        return CellsAndSums(level - each.sum(axis=0), each)

    def draw(self) -> Integers:
        """The noise on every sum in units, exactly rounded, of shape (n, d)."""
        events = self.events
        drawn = [running_noise(self.strategy(j), LAW.sample, events) for j in range(self.dim)]
        return np.stack(drawn, axis=1)

    def moment(self, order: float) -> float:
        """At most (E|x|^q)^{1/q} of the noise x of every answer, in its deviations."""
        return float(LAW.combined_moment(order, np.array(1.0))) / math.sqrt(2)

    @cached_property
    def standard_deviations(self) -> Floats:
        """Of the noise on every sum, of shape (n, d)."""
        unit = math.sqrt(LAW.variance(1)) * 2.0**FRACTION_BITS * (1 + 2.0**-30)
        columns = [
            Decoded(self.events.workload(self.size), self.strategy(j), public=False).row_norms()
            * math.ldexp(unit, exponent)
            for j, exponent in enumerate(self.exponents)
        ]
        return np.stack(columns, axis=1)

    @classmethod
    def fitted(
        cls,
        size: int,
        exponents: Sequence[int],
        reaches: Sequence[int],
        shares: Sequence[Fraction],
        strength_squared: Fraction,
        contributions: int,
        apart: int = 1,
        events: Weights = RUNNING,
    ) -> LaplaceRunningNoise:
        """As large a strategy as the promise allows; coordinates have shares ω of ε, Σω ≤ 1."""
        levels = tuple(
            whole_root_down(
                strength_squared * (share * (1 << FRACTION_BITS) / (contributions * reach)) ** 2
            )
            for reach, share in zip(reaches, shares, strict=True)
        )
        given = tuple(exponents), tuple(reaches), levels
        sums = best_sums(size, events)
        return cls(size, *given, sums, strength_squared, contributions, apart, *events)


@lru_cache(maxsize=32)
def best_sums(size: int, events: Weights) -> tuple[tuple[int, ...], ...]:
    """The sums beside the events, as parts of 2^20; none where events alone err less."""
    workload = events.workload(size)
    found = strategy_for(workload)
    if found is None:
        return ()
    errors = Decoded(workload, found, public=False).row_norms() * LEVEL
    shares = np.ldexp(np.array(events.whole(size), float), -events.shift)
    alone = float(np.arange(size, 0, -1) @ shares**2)
    if float(np.sum(errors**2)) > alone:
        return ()
    return tuple(tuple(row) for row in found.sums[:, :: -(-size // LARGEST_SOLVED)].tolist())


def laplace_shares(reaches: Sequence[float], p: float) -> tuple[Fraction, ...]:
    """ω_j ∝ r_j^{p/(p+1)}, Σω ≤ 1: the least Σ(r_j/ω_j)^p."""
    power = 1.0 if math.isinf(p) else p / (p + 1)
    parts = [Fraction(max((reach / max(reaches)) ** power, 2.0**-40)) for reach in reaches]
    total = sum(parts)
    return tuple(Fraction(math.floor(part / total * (1 << 60)), 1 << 60) for part in parts)


def running_noise(
    strategy: CellsAndSums, sample: Callable[[int], Any], events: Weights = RUNNING
) -> Integers:
    """⌊N + ½⌋ for N = W·D⁻¹z + H·(w − S·D⁻¹z), exactly, of shape (n,); W is whole numbers here."""
    size = len(strategy.own)
    own = [int(x) for x in strategy.own]
    drawn = [int(x) for x in sample(size)]
    beside = [int(x) for x in sample(len(strategy.sums))] if len(strategy.sums) else []
    rows = strategy.sums.tolist()
    decoder = _decoder(strategy, events)
    weights = events.whole(size)
    # In units of 2^−160, each rounded down by less than one.
    parts = [(z << _BITS) // d for z, d in zip(drawn, own, strict=True)]
    rest = [
        (w << _BITS) - sum(s * part for s, part in zip(row, parts, strict=True))
        for w, row in zip(beside, rows, strict=True)
    ]
    off = [sum(row) for row in rows]
    half = 1 << (_BITS + _DECODER_BITS - 1)
    found, steps = [], 0
    for t, running in enumerate(events.sums(parts)):
        steps += weights[t]
        value = (running << _DECODER_BITS) + half
        error = steps << _DECODER_BITS
        for h, r, e in zip(decoder[t], rest, off, strict=True):
            value += h * r
            error += abs(h) * e
        low, high = (x >> (_BITS + _DECODER_BITS) for x in (value - error, value + error))
        if low != high:
            counted = list(map(mul, weights[t::-1], drawn))
            low = _exact(counted, own, drawn, beside, rows, decoder[t])
        found.append(low)
    return np.array(found, np.int64)


def _decoder(strategy: CellsAndSums, events: Weights) -> list[list[int]]:
    """H in units of 2^−60, of shape (n, sums): least squares, as near as floats come."""
    if not len(strategy.sums):
        return [[]] * len(strategy.own)
    beside = strategy.sums / strategy.own
    core = np.linalg.inv(np.eye(len(beside)) + beside @ beside.T)
    gain = (beside / strategy.own).T @ core
    size = len(gain)
    summed = np.cumsum(gain, axis=0) if events == RUNNING else events.matrix(size) @ gain
    scaled = np.rint(np.ldexp(summed, _DECODER_BITS))
    return [[int(x) for x in row] for row in scaled]


def _exact(
    counted: list[int],
    own: list[int],
    drawn: list[int],
    beside: list[int],
    rows: list[list[int]],
    weights: list[int],
) -> int:
    """The same for one sum, in rationals: hardly ever needed but for halves."""
    value = _sum_of_quotients(counted, own[: len(counted)])
    for h, w, row in zip(weights, beside, rows, strict=True):
        seen = _sum_of_quotients([s * z for s, z in zip(row, drawn, strict=True)], own)
        value += Fraction(h, 1 << _DECODER_BITS) * (w - seen)
    return math.floor(value + Fraction(1, 2))


def _sum_of_quotients(above: list[int], below: list[int]) -> Fraction:
    """Σ a/b, equal denominators together."""
    together: dict[int, int] = {}
    for a, b in zip(above, below, strict=True):
        together[b] = together.get(b, 0) + a
    return sum((Fraction(a, b) for b, a in together.items()), Fraction(0))
