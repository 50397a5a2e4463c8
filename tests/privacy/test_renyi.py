"""Rényi privacy: the noise that keeps it, its sums, its points (ε, δ), what is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from click.testing import CliRunner

import muhat as mh
from muhat.cli import main
from muhat.errors import BudgetExceeded, InvalidInput
from muhat.ledger.balance import Balance
from muhat.ledger.entries import read_link
from muhat.ledger.records import ChainBroken
from muhat.noise.kinds import NoiseKind
from muhat.privacy import Filter, compose, currency_kind, gaussian_mu_squared, pure_within
from muhat.privacy.renyi import LARGEST, pure_renyi, renyi_delta, renyi_epsilon

PROMISE = mh.RDP(alpha=8, epsilon=0.5)
ORDERS = [1.001, 1.5, 2.0, 8.0, 64.0]
BOUNDS = [1e-8, 1e-3, 0.5, 5.0]


def divergence(p, q, alpha):
    """D_α of two outcomes, with many digits."""
    with mpmath.workdps(60):
        p, q, alpha = mpmath.mpf(p), mpmath.mpf(q), mpmath.mpf(alpha)
        total = p**alpha * q ** (1 - alpha) + (1 - p) ** alpha * (1 - q) ** (1 - alpha)
        return mpmath.log(total) / (alpha - 1)


def canonne_kamath_steinke(alpha, bound, delta):
    inner = math.log(1 / delta) + (alpha - 1) * math.log1p(-1 / alpha) - math.log(alpha)
    return max(0.0, bound + inner / (alpha - 1))


def test_it_reads_well_and_survives_json():
    assert PROMISE.describe() == "(8, 0.5)-RDP"
    assert mh.RDP(alpha=1.5, epsilon=2).describe() == "(1.5, 2)-RDP"
    assert PROMISE.amounts == (Fraction(1, 2),)


@pytest.mark.parametrize("alpha", [1, 0.5, -2, 0, math.inf, math.nan, 2 * LARGEST, "8", None])
def test_an_order_is_a_number_above_one(alpha):
    with pytest.raises(InvalidInput, match="alpha must be"):
        mh.RDP(alpha=alpha, epsilon=1.0)


@pytest.mark.parametrize("epsilon", [0, -1, math.inf, math.nan, 2 * LARGEST, None])
def test_a_divergence_is_a_positive_number(epsilon):
    with pytest.raises(InvalidInput, match="epsilon must be"):
        mh.RDP(alpha=2.0, epsilon=epsilon)


@pytest.mark.parametrize("alpha", [1.5, 2.0, 8.0])
def test_normal_noise_of_its_mu_has_exactly_its_divergence(alpha):
    promise = mh.RDP(alpha=alpha, epsilon=0.7)
    mu = math.sqrt(gaussian_mu_squared(promise))
    with mpmath.workdps(30):

        def moment(x):
            return mpmath.exp(-((x - mu) ** 2) / 2 * alpha - x**2 / 2 * (1 - alpha))

        ends = [-30, 0, alpha * mu, alpha * mu + 30]
        total = mpmath.quad(moment, ends) / mpmath.sqrt(2 * mpmath.pi)
        assert float(mpmath.log(total) / (alpha - 1)) == pytest.approx(0.7, rel=1e-12)
    assert gaussian_mu_squared(PROMISE) == Fraction(1, 8)


@pytest.mark.parametrize("epsilon", [1e-100, 1e-9, 0.1, 1.0, 30.0, 1e4])
@pytest.mark.parametrize("alpha", [1 + 1e-9, 1.5, 2.0, 64.0, 1e6])
def test_pure_mechanisms_have_at_most_the_divergence_of_randomised_response(epsilon, alpha):
    found = pure_renyi(epsilon, alpha)
    with mpmath.workdps(400):
        e, a = mpmath.mpf(repr(epsilon)), mpmath.mpf(repr(alpha))
        exact = mpmath.log(mpmath.cosh((a - 0.5) * e) / mpmath.cosh(e / 2)) / (a - 1)
        assert exact <= mpmath.mpf(repr(found)) <= exact * (1 + mpmath.mpf(10) ** -15)


@pytest.mark.parametrize("alpha", [1.5, 8.0, 1000.0])
def test_the_largest_pure_epsilon_is_the_largest(alpha):
    promise = mh.RDP(alpha=alpha, epsilon=0.5)
    epsilon = pure_within(promise)
    assert pure_renyi(epsilon, alpha) <= 0.5 < pure_renyi(math.nextafter(epsilon, 9), alpha)
    assert promise.simple_pure <= Fraction(epsilon)


@pytest.mark.parametrize("alpha", ORDERS)
@pytest.mark.parametrize("bound", BOUNDS)
def test_no_two_outcomes_that_keep_it_are_easier_to_tell_apart(alpha, bound):
    """On a grid of pairs, and of ε."""
    generator = np.random.default_rng(8)
    for epsilon in (0.05, 1.0, 6.0):
        delta = renyi_delta(alpha, bound, epsilon)
        # Pairs around the best one: p·10^±3 and every ratio that could matter.
        for _ in range(60):
            p = min(0.999999, delta * 10 ** generator.uniform(-1, 3))
            q = p * math.exp(-epsilon) * generator.uniform(0.01, 1)
            if divergence(p, q, alpha) <= bound:
                assert p - math.exp(epsilon) * q <= delta * (1 + 1e-12)


@pytest.mark.parametrize("alpha", [1.5, 2.0, 8.0, 64.0, 900.0])
@pytest.mark.parametrize("bound", [1e-3, 0.5, 5.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-4, 1e-3, 0.3])
def test_the_points_are_attained_and_never_above_the_known_formula(alpha, bound, delta):
    epsilon = renyi_epsilon(alpha, bound, delta)
    assert epsilon <= canonne_kamath_steinke(alpha, bound, delta) * (1 + 1e-12)
    if epsilon == 0:
        return
    assert renyi_delta(alpha, bound, epsilon) == pytest.approx(delta, rel=1e-9)
    # Of all pairs with this ε and δ the least divergence is the bound.
    p = delta * (1 + 10 ** np.linspace(-8, 12, 8001))
    p = np.append(p[p < 1], 1 - 1e-15)
    q = (p - delta) * math.exp(-epsilon)
    with np.errstate(under="ignore"):
        first = alpha * np.log(p) + (1 - alpha) * np.log(q)
        second = alpha * np.log1p(-p) + (1 - alpha) * np.log1p(-q)
    least = np.logaddexp(first, second).min() / (alpha - 1)
    assert least == pytest.approx(bound, rel=1e-4)


def test_a_forged_delta_would_be_found():
    """The grid above fails for a δ of one part in ten less."""
    alpha, bound, epsilon = 8.0, 0.5, 1.0
    delta = renyi_delta(alpha, bound, epsilon)
    generator, caught = np.random.default_rng(8), 0
    for _ in range(1000):
        p = delta * generator.uniform(2, 20)
        q = p * math.exp(-epsilon) * generator.uniform(0.8, 1)
        if divergence(p, q, alpha) <= bound:
            caught += p - math.exp(epsilon) * q > 0.9 * delta
    assert caught > 10


def test_a_point_says_where_nothing_is_promised():
    assert PROMISE.to("approx", delta=1e-6) == mh.ApproxDP(epsilon=2.0386697636812405, delta=1e-6)
    assert renyi_epsilon(8.0, 0.5, 0.5) == 0.0
    assert renyi_delta(1e6, 1e6, 1e-300) == 1.0
    assert 0 < renyi_delta(2.0, 1e-6, 1e6) <= 5e-324


def test_normal_noise_keeps_the_points_of_its_promise():
    promise = mh.RDP(alpha=20, epsilon=1)
    noise = mh.GDP(mu=math.sqrt(promise.normal_mu_squared))
    for delta in (1e-9, 1e-6, 1e-3):
        assert promise.epsilon_at(delta) >= noise.epsilon_at(delta)


def test_one_order_adds_up_and_others_do_not():
    assert compose([PROMISE, PROMISE]) == mh.RDP(alpha=8, epsilon=1)
    with pytest.raises(InvalidInput, match="'rdp-8' and 'rdp-9'"):
        compose([PROMISE, mh.RDP(alpha=9, epsilon=0.5)])
    budget = Filter(mh.RDP(alpha=8, epsilon=1))
    for _ in range(10):
        budget.charge(mh.RDP(alpha=8, epsilon=0.1))
    with pytest.raises(BudgetExceeded):
        budget.charge(mh.RDP(alpha=8, epsilon=1e-9))


IMPLIED = [
    (mh.ZCDP(rho=0.1), Fraction(8, 10), "zCDP → Rényi: ε = α·ρ"),
    (mh.GDP(mu=0.3), Fraction(36, 100), "GDP → Rényi: ε = α·μ²/2"),
    (mh.RDP(alpha=9, epsilon=0.2), Fraction(2, 10), "Rényi → Rényi: a lower order"),
]


@pytest.mark.parametrize(("promise", "cost", "words"), IMPLIED)
def test_an_account_of_one_order_takes_what_implies_it(tmp_path, promise, cost, words):
    ledger = mh.Ledger.create(tmp_path / "b.db", budget=PROMISE, neighbors="substitute")
    if cost > Fraction(1, 2):
        with pytest.raises(BudgetExceeded, match=r"the release costs \(8, 0\.8\)-RDP"):
            ledger.charge(promise, neighbors="substitute", plan_digest="ab")
        return
    entry = ledger.charge(promise, neighbors="substitute", plan_digest="ab")
    assert entry.charged.amounts == (cost,)
    assert entry.conversion.startswith(words)
    assert promise.to("rdp", alpha=8).amounts == (cost,)


def test_a_pure_promise_costs_what_randomised_response_would(tmp_path):
    ledger = mh.Ledger.create(tmp_path / "b.db", budget=PROMISE, neighbors="substitute")
    entry = ledger.charge(mh.PureDP(epsilon=0.2), neighbors="substitute", plan_digest="ab")
    assert entry.charged.epsilon == pure_renyi(0.2, 8.0) < 8 * 0.02
    assert mh.Ledger.open(ledger.path).verify() == entry.head
    assert f"{ledger.remaining:.3g}" == "(8, 0.379)-RDP"
    assert ledger.spent.to_dict()["kind"] == "rdp-8"
    assert ledger.spent < mh.RDP(alpha=8, epsilon=0.2)
    assert ledger.spent != mh.RDP(alpha=7, epsilon=0.2)


@pytest.mark.parametrize(
    ("promise", "words"),
    [
        (
            mh.ApproxDP(epsilon=0.1, delta=1e-6),
            "ask for mh.RDP or mh.PureDP or mh.ZCDP or mh.GDP, which it takes",
        ),
        (mh.RDP(alpha=7, epsilon=0.1), r"a ledger of \(8, …\)-RDP: its order is lower"),
    ],
)
def test_an_account_of_one_order_refuses_what_does_not_imply_it(tmp_path, promise, words):
    ledger = mh.Ledger.create(tmp_path / "b.db", budget=PROMISE, neighbors="substitute")
    with pytest.raises(InvalidInput, match=words):
        ledger.charge(promise, neighbors="substitute", plan_digest="ab")
    assert ledger.head.count == 0


@pytest.mark.parametrize("budget", [mh.ZCDP(rho=1), mh.GDP(mu=1), mh.PureDP(epsilon=1)])
def test_no_other_account_takes_it(tmp_path, budget):
    ledger = mh.Ledger.create(tmp_path / "b.db", budget=budget, neighbors="substitute")
    with pytest.raises(InvalidInput, match=f"ask for mh.{type(budget).__name__}"):
        ledger.charge(PROMISE, neighbors="substitute", plan_digest="ab")


def test_groups_are_refused_with_a_reason(tmp_path):
    account = mh.Ledger.create(tmp_path / "b.db", budget=PROMISE, neighbors="substitute")
    ledger = mh.Ledger.open(account.path, convert=True)
    with pytest.raises(InvalidInput, match="nothing at its own order about datasets 2 steps apart"):
        ledger.charge(PROMISE, neighbors="add-remove", plan_digest="ab")


@pytest.mark.parametrize("currency", ["rdp", "rdp-", "rdp-1", "rdp-8.0", "rdp-nan", "rdp-x", "zz"])
def test_a_currency_is_written_in_one_way(currency):
    with pytest.raises((KeyError, ValueError)):
        currency_kind(currency)
    with pytest.raises((KeyError, ValueError)):
        Balance.zero(currency)


def test_an_entry_of_another_order_breaks_the_chain(tmp_path):
    ledger = mh.Ledger.create(tmp_path / "b.db", budget=PROMISE, neighbors="substitute")
    entry = ledger.charge(PROMISE, neighbors="substitute", plan_digest="ab")
    record = entry.seal()
    assert read_link(record) == entry
    forged = type(record).seal({**entry._fields(), "kind": "rdp-08"})
    with pytest.raises(ChainBroken):
        read_link(forged)


@pytest.mark.parametrize(
    ("promise", "kind", "given", "words"),
    [
        (PROMISE, "pure", {}, "one moment of the privacy loss"),
        (PROMISE, "zcdp", {}, "one order says nothing about higher ones"),
        (PROMISE, "gdp", {}, "whole trade-off curve"),
        (PROMISE, "rdp", {"alpha": 9}, "its order is lower"),
        (PROMISE, "rdp", {}, "alpha must be given"),
        (PROMISE, "rdp", {"alpha": 1}, "alpha must be above 1"),
        (PROMISE, "zcdp", {"alpha": 2}, "alpha belongs to kind 'rdp'"),
        (PROMISE, "approx", {"beta": 2}, "belongs to no kind"),
        (mh.ApproxDP(epsilon=1, delta=0.1), "rdp", {"alpha": 2}, "no divergence is bounded"),
    ],
)
def test_what_is_not_implied_is_refused_with_a_reason(promise, kind, given, words):
    with pytest.raises(InvalidInput, match=words):
        promise.to(kind, **given)
    assert PROMISE.to("rdp", alpha=4) == mh.RDP(alpha=4, epsilon=0.5)


BALL = mh.Ball(radius=1, dim=3)


@pytest.mark.parametrize(
    ("alpha", "mechanism"), [(1.5, "gaussian"), (8, "gaussian"), (1000, "ellipsoid-norm")]
)
def test_a_plan_takes_the_noise_of_least_error(alpha, mechanism):
    promise = mh.RDP(alpha=alpha, epsilon=0.5)
    plan = mh.plan_mean(domain=BALL, n=1000, privacy=promise)
    assert plan.mechanism == mechanism
    kind = plan.recipe.law.kind
    allowed = plan.recipe.protection.strength_squared(kind)
    if kind is NoiseKind.PURE:
        assert pure_renyi(math.sqrt(allowed), alpha) <= 0.5 * (1 + 1e-12)
    else:
        assert allowed == Fraction(1) / Fraction(alpha)
    assert plan.certificate.ratio >= 1
    assert plan.digest != mh.plan_mean(domain=BALL, n=1000, privacy=mh.ZCDP(rho=0.5)).digest


def test_normal_noise_is_that_of_the_zcdp_which_implies_it():
    plan = mh.plan_mean(domain=BALL, n=1000, privacy=PROMISE)
    same = mh.plan_mean(domain=BALL, n=1000, privacy=mh.ZCDP(rho=0.0625))
    assert plan.expected_error == same.expected_error
    assert max(b.value for b in plan.certificate.bounds if b.value) <= plan.expected_error


def test_means_sums_counts_quantiles_and_queries_are_released(tmp_path):
    ages = {"age": np.linspace(20, 60, 4000)}
    budget = mh.RDP(alpha=8, epsilon=2)
    ledger = mh.Ledger.create(tmp_path / "b.db", budget=budget, neighbors="substitute")
    mean = mh.mean(ages, domain={"age": (16, 90)}, privacy=PROMISE, ledger=ledger)
    assert mean.value[0] == pytest.approx(40, abs=2)
    assert "(8, 0.5)-RDP" in str(mean)
    quantile = mh.quantile(ages, 0.5, lower=0, upper=100, privacy=PROMISE, ledger=ledger)
    assert 30 < quantile.value < 50
    assert ledger.remaining == mh.RDP(alpha=8, epsilon=1)
    assert mh.count(ages, privacy=PROMISE).value[0] == pytest.approx(4000, abs=60)
    total = mh.sum(ages, domain={"age": (16, 90)}, n=None, privacy=PROMISE)
    assert total.value[0] == pytest.approx(160_000, rel=0.1)
    plan = mh.plan_queries(mh.workloads.prefix(8), privacy=PROMISE)
    assert np.asarray(plan.release(np.full(8, 100)).value)[-1] == pytest.approx(800, abs=100)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mh.privacy_for(domain=BALL, n=99, error=0.1, kind="rdp"), "an order alpha"),
        (
            lambda: mh.protocols.shuffle_mean(domain=BALL, n=1000, privacy=PROMISE),
            r"keeps promises \(epsilon, delta\)",
        ),
        (
            lambda: mh.plan_mean(domain=mh.Reals(1, 9.0), n=None, n_min=99, privacy=PROMISE),
            "approximate privacy",
        ),
        (
            lambda: mh.plan_mean(
                domain=mh.Reals(1, 9.0), n=9999, privacy=PROMISE, moment=(2, 1.0), symmetric=True
            ),
            "needs approximate privacy",
        ),
        (
            lambda: mh.plan_mean(
                domain=mh.Reals(1, 9.0),
                n=9999,
                privacy=mh.RDP(alpha=1.5, epsilon=1),
                moment=(2, 1.0),
                max_bias=0,
            ),
            "nothing is known about unbiased means",
        ),
    ],
)
def test_what_needs_more_than_one_order_is_refused(call, words):
    with pytest.raises(InvalidInput, match=words):
        call()


def test_no_unbiased_mean_of_unbounded_records_exists_from_order_two_on():
    with pytest.raises(mh.Impossible, match=r"B8 in docs/proofs/trilemma\.md"):
        mh.plan_mean(domain=mh.Reals(1, 9.0), n=9999, privacy=PROMISE, moment=(2, 1.0), max_bias=0)


@pytest.mark.parametrize("alpha", [1.2, 2.0, 8.0, 300.0])
def test_no_bound_is_above_what_is_achieved(alpha):
    promise = mh.RDP(alpha=alpha, epsilon=0.5)
    found = mh.bounds.ball(n=1000, dim=3, radius=1.0, privacy=promise)
    best = min(entry.error for entry in found.achieved)
    assert all(bound.value <= best for bound in found if bound.value is not None)
    for neighbors in ("substitute", "add-remove"):
        workload = mh.workloads.prefix(8)
        plan = mh.plan_queries(workload, privacy=promise)
        bounds = mh.bounds.linear_queries(workload, promise, neighbors="add-remove")
        assert all(bound.value <= plan.expected_error for bound in bounds if bound.value)
        assert mh.bounds.linear_queries(workload, promise, neighbors=neighbors)
    assert mh.bounds.trilemma(1000, privacy=promise, bias=0.01).value > 0
    assert 0 < mh.bounds.in_neighbor(promise) <= promise.least_error()


def test_a_promise_that_forbids_nothing_says_so():
    from muhat.privacy import cautions

    assert cautions(PROMISE) == ()
    assert "(2, 50)-RDP promises next to nothing" in cautions(mh.RDP(alpha=2, epsilon=50))[0]


@pytest.mark.parametrize("model", ["local_mean", "local_quantile"])
def test_devices_keep_it_too(model):
    given = {"domain": BALL} if model == "local_mean" else {"lower": 0, "upper": 9}
    protocol = getattr(mh.protocols, model)(n=1000, privacy=PROMISE, **given)
    said = protocol.randomizer.privacy
    assert said == PROMISE or pure_renyi(said.epsilon, 8.0) <= 0.5


def test_the_command_line_takes_it_as_alpha_with_epsilon(tmp_path):
    data, account = tmp_path / "ages.csv", tmp_path / "b.db"
    data.write_text("age\n" + "30\n" * 500)
    order = ["--alpha", "8", "--epsilon"]

    def run(*arguments, code=0):
        result = CliRunner().invoke(main, list(map(str, arguments)))
        assert result.exit_code == code, result.output
        return result.output

    run("ledger", "create", account, *order, "1", "--neighbors", "substitute")
    mean = ["mean", data, "--bounds", "age=16:90", "--ledger", account]
    assert "Private mean · (8, 0.6)-RDP · n = 500" in run(*mean, *order, "0.6")
    assert "(8, 0.4)-RDP of (8, 1)-RDP is left" in run(*mean, *order, "0.6", code=3)
    assert "(8, 0.6)-RDP" in run("ledger", "show", account)
    assert "--epsilon with --alpha" in run(*mean, "--alpha", "8", code=2)
    assert "alpha must be above 1" in run(*mean, "--alpha", "1", "--epsilon", "1", code=2)
