"""Estimators that publish records: only on request, exactly as often as said, and unbiased."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import muhat as mh
from muhat import research
from muhat.errors import InvalidInput
from muhat.mechanisms.learning.coarse_interval import CoarseInterval
from muhat.mechanisms.learning.symmetric_column import SymmetricMean
from muhat.noise.discrete import coins, uniform_below
from muhat.research.disclosure import disclosed_total, open_column

PROMISE = mh.ApproxDP(epsilon=1, delta=0.05)
MEAN = SymmetricMean.planned(200, mh.ApproxDP(epsilon=1, delta=1e-3), (4, 1.4), scale=1.0)

Estimator = Callable[..., float]
CALLS: list[tuple[Estimator, tuple[Any, ...]]] = [
    (research.name_and_shame, (0.05,)),
    (research.name_and_shame_combination, (PROMISE, (-1, 1), (4, 1.4))),
    (research.symmetric_mean_with_fallback, (MEAN,)),
]


@pytest.mark.parametrize(("estimator", "arguments"), CALLS)
@pytest.mark.parametrize("accepted", [None, False, 1, "yes"])
def test_nothing_runs_unless_disclosure_is_accepted(
    estimator: Estimator, arguments: tuple[Any, ...], accepted: Any
) -> None:
    options = {} if accepted is None else {"accept_disclosure": accepted}
    with pytest.raises(InvalidInput, match="in the clear"):
        estimator(object(), *arguments, **options)


@pytest.mark.parametrize("estimator", [estimator for estimator, _ in CALLS])
def test_the_first_line_says_what_is_published(estimator: Estimator) -> None:
    first = (inspect.getdoc(estimator) or "").splitlines()[0]
    assert first.startswith("Publish ")
    assert "record in the clear with probability δ" in first
    assert inspect.signature(estimator).parameters["accept_disclosure"].default is False


def test_the_command_line_does_not_know_them() -> None:
    from pathlib import Path

    import muhat.cli

    folder = Path(muhat.cli.__file__).parent
    for path in folder.glob("*.py"):
        assert "research" not in path.read_text()
        assert "shame" not in path.read_text()


def spread(values: list[float], expected: float) -> float:
    """How many standard errors the mean lies from what is expected."""
    sample = np.array(values)
    return abs(sample.mean() - expected) / (sample.std() / math.sqrt(len(sample)))


def test_name_and_shame_has_the_mean_and_the_error_of_the_paper() -> None:
    # 5.5 standard errors, twice: a false alarm in fewer than 1 in 2 million, although squares are
    # skewed.
    rng = np.random.default_rng(1)
    mu, delta, n = 3.0, 0.05, 50
    values = [
        research.name_and_shame(rng.standard_normal(n) + mu, delta, accept_disclosure=True)
        for _ in range(8000)
    ]
    expected = (1 + (1 - delta) * mu**2) / (delta * n)
    squares = [(value - mu) ** 2 for value in values]
    assert spread(values, mu) < 5.5
    assert spread(squares, expected) < 5.5
    # A coin of another chance, or a sum that is not divided by it, would be seen.
    assert spread(values, mu * 1.3) > 11
    assert spread(squares, expected * 1.5) > 11


def test_records_are_published_as_they_are_and_missing_ones_are_zero() -> None:
    data = np.array([5.0, np.nan, np.inf, -2.0])
    seen = {research.name_and_shame(data, 0.5, accept_disclosure=True) for _ in range(200)}
    assert seen == {0.0, 2.5, -1.0, 1.5}


def test_the_combination_undoes_the_bias_of_clipping() -> None:
    # Skewed, and clipped hard: 5.5 standard errors, a false alarm in fewer than 1 in 2 million.
    rng = np.random.default_rng(2)
    law = rng.exponential(2, (1500, 60))
    mu = 2.0
    arguments = (mh.ApproxDP(epsilon=1, delta=0.2), (0.0, 2.0), (2.5, 0.5))
    values = [
        research.name_and_shame_combination(row, *arguments, accept_disclosure=True) for row in law
    ]
    assert spread(values, mu) < 5.5
    # What clipping alone would give lies far off.
    pad = 0.5 * (60 * 0.5 / (4 * 2.5**2 * 0.2)) ** (1 / 2.5)
    clipped = mu * (1 - math.exp(-(2 + pad) / mu))
    assert spread(values, clipped) > 11


def test_the_combination_keeps_its_bound() -> None:
    rng = np.random.default_rng(4)
    promise, interval, moment = mh.ApproxDP(epsilon=1, delta=0.01), (-1.0, 1.0), (4, 3**0.25)
    bound = research.combination_mse_bound(80, promise, interval, moment, 1.0)
    data = rng.standard_normal((800, 80)) + 0.7
    errors = [
        (
            research.name_and_shame_combination(
                row, promise, interval, moment, accept_disclosure=True
            )
            - 0.7
        )
        ** 2
        for row in data
    ]
    found = np.mean(errors)
    assert found - 5.5 * np.std(errors) / math.sqrt(800) < bound < 10 * found


def test_the_fallback_is_the_symmetric_mean_where_that_finds_an_interval() -> None:
    rows = np.random.default_rng(5).standard_normal(200) + 40
    for _ in range(20):
        value = research.symmetric_mean_with_fallback(rows, MEAN, accept_disclosure=True)
        assert abs(value - 40) < 12


def test_the_fallback_publishes_other_rows_where_nothing_was_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CoarseInterval, "choose", lambda self, bins: None)
    mean = SymmetricMean.planned(200, mh.ApproxDP(epsilon=1, delta=0.02), (4, 1.4), scale=1.0)
    rows = np.arange(200.0)
    values = [
        research.symmetric_mean_with_fallback(rows, mean, accept_disclosure=True)
        for _ in range(1500)
    ]
    totals = np.array(values) * 0.02 * mean.second
    assert totals == pytest.approx(np.round(totals), abs=1e-9)
    assert totals[totals > 0.5].min() >= mean.first
    # 5.5 standard errors: a false alarm in fewer than 1 in 20 million.
    assert spread(values, rows[mean.first :].mean()) < 5.5
    assert spread(values, rows.mean()) > 11


def test_the_fallback_reads_the_other_rows_only() -> None:
    from muhat.data.halves import split_rows

    far = np.arange(200.0) * 1000
    tail = split_rows(open_column(far, None), MEAN.first).tail
    total = disclosed_total(tail, Fraction(1), lambda values: values)
    assert total == far[MEAN.first :].sum()


def test_coins_fall_exactly_as_often_as_said() -> None:
    # Words that begin with the bits of the chance leave it to what follows them.
    third = Fraction(1, 3)
    first = (1 << 64) // 3

    def replay(*values: int) -> Callable[[int], Any]:
        stream = iter(values)
        return lambda count: np.array([next(stream) for _ in range(count)], np.uint64)

    assert coins(third, 2, replay(first - 1, first + 1)).tolist() == [True, False]
    assert coins(third, 1, replay(first, first - 1)).tolist() == [True]
    assert coins(third, 1, replay(first, first + 1)).tolist() == [False]
    assert coins(Fraction(1), 3).all()
    assert not coins(Fraction(0), 3).any()
    assert not coins(Fraction(1, 2), 1, replay(1 << 63, 5)).any()
    assert uniform_below(5, replay(7 << 61, 4 << 61)) == 4
    tosses = coins(Fraction(1, 50), 200_000)
    assert abs(tosses.mean() - 0.02) < 5.5 * math.sqrt(0.02 * 0.98 / 200_000)


@pytest.mark.parametrize(
    ("estimator", "arguments"),
    [
        (research.name_and_shame, (0.0,)),
        (research.name_and_shame, (1.5,)),
        (research.name_and_shame_combination, (mh.PureDP(epsilon=1), (0, 1), (4, 1.0))),
        (research.name_and_shame_combination, (PROMISE, (1, 0), (4, 1.0))),
        (research.name_and_shame_combination, (PROMISE, (0, 1), (2, 1.0))),
        (research.symmetric_mean_with_fallback, (MEAN,)),
    ],
)
def test_bad_arguments_are_refused(estimator: Estimator, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidInput):
        estimator(np.zeros(50), *arguments, accept_disclosure=True)
    with pytest.raises(InvalidInput):
        estimator(np.zeros(0), *arguments, accept_disclosure=True)
