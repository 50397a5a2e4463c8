"""From noisy sums to an answer: the value, its noise, and what was released beside it.

Everything here is post-processing: it works on numbers that are public already.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from muhat._arrays import Floats
from muhat.mechanisms.sums.ratio import Ratio
from muhat.noise.spread import Spread
from muhat.release.answer import CONFIDENCE
from muhat.release.beside import Recorded, Squares

if TYPE_CHECKING:
    from muhat.planning.sums import NoisySums


@dataclass(frozen=True, eq=False)
class Estimate:
    """What is read off noisy sums; the names are those of an answer's fields."""

    value: Floats
    noise: Spread | Ratio
    recorded: Recorded | None = None
    squares: Squares | None = None


def answer(plan: NoisySums, noisy: list[Fraction]) -> Estimate:
    """The value and its spread, from the noisy rows of its query."""
    query = plan.recipe.query
    counts = noisy[len(noisy) - query.column_counts :]
    squares = squares_of(plan, noisy)
    if plan.is_ratio:
        ratio = _ratio(plan, noisy[: query.sum_rows], counts or noisy[-1:])
        number = Recorded(ratio.count, ratio.count_error)
        return Estimate(mean_of(plan, ratio), ratio, number, squares)
    assert plan.spread is not None
    if plan.domain is None:
        return Estimate(np.array([float(noisy[0])]), plan.spread)
    recorded = _recorded(plan, counts) if counts else None
    counted = query.count_multiplier is not None
    totals = noisy[: query.sum_rows]
    centers = _centers(plan, noisy[-1] if counted or counts else Fraction(0))
    if plan.statistic == "mean":
        assert plan.n is not None
        totals = [total / plan.n for total in totals]
    box = None if query.lattice is None else query.lattice.plain_box
    if box is not None:
        # Exact up to the last step: a centre far from 0 must not swallow the digits.
        places = zip(box.center_units, box.grid, totals, strict=True)
        exact = [centers * units * step + total for units, step, total in places]
        return Estimate(np.array([float(x) for x in exact]), plan.spread, recorded, squares)
    assert plan.recipe.center is not None
    middle = float(centers) * plan.recipe.center
    return Estimate(middle + plan.recipe.to_domain(totals), plan.spread, None, squares)


def _centers(plan: NoisySums, count: Fraction) -> Fraction:
    """How many times the centre belongs to the answer: sums are measured from it."""
    if plan.statistic == "mean":
        return Fraction(1)
    if plan.recipe.query.from_zero:
        return Fraction(0)
    return count if plan.n is None else Fraction(plan.n)


def _ratio(plan: NoisySums, sums: list[Fraction], counts: list[Fraction]) -> Ratio:
    """The noisy sums and what they are divided by."""
    assert plan.domain is not None
    recipe, middle = plan.recipe, plan.domain.center
    assert recipe.center is not None
    lower, upper = plan.domain.bounding_box
    return Ratio(
        recipe.to_domain(sums),
        np.array([float(count) for count in counts]),
        recipe.sum_spread,
        recipe.row_scales[-len(counts) :],
        lower - middle,
        upper - middle,
        recipe.center - middle,
    )


def mean_of(plan: NoisySums, ratio: Ratio) -> Floats:
    """The noisy sum divided by the noisy count, within the domain.

    Not a number where values may be missing and the noisy count cannot be told from none at all.
    """
    assert plan.domain is not None
    inside = np.clip(ratio.offset, -1e150, 1e150)
    value = plan.domain.nearest_in_hull(plan.domain.center + inside)
    if plan.missing == "drop":
        return np.where(ratio.is_empty(CONFIDENCE), np.nan, value)
    return value


def squares_of(plan: NoisySums, noisy: list[Fraction]) -> Squares | None:
    """The noisy sums of squares, and the frame that they are measured in."""
    recipe, query = plan.recipe, plan.recipe.query
    spread = recipe.square_spread
    if spread is None:
        return None
    assert recipe.center is not None
    lacking = noisy[query.sum_rows : query.sum_rows + query.square_rows]
    totals = np.array([float(total) for total in lacking])
    halves = recipe.to_domain(query.square_reach)
    return Squares(totals, spread, recipe.center, halves, float(query.base))


def _recorded(plan: NoisySums, counts: list[Fraction]) -> Recorded:
    """The numbers of recorded values beside a sum."""
    recipe = plan.recipe
    errors = recipe.row_scales[-len(counts) :] * np.sqrt(recipe.law.variance(recipe.noise_rows))
    return Recorded(np.array([float(count) for count in counts]), errors)
