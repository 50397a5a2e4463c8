"""Counts of a set with the least noise: which tables have stairs, errors, intervals, refusals."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import muhat as mh
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.laplace import Laplace
from muhat.noise.stairs import Stairs
from muhat.release.moments import NoisyMoments, NoisyTable

LETTERS = ["a", "b", "c"]
SCHEMA = mh.Schema({"x": (0, 10), "g": LETTERS})
COMPLETE = mh.Schema({"x": (0, 10), "g": LETTERS}, complete=True)
RECORDS = {"x": np.arange(60) % 10, "g": np.array(LETTERS * 20)}


def planned(asked, epsilon=2.0, n=None, schema=SCHEMA):
    return mh.plan(asked, schema=schema, privacy=mh.PureDP(epsilon), n=n)


def laws(plan) -> list[str]:
    (part,) = plan.parts
    return [block.recipe.law.name for block in part.mechanism.blocks]


def error_of(epsilon: float) -> float:
    """That of geometric noise."""
    return 1 / (math.sqrt(2) * math.sinh(epsilon / 2))


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0])
def test_counts_have_geometric_noise_for_one_cell_or_for_two_where_records_are_replaced(epsilon):
    for n, strength in ((None, epsilon), (60, epsilon / 2)):
        plan = planned([mh.Count(by="g")], epsilon, n)
        assert laws(plan) == ["stairs"]
        assert plan["count by g"].standard_error == pytest.approx(error_of(strength), rel=1e-9)
        assert "stairs noise on sums by groups" in plan.describe()
    assert planned([mh.Count(by="g")], epsilon).certificate.ratio_any < 1.001
    approximate = mh.ApproxDP(epsilon, 1e-9)
    found = mh.plan([mh.Count(by="g")], schema=SCHEMA, privacy=approximate, n=None)
    assert found["count by g"].standard_error == pytest.approx(error_of(epsilon), rel=1e-6)


def test_people_with_several_rows_have_stairs_for_all_of_them():
    schema = mh.Schema({"x": (0, 10), "g": LETTERS}, unit="who", max_rows=3)
    for asked, expected in ((mh.Count(by="g"), error_of(2.0)), (mh.Count(per="unit"), None)):
        plan = mh.plan([asked], schema=schema, privacy=mh.PureDP(6.0), n=None)
        assert laws(plan) == ["stairs"]
        block = plan.parts[0].mechanism.blocks[0]
        law = block.recipe.law
        if expected is not None:
            assert plan[asked.name].standard_error == pytest.approx(expected, rel=1e-9)
            assert law.step == 1
        for rows in (1, 2, 3, 4):
            held = law.keeps(Strength.of(mh.PureDP(6.0), NoiseKind.PURE), Fraction(rows))
            assert held == (rows <= block.protection.contributions)


def test_counts_that_means_are_read_off_keep_laplace_noise():
    mean, count = mh.Mean("x", by="g"), mh.Count(by="g")
    # Values may be missing, so that the mean has a count of its own.
    assert sorted(set(laws(planned([mean, count])))) == ["laplace", "stairs"]
    assert set(laws(planned([mean, count], schema=COMPLETE))) == {"laplace"}
    assert laws(planned([mean])) == ["laplace"]
    described = {each.name: each.mechanism for each in planned([mean, count]).statistics}
    assert described["count by g"].startswith("stairs noise")
    assert described["mean x by g"].startswith("laplace noise")


def test_shares_are_those_of_laplace_noise_and_targets_are_met():
    asked = [mh.Count(by="g", target={"standard_error": 1.2}), mh.Mean("x", by="g")]
    plan = planned(asked, 3.0)
    share = plan["count by g"].share
    assert math.sqrt(2) / (3 * share) <= 1.2 * (1 + 1e-6)
    assert plan["count by g"].standard_error == pytest.approx(error_of(3 * share), rel=1e-9)
    assert plan["count by g"].standard_error < 1.2


def test_more_noise_than_was_proved_is_all_that_is_accepted():
    block = planned([mh.Count(by="g")]).parts[0].mechanism.blocks[0]
    law = block.recipe.law
    with pytest.raises(AssertionError, match="more sensitive"):
        replace(block.recipe, law=replace(law, ratio=law.ratio * Fraction(999, 1000)))
    means = planned([mh.Mean("x", by="g")]).parts[0].mechanism.blocks[0]
    with pytest.raises(AssertionError, match="fewer numbers"):
        replace(means, recipe=replace(means.recipe, law=Stairs(1 << 60, 1, law.ratio)))


def test_releases_are_whole_numbers_with_whole_intervals_and_can_be_read_again():
    release = planned([mh.Count(by="g")]).release(RECORDS)
    lower, upper = release.interval(0.95)
    law = release.answers[0].moments.listed[0].stairs
    reach = law.quantile(0.95, 1) * law.unit
    assert (release.value == np.round(release.value)).all()
    assert (upper - release.value).tolist() == [reach] * 3
    assert (release.value - lower).tolist() == [reach] * 3
    read = mh.Release.from_json(release.to_json())
    for options in ({}, {"simultaneous": True}):
        for mine, theirs in zip(release.interval(**options), read.interval(**options), strict=True):
            assert mine.tolist() == theirs.tolist()
    assert read.standard_error.tolist() == release.standard_error.tolist()
    wider = release.interval(0.95, simultaneous=True)[1] - release.value
    assert (wider >= reach).all()


def test_intervals_hold_as_often_as_they_say():
    """4,000 cells, each missed with the chance of the law: 5.5 standard errors are 4e-8.

    Planted: intervals that are one shorter on both sides.
    """
    cells = [f"{k:04}" for k in range(4000)]
    schema = mh.Schema({"g": cells})
    plan = mh.plan([mh.Count(by="g")], schema=schema, privacy=mh.PureDP(1.0), n=None)
    release = plan.release({"g": np.array(cells * 20)})
    lower, upper = release.interval(0.9)
    missed = float(np.mean((lower > 20) | (upper < 20)))
    law = release.answers[0].moments.listed[0].stairs
    reach = int(law.quantile(0.9, 1) * law.unit)
    chance = float(law.beyond(np.array(reach + 1.0)))
    spread = math.sqrt(chance * (1 - chance) / len(cells))
    assert chance <= 0.1
    assert abs(missed - chance) < 5.5 * spread
    assert np.mean((lower + 1 > 20) | (upper - 1 < 20)) > 0.1 + 5.5 * spread


def test_stairs_of_a_release_stand_beside_nothing_else():
    law = Stairs(1, 1, Fraction(1, 2))
    table = NoisyTable(np.array([3.0]), law.unit, "stairs", law)
    assert table.error == pytest.approx(2.0)
    for one in (
        lambda: NoisyTable(np.array([3.0]), 1.0, "stairs"),
        lambda: NoisyTable(np.array([3.0]), 1.0, "laplace", law),
        lambda: NoisyTable(np.array([3.0]), 1.0, "steps"),
        lambda: NoisyMoments.of({(): table, ("x",): table}, {"x": 0.0}, {"x": 1.0}),
    ):
        with pytest.raises(mh.InvalidInput):
            one()
    assert Laplace.name == NoisyTable(np.array([3.0]), 1.0, "laplace").law


def test_the_number_of_all_records_is_exact_where_it_is_public():
    for promise in (mh.PureDP(1.0), mh.ZCDP(0.5)):
        plan = mh.plan([mh.Count()], schema=SCHEMA, privacy=promise, n=60)
        release = plan.release(RECORDS)
        assert release.value == [60]
        assert "The number of records is public, and this is it" in repr(release)
