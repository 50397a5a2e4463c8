"""Sets of statistics in groups of few and of many records: errors as planned, and coverage.

400 releases with n secret and 400 with n public, groups of 40, 400 and 4,000 records. All that is
compared together has a false alarm of at most 1e-6. `pytest -s` prints the tables, which are those
of docs/coverage-sets.md on other entropy.
"""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.coverage_sets import SIZES, Key, Measured, measured, section
from scipy.stats import binom, chi2

TRIALS = 400
COMPARED = 200
"""No fewer than the numbers that are compared, in both relations together."""

CHANCE = 1e-6 / COMPARED
LEAST = int(binom.ppf(CHANCE, TRIALS, 0.95))
MOST_SPREAD = float(np.sqrt(chi2.isf(CHANCE, TRIALS) / TRIALS))
LEAST_SPREAD = float(np.sqrt(chi2.ppf(CHANCE, TRIALS) / TRIALS))
CURVED = 1.05
"""What an error may be beyond that of first order, in groups of 400 records or more."""


@pytest.fixture(scope="module", params=[True, False], ids=["secret", "public"])
def found(request: pytest.FixtureRequest) -> dict[Key, Measured]:
    done = measured(secret=request.param, trials=TRIALS)
    print("", *section("n secret" if request.param else "n public", done), sep="\n")
    return done


@pytest.mark.slow
def test_counts_and_sums_err_as_planned(found: dict[Key, Measured]) -> None:
    for (name, _, _), one in found.items():
        if name.startswith(("count", "sum")):
            assert one.planned is not None
            assert LEAST_SPREAD < one.error / one.planned < MOST_SPREAD, name
            assert one.stated == pytest.approx([one.planned] * TRIALS)


@pytest.mark.slow
def test_what_is_divided_errs_no_more_than_planned_and_as_stated(
    found: dict[Key, Measured],
) -> None:
    for (name, _, group), one in found.items():
        if SIZES[group] < 400 or not one.stated or name.startswith(("count", "sum")):
            continue
        if one.planned is not None:
            assert one.error < one.planned * MOST_SPREAD * CURVED, (name, group)
        stated = float(np.median(one.stated))
        assert LEAST_SPREAD / CURVED < one.error / stated < MOST_SPREAD * CURVED, (name, group)


@pytest.mark.slow
def test_intervals_hold_the_statistics_of_records_and_of_the_population(
    found: dict[Key, Measured],
) -> None:
    for key, one in found.items():
        assert len(one.records) == TRIALS
        assert sum(one.records) >= LEAST, key
        assert not one.population or sum(one.population) >= LEAST, key


@pytest.mark.slow
def test_intervals_that_are_too_short_would_be_noticed(found: dict[Key, Measured]) -> None:
    """Those of 70 % confidence, of counts and sums: ten deviations below what is allowed."""
    for (name, _, _), one in found.items():
        if name.startswith(("count", "sum")):
            assert sum(one.short) < LEAST
