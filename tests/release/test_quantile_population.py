"""Intervals of quantiles for the population that records were drawn from."""

import itertools
import math

import numpy as np
import pytest

import muhat as mh
from muhat.errors import InvalidInput

RHO, PURE = mh.ZCDP(rho=0.5), mh.PureDP(epsilon=1.0)
TRIALS, N = 120, 2000


def covered(q, release):
    """How often the interval held the population's quantile, and its mean length."""
    rng = np.random.default_rng(5)
    held, lengths = 0, []
    for _ in range(TRIALS):
        low, high = release(rng.exponential(10, N)).interval(0.8, target="population")
        held += bool(low.ravel()[0] <= -10 * math.log1p(-q) <= high.ravel()[0])
        lengths.append(float(high.ravel()[0] - low.ravel()[0]))
    return held / TRIALS, float(np.mean(lengths))


@pytest.mark.parametrize("privacy", [RHO, PURE], ids=["normal", "pure"])
@pytest.mark.parametrize("q", [0.5, 0.9])
@pytest.mark.parametrize("n", [N, None], ids=["public", "secret"])
def test_intervals_hold_the_population(privacy, q, n):
    """Chance of a false alarm below 1e-6: 5 standard errors below a level that is exceeded."""

    def release(records):
        return mh.quantile(
            {"x": records}, q=q, lower=0, upper=100, resolution=0.1, privacy=privacy, n=n
        )

    held, length = covered(q, release)
    assert held >= 0.8 - 5 * math.sqrt(0.16 / TRIALS)
    assert length < 40  # not all that is possible


def test_with_little_noise_the_interval_of_the_records_misses_the_population():
    """Planted: what covers noise alone covers no sampling."""
    rng = np.random.default_rng(6)
    missed = 0
    for _ in range(60):
        release = mh.quantile(
            rng.exponential(10, 2000), q=0.5, lower=0, upper=100, privacy=mh.ZCDP(rho=50)
        )
        (low,), (high,) = release.interval(0.8)
        missed += not low <= 10 * math.log(2) <= high
        (outer_low,), (outer_high,) = release.interval(0.8, target="population")
        assert outer_low <= low <= high <= outer_high
    assert missed > 30


def test_of_more_confidence_and_of_several_they_are_wider():
    rng = np.random.default_rng(7)
    release = mh.quantile(
        {"x": rng.normal(50, 10, 3000), "y": rng.normal(20, 3, 3000)},
        q=[0.1, 0.5, 0.9],
        lower=[0, 0],
        upper=[100, 100],
        privacy=RHO,
    )
    ends = [release.interval(level, target="population") for level in (0.5, 0.8, 0.95, 0.999)]
    ends.append(release.interval(0.999, target="population", simultaneous=True))
    for (low, high), (lower, higher) in itertools.pairwise(ends):
        assert (lower <= low).all()
        assert (high <= higher).all()
    table = release.table()
    assert (table["population_lower"] <= table["lower"]).all()
    assert "95 % interval: population" in str(release)
    fields = release.to_dict()
    assert fields["population_interval"]["target"] == "population"
    again = mh.Release.from_json(release.to_json())
    assert again.to_dict() == fields


def test_the_least_value_of_a_population_has_one_side_only():
    release = mh.quantile(
        np.linspace(30, 60, 5000), q=[0, 1], lower=0, upper=100, privacy=RHO, missing="none"
    )
    (low, high), (lower, higher) = release.interval(), release.interval(target="population")
    assert lower[0, 0] == 0
    assert higher[1, 0] == 100
    assert higher[0, 0] == high[0, 0] < 100
    assert lower[1, 0] == low[1, 0] > 0


def test_groups_have_them_too():
    rng = np.random.default_rng(8)
    table = {"region": np.repeat(["a", "b"], 2000), "pay": rng.normal(50, 10, 4000)}
    schema = mh.Schema({"pay": (0, 100), "region": ["a", "b"]})
    plan = mh.plan([mh.Quantile("pay", by="region")], schema=schema, privacy=RHO)
    release = plan.release(table)
    assert release.has_population
    low, high = release.interval(target="population")
    assert low.shape == (2, 1, 1)
    assert (high - low < 10).all()
    assert ((low < 50) & (high > 50)).all()
    assert {"population_lower", "population_upper"} < set(release.table())
    assert "95 % interval: population" in str(release)


def test_where_there_is_none_it_is_said():
    several = mh.quantile(np.arange(900.0), q=0.5, lower=0, upper=900, privacy=RHO, contributions=3)
    secret = mh.quantile(
        np.arange(900.0),
        q=0.5,
        lower=0,
        upper=900,
        privacy=RHO,
        n=None,
        missing="none",
    )
    for release, why in ((several, "not independent draws"), (secret, "is secret here")):
        assert not release.has_population
        assert "No interval for a population: " in str(release)
        with pytest.raises(InvalidInput, match=why):
            release.interval(target="population")
    with pytest.raises(InvalidInput, match="target"):
        several.interval(target="sample")
