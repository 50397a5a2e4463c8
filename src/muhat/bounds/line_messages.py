"""The best message about one number that is private as it stands, and what no message beats.

A record is one of K places x between −1 and 1. A message is a number y with the chance f(x) of
being sent, f within a factor e^ε; any such f is a mixture of steps, e^ε for the places from a first
to a last one and 1 for the others. Unbiased messages of the least variance at the worst place are
a linear program,

    min t    Σ θ·f(x) = 1,   Σ θ·f(x)·y = x,   Σ θ·f(x)·y² ≤ t + x²,   θ ≥ 0 for every (f, y),

solved with more and more of the columns (f, y): those at which the dual inequality

    Σ_x f(x)·(u_x + v_x·y − s_x·y²) ≤ 0

is violated most, whose f follows from the signs and whose y is a vertex of a parabola. The dual is
about all f, and lowering u makes any dual feasible: Σu + Σvx − Σsx² is then a floor of the
variance, for all protocols that devices may have. Proof: docs/proofs/local.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat.errors import InvalidInput

LEAST_EPSILON, LARGEST_EPSILON = 0.25, 10.0
"""Below, randomised response is as good; above, floats do not solve the program."""

TOLERANCE, FINER = 1e-3, 4e-3
"""How near its floor the variance is, relatively, if all goes well; the second on more places."""

COARSE, MOST_PLACES = 17, 65
"""Places to begin with, and the most that are worth the time."""

ENOUGH = 0.02
"""A record between two places is drawn to one of them; what that adds is no larger part."""

_MOST_ROUNDS, _MOST_COLUMNS = 40, 4000
_ROUNDING = 1e-9
"""Far above what floats lose of a floor, relative to its terms."""

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Columns:
    """Steps from `first` to `last` of the places, both of them in, and the numbers sent."""

    first: Places
    last: Places
    values: Floats

    def __len__(self) -> int:
        return len(self.values)

    def __add__(self, other: Columns) -> Columns:
        return Columns(
            np.concatenate([self.first, other.first]),
            np.concatenate([self.last, other.last]),
            np.concatenate([self.values, other.values]),
        )

    def chosen(self, which: NDArray[np.generic]) -> Columns:
        """Some of them."""
        return Columns(self.first[which], self.last[which], self.values[which])

    def distinct(self, places: int, step: float) -> Columns:
        """Those that are steps, each once, of a number of at least 0 up to a step."""
        whole = (self.first == 0) & (self.last == places - 1)
        inside = (self.first >= 0) & (self.last < places) & (self.first <= self.last)
        kept = self.chosen(inside & ~whole & (self.values >= 0))
        rows = np.column_stack([kept.first, kept.last, np.rint(kept.values / step)])
        return kept.chosen(np.unique(rows, axis=0, return_index=True)[1])


@dataclass(frozen=True, eq=False)
class LineMessages:
    """Messages about `places` places: steps that are sent with the `weights`, ×1 or ×e^ε.

    They are symmetric: what stands here of numbers above 0 holds mirrored below. `variance` is
    the largest over the places, and no message varies less than `floor` at all of them.
    """

    places: int
    columns: Columns
    weights: Floats
    variance: float
    floor: float


@lru_cache(maxsize=64)
def line_messages(epsilon: float) -> LineMessages:
    """The best messages for records anywhere between −1 and 1, on as many places as that takes.

    >>> found = line_messages(1.0)
    >>> found.places, round(found.variance, 2), found.variance < 1.002 * found.floor
    (17, 3.99, True)
    """
    if not LEAST_EPSILON <= epsilon <= LARGEST_EPSILON:
        raise InvalidInput(
            f"must be between {LEAST_EPSILON} and {LARGEST_EPSILON:g} for a program of messages",
            parameter="epsilon",
            value=f"{epsilon:g}",
        )
    gain = math.exp(epsilon)
    found = _solved(COARSE, gain, _first_columns(COARSE, gain))
    while found.places < MOST_PLACES and drawing(found.places) > ENOUGH * found.variance:
        found = _solved(2 * found.places - 1, gain, _finer(found, gain))
    return found


def line_floor(epsilon: float) -> float:
    """Below n times the mean square error of any unbiased mean of n devices' numbers in [−1, 1].

    On some dataset; 0 where there is no program.
    """
    return line_messages(epsilon).floor if LEAST_EPSILON <= epsilon <= LARGEST_EPSILON else 0.0


def drawing(places: int) -> float:
    """What drawing a record to one of two places beside it adds to its variance at most."""
    return 1 / (places - 1) ** 2


def _first_columns(places: int, gain: float) -> Columns:
    """All places beyond one, and a few around one."""
    at, x = np.arange(places), np.linspace(-1, 1, places)
    last = np.full(places, places - 1)
    far = np.linspace(0, 1.3 * (gain + 1) / (gain - 1), 10)
    found = [Columns(at, last, np.full(places, value)) for value in far]
    found += [Columns(at, at, x * times) for times in (0.9, 1.0, 1.1)]
    found += [
        Columns(np.maximum(at - wide, 0), np.minimum(at + wide, places - 1), x)
        for wide in (1, 2, 4)
    ]
    return sum(found[1:], found[0]).distinct(places, 1e-9)


def _finer(found: LineMessages, gain: float) -> Columns:
    """To begin with on twice as many places: the same steps, those beside them, and the first."""
    near, columns, places = (-1, 0, 1), found.columns, 2 * found.places - 1
    around = [
        Columns(
            2 * columns.first + down,
            2 * columns.last + up,
            columns.values + along * (down + up + 1) / (4 * (found.places - 1)),
        )
        for down in near
        for up in near
        for along in near
    ]
    return sum(around[1:], around[0]).distinct(places, 1e-9) + _first_columns(places, gain)


def _solved(places: int, gain: float, columns: Columns) -> LineMessages:
    """Rounds of the program, with the columns of the duals and those beside them."""
    floor, best = 0.0, None
    tolerance = TOLERANCE if places == COARSE else FINER
    for turn in range(_MOST_ROUNDS):
        variance, weights, dual = _program(places, gain, columns)
        used = columns.chosen(weights > 0)
        step = math.sqrt(tolerance * variance)
        tried = [dual] if best is None else [0.7 * best + 0.3 * dual, dual]
        found = used.chosen(np.arange(0))
        for each in tried:
            bound, violated = _floor_of(each, gain)
            if bound > floor or best is None:
                floor, best = max(bound, floor), each
            found = found + violated
        if floor >= variance * (1 - tolerance):
            break
        if turn % 3 == 0:
            found = _beside(found + used, step)
        kept = columns if len(columns) < _MOST_COLUMNS else used
        columns = (kept + found).distinct(places, step * 1e-3)
    else:
        variance, weights, _ = _program(places, gain, columns)
        used = columns.chosen(weights > 0)
    return LineMessages(places, used, weights[weights > 0], variance, floor)


def _beside(columns: Columns, step: float) -> Columns:
    """The columns and their neighbours, which keep duals from swinging."""
    near = (-1, 0, 1)
    around = [
        Columns(columns.first + down, columns.last + up, columns.values + along * step)
        for down in near
        for up in near
        for along in near
    ]
    return sum(around[1:], around[0])


def _program(places: int, gain: float, columns: Columns) -> tuple[float, Floats, Floats]:
    """t, θ of the columns and their mirror images together, f at most 1, and the dual u, v, s."""
    from scipy.optimize import linprog

    x, upper = np.linspace(-1, 1, places), np.arange(places // 2, places)
    at = np.arange(places)[:, None]
    inside = (at >= columns.first) & (at <= columns.last)
    f = np.where(inside, 1.0, 1 / gain)
    both, apart = (f + f[::-1])[upper], (f - f[::-1])[upper][1:]
    size = len(upper)
    equal = np.vstack([both, columns.values * apart])
    found = linprog(
        np.append(np.zeros(len(columns)), 1.0),
        np.hstack([columns.values**2 * both, -np.ones((size, 1))]),
        x[upper] ** 2,
        np.hstack([equal, np.zeros((len(equal), 1))]),
        np.concatenate([np.ones(size), x[upper][1:]]),
        bounds=(0, None),
        method="highs-ds",
    )
    if found.status:
        raise InvalidInput("the program of messages has no solution in floats; use 'cap'.")
    dual = np.zeros((3, places))
    prices = found.eqlin.marginals
    for row, (sign, price) in enumerate(
        [
            (1, prices[:size]),
            (-1, np.append(0.0, prices[size:])),
            (1, -found.ineqlin.marginals),
        ]
    ):
        np.add.at(dual[row], upper, price / 2)
        np.add.at(dual[row], places - 1 - upper, sign * price / 2)
    # The floor takes them for chances; HiGHS lets prices be below 0 by 1e-7.
    s = np.maximum(dual[2], 0.0)
    dual[2] = s / s.sum()
    return float(found.fun), np.asarray(found.x[:-1]), dual


def _floor_of(dual: Floats, gain: float) -> tuple[float, Columns]:
    """A floor of the variance from any dual, and the columns at which it is violated most.

    Σ_x f(x)·(u_x + v_x·y − s_x·y²), for the worst f of at most 1, is a parabola in y between
    roots of its terms; lowering all u by d lowers it by d·K/e^ε at least.
    """
    u, v, s = dual
    places = len(u)
    x = np.linspace(-1, 1, places)
    y, inside, excess = worst_values(dual, gain)
    worst = max(float(excess.max()), 0.0)
    terms = float(np.abs(u).sum() + np.abs(v).sum() + np.abs(s).sum())
    lowered = worst * gain + _ROUNDING * terms
    floor = float(u.sum() + v @ x - s @ x**2) - lowered
    kept = np.flatnonzero((excess > worst * TOLERANCE) & (excess > 0) & inside.any(axis=0))
    steps = inside[:, kept]
    last = places - 1 - steps[::-1].argmax(axis=0)
    return floor, Columns(steps.argmax(axis=0), last, y[kept])


def worst_values(dual: Floats, gain: float) -> tuple[Floats, NDArray[np.bool_], Floats]:
    """Where Σ f·(u + v·y − s·y²) is largest between roots: y, the places of f = 1, its value."""
    u, v, s = dual
    with np.errstate(all="ignore"):
        both = v + np.copysign(np.sqrt(v * v + 4 * s * u), v)
        roots = np.concatenate([both / (2 * s), -2 * u / both])
    ends = np.sort(roots[np.isfinite(roots)])
    reach = 1 + 2 * float(np.abs(ends).max(initial=1.0))
    middle = np.convolve(np.concatenate([[-reach], ends, [reach]]), [0.5, 0.5], "valid")
    low, high = np.append(-np.inf, ends), np.append(ends, np.inf)
    inside = u[:, None] + v[:, None] * middle - s[:, None] * middle**2 > 0
    f = np.where(inside, 1.0, 1 / gain)
    constant, slope, bend = (np.sum(f * each[:, None], axis=0) for each in dual)
    y = np.clip(slope / (2 * bend), low, high)
    return y, inside, constant + slope * y - bend * y**2
