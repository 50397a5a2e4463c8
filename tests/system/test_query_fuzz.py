"""Arguments of any kind: a workload, a plan, a release or a MuhatError, and no waiting."""

from __future__ import annotations

import copy
import json
import math
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from click.testing import CliRunner
from hostile import ledger_in
from hypothesis import given, settings
from hypothesis import strategies as st

import muhat as mh
from muhat.bounds.width import minimum_width
from muhat.cli import main
from muhat.errors import MuhatError
from muhat.planning import queries

W = mh.workloads
RHO = mh.ZCDP(rho=1)
FUZZ = settings(max_examples=40, derandomize=True, deadline=None)
FRAME = pd.DataFrame({"g": ["a", "b", "a"], "x": [1.0, 2.0, 3.0]})

ODD = [
    object(),
    int,
    ...,
    Fraction(1, 3),
    Decimal("NaN"),
    Decimal("1e-7"),
    1e-320,
    5e-324,
    1e300,
    10**18,
    10**400,
    -(10**400),
    1j,
    np.float64(3),
    np.int8(3),
    np.array(5),
    np.array([1, 2]),
    np.array([]),
    np.zeros((0, 3)),
    np.zeros((3, 0)),
    np.zeros((1, 1, 1)),
    np.array([["1"]], object),
    np.array([[None]], object),
    np.ma.array([[1.0, 2.0]], mask=[[0, 1]]),
    sp.csr_array((2, 2)),
    sp.csr_array([[1j]]),
    pd.DataFrame({"a": [1.0, 2.0]}),
    W.identity(2),
    W.prefix(3),
    mh.Neighbors.SUBSTITUTE,
    "substitute",
    mh.PureDP(epsilon=1),
    range(3),
    [[1, 2], [3]],
    [[1e300]],
    [[1e-300, 1e300]],
    [[5e-324, 1]],
    [[0.0]],
    [[10**400]],
    [[2**60 + 1]],
    [["a"]],
    [None],
    [(0,)],
    [(0, 0)],
    [("a",)],
    [[-1]],
    (2, 3),
    (2, -3),
    (2, None),
    (0,),
    (10**18, 10**18, 10**18),
]
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.floats(-1e12, 1e12) | st.sampled_from([math.nan, math.inf, -math.inf]),
    st.text(max_size=6),
    st.binary(max_size=4),
    st.sampled_from(ODD),
    st.lists(st.floats(), max_size=3),
    st.lists(st.integers(-3, 9), max_size=4),
    st.dictionaries(st.text(max_size=3), st.floats(), max_size=2),
    st.tuples(),
    st.sets(st.integers(), max_size=2),
)


