"""Private answers to linear queries: the stated errors are those that occur, for every workload."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse, stats

import muhat as mh
from muhat.noise.stairs import Stairs
from muhat.privacy import Neighbors

PROMISE = mh.ZCDP(rho=0.1)
CATEGORIES = {"sex": ["f", "m"], "age": {"bins": [0, 18, 65, 120]}}
PEOPLE = {
    "sex": ["f", "m", "f", "f", "m", "x", None, "m"],
    "age": [17, 40, 18, 3, 70, 50, 20, math.nan],
}
WORKLOADS = {
    "identity": mh.workloads.identity(6),
    "prefix": mh.workloads.prefix(8),
    "ranges": mh.workloads.ranges(5),
    "parity": mh.workloads.parity(3, 1),
    "marginals": mh.workloads.marginals((2, 3, 2), order=2),
    "marginals of several orders": mh.workloads.marginals((2, 3), order=[0, 1]),
    "matrix": mh.workloads.matrix([[1, 2, 0, -1], [0.5, 0, 1, 1], [1, 1, 1, 1]]),
    "kron": mh.workloads.kron(mh.workloads.prefix(3), mh.workloads.identity(3)),
    "stack": mh.workloads.stack([mh.workloads.identity(4), mh.workloads.prefix(4)], [1, 2]),
    "sum": mh.workloads.identity(4) + mh.workloads.prefix(4),
}
TOO_RARE = 1e-6 / (2 * len(WORKLOADS) * 4)
"""The false-alarm rate of a test of one case; all cases together stay below 10^−6."""


def counts_for(workload):
    return (np.arange(workload.shape[1], dtype=np.int64) * 7919) % 50


def standardised(plan, counts, repeats):
    """(answers − truth)/standard error of many releases, of shape (repeats, m)."""
    truth = plan.workload @ counts.astype(float)
    errors = np.array([plan.release(counts).value - truth for _ in range(repeats)])
    kept = plan.standard_error > 1e-6 * plan.standard_error.max()
    assert np.abs(errors[:, ~kept]).max(initial=0.0) < 1e-4
    return errors[:, kept] / plan.standard_error[kept]


def looks_right(scores):
    """Unit variances and no bias, answer by answer, by chi-square and normal tests."""
    repeats, answers = scores.shape
    level = TOO_RARE / (2 * answers)
    spread = np.sum(scores**2, axis=0)
    low, high = stats.chi2.ppf([level, 1 - level], repeats)
    bias = np.abs(scores.mean(axis=0)) * math.sqrt(repeats)
    return bool((spread > low).all() and (spread < high).all()) and bool(
        (bias < stats.norm.isf(level / 2)).all()
    )


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
@pytest.mark.parametrize("name", WORKLOADS)
def test_simulated_errors_are_those_that_variances_state(name, neighbors):
    """Normal noise, 400 releases; a spread off by a third or a shift would be seen."""
    workload = WORKLOADS[name]
    plan = mh.plan_queries(workload, privacy=PROMISE, neighbors=neighbors)
    scores = standardised(plan, counts_for(workload), 400)
    assert looks_right(scores)
    assert not looks_right(scores * 1.5), "a planted error in the spread must be caught"
    assert not looks_right(scores + 0.6), "a planted bias must be caught"


@pytest.mark.parametrize("name", WORKLOADS)
def test_an_answer_is_near_the_truth(name):
    """Within 8 standard errors: false alarm below 10^−13 for all answers together."""
    workload = WORKLOADS[name]
    for neighbors in ("add-remove", "substitute"):
        for promise in (PROMISE, mh.PureDP(epsilon=50.0)):
            plan = mh.plan_queries(workload, privacy=promise, neighbors=neighbors)
            counts = counts_for(workload)
            release = plan.release(counts)
            reach = 8 if promise is PROMISE else 40
            gap = np.abs(release.value - workload @ counts)
            assert (gap <= reach * release.standard_error + 1e-6).all()


def test_variances_are_the_diagonal_of_the_covariance():
    for workload in WORKLOADS.values():
        plan = mh.plan_queries(workload, privacy=PROMISE)
        assert np.allclose(plan.variances(), np.diag(plan.covariance), rtol=1e-6, atol=1e-9)


def test_total_error_is_the_factorisation_norm_over_mu():
    for p in (2, 4, math.inf):
        plan = mh.plan_queries(mh.workloads.prefix(16), privacy=mh.GDP(mu=0.5), p=p)
        norm = np.linalg.norm(plan.standard_error, ord=p)
        assert norm == pytest.approx(plan.factorization.value / 0.5, rel=1e-9)
    assert plan.factorization.value == pytest.approx(1.7044802441, rel=1e-8)


def test_the_certificate_never_claims_less_than_the_bound():
    for promise in (
        PROMISE,
        mh.GDP(mu=1),
        mh.PureDP(epsilon=1),
        mh.ApproxDP(epsilon=1, delta=1e-6),
    ):
        for neighbors in ("add-remove", "substitute"):
            plan = mh.plan_queries(mh.workloads.prefix(8), privacy=promise, neighbors=neighbors)
            assert plan.certificate.ratio >= 1
            assert plan.certificate.error == plan.expected_error
    assert mh.plan_queries(
        mh.workloads.prefix(8), privacy=PROMISE
    ).certificate.ratio == pytest.approx(1.0002, abs=1e-4)


def test_histograms_come_in_several_forms():
    workload = mh.workloads.marginals((2, 3), order=1)
    plan = mh.plan_queries(workload, privacy=mh.GDP(mu=1e4))
    dense = np.array([[1, 2, 3], [4, 5, 6]])
    for histogram in (
        dense,
        dense.ravel(),
        dense.astype(np.uint8),
        sparse.csr_array(dense),
        {(0, 0): 1, (0, 1): 2, (0, 2): 3, (1, 0): 4, 4: 5, 5: 6},
    ):
        assert np.allclose(plan.release(histogram).value, [6, 15, 5, 7, 9], atol=0.01)


def test_a_table_is_counted_by_its_public_categories():
    dropped = mh.plan_queries(
        mh.workloads.marginals((2, 3), sets=[(0, 1)]),
        privacy=mh.GDP(mu=1e4),
        categories=CATEGORIES,
    )
    release = dropped.release(PEOPLE)
    assert np.allclose(release.marginal("sex", "age"), [[2, 1, 0], [0, 1, 1]], atol=0.01)
    assert any("left out" in line for line in release.assumptions)
    kept = mh.plan_queries(
        mh.workloads.marginals((3, 4), sets=[(0,), (1,)]),
        privacy=mh.GDP(mu=1e4),
        categories=CATEGORIES,
        neighbors="substitute",
    )
    release = kept.release(PEOPLE)
    assert release.n == 8
    assert np.allclose(release.marginal("sex"), [3, 3, 2], atol=0.01)
    assert np.allclose(release.marginal(1), [2, 4, 1, 1], atol=0.01)
    table = release.table()
    assert table["sex"].tolist() == ["f", "m", "other", "", "", "", ""]
    assert table["age"].tolist()[3:] == ["[0, 18)", "[18, 65)", "[65, 120]", "other"]


ABSENT = {
    "tables": mh.workloads.marginals((2, 3), order=1),
    "one table": mh.workloads.marginals((2, 3), sets=[(0, 1)]),
    "cells": mh.workloads.identity((2, 3)),
    "products": mh.workloads.kron(mh.workloads.prefix(2), mh.workloads.prefix(3)),
    "a matrix": mh.workloads.matrix(np.random.default_rng(3).normal(size=(4, 6))),
}


def integers(plan, cells):
    """The integers that noise is added to, for the numbers of records in all cells."""
    query, counts = plan.recipe.query, np.array(cells).reshape(2, 3)
    if list(query.sets) == [(0,)]:  # a matrix knows one axis
        return np.array(list(query.encode(np.array(cells))), dtype=object)
    every = [axis for axes in query.sets for axis in axes]
    shape = counts if max(every) else counts.ravel()
    margins = {
        axes: shape.sum(axis=tuple(i for i in range(shape.ndim) if i not in axes))
        for axes in query.sets
    }
    encoded = query.encode(margins) if hasattr(query, "multipliers") else query.encode(counts)
    return np.array(list(encoded), dtype=object)


@pytest.mark.parametrize("promise", [mh.PureDP(epsilon=1), mh.ZCDP(rho=0.5)], ids=str)
@pytest.mark.parametrize("name", ABSENT)
def test_a_record_that_moves_comes_or_goes_moves_the_integers_as_promised(name, promise):
    """Every pair of neighbours of a histogram in which a record may be in no cell, in integers."""
    workload = ABSENT[name]
    size = workload.shape[1]
    categories = {"c": size} if workload.cells == (size,) else {"a": 2, "b": 3}
    plan = mh.plan_queries(
        workload, privacy=promise, neighbors="substitute", categories=categories, missing="drop"
    )
    assert plan.recipe.absent
    norm = plan.recipe.law.sensitivity_norm
    start = [5] * size
    bodies = [integers(plan, start)]
    bodies += [integers(plan, [c + (i == j) for i, c in enumerate(start)]) for j in range(size)]
    largest = 0
    for one in bodies:
        for other in bodies:
            apart = [abs(int(a) - int(b)) for a, b in zip(one, other, strict=True)]
            moved = sum(apart) ** 2 if norm == 1 else sum(a * a for a in apart)
            largest = max(largest, moved)
    law = plan.recipe.law
    if isinstance(law, Stairs):
        assert largest == 2**2
        assert law.keeps(promise, Fraction(2))
        assert not law.keeps(mh.PureDP(epsilon=promise.epsilon * (1 - 1e-9)), Fraction(2))
        return
    allowed = plan.recipe.protection.strength_squared(law.kind) * (1 << 108)
    assert allowed * 0.5 < largest <= allowed


def test_a_recipe_for_records_that_stay_is_none_for_records_that_go():
    """Planted: a strategy for a public total would tell whether a record has a cell at all."""
    plan = mh.plan_queries(mh.workloads.prefix(6), privacy=PROMISE, neighbors="substitute")
    with pytest.raises((AssertionError, mh.InvalidInput)):
        replace(plan.recipe, absent=True)


@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
@pytest.mark.parametrize("promise", [mh.PureDP(epsilon=1), mh.ZCDP(rho=0.5)], ids=str)
@pytest.mark.parametrize("workload", [(2, 3), None])
def test_the_noisy_number_of_recorded_values_is_part_of_the_release(neighbors, promise, workload):
    """Of 9,000 rows a third has no sex: the interval of 1 − 1e-9 holds the number of the others."""
    table = {"sex": ["f", "m", "x"] * 3000, "age": [10, 20, 70] * 3000}
    if workload is None:
        asked, categories = mh.workloads.ranges(2), {"sex": ["f", "m"]}
    else:
        asked, categories = mh.workloads.marginals(workload, order=1), CATEGORIES
    plan = mh.plan_queries(
        asked, privacy=promise, neighbors=neighbors, categories=categories, missing="drop"
    )
    release = plan.release(table)
    (half,) = release.recorded_noise.half_widths(1 - 1e-9, joint=False)
    assert abs(release.recorded - 6000) <= half
    assert release.recorded_error < 20
    assert release.n == (9000 if neighbors == "substitute" else None)
    assert release.missing == ("drop",) * len(categories)
    for text in (repr(release), release._repr_html_()):
        assert "left out" in text
        assert "Recorded: about " in text
    again = mh.Release.from_json(release.to_json())
    assert again.to_json() == release.to_json()
    assert repr(again) == repr(release)


def test_counts_that_are_given_have_no_rule_for_missing_values():
    release = mh.plan_queries(mh.workloads.prefix(4), privacy=PROMISE).release(np.arange(4))
    assert release.missing == ()
    assert release.recorded is None
    assert "left out" not in repr(release)


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
def test_intervals_of_recorded_counts_cover(neighbors):
    """2,000 releases of a pure table and its number of records: 5.5 standard errors of 95 %."""
    table = {"sex": ["f", "m", "x"] * 30, "age": [10, 20, 70] * 30}
    plan = mh.plan_queries(
        mh.workloads.marginals((2, 3), order=1),
        privacy=mh.PureDP(epsilon=0.5),
        neighbors=neighbors,
        categories=CATEGORIES,
        missing="drop",
    )
    truth, held, total = np.array([30, 30, 30, 30, 0]), np.zeros(5), 0
    for _ in range(2000):
        release = plan.release(table)
        lower, upper = release.interval()
        held += (lower <= truth) & (truth <= upper)
        (half,) = release.recorded_noise.half_widths(0.95, joint=False)
        total += abs(release.recorded - 60) <= half
    allowed = 0.95 - 5.5 * math.sqrt(0.95 * 0.05 / 2000)
    assert (held / 2000 >= allowed).all()
    assert total / 2000 >= allowed


def test_columns_of_codes_need_no_categories():
    plan = mh.plan_queries(mh.workloads.prefix(4), privacy=mh.GDP(mu=1e4))
    codes = np.array([0, 0, 1, 3, 3, 3, 9, -1])
    assert np.allclose(plan.release(codes, columns=[0]).value, [2, 3, 3, 6], atol=0.01)
    with pytest.raises(mh.InvalidInput, match=r"substitut|drop"):
        mh.plan_queries(mh.workloads.prefix(4), privacy=PROMISE, neighbors="substitute").release(
            codes, columns=[0]
        )


def test_a_release_survives_json():
    plan = mh.plan_queries(
        mh.workloads.marginals((2, 3), order=1), privacy=PROMISE, categories=CATEGORIES
    )
    release = plan.release(PEOPLE)
    again = mh.Release.from_json(release.to_json())
    assert again.to_json() == release.to_json()
    assert repr(again) == repr(release)
    assert np.array_equal(again.interval(0.9)[0], release.interval(0.9)[0])
    with pytest.raises(mh.InvalidInput, match="not kept"):
        _ = again.covariance
    for text in ("", "{}", "[1]", '{"schema": "muhat.queries/1"}', release.to_json()[:-9]):
        with pytest.raises(mh.InvalidInput):
            mh.Release.from_json(text)


def test_projected_answers_could_come_from_a_histogram():
    workload = mh.workloads.marginals((2, 3), order=[0, 1])
    counts = np.array([[1, 0, 0], [0, 0, 2]])
    release = mh.plan_queries(workload, privacy=PROMISE).release(counts).projected()
    total, rows, columns = release.value[0], release.value[1:3], release.value[3:]
    assert (release.value >= -1e-6).all()
    assert rows.sum() == pytest.approx(total, abs=1e-3)
    assert columns.sum() == pytest.approx(total, abs=1e-3)
    assert release.certificate is None
    assert any("bias" in line for line in release.assumptions)


def test_the_ledger_is_charged_once_and_before_the_data_are_read(tmp_path):
    ledger = mh.Ledger.create(tmp_path / "b.db", budget=mh.ZCDP(rho=0.25), neighbors="add-remove")
    plan = mh.plan_queries(mh.workloads.prefix(4), privacy=PROMISE)
    release = plan.release(np.arange(4), ledger=ledger)
    assert release.ledger_head is not None
    assert ledger.spent == mh.ZCDP(rho=0.1)
    for bad in (np.arange(3), np.arange(4.0), "no-such-file", [1, 2, 3]):
        with pytest.raises(mh.InvalidInput):
            plan.release(bad, ledger=ledger)
    assert ledger.spent == mh.ZCDP(rho=0.1)
    plan.release(np.arange(4), ledger=ledger)
    with pytest.raises(mh.BudgetExceeded):
        plan.release(np.arange(4), ledger=ledger)


def test_a_plan_checks_itself():
    plan = mh.plan_queries(mh.workloads.prefix(4), privacy=PROMISE)
    for change in (
        {"privacy": mh.ZCDP(rho=0.01)},
        {"contributions": 2},
        {"neighbors": Neighbors.SUBSTITUTE},
    ):
        terms = replace(plan.terms, **change)
        with pytest.raises(mh.InvalidInput):
            replace(plan, terms=terms)
        with pytest.raises(mh.InvalidInput):
            replace(plan["queries"], terms=terms)
    with pytest.raises(mh.InvalidInput):
        replace(plan["queries"], workload=mh.workloads.prefix(5))


def test_the_digest_is_stable_and_tells_plans_apart():
    def digest(**changes):
        options = {"privacy": PROMISE, "p": 2, "contributions": 1, **changes}
        return mh.plan_queries(mh.workloads.prefix(6), **options).digest

    assert digest() == digest()
    others = [digest(privacy=mh.ZCDP(rho=0.2)), digest(contributions=2), digest(p=4)]
    assert len({digest(), *others}) == 4


def test_plans_and_releases_are_plain_data():
    plan = mh.plan_queries(mh.workloads.ranges(4), privacy=PROMISE)
    assert json.loads(json.dumps(plan.to_dict()))["answers"] == 10
    assert "within" in plan.describe()
    assert "<table>" in plan._repr_html_()
    release = plan.release(np.arange(4))
    assert "cell from = 0, cell to = 2" in repr(release)
    assert "<table>" in release._repr_html_()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"p": 1.5}, "p must be at least 2"),
        ({"privacy": 1.0}, "privacy must be a promise"),
        ({"neighbors": "swap"}, "neighbors"),
        ({"contributions": 0}, "contributions"),
        ({"n": 5}, "secret"),
        ({"tol": 0}, "tol"),
        ({"categories": {"sex": ["f", "m"]}}, "shape"),
        ({"categories": {"sex": ["f", "f", "a", "b"]}}, "repeat"),
        ({"missing": "drop"}, "categories"),
        ({"workload": np.zeros((2, 3))}, "every entry is 0"),
        ({"workload": [[1, math.nan]]}, "finite|NaN"),
    ],
)
def test_bad_arguments_are_refused_with_a_reason(change, message):
    options = {"workload": mh.workloads.prefix(4), "privacy": PROMISE, **change}
    with pytest.raises(mh.InvalidInput, match=message):
        mh.plan_queries(options.pop("workload"), **options)


def test_a_histogram_of_another_size_is_refused_before_anything_is_spent():
    plan = mh.plan_queries(mh.workloads.prefix(4), privacy=PROMISE)
    with pytest.raises(mh.InvalidInput, match="shape"):
        plan.release(np.arange(5))
    with pytest.raises(mh.InvalidInput, match="whole numbers"):
        plan.release(np.arange(4) / 2)
    with pytest.raises(mh.InvalidInput, match="as many columns"):
        plan.release({"a": [1], "b": [2]}, columns=["a", "b"])


def test_counts_below_zero_are_read_as_zero():
    plan = mh.plan_queries(mh.workloads.identity(3), privacy=mh.GDP(mu=1e4))
    assert np.allclose(plan.release(np.array([-5, 2, 1])).value, [0, 2, 1], atol=0.01)


def test_intervals_hold_with_their_confidence():
    """10,000 answers at 90 %: off by 5.5 standard errors with probability below 10^−7."""
    for promise in (PROMISE, mh.PureDP(epsilon=0.3)):
        plan = mh.plan_queries(mh.workloads.identity(10_000), privacy=promise)
        lower, upper = plan.release(np.zeros(10_000, int)).interval(0.9)
        held = np.mean((lower <= 0) & (upper >= 0))
        law = plan.recipe.law
        # Whole numbers have but some levels, of which it is the least that suffices.
        level = 1 - law.tail(law.quantile(0.9, 1), 1)
        assert 0.9 - 1e-9 <= level < 0.93
        assert abs(held - level) < 5.5 * math.sqrt(0.09 / 10_000)
        low, high = plan.release(np.zeros(10_000, int)).interval(1 - 1e-9, simultaneous=True)
        assert ((low <= 0) & (high >= 0)).all()


def test_a_pure_table_has_the_interval_of_one_noisy_cell():
    """3 at ε = 1, where a bound for all sums of Laplace variables would be 5.85."""
    plan = mh.plan_queries(mh.workloads.marginals((4,), order=1), privacy=mh.PureDP(epsilon=1))
    lower, upper = plan.release(np.zeros(4, int)).interval()
    assert (upper - lower) / 2 == pytest.approx(3, rel=1e-6)
    # Two tables share a promise, with Laplace noise of scale 2 or so on every cell.
    plan = mh.plan_queries(mh.workloads.marginals((4, 5), order=1), privacy=mh.PureDP(epsilon=1))
    lower, upper = plan.release(np.zeros((4, 5), int)).interval()
    assert ((upper - lower) / 2 < 2 * math.log(20)).all()


PURE_TABLES = {
    "tables": (mh.workloads.marginals((4, 5, 6), order=1), "add-remove"),
    "tables that share": (mh.workloads.marginals((4, 5), sets=[(0,), (0, 1)]), "substitute"),
    "every cell": (mh.workloads.marginals((2, 3, 4), order=2), "substitute"),
    "running counts": (mh.workloads.prefix(24), "add-remove"),
    "ranges": (mh.workloads.ranges(8), "substitute"),
    "a matrix": (mh.workloads.matrix(np.random.default_rng(8).normal(size=(6, 9))), "add-remove"),
}


@pytest.mark.parametrize("name", PURE_TABLES)
def test_pure_intervals_cover_as_often_as_they_say_and_hardly_more(name):
    """Of 1,500 releases each answer is a trial; answers of one release may go together.

    A release counts with the share of its answers that were held, whose mean is between .95 and
    .96 but for 5.5 standard errors: a false alarm below 4e-8. The planted error, four fifths of
    the reach, is caught: a Laplace variable is held in 90.9 % of releases then.
    """
    workload, neighbors = PURE_TABLES[name]
    plan = mh.plan_queries(workload, privacy=mh.PureDP(epsilon=0.5), neighbors=neighbors)
    counts = np.random.default_rng(9).integers(0, 100, workload.cells)
    truth = workload @ counts.ravel().astype(float)
    half = np.subtract(*plan.release(counts).interval()[::-1]) / 2
    noisy = plan["queries"].noise.scales > 0
    total = int(counts.sum()) if neighbors == "substitute" else None
    margins = {
        axes: counts.sum(axis=tuple(i for i in range(counts.ndim) if i not in axes))
        for axes in plan.recipe.query.sets
    }
    errors = np.array([plan.recipe.run(margins, total) - truth for _ in range(1500)])
    held = np.mean(np.abs(errors[:, noisy]) <= half[noisy], axis=1)
    allowed = 5.5 * held.std() / math.sqrt(len(held))
    assert 0.95 - allowed <= held.mean() <= 0.96 + allowed
    short = np.mean(np.abs(errors[:, noisy]) <= 0.8 * half[noisy], axis=1)
    assert short.mean() < 0.95 - allowed


def test_answers_without_noise_are_held_too():
    plan = mh.plan_queries(
        mh.workloads.prefix(24), privacy=mh.PureDP(epsilon=0.5), neighbors="substitute"
    )
    for _ in range(50):
        lower, upper = plan.release(np.full(24, 7)).interval()
        assert lower[-1] <= 7 * 24 <= upper[-1]
        assert upper[-1] - lower[-1] < 1e-9


def test_pure_intervals_survive_json():
    plan = mh.plan_queries(mh.workloads.marginals((2, 3), order=1), privacy=mh.PureDP(epsilon=1))
    release = plan.release(np.ones((2, 3), int))
    again = mh.Release.from_json(release.to_json())
    for level in (0.5, 0.95, 0.999):
        assert np.array_equal(again.interval(level), release.interval(level))


def test_with_a_public_number_of_records_noise_on_cells_keeps_their_total():
    """A range of l of N cells has the variance 2·(2/ε)²·l·(1 − l/N), where ε is so small."""
    N, privacy = 32, mh.PureDP(epsilon=4e-4)
    plan = mh.plan_queries(mh.workloads.prefix(N), privacy=privacy, neighbors="substitute")
    assert plan.mechanism == "laplace noise, every cell"
    lengths = np.arange(1, N + 1)
    expected = np.sqrt(8 * lengths * (1 - lengths / N)) / privacy.epsilon
    assert plan["queries"].noise.standard_error == pytest.approx(expected, rel=1e-9)
    counts = np.random.default_rng(5).integers(0, 1000, N)
    for _ in range(5):
        assert plan.release(counts).value[-1] == pytest.approx(counts.sum(), rel=1e-12)


def test_under_approximate_privacy_queries_take_the_smaller_noise():
    """ε/μ = 4.22 is more than √2 for a histogram; for very many prefixes normal noise is better."""
    approximate = mh.ApproxDP(epsilon=1, delta=1e-6)
    few = mh.plan_queries(mh.workloads.identity(64), privacy=approximate)
    assert few.mechanism.startswith("stairs")
    assert few.expected_error == pytest.approx(8 / (math.sqrt(2) * math.sinh(0.5)), rel=2e-6)
    many = mh.plan_queries(mh.workloads.prefix(256), privacy=approximate)
    assert many.mechanism == "laplace noise, cells and sums"
    assert min(error for _, error in many.alternatives) > 1.4 * many.expected_error
    longest = mh.plan_queries(mh.workloads.prefix(20_000), privacy=approximate)
    assert longest.mechanism.startswith("normal")
    assert {name.split()[0] for name, _ in longest.alternatives} == {"laplace"}
