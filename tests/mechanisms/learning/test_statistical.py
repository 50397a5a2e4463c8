"""The statistical version, section 3.4: public bounds on the scale narrow the searches."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import muhat as mh
from muhat.data import open_source
from muhat.mechanisms.learning.clipping_stage import FAILURE
from muhat.mechanisms.learning.learning import Learnt
from muhat.mechanisms.learning.sharing import Sharing
from muhat.mechanisms.learning.statistical import Statistical
from muhat.noise.kinds import NoiseKind
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors

RHO = mh.ZCDP(rho=0.5)
TASK: dict[str, Any] = {"domain": mh.Reals(8, 50.0), "privacy": RHO, "mechanism": "statistical"}


def method_for(
    dim: int,
    n: int,
    scale: tuple[float, float] = (0.1, 50.0),
    faithful: bool = False,
    promise: Any = RHO,
) -> Statistical:
    protection = Protection(promise, Neighbors.SUBSTITUTE, 1)
    return Statistical(
        Sharing(50.0, np.ones(dim), n, protection, NoiseKind.named_by(promise)),
        faithful,
        scale=scale,
    )


def typical(method: Statistical, rows: np.ndarray) -> Learnt:
    """The run with the middle radius of five: one faithful search in a thousand is led astray."""
    found = (method.run(open_source(rows, None, rows.shape[1])) for _ in range(5))
    return sorted(found, key=lambda each: each.steps[-1].radius)[2]


def gaussian(rows: int, dim: int, shift: float = 0.0) -> np.ndarray:
    return np.random.default_rng(rows + dim).standard_normal((rows, dim)) + shift


def test_the_range_is_that_of_the_paper_or_less() -> None:
    log = math.log(4 * 1000 / FAILURE)
    printed, plain = method_for(8, 1000, faithful=True), method_for(8, 1000)
    root = math.sqrt(8) * 50
    assert printed.bound == pytest.approx(root + 2 * 50 * math.sqrt(8 + log))
    assert plain.bound == pytest.approx(root + 50 * math.sqrt(8 + 2 * math.sqrt(8 * log) + 2 * log))
    assert plain.bound < printed.bound
    assert printed.whole_numbers[0] == math.ceil(printed.bound * math.sqrt(1000) / 0.1)


@pytest.mark.parametrize("dim", [1, 3, 40])
def test_no_normal_record_lies_beyond_the_range(dim: int) -> None:
    # All of 10^5 lie within with probability 1 − β/4.
    records = 50.0 * np.random.default_rng(dim).standard_normal((100_000, dim)) + 50.0
    assert np.linalg.norm(records, axis=1).max() < method_for(dim, 100_000).bound
    # Half the scale that was claimed leaves no room for the worst of them at the same place.
    tight = method_for(dim, 100_000, (0.1, 10.0)).bound
    assert np.linalg.norm(records, axis=1).max() > tight


def test_the_scale_narrows_the_searches() -> None:
    wide, narrow = method_for(8, 1000, (1e-9, 50.0)), method_for(8, 1000, (1.0, 1.0))
    assert wide.grid.cells <= 1 << 29
    assert narrow.median.rounds < wide.median.rounds <= 29
    assert narrow.radii.edges[0] == pytest.approx(1 / math.sqrt(1000))
    assert narrow.radii.edges[-1] == pytest.approx(2 * narrow.bound)
    assert narrow.least_n < wide.least_n


@pytest.mark.parametrize("faithful", [False, True])
@pytest.mark.parametrize("dim", [1, 3, 8])
def test_the_mean_of_a_normal_law_is_found(dim: int, faithful: bool) -> None:
    rows = gaussian(4000, dim, 40.0)
    method = method_for(dim, 4000, faithful=faithful)
    found = typical(method, rows)
    assert [step.name for step in found.steps] == ["center", "radius", "mean"]
    assert sum(step.share for step in found.steps) == 1
    # Noise of 0.003 a coordinate and a sampling error of 0.016.
    assert np.abs(found.value - 40.0).max() < 0.15


@pytest.mark.parametrize("faithful", [False, True])
@pytest.mark.parametrize("poison", [np.nan, np.inf, 1e308])
def test_rows_of_anything_are_averaged(poison: float, faithful: bool) -> None:
    rows = gaussian(3000, 3, 10.0)
    rows[:4] = poison
    found = typical(method_for(3, 3000, faithful=faithful), rows)
    assert np.abs(found.value - 10.0).max() < 0.3


def test_records_that_are_all_equal_cost_everything() -> None:
    for faithful in (False, True):
        method = method_for(3, 3000, faithful=faithful, promise=mh.GDP(mu=1e6))
        found = method.run(open_source(np.full((3000, 3), 7.0), None, 3))
        assert sum(step.share for step in found.steps) == 1
        assert found.value == pytest.approx([7.0] * 3, abs=2e-3)


def test_the_release_says_what_its_error_rests_on() -> None:
    rows = gaussian(3000, 8)
    release = mh.mean(rows, **TASK, scale=(0.1, 50))
    text = " ".join(release.assumptions)
    assert release.mechanism == "statistical"
    assert "not the promise, rests on" in text
    assert "between 0.1 and 50" in text
    assert "public random rotation" in text
    plan = mh.plan_mean(**TASK, n=3000, scale=(0.1, 50))
    assert "0.1 and 50" in plan.describe()
    assert plan.digest != mh.plan_mean(**TASK, n=3000, scale=(0.1, 51)).digest
    assert plan.digest != mh.plan_mean(**TASK, n=3000, scale=(0.1, 50), faithful=True).digest
    printed = mh.plan_mean(**TASK, n=3000, scale=(0.1, 50), faithful=True)
    assert any("shortened" in line for line in printed.assumptions)


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        (None, "go together"),
        (3.0, "pair"),
        ((1, 2, 3), "pair"),
        ((0, 1), "greater than 0"),
        ((math.nan, 1), "scale"),
        ((2, 1), "ascending"),
        ((1, 1e200), "ascending"),
    ],
)
def test_bad_scales_are_refused(scale: Any, words: str) -> None:
    with pytest.raises(mh.InvalidInput, match=words):
        mh.plan_mean(**TASK, n=3000, scale=scale)


def test_scales_too_far_apart_for_whole_numbers_are_refused() -> None:
    with pytest.raises(mh.InvalidInput, match="whole numbers"):
        mh.plan_mean(**TASK, n=3000, scale=(1e-9, 50), faithful=True)
    assert mh.plan_mean(**TASK, n=3000, scale=(1e-9, 50)).n == 3000


def test_the_least_number_of_records_is_enough() -> None:
    method = method_for(8, 1)
    for n, enough in ((method.least_n, True), (method.least_n - 1, False)):
        assert replace(method, sharing=replace(method.sharing, n=n)).is_enough == enough
