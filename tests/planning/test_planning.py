"""Plans: the right mechanism, the right error, the right certificate, and clear refusals."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import muhat as mh
from muhat.noise.laws import LAWS

BALL = mh.Ball(radius=1, dim=10)
UNLIKE = mh.Box([0, 16], [200_000, 90])
PURE = mh.PureDP(epsilon=1.0)
GEOMETRIC = 1 / (math.sqrt(2) * math.sinh(0.5))
"""The error of a count at ε = 1."""
STAIRCASE = 1.384956
"""The error of a sum of numbers from 0 to 1."""


def test_the_example_of_the_ball_is_certified_to_be_the_least():
    plan = mh.plan_mean(domain=BALL, n=1000, privacy=mh.ZCDP(rho=0.1))
    assert plan.mechanism == "gaussian"
    assert plan.expected_error == pytest.approx(2 * math.sqrt(10) / (1000 * math.sqrt(0.2)))
    assert plan.expected_error_method == "exact"
    certificate = plan.certificate
    assert certificate.ratio_to("unbiased", "every") == pytest.approx(1.282, abs=5e-4)
    assert certificate.ratio_to("unbiased", "some") == pytest.approx(1.017, abs=5e-4)
    assert 1 < certificate.ratio_to("additive", "every") < 1.0003
    assert certificate.ratio == certificate.ratio_every == certificate.ratio_to("additive", "every")
    assert certificate.ratio_any == pytest.approx(1.117, abs=1e-3)


@pytest.mark.parametrize(
    ("promise", "strength"),
    [
        (mh.ZCDP(rho=0.5), 1.0),
        (mh.GDP(mu=1.0), 1.0),
        (mh.ApproxDP(epsilon=1, delta=1e-6), 1 / 4.224679),
    ],
)
def test_normal_noise_fits_the_promise(promise, strength):
    plan = mh.plan_mean(domain=mh.Box([0], [1]), n=100, privacy=promise, mechanism="gaussian")
    assert plan.standard_error[0] == pytest.approx(1 / (100 * strength), rel=1e-6)


@pytest.mark.parametrize(
    ("domain", "name"),
    [
        (mh.Box([0], [1]), "staircase"),
        (mh.Box([0] * 30, [1] * 30), "box-norm"),
        (mh.Ball(radius=1, dim=3), "ellipsoid-norm"),
        (mh.Ball(radius=1, dim=16), "ellipsoid-norm-delta"),
        (mh.Ball(radius=1, dim=64), "ellipsoid-norm-delta"),
        (mh.Ball(radius=1, dim=65), "gaussian"),
        (mh.Box([0] * 60, [1] * 60), "ellipsoid-norm-delta"),
        (mh.Box([0] * 66, [1] * 66), "gaussian"),
    ],
)
def test_under_approximate_privacy_the_smallest_noise_wins(domain, name):
    """ε/μ = 4.2247 here: its square is 17.8, and √(d + 1) is what pure noise costs in a ball.

    At its own δ that noise is less than normal noise up to 64 dimensions and more.
    """
    approximate = mh.ApproxDP(epsilon=1, delta=1e-6)
    plan = mh.plan_mean(domain=domain, n=1000, privacy=approximate)
    assert plan.mechanism == name
    errors = dict(plan.alternatives) | {name: plan.expected_error}
    assert plan.expected_error == pytest.approx(min(errors.values()), rel=1e-9)
    normal = mh.plan_mean(domain=domain, n=1000, privacy=approximate, mechanism="gaussian")
    assert errors["gaussian"] == normal.expected_error
    pure = mh.plan_mean(domain=domain, n=1000, privacy=mh.PureDP(epsilon=1))
    only_pure = {which: each for which, each in errors.items() if "delta" not in which}
    del only_pure["gaussian"]
    assert min(only_pure.values()) == pytest.approx(pure.expected_error, rel=2e-6)


@pytest.mark.parametrize("origin", [False, True])
@pytest.mark.parametrize("promise", [PURE, mh.ApproxDP(epsilon=1, delta=1e-6)], ids=repr)
def test_shares_have_balanced_noise_that_does_not_grow_with_their_number(promise, origin):
    for dim in (3, 6, 20, 500):
        plan = mh.plan_mean(domain=mh.Simplex(dim, origin=origin), n=1000, privacy=promise)
        assert plan.mechanism == "balanced"
        m = dim + origin
        variance = 4 * dim * (2 * m - 1) * (m - 1) / (m * (m + 1))
        assert plan.expected_error == pytest.approx(math.sqrt(variance) / 1000, rel=2e-6)
        assert plan.expected_error < 0.999 * min(error for _, error in plan.alternatives)
    # The noise of a public total is taken away where that gains a hundredth or more.
    for dim, rows in ((6, 6 - (not origin)), (20, 20 - (not origin)), (500, 500)):
        domain = mh.Simplex(dim, origin=origin)
        plan = mh.plan_mean(domain=domain, n=1000, privacy=promise, mechanism="laplace")
        assert plan.expected_error == pytest.approx(math.sqrt(8 * rows) / 1000, rel=2e-6)
    total = mh.plan_sum(domain=mh.Simplex(20, origin=origin), n=None, privacy=promise)
    assert total.mechanism == "laplace"
    assert total.expected_error == pytest.approx(math.sqrt(2 * 20), rel=2e-6)


def test_a_mean_of_shares_is_measured_from_zero_and_has_the_centre_for_missing_ones():
    plan = mh.plan_mean(domain=mh.Simplex(6), n=10**6, privacy=PURE)
    half = np.zeros((10**6, 6))
    half[::2, 0], half[1::2] = 1.0, np.nan
    # The noise has a standard deviation of 2.8e-6; one of 20 of them has a chance below 1e-11.
    centre = np.array([7, 1, 1, 1, 1, 1]) / 12
    assert np.abs(plan.release(half).value - centre).max() < 20 * 2.83e-6


def test_a_promise_for_one_kind_of_noise_is_not_taken_for_the_other():
    """Planted: ε² in the place of μ² would be four times too little noise."""
    plan = mh.plan_mean(domain=BALL, n=10, privacy=mh.PureDP(epsilon=1))
    with pytest.raises(AssertionError, match="another kind"):
        replace(plan.recipe, law=LAWS["normal"])


def test_counts_and_secret_numbers_take_the_smaller_noise_too():
    approximate = mh.ApproxDP(epsilon=1, delta=1e-6)
    assert mh.plan_count(privacy=approximate).expected_error == pytest.approx(GEOMETRIC, rel=1e-5)
    options = {"domain": mh.Box([1], [3]), "n": None}
    for make in (mh.plan_mean, mh.plan_sum):
        mixed, pure = (
            make(privacy=promise, **options) for promise in (approximate, mh.PureDP(epsilon=1))
        )
        assert mixed.recipe.law.name == pure.recipe.law.name
        several = make(privacy=approximate, contributions=2, **options)
        assert several.mechanism != "ratio" or several.recipe.law.name == "normal"


@pytest.mark.parametrize(
    ("domain", "errors"),
    [
        (
            mh.Box(np.zeros(16), np.ones(16)),
            {"ellipsoid-norm": 66, "laplace": 90.5, "box-norm": 40.4},
        ),
        (
            mh.Box([0, 0], [200_000, 74]),
            {
                "ellipsoid-norm": 3.47e5,
                "laplace": 2.85e5,
                "box-norm": 4e5,
                "ellipsoid-stairs": 3.455e5,
                "box-stairs": 3.986e5,
            },
        ),
    ],
)
def test_pure_privacy_takes_the_mechanism_with_the_least_error(domain, errors):
    plan = mh.plan_sum(domain=domain, n=10, privacy=PURE)
    found = {plan.mechanism: plan.expected_error, **dict(plan.alternatives)}
    assert found.keys() == errors.keys()
    for name, error in errors.items():
        assert found[name] == pytest.approx(error, rel=5e-3)
    assert plan.mechanism == min(errors, key=errors.get)


def test_pure_privacy_on_a_ball_beats_the_plain_laplace():
    best = mh.plan_mean(domain=BALL, n=1000, privacy=PURE)
    plain = mh.plan_mean(domain=BALL, n=1000, privacy=PURE, mechanism="plain-laplace")
    assert best.mechanism == "ellipsoid-norm"
    assert best.expected_error == pytest.approx(2 * math.sqrt(110) / 1000, rel=1e-9)
    assert plain.expected_error == pytest.approx(2 * math.sqrt(2) * 10 / 1000, rel=1e-9)
    assert best.certificate.ratio < plain.certificate.ratio


def test_unlike_sides_get_unlike_noise():
    """Everyone else adds spherical noise; for a box with unequal sides that is not the best."""
    plan = mh.plan_mean(domain=UNLIKE, n=1000, privacy=mh.ZCDP(rho=0.5))
    w = np.array([200_000.0, 74.0])
    assert np.allclose(np.diag(plan.covariance), w.sum() * w / 1000**2)
    spherical = math.sqrt(2) * np.linalg.norm(w) / 1000
    assert plan.expected_error < 0.75 * spherical


def test_named_bounds_weight_the_columns_by_their_widths():
    plan = mh.plan_mean(
        domain={"salary": (0, 200_000), "age": (16, 90)},
        n=10_000,
        privacy=mh.ZCDP(rho=0.5),
        missing="none",
    )
    assert plan.columns == ("salary", "age")
    relative = plan.standard_error / np.array([200_000, 74])
    assert relative[0] == pytest.approx(relative[1], rel=1e-9)
    heavy = mh.plan_mean(
        domain={"salary": (0, 200_000), "age": (16, 90)},
        n=10_000,
        privacy=mh.ZCDP(rho=0.5),
        weights={"age": 1.0, "salary": 1e-9},
        missing="none",
    )
    assert heavy.standard_error[1] < plan.standard_error[1]


@pytest.mark.parametrize("p", [2, 4, math.inf])
@pytest.mark.parametrize("promise", [mh.ZCDP(rho=0.01), PURE], ids=["zcdp", "pure"])
@pytest.mark.parametrize(
    "domain", [BALL, UNLIKE, mh.Ellipsoid([[4, 1], [1, 3]])], ids=["ball", "box", "ellipsoid"]
)
def test_no_plan_is_better_than_its_lower_bounds(domain, promise, p):
    plan = mh.plan_mean(domain=domain, n=1000, privacy=promise, p=p)
    for bound in plan.certificate.bounds:
        assert bound.value is None or bound.value <= plan.expected_error
    assert plan.certificate.ratio >= 1


def test_one_ellipsoid_serves_every_norm_of_the_error_but_a_box_has_its_own():
    plans = [mh.plan_mean(domain=UNLIKE, n=10, privacy=mh.ZCDP(rho=1), p=p) for p in (2, math.inf)]
    assert plans[0].standard_error[1] < plans[1].standard_error[1]
    assert plans[1].expected_error_method == "quadrature"
    balls = [mh.plan_mean(domain=BALL, n=10, privacy=mh.ZCDP(rho=1), p=p) for p in (2, 8)]
    assert np.allclose(balls[0].standard_error, balls[1].standard_error)


def test_contributions_multiply_the_noise():
    one = mh.plan_mean(domain=BALL, n=1000, privacy=mh.ZCDP(rho=0.1))
    five = mh.plan_mean(domain=BALL, n=1000, privacy=mh.ZCDP(rho=0.1), contributions=5)
    assert five.expected_error == pytest.approx(5 * one.expected_error, rel=1e-9)
    assert five.certificate.ratio == pytest.approx(one.certificate.ratio, rel=1e-6)


def test_a_secret_n_is_a_ratio_whose_certificate_depends_on_n():
    plan = mh.plan_mean(domain=mh.Ball(radius=2, dim=100), n=None, privacy=mh.GDP(mu=0.5))
    assert plan.mechanism == "ratio"
    assert plan.neighbors is mh.Neighbors.ADD_REMOVE
    assert plan.expected_error is plan.covariance is plan.standard_error is plan.certificate is None
    # Worst mean: r(√d + 1)/(nμ).
    assert plan.error_at(1000) == pytest.approx(2 * 11 / (1000 * 0.5), rel=1e-6)
    assert plan.certificate_at(1000).error == plan.error_at(1000)
    ratios = [plan.certificate_at(10**exponent).ratio for exponent in (3, 6, 9)]
    assert ratios == sorted(ratios, reverse=True)
    assert 1 < ratios[-1] < 1.02
    with pytest.raises(mh.InvalidInput, match="n is not secret"):
        mh.plan_mean(domain=mh.Box([0], [1]), n=10, privacy=mh.GDP(mu=1)).certificate_at(10)


def test_a_sum_with_secret_n_measures_from_zero_or_counts_along():
    one = mh.plan_sum(domain=mh.Box([0], [100]), n=None, privacy=PURE)
    assert one.mechanism == "staircase"
    assert one.expected_error == pytest.approx(100 * STAIRCASE, rel=1e-6)
    far = mh.plan_sum(domain=mh.Box([1000] * 3, [1100] * 3), n=None, privacy=mh.GDP(mu=1))
    assert far.mechanism == "joint"
    assert far.expected_error == pytest.approx(150 + 1050 * math.sqrt(3), rel=1e-6)
    assert far.certificate.ratio < 1.4
    ball = mh.plan_sum(domain=mh.Ball(radius=1, dim=2, center=[3, 4]), n=None, privacy=mh.GDP(mu=1))
    assert ball.expected_error == pytest.approx(math.sqrt(2) + 5, rel=1e-6)


def test_a_count_has_the_noise_of_one_record():
    assert mh.plan_count(privacy=mh.GDP(mu=2)).expected_error == pytest.approx(0.5)
    assert mh.plan_count(privacy=PURE).expected_error == pytest.approx(GEOMETRIC)
    several = mh.plan_count(privacy=PURE, contributions=3)
    assert 3 * STAIRCASE * 0.99 < several.expected_error < 3 * STAIRCASE


@pytest.mark.parametrize("kind", ["zcdp", "gdp", "pure", "approx"])
@pytest.mark.parametrize("domain", [BALL, {"a": (0, 1), "b": (5, 9)}], ids=["ball", "box"])
def test_the_privacy_for_an_error_reaches_it_and_no_less_would(kind, domain):
    delta = 1e-6 if kind == "approx" else None
    promise = mh.privacy_for(domain=domain, n=1000, error=0.02, kind=kind, delta=delta)
    assert promise.kind == kind
    plan = mh.plan_mean(domain=domain, n=1000, privacy=promise)
    reached = plan.expected_error if domain is BALL else plan.error_at(1000)
    assert reached <= 0.02 * (1 + 1e-9)
    assert reached >= 0.02 * (1 - 1e-6)


@pytest.mark.parametrize("error", [0.2, 0.02, 0.0005, 0.00001])
@pytest.mark.parametrize(("kind", "delta"), [("pure", None), ("approx", 1e-6), ("approx", 1e-4)])
def test_the_privacy_for_one_column_is_found_though_errors_are_not_in_proportion(
    kind, delta, error
):
    given = {"domain": {"a": (0, 1)}, "n": 1000, "missing": "none"}
    promise = mh.privacy_for(**given, error=error, kind=kind, delta=delta)
    plan = mh.plan_mean(**given, privacy=promise)
    assert error * (1 - 2e-6) <= plan.expected_error <= error * (1 + 1e-9)


def test_an_error_bound_beyond_a_domain_needs_hardly_any_privacy_loss():
    assert mh.privacy_for(domain=BALL, n=1000, error=0.01, kind="zcdp") == mh.ZCDP(rho=0.2)


def test_the_digest_is_stable_and_changes_with_every_choice():
    def digest(**changes):
        arguments = {"domain": BALL, "n": 100, "privacy": mh.ZCDP(rho=0.1)} | changes
        return mh.plan_mean(**arguments).digest

    assert digest() == digest()
    others = [
        digest(n=101),
        digest(privacy=mh.ZCDP(rho=0.2)),
        digest(privacy=mh.GDP(mu=0.1)),
        digest(domain=mh.Ball(radius=1.5, dim=10)),
        digest(contributions=2),
        digest(n=None),
        digest(p=4),
    ]
    assert len({digest(), *others}) == len(others) + 1


def test_a_plan_prints_and_serialises():
    plan = mh.plan_mean(domain={"a": (0, 1)}, n=100, privacy=PURE, p=math.inf)
    text = plan.describe()
    assert "0.01" in text
    assert "1-DP" in text
    assert repr(plan) == text
    assert "<table>" in plan._repr_html_()
    fields = plan.to_dict()
    assert fields["p"] == "inf"
    assert fields["certificate"]["ratio"] == plan.certificate.ratio
    assert "number of records" in mh.plan_mean(domain=BALL, n=None, privacy=PURE).describe()


@pytest.mark.parametrize(
    "plan",
    [
        mh.plan_mean(domain=UNLIKE, n=100, privacy=PURE),
        mh.plan_mean(domain=mh.Ball(radius=1, dim=60), n=100, privacy=mh.ZCDP(rho=1)),
        mh.plan_mean(domain=UNLIKE, n=None, privacy=PURE),
        mh.plan_count(privacy=PURE),
    ],
    ids=["two", "many", "ratio", "count"],
)
def test_a_plan_draws_itself(plan, tmp_path):
    plan.plot().savefig(tmp_path / "plan.png")
    assert (tmp_path / "plan.png").stat().st_size > 5_000


def bad(**changes):
    return {"domain": UNLIKE, "n": 100, "privacy": PURE} | changes


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (bad(domain=None), "domain must say"),
        (bad(domain={}), "domain must say"),
        (bad(domain=(0, 1)), "domain must say"),
        (bad(domain={"a": (1, 0)}), "lower bound of a"),
        (bad(domain={"a": (0, math.inf)}), "upper bound of a"),
        (bad(domain={"a": (math.nan, 1)}), "lower bound of a"),
        (bad(domain={"a": 3}), "pairs"),
        (bad(privacy=1.0), "promise"),
        (bad(privacy=None), "promise"),
        (bad(n=0), "n must be"),
        (bad(n=-5), "n must be"),
        (bad(n=2.5), "n must be"),
        (bad(n="many"), "n must be"),
        (bad(p=1), "p must be"),
        (bad(p=math.nan), "p must be"),
        (bad(weights=[1]), "weights"),
        (bad(weights=[1, -1]), "weights"),
        (bad(weights={"a": 1}), "weights"),
        (bad(neighbors="add-remove"), "n is public"),
        (bad(n=None, neighbors="substitute"), "n is secret"),
        (bad(neighbors="friends"), "neighbors"),
        (bad(domain=BALL, missing="drop"), "drop"),
        (bad(missing="drop", mechanism="ellipsoid-norm"), "complete records"),
        (bad(missing="impute"), "missing"),
        (bad(contributions=0), "contributions"),
        (bad(mechanism="gaussian"), "mechanism"),
        (bad(mechanism="laplase"), "Did you mean 'laplace'"),
        (bad(n=None, mechanism="laplace"), "ratio"),
        (bad(domain=BALL, mechanism="box-norm"), "Box"),
        (bad(domain=BALL, mechanism="laplace"), "Box"),
    ],
)
def test_bad_arguments_are_refused_with_a_hint(arguments, match):
    with pytest.raises(mh.InvalidInput, match=match):
        mh.plan_mean(**arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"error": 0},
        {"error": math.nan},
        {"kind": "zCDP"},
        {"kind": "approx"},
        {"kind": "zcdp", "delta": 1e-6},
        {"kind": "approx", "delta": 2},
    ],
)
def test_a_bad_target_is_refused(arguments):
    with pytest.raises(mh.InvalidInput):
        mh.privacy_for(**({"domain": BALL, "n": 100, "error": 0.1} | arguments))


def test_a_count_under_substitution_is_refused():
    with pytest.raises(mh.InvalidInput, match="public"):
        mh.plan_count(privacy=PURE, neighbors="substitute")


def test_a_delta_that_is_not_below_one_in_n_is_warned_of_when_n_is_public():
    careless = mh.ApproxDP(epsilon=1, delta=0.01)
    with pytest.warns(UserWarning, match="in the clear"):
        mh.plan_mean(domain=BALL, n=100, privacy=careless)
    mh.plan_mean(domain=BALL, n=99, privacy=careless)
    mh.plan_mean(domain=BALL, n=None, privacy=careless)


def test_the_error_after_the_projection_is_bounded_by_half_the_mean_width():
    plan = mh.plan_mean(domain=mh.Ball(radius=2, dim=400), n=50, privacy=mh.ZCDP(rho=0.1))
    spread = plan["mean"].spread
    length = math.sqrt(2) * math.exp(math.lgamma(200.5) - math.lgamma(200))
    exact = math.sqrt(2 * spread.scales[0] * length)
    assert plan.projected_error == pytest.approx(exact, rel=2e-3)
    # What is left of such noise, whatever the mean: here at the centre, on the way and on the edge.
    noise = np.random.default_rng(1).normal(size=(2000, 400)) * spread.scales
    for place in (0.0, 1.0, 2.0):
        mean = np.zeros(400)
        mean[0] = place
        lengths = np.linalg.norm(mean + noise, axis=1, keepdims=True)
        projected = (mean + noise) * np.minimum(1, 2 / lengths)
        error = np.sqrt(np.mean(np.sum((projected - mean) ** 2, axis=1)))
        assert error < plan.projected_error


@pytest.mark.parametrize("privacy", [mh.PureDP(epsilon=0.1), mh.ZCDP(rho=0.1)])
@pytest.mark.parametrize("p", [2, 3, 200, math.inf])
@pytest.mark.parametrize("domain", [mh.Simplex(1), mh.Points([[1.0, 2.0]])])
def test_a_domain_of_one_point_has_no_error_in_any_norm(domain, p, privacy):
    plan = mh.plan_mean(domain=domain, n=10, privacy=privacy, p=p)
    assert plan.expected_error == 0
    release = plan.release(np.ones((10, domain.dim)))
    assert (release.value == domain.center).all()


@pytest.mark.parametrize("privacy", [mh.PureDP(epsilon=0.1), mh.ZCDP(rho=0.1)])
def test_a_secret_number_of_records_far_from_zero_has_a_sum(privacy):
    domain = mh.Ball(1, 2, center=[1e16, 0])
    plan = mh.plan_sum(domain=domain, n=None, privacy=privacy)
    assert plan.mechanism == "joint"
    # All but a trillionth of the promise is the count's, whose noise the centre multiplies.
    alone = mh.plan_count(privacy=privacy).expected_error
    assert plan.expected_error == pytest.approx(1e16 * alone, rel=0.5)


@pytest.mark.parametrize("rows", [[1, 2, 3], (1, 2, 3), [[1], [2], [3]], [(1,), (2,), (3,)]])
def test_lists_are_released_as_arrays_are(rows):
    box, promise = mh.Box([0], [10]), mh.ZCDP(rho=1e9)
    plan = mh.plan_mean(domain=box, n=3, privacy=promise)
    assert float(plan.release(rows)) == pytest.approx(2, abs=0.01)
    assert float(mh.sum(rows, domain=box, privacy=promise)) == pytest.approx(6, abs=0.01)
    assert float(mh.quantile(rows, lower=0, upper=10, privacy=promise)) == pytest.approx(2, abs=0.1)


def test_lists_of_records_and_of_counts_are_released_as_arrays_are():
    promise = mh.ZCDP(rho=1e9)
    plan = mh.plan_mean(domain=mh.Box([0, 0], [10, 1]), n=2, privacy=promise)
    assert plan.release([[4, 1], [6, 0]]).value == pytest.approx([5, 0.5], abs=0.01)
    counts = mh.plan_queries(mh.workloads.identity(3), privacy=promise)
    assert counts.release([1, 2, 3]).value == pytest.approx([1, 2, 3], abs=0.01)
    fixed = mh.plan_queries(mh.workloads.identity(3), privacy=promise, neighbors="substitute")
    assert fixed.release([1, 2, 3]).value == pytest.approx([1, 2, 3], abs=0.01)
    tables = mh.plan_queries(mh.workloads.marginals(shape=(2, 2), order=1), privacy=promise)
    shown = tables.release([[1, 2], [3, 4]]).value
    assert shown == pytest.approx(tables.release(np.array([[1, 2], [3, 4]])).value, abs=0.01)