def only_muhat_errors(call):
    """The result, or None where it was refused; anything else than a MuhatError escapes."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "delta = ", UserWarning)
        try:
            return call()
        except MuhatError:
            return None


MAKERS = {
    "identity": lambda a, b: W.identity(a),
    "prefix": lambda a, b: W.prefix(a),
    "ranges": lambda a, b: W.ranges(a),
    "parity": lambda a, b: W.parity(a, b),
    "parity of three": lambda a, b: W.parity(3, a),
    "marginals": lambda a, b: W.marginals(a, order=b),
    "marginals of sets": lambda a, b: W.marginals((2, 3), sets=a),
    "marginals of a set": lambda a, b: W.marginals((2, 3), sets=[a, b]),
    "matrix": lambda a, b: W.matrix(a, b),
    "matrix of cells": lambda a, b: W.matrix(np.eye(4), a),
    "product": lambda a, b: W.kron(a, b),
    "product of two": lambda a, b: W.kron(W.identity(2), a),
    "stack": lambda a, b: W.stack(a, b),
    "stack of two": lambda a, b: W.stack([W.identity(2), a], b),
    "stack of weights": lambda a, b: W.stack([W.identity(2)], [a]),
    "described": lambda a, b: W.from_dict(a),
    "product with a vector": lambda a, b: W.identity(2) @ a,
}


@pytest.mark.parametrize("maker", MAKERS)
@given(first=JUNK, second=st.none() | JUNK)
@FUZZ
def test_a_workload_of_junk_is_refused_or_made(maker, first, second):
    made = only_muhat_errors(lambda: MAKERS[maker](first, second))
    if isinstance(made, mh.workloads.Workload):
        assert made.describe()
        assert W.from_dict(json.loads(json.dumps(made.to_dict()))) == made
        if max(made.shape) <= 64:
            assert only_muhat_errors(lambda: mh.factorize(made)).value > 0


@pytest.mark.parametrize("kind", ["described", "deep"])
def test_a_description_that_is_none_is_refused(kind):
    deep = {"workload": "identity", "cells": [2]}
    for _ in range(5000):
        deep = {"workload": "scaled", "factor": "0x1p0", "inner": deep}
    for fields in (
        [deep]
        if kind == "deep"
        else [
            {"workload": "matrix", "rows": -1, "cells": [2], "entries": "AAAA"},
            {"workload": "matrix", "rows": 1, "cells": [1], "entries": "é"},
            {
                "workload": "sparse",
                "rows": 1,
                "cells": [-1],
                "starts": [0],
                "columns": [],
                "entries": [],
            },
            {
                "workload": "sparse",
                "rows": 10**30,
                "cells": [1],
                "starts": [],
                "columns": [],
                "entries": [],
            },
            {"workload": "marginals", "shape": [2], "sets": 5},
            {"workload": "stack", "parts": [5], "weights": ["x"]},
            {"workload": "kron", "factors": None},
            {"workload": None},
        ]
    ):
        with pytest.raises(mh.InvalidInput):
            W.from_dict(fields)


@pytest.mark.parametrize("parameter", ["W", "p", "neighbors", "tol"])
@given(junk=JUNK)
@FUZZ
def test_junk_in_a_factorisation_is_refused_or_understood(parameter, junk):
    sound = {"W": W.prefix(3)}
    found = only_muhat_errors(lambda: mh.factorize(**{**sound, parameter: junk}))
    assert found is None or found.value >= found.floor > 0


@pytest.mark.parametrize(
    "parameter",
    ["workload", "privacy", "p", "neighbors", "n", "contributions", "categories", "missing", "tol"],
)
@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
@given(junk=JUNK)
@FUZZ
def test_junk_in_a_plan_is_refused_or_understood(parameter, neighbors, junk):
    sound = {"workload": W.prefix(3), "privacy": RHO, "neighbors": neighbors}
    plan = only_muhat_errors(lambda: mh.plan_queries(**{**sound, parameter: junk}))
    if plan is not None:
        assert plan.describe()
        assert json.dumps(plan.to_dict(), allow_nan=False)
        assert math.isfinite(plan.expected_error)


@given(junk=JUNK, other=JUNK)
@FUZZ
def test_categories_of_junk_are_refused_or_understood(junk, other):
    for cells in (
        junk,
        {"bins": junk},
        {"bins": [0, junk, other]},
        {"labels": [junk, other, 2]},
        {"labels": [0, 1, 2], "default": junk},
        {"labels": [0, 1, 2], "missing": junk},
        {"size": junk},
        {junk: other} if isinstance(junk, str | int | float | None) else {},
    ):
        only_muhat_errors(
            lambda cells=cells: mh.plan_queries(W.prefix(3), privacy=RHO, categories={"a": cells})
        )
    if isinstance(junk, str | bytes | int | float | tuple | None):
        only_muhat_errors(
            lambda: mh.plan_queries(W.prefix(3), privacy=RHO, categories={junk: [0, 1, 2]})
        )


@pytest.mark.parametrize("parameter", ["W", "privacy", "p", "neighbors", "floor", "contributions"])
@given(junk=JUNK)
@FUZZ
def test_junk_in_bounds_is_refused_or_understood(parameter, junk):
    sound = {"W": W.prefix(2), "privacy": mh.ApproxDP(epsilon=1, delta=1e-6)}
    found = only_muhat_errors(lambda: mh.bounds.linear_queries(**{**sound, parameter: junk}))
    for bound in found or ():
        assert bound.value is None or bound.value >= 0
    if parameter == "W":
        width = only_muhat_errors(lambda: minimum_width(junk))
        assert width is None or 0 <= width.lower <= width.upper


@given(data=JUNK, columns=st.none() | JUNK, account=st.none() | JUNK)
@FUZZ
def test_junk_as_data_is_refused_or_read(data, columns, account):
    if isinstance(account, str | bytes):
        account = None
    for plan in (
        mh.plan_queries(W.prefix(3), privacy=RHO),
        mh.plan_queries(W.marginals((2, 3), order=1), privacy=RHO, neighbors="substitute"),
        mh.plan_queries(W.identity(2), privacy=RHO, categories={"g": ["a", "b"]}, missing="drop"),
    ):
        only_muhat_errors(lambda plan=plan: plan.release(data))
        only_muhat_errors(lambda plan=plan: plan.release(FRAME, columns=columns))
        only_muhat_errors(lambda plan=plan: plan.release(FRAME, ledger=account))


@pytest.mark.parametrize(
    "parameter",
    [
        *("data", "by", "groups", "n", "columns", "domain", "privacy", "p", "weights", "missing"),
        *("contributions", "mechanism", "clip", "neighbors"),
    ],
)
@given(junk=JUNK)
@FUZZ
def test_junk_in_means_of_groups_is_refused_or_understood(parameter, junk):
    sound = {
        "data": FRAME,
        "domain": {"x": (0, 4)},
        "privacy": RHO,
        "by": "g",
        "groups": ["a", "b"],
    }
    arguments = {**sound, parameter: junk}
    data = arguments.pop("data")
    means = only_muhat_errors(lambda: mh.mean(data, **arguments))
    if isinstance(means, mh.Release):
        too_few = np.array([each.empty for _, each in means])
        assert np.array_equal(np.isfinite(means.value), ~too_few)
        assert mh.Release.from_json(means.to_json()).to_json() == means.to_json()


@given(confidence=JUNK, name=JUNK)
@FUZZ
def test_what_is_asked_of_a_release_is_answered_or_refused(confidence, name):
    release = mh.plan_queries(W.marginals((2, 3), order=1), privacy=RHO).release(
        np.ones((2, 3), int)
    )
    means = mh.mean(FRAME, domain={"x": (0, 4)}, privacy=RHO, by="g", groups=["a", "b"])
    for call in (
        lambda: release.interval(confidence),
        lambda: release.table(confidence),
        lambda: release.marginal(name),
        lambda: means.interval(confidence, simultaneous=True),
        lambda: means[name],
    ):
        only_muhat_errors(call)


@given(
    entries=st.lists(
        st.lists(
            st.sampled_from([0.0, 1.0, -1.0, 2.5, 1e-9, 1e9, 1e-150, 1e149, 5e-324, 1 / 3]),
            min_size=3,
            max_size=3,
        ),
        min_size=1,
        max_size=4,
    ),
    neighbors=st.sampled_from(["add-remove", "substitute"]),
    p=st.sampled_from([2, 3, math.inf]),
    pure=st.booleans(),
)
@FUZZ
def test_matrices_of_any_scale_are_answered_or_refused(entries, neighbors, p, pure):
    privacy = mh.PureDP(epsilon=1) if pure else RHO
    histogram = np.array([3, 5, 7])

    def answered():
        plan = mh.plan_queries(entries, privacy=privacy, neighbors=neighbors, p=p)
        release = plan.release(histogram)
        release.to_json()
        return plan, release

    found = only_muhat_errors(answered)
    if found is not None:
        plan, release = found
        off = np.abs(release.value - np.array(entries) @ histogram)
        size = np.abs(np.array(entries)) @ histogram
        # 60 standard deviations: fails once in 10²⁰ runs, and wrong decoders miss by more.
        assert (off <= 60 * release.standard_error + 1e-6 * size.max()).all()
        assert plan.certificate.ratio is None or plan.certificate.ratio >= 1


SMALL = st.one_of(
    st.builds(W.identity, st.integers(1, 4)),
    st.builds(W.prefix, st.integers(1, 4)),
    st.builds(W.ranges, st.integers(1, 3)),
    st.sampled_from([W.parity(1, 1), W.parity(2, 1), W.parity(2, 0), W.parity(2, 2)]),
    st.sampled_from(
        [
            W.marginals((2, 2), order=1),
            W.marginals((2, 1, 2), order=[0, 2]),
            W.marginals((3,), order=1),
        ]
    ),
    st.builds(
        W.matrix,
        st.lists(
            st.lists(st.integers(-2, 2), min_size=2, max_size=2), min_size=1, max_size=3
        ).filter(lambda rows: any(map(any, rows))),
    ),
)


def combined(parts):
    """Products, multiples, and stacks or sums of what has the same cells."""
    return st.one_of(
        st.builds(lambda a, b: W.kron(a, b), parts, parts),
        st.builds(lambda a, c: c * a, parts, st.sampled_from([-1.0, 0.5, 3, 1e-30, 1e30])),
        st.builds(
            lambda a, w: W.stack([a, W.identity(a.cells)], [1, w]), parts, st.floats(0.01, 100)
        ),
        st.builds(lambda a: W.stack([a, a]), parts),
        st.builds(lambda a: a + 2 * a, parts),
    )


COMBINED = {
    "workload": st.recursive(SMALL, combined, max_leaves=3).filter(lambda w: max(w.shape) <= 80),
    "neighbors": st.sampled_from(["add-remove", "substitute"]),
    "privacy": st.sampled_from([RHO, mh.PureDP(epsilon=2), mh.ApproxDP(epsilon=1, delta=1e-6)]),
    "p": st.sampled_from([2, 4, math.inf]),
    "contributions": st.sampled_from([1, 3]),
}


def check_answers(plan):
    """A release is near the truth, comes back from JSON, and is no better than possible."""
    workload = plan.workload
    histogram = np.arange(workload.shape[1]) % 7 + 1
    release = plan.release(histogram)
    truth = workload @ histogram
    # 60 standard deviations: fails once in 10²⁰ runs, and wrong decoders miss by more.
    allowed = 60 * release.standard_error + 1e-9 * abs(truth).max()
    assert (np.abs(release.value - truth) <= allowed).all()
    again = mh.Release.from_json(release.to_json())
    assert again.to_json() == release.to_json()
    assert repr(again) == repr(release)
    assert again.workload == workload
    assert plan.certificate.ratio is None or plan.certificate.ratio >= 1
    assert np.isfinite(release.projected().value).all()
    if plan.recipe.decoder is not None:
        stated = plan.variances() / (plan.variances().max() + 1e-300)
        found = np.diag(plan.covariance) / (plan.variances().max() + 1e-300)
        assert np.allclose(found, stated, rtol=1e-2, atol=1e-9)


@given(**COMBINED)
@settings(FUZZ, max_examples=60)
def test_workloads_built_of_workloads_are_answered(workload, **options):
    check_answers(mh.plan_queries(workload, **options))


LIMITS = {
    "workloads.factorize.LONGEST_SOLVED": 1,
    "workloads.factorize.LARGEST_PAIRED_DENSE": 3,
    "workloads.factorize.LARGEST_PAIRED": 3,
    "workloads.factorize.LARGEST_TABLE": 4,
    "workloads.pooled.FEWEST": 8,
    "workloads.factorize.LARGEST_REPEATED": 2,
    "workloads.factorize.LARGEST_SUM": 8,
    "workloads.closed_factors.LARGEST_HELMERT": 2,
}
"""Where other ways to factorise begin, moved down to where everything can be checked."""


@given(**COMBINED)
@settings(FUZZ, max_examples=60)
def test_what_is_done_for_large_workloads_is_right_for_small_ones(workload, **options):
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in LIMITS.items():
            patch.setattr(f"muhat.{name}", limit)
        queries._factorized.cache_clear()
        try:
            plan = mh.plan_queries(workload, **options)
        except mh.InvalidInput as refusal:
            plan = str(refusal)
        finally:
            queries._factorized.cache_clear()
        if isinstance(plan, str):
            assert "normal noise alone" in plan
        else:
            check_answers(plan)


def test_nothing_is_charged_for_what_is_refused(tmp_path):
    ledger = ledger_in(tmp_path, "add-remove")
    plan = mh.plan_queries(W.prefix(3), privacy=RHO)
    refused = paid = 0
    for junk in [*ODD, None, "none.csv", b"x", {"a": "b"}]:
        for call in (
            lambda junk=junk: plan.release(junk, ledger=ledger),
            lambda junk=junk: mh.mean(
                FRAME, domain={"x": (0, 4)}, privacy=RHO, by="g", groups=junk, ledger=ledger
            ),
        ):
            made = only_muhat_errors(call)
            refused, paid = refused + (made is None), paid + (made is not None)
            assert ledger.head.count == paid
    assert refused > 50


# The command line.

WORDS = st.one_of(
    st.text(max_size=8),
    st.integers().map(str),
    st.sampled_from(
        ["nan", "inf", "-inf", "1e400", "g=a,b", "g=", "x=0,1,2", "0", "-1", "2", "\0"]
    ),
)
OPTIONS = ["--columns", "--categories", "--bins", "--marginals", "--p", "--contributions"]
OPTIONS += ["--rho", "--epsilon", "--delta", "--mu"]
FLAGS = ["--histogram", "--prefix", "--ranges", "--other", "--substitute", "--projected", "--json"]


@given(
    given_options=st.lists(st.tuples(st.sampled_from(OPTIONS), WORDS), max_size=3),
    flags=st.lists(st.sampled_from(FLAGS), max_size=2),
    sound=st.booleans(),
)
@settings(FUZZ, max_examples=100)
def test_the_command_line_exits_with_a_sentence(tmp_path_factory, given_options, flags, sound):
    path = tmp_path_factory.getbasetemp() / "fuzzed.csv"
    if not path.exists():
        FRAME.to_csv(path, index=False)
    arguments = [str(path)]
    if sound:
        arguments += ["--categories", "g=a,b", "--rho", "1", "--histogram"]
    arguments += [word for option in given_options for word in option] + flags
    done = CliRunner().invoke(main, ["queries", *arguments])
    assert done.exit_code in (0, 2), (arguments, done.exception)
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert "Traceback" not in done.output


def test_frozen_things_stay_as_they_are():
    plan = mh.plan_queries(W.prefix(3), privacy=RHO)
    release = plan.release(np.ones(3, int))
    for thing, name in ((plan, "privacy"), (release, "value"), (plan.workload, "n")):
        with pytest.raises(AttributeError):
            setattr(thing, name, None)
    matrix = W.matrix(np.eye(2))
    with pytest.raises(ValueError, match="read-only"):
        matrix.matrix[0, 0] = 5
    assert copy.deepcopy(plan).digest == plan.digest
