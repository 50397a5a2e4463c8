"""Attacks on queries and groups that once succeeded, each as small as it could be made."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hostile import ledger_in, silence

import muhat as mh

W = mh.workloads
RHO = mh.ZCDP(rho=1)
FRAME = pd.DataFrame({"g": ["a", "b", "a"], "x": [1.0, 2.0, 3.0]})


# Sensitivity.


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int8])
def test_counts_of_one_cell_given_in_parts_do_not_wrap_around(monkeypatch, dtype):
    silence(monkeypatch)
    plan = mh.plan_queries(W.identity(1), privacy=RHO)
    top = int(np.iinfo(dtype).max)

    def answer(*parts):
        data = np.array(parts, dtype)
        return plan.release(sp.coo_array((data, (np.zeros(len(parts), int),)), shape=(1,))).value[0]

    for parts in ((top, top - 1), (top, top, top), (top // 2 + 1, top // 2)):
        one, other = answer(*parts), answer(*parts[:-1], parts[-1] + (parts[-1] < top))
        assert abs(other - one) <= 1
        assert one == pytest.approx(min(sum(parts), 2**63 - 1))
    if dtype != np.uint64:
        assert answer(-5, 7) == 2
        assert answer(-(top + 1), -(top + 1), 3) == 0


def test_an_array_that_says_it_has_no_duplicates_is_not_believed(monkeypatch):
    silence(monkeypatch)
    parts = sp.coo_array((np.array([2**62, 2**62, 2**62]), (np.zeros(3, int),)), shape=(1,))
    parts.has_canonical_format = True
    release = mh.plan_queries(W.identity(1), privacy=RHO).release(parts)
    assert release.value[0] == pytest.approx(2**63 - 1)


# Failures after the charge.


@pytest.mark.parametrize("privacy", [RHO, mh.PureDP(epsilon=1)])
@pytest.mark.parametrize(
    "workload",
    [
        W.identity(1),
        W.prefix(1),
        W.matrix([[1.0, 1.0, 1.0]]),
        W.marginals((2, 3), order=0),
        W.marginals((1, 1), order=1),
        W.parity(3, 0),
        W.stack([W.matrix([[1.0, 1.0]]), W.matrix([[2.0, 2.0]])]),
    ],
    ids=lambda workload: workload.describe(),
)
def test_answers_that_the_public_total_decides_are_released_without_noise(
    tmp_path, workload, privacy
):
    ledger = mh.Ledger.create(tmp_path / "l.db", budget=privacy, neighbors="substitute")
    histogram = np.arange(workload.shape[1])
    plan = mh.plan_queries(workload, privacy=privacy, neighbors="substitute")
    release = plan.release(histogram, ledger=ledger)
    assert np.allclose(release.value, workload @ histogram, rtol=1e-12)
    assert not release.standard_error.any()
    assert release.interval()[0] == pytest.approx(release.value)
    assert mh.Release.from_json(release.to_json()).value == pytest.approx(release.value)
    assert repr(plan)
    assert repr(release)
    assert plan.covariance == pytest.approx(0)
    assert release.projected().value == pytest.approx(release.value)


@pytest.mark.parametrize(
    "by",
    [
        *("value", "column", "standard_error", "lower", "upper", "recorded", "population_lower"),
    ],
)
def test_a_column_may_be_called_like_one_of_a_release(by):
    frame = FRAME.rename(columns={"g": by})
    means = mh.mean(frame, domain={"x": (0, 4)}, privacy=RHO, by=by, groups=["a", "b"])
    assert f"{by} of the record" in means.table()
    assert len(means.table()) == 9
    assert by in repr(means)
    assert means._repr_html_()
    plan = mh.plan_queries(W.identity(2), privacy=RHO, categories={by: ["a", "b"]}, missing="drop")
    release = plan.release(frame)
    assert repr(release)
    assert release.table()["value"].dtype == float
    assert len(release.table()) == 5


@pytest.mark.parametrize(
    "privacy",
    [
        mh.PureDP(epsilon=1e300),
        mh.PureDP(epsilon=1e250),
        mh.ZCDP(rho=1e300),
        mh.GDP(mu=1e200),
        mh.ZCDP(rho=1e-30),
        mh.PureDP(epsilon=1e-15),
    ],
    ids=repr,
)
@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
def test_a_promise_beyond_arithmetic_is_refused(privacy, neighbors):
    for workload in (
        W.identity(4),
        W.prefix(4),
        W.marginals((2, 2), order=1),
        W.parity(2, 1),
        W.kron(W.prefix(2), W.prefix(2)),
        W.prefix(4100),
    ):
        with pytest.raises(mh.InvalidInput, match=r"too (weak|strong)|normal noise alone"):
            mh.plan_queries(workload, privacy=privacy, neighbors=neighbors)


# Sizes.


HUGE = {
    "a histogram": W.identity(10**18),
    "a histogram of a shape": W.identity((10**9, 10**9)),
    "running totals": W.prefix(10**18),
    "intervals": W.ranges(10**9),
    "parities": W.parity(62, 31),
    "two products": W.kron(W.identity(10**9), W.identity(10**9)),
    "many products": W.kron(*[W.prefix(2)] * 60),
    "long products": W.kron(W.prefix(10**6), W.prefix(10**6)),
    "a stack": W.stack([W.identity(10**17)] * 20),
    "a table": W.marginals((2,) * 31, sets=[tuple(range(31))]),
    "tables": W.marginals((2**31, 2**31), order=1),
    "many tables": W.marginals((2,) * 40, order=3),
    "a matrix": W.matrix(sp.eye_array(10**5)),
}


@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
@pytest.mark.parametrize("case", HUGE)
def test_a_workload_beyond_memory_is_refused_at_once(tmp_path, case, neighbors):
    workload = HUGE[case]
    assert workload.describe()
    assert workload == workload
    ledger = ledger_in(tmp_path, neighbors)
    if case == "many tables":
        assert mh.plan_queries(workload, privacy=RHO, neighbors=neighbors).expected_error > 0
        return
    for privacy in (RHO, mh.PureDP(epsilon=1)):
        with pytest.raises(mh.InvalidInput):
            mh.plan_queries(workload, privacy=privacy, neighbors=neighbors).release(
                {0: 1}, ledger=ledger
            )
    assert ledger.head.count == 0


def test_a_million_attributes_are_refused_at_once():
    for shape in ((2,) * 10**6, np.ones(10**5, int)):
        with pytest.raises(mh.InvalidInput):
            W.marginals(shape, order=1)
        with pytest.raises(mh.InvalidInput):
            W.identity(tuple(shape))


def test_many_attributes_of_one_category_are_no_trouble():
    for neighbors in ("add-remove", "substitute"):
        tables = mh.plan_queries(
            W.marginals((1,) * 200 + (3,), order=1), privacy=RHO, neighbors=neighbors
        )
        assert tables.describe()
        assert repr(tables.release(np.array([1, 2, 3])))
        whole = mh.plan_queries(W.identity((1,) * 100 + (3,)), privacy=RHO, neighbors=neighbors)
        assert whole.describe()
        with pytest.raises(mh.InvalidInput, match="at most 32 axes"):
            whole.release(np.array([1, 2, 3]))


def test_names_of_very_many_categories_are_not_written_out():
    for size in (2**31 - 1, 10**8):
        with pytest.raises(mh.InvalidInput, match="Leave categories out"):
            mh.plan_queries(
                W.marginals((size, 2), sets=[(1,)]), privacy=RHO, categories={"a": size, "b": 2}
            )
    plan = mh.plan_queries(W.marginals((2**31 - 1, 2), sets=[(1,)]), privacy=RHO)
    release = plan.release({"a": [5, 7], "b": [0, 1]}, columns=["a", "b"])
    assert release.value.shape == (2,)


@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
def test_the_table_of_many_attributes_takes_one_noise_a_cell(monkeypatch, neighbors):
    cells = (2,) * 13
    whole = W.marginals(cells, sets=[tuple(range(13))])
    plan = mh.plan_queries(whole, privacy=RHO, neighbors=neighbors)
    same = mh.plan_queries(W.identity(cells), privacy=RHO, neighbors=neighbors)
    assert plan.expected_error == same.expected_error
    assert plan.factorization.gap < 1e-3
    silence(monkeypatch)
    histogram = np.arange(2**13)
    release = plan.release(histogram)
    assert np.allclose(release.marginal(*range(13)).ravel(), histogram)


def test_a_product_of_very_many_matrices_is_refused():
    with pytest.raises(mh.InvalidInput, match="at most 12 factors"):
        mh.plan_queries(W.kron(*[W.prefix(2)] * 13), privacy=RHO)
    plan = mh.plan_queries(W.kron(*[W.prefix(2)] * 10), privacy=RHO)
    histogram = np.arange(1 << 10)
    release = plan.release(histogram)
    errors = (release.value - plan.workload @ histogram) / release.standard_error
    assert np.abs(errors).max() < 8


# Noise that is not what it is said to be.


@pytest.mark.parametrize("p", [2, 3, math.inf])
@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
def test_the_covariance_of_marginals_has_the_stated_variances(p, neighbors):
    for shape, order in (((2, 3), 1), ((2, 2, 2), 1), ((2, 3, 4), [1, 2]), ((5,), 1)):
        for privacy in (RHO, mh.PureDP(epsilon=1)):
            plan = mh.plan_queries(
                W.marginals(shape, order=order), privacy=privacy, p=p, neighbors=neighbors
            )
            if plan.recipe.decoder is not None:
                assert np.allclose(np.diag(plan.covariance), plan.variances(), rtol=1e-6)


@pytest.mark.parametrize("factor", [3, -0.25])
@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
def test_a_multiple_of_a_long_prefix_is_multiplied(neighbors, factor):
    plan = mh.plan_queries(factor * W.prefix(4100), privacy=RHO, neighbors=neighbors)
    histogram = np.arange(4100) % 5
    release = plan.release(histogram)
    assert np.abs((release.value - plan.workload @ histogram) / release.standard_error).max() < 9
    same = mh.plan_queries(W.prefix(4100), privacy=RHO, neighbors=neighbors)
    assert np.allclose(plan.standard_error, abs(factor) * same.standard_error)
    assert plan.certificate.ratio == pytest.approx(same.certificate.ratio)
    assert plan.digest != same.digest


@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
@pytest.mark.parametrize(
    "workload",
    [
        W.kron(W.marginals((2, 2), order=1), W.identity(3)),
        W.kron(W.prefix(3), W.marginals((2, 3), order=[1, 2])),
        W.kron(W.marginals((2, 2), order=1), W.marginals((2, 2), order=1)),
        W.kron(W.marginals((2,) * 4, order=2), W.prefix(40)),
    ],
    ids=lambda workload: workload.describe(),
)
def test_products_with_marginals_are_answered(workload, neighbors):
    for privacy in (RHO, mh.PureDP(epsilon=1)):
        plan = mh.plan_queries(workload, privacy=privacy, neighbors=neighbors)
        histogram = np.arange(workload.shape[1]) % 5
        release = plan.release(histogram)
        # 40 standard deviations, for tails like those of Laplace noise.
        assert np.abs((release.value - workload @ histogram) / release.standard_error).max() < 40


@pytest.mark.parametrize(
    "workload",
    [
        W.kron(W.matrix(np.ones((1, 30))), W.matrix(np.ones((1, 30)))),
        W.kron(W.matrix(np.ones((1, 30))), W.matrix(np.ones((20, 30)) + 1e-7 * np.eye(20, 30))),
        W.matrix(np.ones((5, 5)) + 1e-9 * np.eye(5)),
    ],
    ids=["equal", "nearly equal product", "nearly equal"],
)
def test_columns_that_are_nearly_equal_are_no_trouble_if_records_are_replaced(workload):
    plan = mh.plan_queries(workload, privacy=RHO, neighbors="substitute")
    histogram = np.arange(workload.shape[1]) % 5
    release = plan.release(histogram)
    errors = np.abs(release.value - workload @ histogram)
    assert (errors <= 9 * release.standard_error + 1e-6).all()
    assert release.standard_error.max() < 1e-2


# Arguments that were taken for others, or not looked at.


@pytest.mark.parametrize("n", [3, np.int64(3), 3.0, "3", 0, [3]])
def test_a_number_of_records_is_refused_for_groups_whatever_its_type(n):
    with pytest.raises(mh.InvalidInput, match="n must be left out"):
        mh.mean(FRAME, domain={"x": (0, 4)}, privacy=RHO, by="g", groups=["a", "b"], n=n)


@pytest.mark.parametrize("group", [np.array([1, 2]), [1], {}, math.nan, pd.NA, None, "c", 0])
def test_what_is_no_group_is_not_found(group):
    means = mh.mean(FRAME, domain={"x": (0, 4)}, privacy=RHO, by="g", groups=["a", "b"])
    with pytest.raises(mh.InvalidInput, match="not one of the groups"):
        means[group]


def test_a_masked_matrix_is_refused_rather_than_unmasked():
    with pytest.raises(mh.InvalidInput, match="masked"):
        W.matrix(np.ma.array([[1.0, 5.0]], mask=[[False, True]]))


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(mh.InvalidInput, match="twice"):
        mh.plan_queries(W.identity((2, 2)), privacy=RHO, categories={0: [0, 1], "0": [0, 1]})


def test_labels_do_not_become_a_part_of_a_page():
    plan = mh.plan_queries(
        W.identity(2), privacy=RHO, categories={"<b>x": ["<script>", "&"]}, missing="drop"
    )
    release = plan.release({"<b>x": ["&", "<script>"]})
    means = mh.mean(
        {"<b>x": ["<i>"], "y": [1.0]},
        domain={"y": (0, 1)},
        privacy=RHO,
        by="<b>x",
        groups=["<i>"],
    )
    for shown in (plan._repr_html_(), release._repr_html_(), means._repr_html_()):
        for tag in ("<b>x", "<script>", "<i>"):
            assert tag not in shown


def places(value, path=()):
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for index in range(min(len(value), 2)):
            yield from places(value[index], (*path, index))


def replaced(fields, path, junk):
    copied = json.loads(json.dumps(fields))
    inside = copied
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = junk
    return json.dumps(copied)


JUNK = [
    None,
    True,
    -1,
    10**30,
    0.5,
    math.nan,
    math.inf,
    "",
    "x",
    "inf",
    [],
    [1],
    [[]],
    {},
    {"workload": "identity", "cells": [10**18]},
    {"workload": "scaled", "factor": "0x1p0", "inner": {}},
]


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: repr(junk)[:12])
def test_a_forged_release_is_refused_or_can_be_shown(junk):
    releases = [
        mh.plan_queries(
            W.marginals((2, 2), order=1),
            privacy=RHO,
            categories={"a": ["x", "y"], "b": ["x", "y"]},
        ).release({"a": ["x", "y"], "b": ["x", "x"]}),
        mh.plan_queries(
            W.parity(2, 1), privacy=mh.PureDP(epsilon=1), neighbors="substitute"
        ).release(np.ones(4, int)),
    ]
    for release in releases:
        fields = json.loads(release.to_json())
        for path in places(fields):
            if not path:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                try:
                    again = mh.Release.from_json(replaced(fields, path, junk))
                except mh.InvalidInput:
                    continue
                assert repr(again)
                assert again._repr_html_()
                assert again.to_json()
                assert again.table()
                assert np.isfinite(again.interval(simultaneous=True)).all()


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: repr(junk)[:12])
def test_forged_means_of_groups_are_refused_or_read(junk):
    means = mh.mean(FRAME, domain={"x": (0, 4)}, privacy=RHO, by="g", groups=["a", "b"])
    fields = json.loads(means.to_json())
    for path in places(fields):
        if not path:
            continue
        try:
            again = mh.Release.from_json(replaced(fields, path, junk))
        except mh.InvalidInput:
            continue
        if path[0] != "releases":
            assert repr(again)
            assert again.to_json()


def test_text_that_is_no_release_is_refused():
    for text in ("", "null", "[]", "NaN", "[" * 100_000, '{"schema":' * 50_000, "\0", b"", 5, None):
        with pytest.raises(mh.InvalidInput):
            mh.Release.from_json(text)
