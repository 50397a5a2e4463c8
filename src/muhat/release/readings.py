"""What is read off noisy moments: a line for every number of a statistic of a group.

Each kind of statistic is a quotient of two forms in the tables (`quotients.py`), how far a draw of
the records may move it, and the unit it is printed in. Values are in u = (x − centre)/half-width
until the line gives them their unit. What each interval rests on: docs/proofs/readings.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement

import numpy as np

from muhat._arrays import Floats
from muhat.noise.stairs import Stairs
from muhat.release.moments import COUNT, NoisyMoments, Term
from muhat.release.population import DEVIATIONS, NOISE, guaranteed_sampling
from muhat.release.quotients import Form, Quotient, normal_quantile

Sampling = Callable[[Floats, float], Floats]
"""θ and a quantile z ↦ the square of what a draw of the records may add to X − θ·Y."""

Ends = tuple[Floats, Floats]


@dataclass(frozen=True, eq=False)
class ReadLine:
    """One number of every group: shift + unit·θ, or shift + unit·√θ if it is `rooted`.

    `limits` hold every θ that can be; the value is moved there, unless it is to be `unbiased`.
    `guaranteed`, for a chance of a miss, is what sampling may add for every number of records and
    every distribution. `whole` numbers are known to be such, with noise that is whole too.
    """

    quotient: Quotient
    limits: tuple[float, float]
    sampling: Sampling | None
    label: str = ""
    shift: float = 0.0
    unit: float = 1.0
    rooted: bool = False
    unbiased: bool = False
    guaranteed: Callable[[float], Floats] | None = None
    whole: bool = False

    @property
    def _theta(self) -> Floats:
        value = self.quotient.value
        return value if self.unbiased else np.clip(value, *self.limits)

    @property
    def value(self) -> Floats:
        """The numbers, of shape (groups,)."""
        return self._in_units(self._theta)

    @property
    def error(self) -> Floats:
        """Their asymptotic standard deviations: noise alone."""
        theta = self._theta
        error = self.quotient.error(theta)
        if self.rooted:
            # |√(a + b) − √a| is at most √|b|, and about |b|/(2√a) where that is less.
            root = np.sqrt(np.maximum(theta, 0.0))
            near = error / np.where(root > 0, 2 * root, 1.0)
            error = np.where(root > 0, np.minimum(near, np.sqrt(error)), np.sqrt(error))
        return np.asarray(self.unit * error)

    def records(self, miss: float) -> Ends:
        """An interval for the number of these records, each with this chance of a miss."""
        lower, upper = self._own(self.quotient.interval(miss, *self.limits))
        return (np.ceil(lower), np.floor(upper)) if self.whole else (lower, upper)

    def population(self, miss: float, *, guaranteed: bool = False) -> Ends:
        """An interval for that of the population that they are independent draws of."""
        assert self.sampling is not None
        if guaranteed:
            assert self.guaranteed is not None
            allowed = self.guaranteed(miss) ** 2
            return self._own(self.quotient.interval(NOISE * miss, *self.limits, lambda _: allowed))
        draw, z = self.sampling, normal_quantile(miss)
        return self._own(self.quotient.interval(miss, *self.limits, lambda theta: draw(theta, z)))

    def _own(self, ends: Ends) -> Ends:
        return self._in_units(ends[0]), self._in_units(ends[1])

    def _in_units(self, theta: Floats) -> Floats:
        theta = np.sqrt(np.maximum(theta, 0.0)) if self.rooted else theta
        return np.asarray(self.shift + self.unit * theta)


def count_lines(moments: NoisyMoments, columns: Sequence[str]) -> tuple[ReadLine, ...]:
    """The number of records."""
    number = Form.of(moments, COUNT)
    quotient = Quotient.of(moments, number, _one(moments))
    whole = moments.law == Stairs.name
    return (ReadLine(quotient, (0.0, math.inf), None, unbiased=True, whole=whole),)


def sum_lines(moments: NoisyMoments, columns: Sequence[str]) -> tuple[ReadLine, ...]:
    """Σx = centre·N + half-width·Σu; of a population only if the number of records is exact."""
    (column,) = columns
    center, half = moments.centers[column], moments.half_widths[column]
    total = Form.of(moments, COUNT) * center + Form.of(moments, (column,)) * half
    quotient = Quotient.of(moments, total, _one(moments))
    exact = moments.error_of(COUNT) == 0
    draw = _mean_sampling(moments, column, half) if exact else None
    sure = _guaranteed(moments, column, half)
    return (ReadLine(quotient, (-math.inf, math.inf), draw, guaranteed=sure),)


def mean_lines(moments: NoisyMoments, columns: Sequence[str]) -> tuple[ReadLine, ...]:
    """Σu/N."""
    (column,) = columns
    quotient = Quotient.of(moments, Form.of(moments, (column,)), Form.of(moments, COUNT))
    return (
        ReadLine(
            quotient,
            (-1.0, 1.0),
            _mean_sampling(moments, column, 1.0),
            shift=moments.centers[column],
            unit=moments.half_widths[column],
            guaranteed=_guaranteed(moments, column, 1.0),
        ),
    )


def weighted_mean_lines(moments: NoisyMoments, columns: Sequence[str]) -> tuple[ReadLine, ...]:
    """Σw·u/Σw of a column and its weights, which are not negative.

    Pairs (w, u) are drawn independently: Σw(u − τ) has a variance of at most N·E[w²(u − τ)²], and
    that is at most the largest weight times Σw·(1 − τ²).
    """
    column, weight = columns
    center, half = moments.centers[weight], moments.half_widths[weight]
    both = Form.of(moments, product(column, weight))
    quotient = Quotient.of(
        moments,
        Form.of(moments, (column,)) * center + both * half,
        Form.of(moments, COUNT) * center + Form.of(moments, (weight,)) * half,
    )

    def draw(theta: Floats, z: float) -> Floats:
        room = np.maximum(1 - theta**2, 0.0)
        return z**2 * (center + half) * np.maximum(quotient.bottom, 0.0) * room

    shift, unit = moments.centers[column], moments.half_widths[column]
    return (ReadLine(quotient, (-1.0, 1.0), draw, shift=shift, unit=unit),)


def weighted_sum_lines(moments: NoisyMoments, columns: Sequence[str]) -> tuple[ReadLine, ...]:
    """Σw·x of a column and its weights, a sum of four tables."""
    column, weight = columns
    center, half = moments.centers[column], moments.half_widths[column]
    middle, width = moments.centers[weight], moments.half_widths[weight]
    total = (
        Form.of(moments, COUNT) * (middle * center)
        + Form.of(moments, (column,)) * (middle * half)
        + Form.of(moments, (weight,)) * (width * center)
        + Form.of(moments, product(column, weight)) * (width * half)
    )
    quotient = Quotient.of(moments, total, _one(moments))
    return (ReadLine(quotient, (-math.inf, math.inf), None),)


def variance_lines(moments: NoisyMoments, columns: Sequence[str]) -> tuple[ReadLine, ...]:
    """S² = (N·Σu² − (Σu)²)/(N·(N − 1)).

    In a population of variance θ it varies by (m₄ − θ²)/N, m₄ ≤ (1 + |m|)²·θ, and a term of N⁻².
    """
    (column,) = columns
    quotient = Quotient.of(moments, scatter(moments, column, column), _pairs(moments))
    number, farthest = _at_least_two(moments), _farthest(moments, column)

    def draw(theta: Floats, z: float) -> Floats:
        size = np.maximum(theta, 0.0)
        varies = np.maximum(farthest**2 * size - size**2, 0.0) / number
        varies = varies + 2 * size**2 / (number * (number - 1))
        return np.asarray((z * quotient.bottom) ** 2 * varies)

    return (ReadLine(quotient, (0.0, 2.0), draw, unit=moments.half_widths[column] ** 2),)


def deviation_lines(moments: NoisyMoments, columns: Sequence[str]) -> tuple[ReadLine, ...]:
    """The root of the variance."""
    (line,) = variance_lines(moments, columns)
    unit = moments.half_widths[columns[0]]
    return (ReadLine(line.quotient, line.limits, line.sampling, unit=unit, rooted=True),)


def covariance_lines(moments: NoisyMoments, columns: Sequence[str]) -> tuple[ReadLine, ...]:
    """(N·Σuv − Σu·Σv)/(N·(N − 1)) of every pair of columns.

    In a population it varies by at most the square of one column's reach times the variance of
    the other, over N.
    """
    return tuple(_covariance(moments, *pair) for pair in combinations(columns, 2))


def _covariance(moments: NoisyMoments, first: str, second: str) -> ReadLine:
    quotient = Quotient.of(moments, scatter(moments, first, second), _pairs(moments))
    number = _at_least_two(moments)
    ones, others = (moments.of_column(column).variance() for column in (first, second))
    most = np.minimum(
        _farthest(moments, first) ** 2 * others, _farthest(moments, second) ** 2 * ones
    )

    def draw(theta: Floats, z: float) -> Floats:
        varies = np.maximum(most - theta**2, 0.0) / number
        varies = varies + (ones * others + theta**2) / (number * (number - 1))
        return np.asarray((z * quotient.bottom) ** 2 * varies)

    unit = moments.half_widths[first] * moments.half_widths[second]
    return ReadLine(quotient, (-2.0, 2.0), draw, f"{first}, {second}", unit=unit)


def correlation_lines(moments: NoisyMoments, columns: Sequence[str]) -> tuple[ReadLine, ...]:
    """The covariance over the root of the product of the variances, of every pair of columns."""
    return tuple(_correlation(moments, *pair) for pair in combinations(columns, 2))


def _correlation(moments: NoisyMoments, first: str, second: str) -> ReadLine:
    top = scatter(moments, first, second)
    forms = [scatter(moments, column, column) for column in (first, second)]
    least = [least_scatter(moments, [column]) for column in (first, second)]
    # Whatever the moments, squares of what is divided by these are floats.
    sizes = [
        np.maximum(form.value(moments), np.maximum(floor, 1e-20))
        for form, floor in zip(forms, least, strict=True)
    ]
    bottom = np.sqrt(sizes[0] * sizes[1])
    # √(D·E) moves by its halves over D and over E.
    halves = [bottom / (2 * size) for size in sizes]
    parts = list(zip(halves, forms, strict=True))
    both = sum(half * top.bent(form, moments) for half, form in parts)
    own = sum(a * b * one.bent(other, moments) for a, one in parts for b, other in parts)
    quotient = Quotient(
        moments,
        top.value(moments),
        bottom,
        top.gradient(moments),
        np.sum([half * form.gradient(moments) for half, form in parts], axis=0),
        (top.bent(top, moments), both, own),
        np.all([form.value(moments) > at for form, at in zip(forms, least, strict=True)], axis=0),
    )
    number = np.maximum(moments.count, 4.0)

    def draw(theta: Floats, z: float) -> Floats:
        """Fisher: artanh of a sample's correlation varies by 1/(N − 3), if pairs are normal."""
        inside = np.clip(theta, -1 + 1e-15, 1 - 1e-15)
        side = np.where(quotient.top > theta * quotient.bottom, 1.0, -1.0)
        drawn = np.tanh(np.arctanh(inside) + side * z / np.sqrt(number - 3))
        return np.asarray(((drawn - inside) * quotient.bottom) ** 2)

    return ReadLine(quotient, (-1.0, 1.0), draw, f"{first}, {second}")


