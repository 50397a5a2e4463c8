"""Arguments of any kind: a plan, a release or a MuhatError; never another exception."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import muhat as mh
from muhat.errors import MuhatError

DATA = np.array([[1.0, 2.0], [3.0, 4.0], [math.nan, -1e308]])
FUZZ = settings(max_examples=80, derandomize=True, deadline=None)

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.floats(-1e12, 1e12) | st.sampled_from([math.nan, math.inf, -math.inf]),
    st.text(max_size=6),
    st.binary(max_size=4),
    st.sampled_from([Fraction(1, 3), Decimal("NaN"), Decimal("1e-7"), object(), int, ..., 1e-320]),
    st.lists(st.floats(), max_size=3),
    st.dictionaries(st.text(max_size=3), st.floats(), max_size=2),
    st.tuples(),
    st.sets(st.integers(), max_size=2),
)
SIZES = st.floats(1e-6, 1e6)
DOMAINS = st.one_of(
    st.builds(
        lambda low, wide: mh.Box(low, np.add(low, wide)),
        st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=2),
        st.lists(st.floats(1e-2, 1e6), min_size=2, max_size=2),
    ),
    st.builds(lambda r: mh.Ball(r, 2, [1, -r]), SIZES),
    st.builds(lambda a, b: mh.Ellipsoid([[a, 0], [0, b]]), SIZES, SIZES),
    st.just({"a": (0, 1), "b": (-5, 1e3)}),
)
PROMISES = st.one_of(
    st.builds(lambda x: mh.PureDP(epsilon=x), st.floats(1e-6, 1e6)),
    st.builds(lambda x: mh.ZCDP(rho=x), st.floats(1e-12, 1e12)),
    st.builds(lambda x: mh.GDP(mu=x), st.floats(1e-6, 1e6)),
    st.builds(
        lambda x, d: mh.ApproxDP(epsilon=x, delta=d), st.floats(1e-6, 1e3), st.floats(1e-300, 1e-3)
    ),
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


@pytest.mark.parametrize(
    "parameter",
    [
        "domain",
        "n",
        "privacy",
        "p",
        "weights",
        "neighbors",
        "missing",
        "contributions",
        "mechanism",
    ],
)
@given(junk=JUNK)
@FUZZ
def test_junk_in_one_argument_is_refused_or_understood(parameter, junk):
    sound = {"domain": mh.Box([0, 0], [1, 2]), "n": 3, "privacy": mh.ZCDP(rho=1)}
    for planner in (mh.plan_mean, mh.plan_sum):
        plan = only_muhat_errors(lambda planner=planner: planner(**{**sound, parameter: junk}))
        if plan is not None:
            assert plan.describe()
            assert plan.to_dict()


@given(
    domain=DOMAINS,
    promise=PROMISES,
    n=st.sampled_from([3, None]),
    p=st.sampled_from([2, 3, 4.5, 16, math.inf]),
    weights=st.none() | st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=2),
    missing=st.sampled_from(["center", "drop"]),
    contributions=st.integers(1, 50),
    statistic=st.sampled_from([mh.mean, mh.sum]),
)
@FUZZ
def test_sensible_arguments_give_a_finite_release(
    domain, promise, n, p, weights, missing, contributions, statistic
):
    data = DATA if not isinstance(domain, dict) else dict(zip("ab", DATA.T, strict=True))
    release = only_muhat_errors(
        lambda: statistic(
            data,
            domain=domain,
            privacy=promise,
            n=n,
            p=p,
            weights=weights,
            missing=missing,
            contributions=contributions,
        )
    )
    if release is not None:
        # Three records may be too few to be told from none.
        assert np.array_equal(np.isfinite(release.value), ~release.empty)
        assert missing == "drop" or not release.empty.any()
        again = mh.Release.from_json(release.to_json())
        assert again.to_json() == release.to_json()
        assert repr(again) == repr(release)
    else:
        # Within these ranges only one combination is refused.
        assert missing == "drop"
        assert n is not None


@given(data=JUNK, columns=st.none() | st.lists(st.text(max_size=3), max_size=3))
@FUZZ
def test_junk_as_data_is_refused_or_read(data, columns):
    for options in ({}, {"n": None}):
        only_muhat_errors(
            lambda options=options: mh.mean(
                data, columns=columns, domain=mh.Box([0], [1]), privacy=mh.ZCDP(rho=1), **options
            )
        )
    if data != {}:
        only_muhat_errors(lambda: mh.count(data, privacy=mh.ZCDP(rho=1)))


@given(
    records=st.lists(
        st.one_of(JUNK, st.lists(JUNK, max_size=3), st.tuples(st.floats(), st.floats())),
        min_size=1,
        max_size=6,
    ),
)
@FUZZ
def test_a_list_of_anything_is_a_list_of_records(records):
    # A number in front keeps a list of texts from being a list of paths.
    data = [(1.0, 1.0), *records]
    for options in ({"n": len(data)}, {"n": None}, {"n": None, "missing": "drop"}):
        release = mh.mean(data, domain=mh.Ball(2, 2), privacy=mh.ZCDP(rho=1), **options)
        assert np.isfinite(release.value).all() or (release.empty.all() and "missing" in options)


@given(junk=JUNK, name=st.sampled_from(["epsilon", "delta", "rho", "mu"]))
@FUZZ
def test_promises_take_numbers_and_refuse_the_rest(junk, name):
    make = {
        "epsilon": lambda: mh.PureDP(epsilon=junk),
        "delta": lambda: mh.ApproxDP(epsilon=1, delta=junk),
        "rho": lambda: mh.ZCDP(rho=junk),
        "mu": lambda: mh.GDP(mu=junk),
    }
    promise = only_muhat_errors(make[name])
    if promise is not None:
        assert getattr(promise, name) > 0


@given(junk=JUNK, other=JUNK)
@FUZZ
def test_domains_and_ledgers_refuse_junk(junk, other):
    only_muhat_errors(lambda: mh.Box(junk, other))
    only_muhat_errors(lambda: mh.Box([0, junk], [1, other]))
    only_muhat_errors(lambda: mh.Ball(junk, 2))
    only_muhat_errors(lambda: mh.Ball(1, 2, center=junk))
    only_muhat_errors(lambda: mh.Ellipsoid(junk))
    only_muhat_errors(lambda: mh.Ellipsoid([[1]], center=junk))
    if not isinstance(junk, str | bytes):
        only_muhat_errors(lambda: mh.Ledger.open(junk))
    only_muhat_errors(lambda: mh.Ledger.create("/proc/none", budget=junk, neighbors=other))


@given(confidence=JUNK, target=JUNK)
@FUZZ
def test_intervals_refuse_junk(confidence, target):
    for n in (3, None):
        release = mh.mean(DATA, domain=mh.Ball(2, 2), privacy=mh.ZCDP(rho=1), n=n)
        only_muhat_errors(lambda release=release: release.interval(confidence))
        only_muhat_errors(lambda release=release: release.interval(0.9, target=target))
