"""Stairs: whole numbers that are the likelier the nearer to 0, level for a step at a time.

With a step Δ, an inner radius t and a ratio b < 1 the weight of z is 1 for |z| < t, b for the next
Δ numbers on either side, then b², and so on. One person who moves a number by at most Δ takes it
at most one stair up or down, so b ≥ e^−ε is ε-private. Of all noise that does this stairs have the
least variance, for the right t; for a count, Δ = t = 1, it is geometric, the least in every way.

Stairs may be cut at an `end`, beyond which nothing is drawn: whatever moves there gives itself
away, which (ε, δ)-privacy allows for δ. Of |z| = end a weight of `last` may be left. Cut noise is
Rényi private at no order: it keeps points (ε, δ) alone.

Everything is rational: b, the weights, the test of a promise. Proof: docs/proofs/stairs.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat._integers import whole_root_down
from muhat._plain import Key, Plain
from muhat.errors import InvalidInput
from muhat.noise.enclosures import falling_exponential
from muhat.noise.entropy import WORD_BITS, Words, system_words
from muhat.noise.exact import Enclosure
from muhat.noise.integers import Integers
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.laplace import Laplace
from muhat.noise.law import IndependentLaw
from muhat.noise.marginals import Curve, ForeseenMarginal, fixed_uniforms
from muhat.noise.picks import Ends, Picks, uniform_each
from muhat.noise.stair_sums import StairSums, log_moment
from muhat.privacy import Privacy, as_typed

LARGEST_STEP = 1 << 60
MOST_STAIRS = 1 << 12
"""Stairs that have a place in the table; what lies beyond is drawn again, from there."""

RATIO_BITS = 96
HEIGHT = 1 << 120
"""The weight of the first stair, where stairs are cut."""

_PRECISION = 128

MOST_DIGITS = 1 << 14
"""Bits of e^−ε beyond the usual ones: all that an ε of 10,000 needs."""
_FINE = 64


@dataclass(frozen=True)
class Stairs(
    IndependentLaw,
    Plain,
    keys=(
        "name",
        Key("step", text=True),
        Key("inner", text=True),
        "ratio",
        Key("end", optional=True, text=True),
        Key("last", optional=True, text=True),
    ),
):
    """Stairs of a step, an inner radius and a ratio; cut at `end`, if that is given.

    >>> law = Stairs(1, 1, Fraction(1, 2))
    >>> float(law.second_moment), law.keeps(Strength(NoiseKind.PURE, Fraction(1, 2)), Fraction(1))
    (4.0, True)
    """

    step: int
    inner: int
    ratio: Fraction
    end: int | None = None
    last: int | None = None

    name = "stairs"
    kind = NoiseKind.PURE
    sensitivity_norm = 1.0
    sums_class = StairSums

    def __post_init__(self) -> None:
        widest = 2 * LARGEST_STEP if self.end is None else self.step
        shaped = 1 <= self.inner <= widest and 1 <= self.step <= LARGEST_STEP
        if not (shaped and 0 < self.ratio < 1) or self.ratio.denominator > 1 << 4 * RATIO_BITS:
            raise InvalidInput("stairs need 1 <= inner <= step <= 2^60 and a ratio below 1.")
        if self.last is not None and (self.end is None or not 0 <= self.last <= HEIGHT):
            raise InvalidInput("what is left at the end of stairs is at most their first weight.")
        if self.end is not None and not 1 <= self.end <= self.inner + MOST_STAIRS * self.step:
            raise InvalidInput(f"stairs that are cut have at most {MOST_STAIRS} steps.")
        if self.last and self.last > self.stairs[-2][2]:
            raise InvalidInput("stairs fall.")

    @property
    def most_rows(self) -> int | None:
        """One number, if several small moves may each take a step; any for a step of 1."""
        return 1 if self.step > 1 else None

    @cached_property
    def unit(self) -> int:
        """A power of two near the scale of the noise, step/ε: errors are counted in it."""
        return 1 << max(0, round(math.log2(self.step / -math.log(self.ratio))))

    @cached_property
    def stairs(self) -> tuple[tuple[int, int, int], ...]:
        """Of cut stairs: from which size to below which, and the weight of each number there."""
        assert self.end is not None
        weight, start, found = HEIGHT, 0, []
        while start < self.end:
            stop = min(self.inner if start == 0 else start + self.step, self.end)
            found.append((start, stop, weight))
            start, weight = stop, rounded_up(weight * self.ratio)
        return (*found, (self.end, self.end + 1, self.last or 0))

    @cached_property
    def _masses(self) -> tuple[int, ...]:
        """The weight of all numbers of every stair, on both sides."""
        return tuple(
            (2 * (stop - start) - (start == 0)) * weight for start, stop, weight in self.stairs
        )

    def keeps(self, promise: Privacy | Strength, moved: Fraction) -> bool:
        """b^stairs ≥ e^−ε, rounded up; or Σ max(0, w_z − e^ε·w_{z+m}) ≤ δ·Σw if they are cut."""
        steps = math.floor(moved)
        if steps <= 0:
            return True
        if self.end is None:
            allowed = falling(promise)
            stairs = -(-steps // self.step)
            return allowed is not None and self.ratio**stairs >= allowed
        if isinstance(promise, Strength) or promise.point is None:
            return False
        if self.step == 1 and steps > 1:
            # Perhaps of two numbers at once, of which nothing is proved.
            return False
        epsilon, delta = map(as_typed, promise.point)
        factor = falling_exponential(epsilon, _PRECISION)[1]
        lost = sum(
            cells * max(Fraction(0), here * factor - there)
            for cells, here, there in self._overlaps(steps)
        )
        return lost <= delta * factor * sum(self._masses)

    def _overlaps(self, shift: int) -> Iterator[tuple[int, int, int]]:
        """How many z have a weight, and which one z + shift has: over all z of any weight."""
        right = [stair for stair in self.stairs if stair[2]]
        left = [(1 - stop, 1 - start, weight) for start, stop, weight in reversed(right)]
        # 0 is on both sides.
        whole = [*left[:-1], (left[-1][0], right[0][1], HEIGHT), *right[1:]]
        ends = sorted(
            {x - d for start, stop, _ in whole for x in (start, stop) for d in (0, shift)}
        )
        here = there = 0
        for low, high in pairwise(ends):
            while here < len(whole) and whole[here][1] <= low:
                here += 1
            while there < len(whole) and whole[there][1] <= low + shift:
                there += 1
            if here < len(whole) and whole[here][0] <= low:
                inside = there < len(whole) and whole[there][0] <= low + shift
                yield high - low, whole[here][2], whole[there][2] if inside else 0

    def sample(self, dim: int) -> Integers:
        if self.most_rows is not None and dim > self.most_rows:
            raise AssertionError("stairs of more than one number a step are for a single answer")
        return self.drawn(dim, system_words)

    def drawn(self, dim: int, words: Words) -> Integers:
        """Independent whole numbers from a source of words: a stair, then a number on it."""
        stair = self._picks.draw(dim, words)
        if self.end is None:
            self._climb(stair, words)
            widths = np.where(stair == 0, self.inner, self.step)
        else:
            widths = np.array([stop - start for start, stop, _ in self.stairs])[stair]
        # Of the inner stair 0 is there once, all other sizes twice.
        inner = stair == 0
        place = uniform_each(2 * widths - inner, words)
        reach = (int(stair.max(initial=0)) + 1) * self.step
        steps = stair if reach < LARGEST_STEP << 1 else stair.astype(object)
        starts = np.where(inner, 0, self.inner + (steps - 1) * self.step)
        if self.end is not None:
            starts = np.minimum(starts, self.end)
        sizes = starts + ((place + inner) >> 1)
        return np.asarray(np.where(place & 1, -sizes, sizes))

    def _climb(self, stair: NDArray[np.int64], words: Words) -> None:
        """Beyond the table stairs go on as from its first one: their number has no memory."""
        table = self._table
        beyond = np.flatnonzero(stair == table)
        while beyond.size:
            further = _on_and_on(self.ratio, table).draw(beyond.size, words)
            stair[beyond] += further
            beyond = beyond[further == table]

    @property
    def _table(self) -> int:
        return _table_of(self.ratio)

    @cached_property
    def _picks(self) -> Picks:
        """Which stair: P(stair ≥ j) = 2Δ·b^j/((2t − 1)(1 − b) + 2Δ·b) for j ≥ 1 if endless."""
        if self.end is None:
            outer = 2 * self.step
            whole = (2 * self.inner - 1) * (1 - self.ratio) + outer * self.ratio
            return Picks(_falling_ends(outer / whole, self.ratio, self._table))
        sums = list(accumulate(self._masses))

        def ends(precision: int) -> list[Enclosure]:
            floors = [(part << precision) // sums[-1] for part in sums[:-1]]
            return [(floor, floor + 1) for floor in floors]

        return Picks(ends)

    def variance(self, dim: int) -> float:
        """E z² in squares of the unit, from exact sums."""
        return float(self.second_moment) / float(self.unit) ** 2

    @cached_property
    def second_moment(self) -> Fraction:
        """E z², exactly."""
        if self.end is not None:
            sums = [
                weight * (_squares(stop) - _squares(start)) for start, stop, weight in self.stairs
            ]
            return Fraction(2 * sum(sums), sum(self._masses))
        b, step, t = self.ratio, self.step, self.inner
        # Stair j ≥ 1 begins at t + iΔ, i = j − 1; Σb^i·(1, i, i²), each over 1/(1 − b).
        first, second = b / (1 - b), b * (1 + b) / (1 - b) ** 2
        rise = step * t * t + t * step * (step - 1) + Fraction(_squares(step))
        slope = 2 * t * step**2 + step**2 * (step - 1)
        outer = b * (rise + slope * first + step**3 * second)
        whole = (2 * t - 1) * (1 - b) + 2 * step * b
        return 2 * (_squares(t) * (1 - b) + outer) / whole

    def moments(self, orders: Sequence[int]) -> Floats:
        """E z^q for even q, in units, of shape (orders,)."""
        if self.end is None:
            stairs = math.ceil((50 + 2 * max(orders)) / -math.log(self.ratio)) + 1
            ends = np.append(0.0, self.inner + self.step * np.arange(stairs, dtype=np.float64))
        else:
            ends = np.array([0.0, *(float(stop) for _, stop, _ in self.stairs)])
        starts, stops = ends[:-1], ends[1:]
        # 0 is there once, every other size on both sides.
        each = -np.diff(self.beyond(ends)) / (stops - starts - (starts == 0) / 2)
        unit = float(self.unit)
        return np.array([each @ _sums_of_powers(starts, stops, q, unit) for q in orders])

    def beyond(self, sizes: Floats) -> Floats:
        """P(|z| ≥ size) for whole numbers."""
        sizes = np.asarray(sizes, np.float64)
        if self.end is None:
            b, left = float(self.ratio), float(1 - self.ratio)
            stair = np.maximum(np.floor((sizes - self.inner) / self.step) + 1, 0.0)
            room = self.inner + stair * self.step - sizes
            outer = 2 * self.step * b
            chance = b**stair * (2 * room * left + outer) / ((2 * self.inner - 1) * left + outer)
        else:
            total = sum(self._masses)
            stops = np.array([float(stop) for _, stop, _ in self.stairs])
            each = np.array([2 * weight / total for *_, weight in self.stairs] + [0.0])
            after = np.array([float(Fraction(x, total)) for x in _after(self._masses)] + [0.0])
            stair = np.searchsorted(stops, sizes, side="right")
            room = np.append(stops, 0.0)[stair] - sizes
            chance = room * each[stair] + after[stair]
        return np.where(sizes <= 0, 1.0, chance)

    def tail(self, reach: float, dim: int) -> float:
        return float(self.tails(np.array(reach)))

    def tails(self, reaches: Floats) -> Floats:
        """P(|z| > reach), elementwise; floats just below a whole number are that number."""
        return self.beyond(np.floor(reaches * self.unit * (1 + 2.0**-50)) + 1)

    def foreseen(self, count: int, dim: int, start: int) -> tuple[Floats, Floats]:
        """As of every law; numbers that are hardly ever other than 0 are so in one of d + 1.

        Draws would not tell of them else; what is drawn too often weighs the less.
        """
        moves, often = float(self.beyond(np.array(1.0))), 1 / (dim + 1)
        if moves >= often:
            return super().foreseen(count, dim, start)
        uniform = fixed_uniforms(count, dim, start)
        away, signs = np.abs(2 * uniform - 1), np.sign(uniform - 0.5)
        moved = away < often
        sizes = np.where(moved, self.marginal.reached(away * (moves / often)), 0.0)
        # A row weighs 1 if nothing moves.
        weight = moves / often * (1 - often) / (1 - moves)
        return signs * sizes, weight ** moved.sum(axis=1)

    def quantile(self, confidence: float, dim: int, *, joint: bool = False) -> float:
        """The least whole number whose tail is small enough, in units."""
        return _least_size(self, 1 - confidence, dim, joint) / self.unit

    @property
    def marginal(self) -> StairsMarginal:
        """One number, in units."""
        return StairsMarginal(self)

    def combined_quantile(self, confidence: float, count: int, *, joint: bool) -> float:
        """Chernoff: E exp(λ⟨a, z⟩) ≤ E exp(λz) = 1/(1 − V(cosh λ − 1)), V = 2b/(1 − b)²."""
        b = self._at_most
        miss = (1 - confidence) / (count if joint else 1)
        rates = np.linspace(0.001, 0.999, 999) * -math.log(b)
        return float(((math.log(2 / miss) + log_moment(rates, b)) / rates).min()) / self.unit

    def sums(self, rows: Iterable[Floats]) -> StairSums | None:
        return StairSums.of(rows, self._at_most, self.unit) if self.step == 1 else None

    def combined_moment(self, order: float, terms: Floats) -> Floats:
        """That of Laplace noise of scale 1/ε, which is this noise and more, both independent."""
        return LAPLACE.combined_moment(order, terms) / (-math.log(self._at_most) * self.unit)

    @property
    def _at_most(self) -> float:
        """A ratio of endless stairs of step 1 that reach at least as far."""
        if self.step > 1:
            raise InvalidInput("stairs of more than one number a step are for a single answer.")
        return float(self.ratio) * (1 + 2.0**-40)


@dataclass(frozen=True)
class StairsMarginal(ForeseenMarginal):
    """One number of stairs."""

    law: Stairs

    def of_uniforms(self, uniform: Floats) -> Floats:
        return np.asarray(np.sign(uniform - 0.5) * self.reached(np.abs(2 * uniform - 1)))

    def reached(self, chances: Floats) -> Floats:
        """The largest size that is reached so often, on either side, in units."""
        beyond, sizes = self._knots
        return np.asarray(np.floor(np.interp(chances, beyond, sizes)) / self.law.unit)

    @cached_property
    def _knots(self) -> tuple[Floats, Floats]:
        """P(|z| ≥ size), ascending, where stairs end, and the sizes; straight between them."""
        law = self.law
        if law.end is None:
            # Beyond e^−40 there are no fixed draws.
            stairs = math.ceil(-40 / math.log(law.ratio)) + 1
            sizes = np.append([0.0, 1.0], law.inner + law.step * np.arange(stairs, dtype=float))
        else:
            sizes = np.array([0.0, 1.0, *(float(stop) for _, stop, _ in law.stairs)])
        sizes = np.unique(sizes)[::-1]
        return law.beyond(sizes), sizes

    def tail(self, x: Floats) -> Floats:
        return self.law.tails(x)

    def largest_square(self, count: int) -> float | None:
        """Σ (2k − 1)·P(max ≥ k) over whole numbers k from 1 on, where a step is 1."""
        law = self.law
        if law.step > 1:
            return None
        reach = 64 + math.ceil((45 + math.log(count)) / -math.log(law.ratio))
        sizes = np.arange(1, reach, dtype=np.float64)
        beyond = -np.expm1(count * np.log1p(-law.beyond(sizes)))
        return float((2 * sizes - 1) @ beyond) / float(law.unit) ** 2

    def _shortfall(self, p: float, reach: tuple[float, float], step: float) -> Curve:
        """A sum over all sizes, or over a few of every stair."""
        law = self.law
        fine = -(-law.step // _FINE)
        sizes = np.arange(0, law.inner + law._table * law.step, fine, dtype=np.float64)
        chances = -np.diff(np.append(law.beyond(sizes), 0.0))
        places = sizes / law.unit

        def at(y: Floats) -> Floats:
            return np.array([-np.expm1(-((places / v) ** p)) @ chances for v in np.exp(y)])

        return at


LAPLACE = Laplace()


def rounded_up(value: Fraction) -> int:
    """The least whole number of at least this."""
    return -(-value.numerator // value.denominator)


@lru_cache(maxsize=256)
def falling(allowed: Privacy | Strength, parts: int = 1) -> Fraction | None:
    """e^−ε of the pure noise that keeps a promise, or a share of one, rounded up; None if none.

    Of a part of ε, if it is to be kept so many times.
    """
    if isinstance(allowed, Strength) and allowed.kind is not NoiseKind.PURE:
        return None
    squared = Strength.of(allowed, NoiseKind.PURE).squared
    root = whole_root_down(squared * (1 << 2 * _PRECISION))
    # As many digits of a small number as of a large one, up to what nobody means by a promise.
    precision = _PRECISION + min(3 * (root >> _PRECISION) // 2, MOST_DIGITS)
    return falling_exponential(Fraction(root, parts << _PRECISION), precision)[1]


def _table_of(ratio: Fraction) -> int:
    """How many endless stairs are picked from at a time: all but 2^-64 of them, if few."""
    return min(MOST_STAIRS, math.ceil(45 / -math.log(ratio)))


def geometric(ratio: Fraction, words: Words) -> int:
    """A whole number that is at least j with probability ratio^j."""
    table, found = _table_of(ratio), 0
    while (further := int(_on_and_on(ratio, table).draw(1, words)[0])) == table:
        found += further
    return found + further


def _falling_ends(scale: Fraction, ratio: Fraction, count: int) -> Ends:
    """The ends 1 − scale·ratio^j, j from 1 up to count."""

    def ends(precision: int) -> list[Enclosure]:
        whole = 1 << (precision + WORD_BITS)
        low, high = math.floor(scale * whole), rounded_up(scale * whole)
        found = []
        for _ in range(count):
            low = low * ratio.numerator // ratio.denominator
            high = -(-high * ratio.numerator // ratio.denominator)
            found.append(((whole - high) >> WORD_BITS, -((low - whole) >> WORD_BITS)))
        return found

    return ends


def _sums_of_powers(starts: Floats, stops: Floats, order: int, unit: float) -> Floats:
    """Σ (k/unit)^q over whole k from each start until before each stop; Euler and Maclaurin's."""
    if (stops - starts).max() <= _FINE:
        places = starts[:, None] + np.arange(_FINE)
        return np.asarray(np.sum((places / unit) ** order * (places < stops[:, None]), axis=1))
    low, high = starts / unit, stops / unit
    whole = unit * (high ** (order + 1) - low ** (order + 1)) / (order + 1)
    ends = (low**order - high**order) / 2
    slopes = order / 12 / unit * (high ** (order - 1) - low ** (order - 1))
    return np.asarray(whole + ends + slopes)


@lru_cache(maxsize=16)
def _on_and_on(ratio: Fraction, count: int) -> Picks:
    """How many stairs further: at least j with probability b^j."""
    return Picks(_falling_ends(Fraction(1), ratio, count))


@lru_cache(maxsize=256)
def _least_size(law: Stairs, excess: float, dim: int, joint: bool) -> int:
    """The least whole number that z exceeds so rarely."""
    tail = law.joint_tail if joint else law.tail
    low, high = -1, 1
    while tail(high / law.unit, dim) > excess:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if tail(middle / law.unit, dim) <= excess else (middle, high)
    return high


def _squares(stop: int) -> int:
    """Σ z² over 0 ≤ z < stop."""
    return (stop - 1) * stop * (2 * stop - 1) // 6


def _after(masses: tuple[int, ...]) -> list[int]:
    """What comes after each."""
    total = sum(masses)
    return [total - part for part in accumulate(masses)]