def product(first: str, second: str) -> Term:
    """The term of Σu·v."""
    return (first, second) if first <= second else (second, first)


def least_scatter(moments: NoisyMoments, columns: Sequence[str]) -> Floats:
    """The scatter of columns, in any direction, that their noise alone could have made.

    A symmetric matrix of noise seldom has an eigenvalue above 2√dim of the largest deviation of
    its entries; the deviations are those at the noisy means.
    """
    pairs = combinations_with_replacement(columns, 2)
    forms = [scatter(moments, *pair) for pair in pairs]
    errors = [
        np.sqrt(moments.error(form.gradient(moments)) ** 2 + form.bent(form, moments))
        for form in forms
    ]
    return np.asarray(2 * math.sqrt(len(columns)) * np.max(errors, axis=0))


def _one(moments: NoisyMoments) -> Form:
    return Form.of(moments, COUNT) * 0.0 + 1.0


def _pairs(moments: NoisyMoments) -> Form:
    """N·(N − 1)."""
    number = Form.of(moments, COUNT)
    return number * number - number


def scatter(moments: NoisyMoments, first: str, second: str) -> Form:
    """N·Σuv − Σu·Σv; of one column N·Σu² − (Σu)², with Σu² = N − Σ(1 − u²)."""
    number = Form.of(moments, COUNT)
    if first == second:
        squares = number - Form.of(moments, (first, first))
    else:
        squares = Form.of(moments, product(first, second))
    return number * squares - Form.of(moments, (first,)) * Form.of(moments, (second,))


def _at_least_two(moments: NoisyMoments) -> Floats:
    return np.maximum(moments.count, 2.0)


def _farthest(moments: NoisyMoments, column: str) -> Floats:
    """1 + |m|, no less than what any value lies from the mean, with room for the noise."""
    known = moments.of_column(column)
    number = _at_least_two(moments)
    mean = np.minimum(np.abs(known.sums) / number, 1.0)
    error = np.hypot(known.sum_error, mean * known.count_error) / number
    return 1 + np.minimum(mean + DEVIATIONS * error, 1.0)


def _mean_sampling(moments: NoisyMoments, column: str, unit: float) -> Sampling:
    """z²·N·S²₊, whatever the mean."""
    varies = unit**2 * np.maximum(moments.count, 0.0) * moments.of_column(column).variance()
    return lambda theta, z: z**2 * varies


def _guaranteed(moments: NoisyMoments, column: str, unit: float) -> Callable[[float], Floats]:
    known, reach = moments.of_column(column), moments.deviations
    return lambda miss: unit * guaranteed_sampling(known, miss, reach, reach)
