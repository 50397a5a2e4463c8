"""Counts of ranges without a trusted curator: no bias, the errors that are stated, one promise."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

import muhat as mh
from muhat import protocols
from muhat.noise.entropy import system_words
from muhat.protocols import CountedRange, Protocol
from muhat.protocols.counts.ranges import LocalRanges, ShuffleRanges
from muhat.protocols.encodings.equal_cells import EqualCells
from muhat.protocols.estimators.block_tree import BlockTree
from muhat.protocols.estimators.range_spreads import AnswerSpread, BlockSpread, reach
from muhat.protocols.randomizers.fragment_noise import FragmentNoise
from muhat.protocols.randomizers.randomizer import Received

MIXED = mh.ApproxDP(epsilon=2.0, delta=1e-6)
ALONE = mh.PureDP(epsilon=2.0)
N = 1500

ERRORS = 6.2
"""Standard errors: 6e-10 a comparison, below 1e-6 for all of this file."""


@pytest.fixture(scope="module")
def numbers() -> np.ndarray:
    return np.random.default_rng(4).normal(40, 12, size=N)


def shuffled(**changes) -> Protocol:
    options = {"lower": 0, "upper": 100, "cells": 20, "n": N, "privacy": MIXED, **changes}
    return protocols.shuffle_ranges(**options)


def local(**changes) -> Protocol:
    options = {"lower": 0, "upper": 100, "cells": 20, "n": N, "privacy": ALONE, **changes}
    return protocols.local_ranges(**options)


def all_ranges(cells: int) -> tuple[np.ndarray, np.ndarray]:
    """All but the range of all cells, whose count is known."""
    pairs = list(itertools.combinations(range(cells + 1), 2))
    pairs.remove((0, cells))
    starts, ends = np.array(pairs).T
    return starts, ends


def exact_counts(grid: EqualCells, numbers: np.ndarray) -> np.ndarray:
    return np.bincount(grid.codes(np.asarray(numbers, float)), minlength=grid.cells)


@pytest.fixture
def without_noise(monkeypatch):
    def none(self, people, words=system_words):
        return np.zeros((people, self.sensitivity.numbers), np.int64)

    monkeypatch.setattr(FragmentNoise, "sample", none)


@pytest.fixture(scope="module")
def mixed(numbers) -> mh.Release:
    """Every role has read the description from JSON, and the server was saved once."""
    text = shuffled(column="age").to_json()
    client, shuffler, server = (Protocol.from_json(text) for _ in range(3))
    collector, receiver = shuffler.shuffler(), server.server()
    collector.take(client.crowd().randomize_many(numbers))
    receiver.take(collector.mixed())
    return server.server(receiver.state()).finish()


@pytest.fixture(scope="module")
def alone(numbers) -> mh.Release:
    return protocols.simulate(Protocol.from_json(local(column="age").to_json()), numbers)


@pytest.mark.parametrize("model", ["mixed", "alone"])
def test_counts_are_near_the_exact_ones_and_add_up_to_all(model, numbers, request):
    result = request.getfixturevalue(model)
    exact = exact_counts(result.answers[0].grid, numbers)
    assert (np.abs(result.value - exact) < ERRORS * result.standard_error + 1).all()
    assert result.value.sum() == pytest.approx(N)
    assert result.part.sum() == pytest.approx(1)
    # Numbers that were moved by two cells are told apart in the shuffle model.
    far = (
        np.abs(result.value - exact_counts(result.answers[0].grid, numbers + 10))
        / result.standard_error
    )
    assert model == "alone" or far.max() > 2 * ERRORS


@pytest.mark.parametrize("model", ["mixed", "alone"])
def test_ranges_are_sums_of_cells_with_errors_of_their_own(model, request):
    result = request.getfixturevalue(model)
    middle = result.between(25, 60)
    assert isinstance(middle, CountedRange)
    assert float(middle) == middle.value == pytest.approx(result.value[5:12].sum())
    assert middle.part == pytest.approx(middle.value / N)
    assert middle.part_error == pytest.approx(middle.standard_error / N)
    assert result.below(25).value == pytest.approx(result.value[:5].sum())
    assert result.between(15, 20).standard_error == pytest.approx(result.standard_error[3])
    everybody = result.between(0, 100)
    assert everybody.value == pytest.approx(N)
    assert everybody.standard_error == pytest.approx(0, abs=1e-5)
    # What is not in a range is outside of it, with the same error.
    outside = everybody.value - result.between(60, 100).value
    assert outside == pytest.approx(result.below(60).value)
    assert result.between(60, 100).standard_error == pytest.approx(result.below(60).standard_error)
    lower, upper = middle.interval(0.99)
    assert upper - middle.value == pytest.approx(middle.value - lower)
    assert upper - lower > np.diff(middle.interval())[0] > 0


@pytest.mark.parametrize("model", ["mixed", "alone"])
def test_results_survive_json_and_are_read_by_people(model, request):
    result = request.getfixturevalue(model)
    again = mh.Release.from_json(result.to_json())
    assert again.to_json() == result.to_json()
    assert repr(again) == repr(result)
    assert again.between(25, 60) == result.between(25, 60)
    assert again.privacy == result.privacy == again.cost
    assert again.value.shape == again.standard_error.shape == (20,)
    assert again.edges.tolist() == np.linspace(0, 100, 21).tolist()
    lines = repr(result).splitlines()
    assert "counts of age" in lines[0]
    assert "n = 1500" in lines[0]
    assert len([line for line in lines if "…" in line]) == 20
    assert "<table>" in result._repr_html_()
    assert "clipped" in result.describe()
    assert "1500 people" in repr(result.between(25, 60))
    assert "from 25 to 60" in repr(result.between(25, 60))
    one, together = result.interval(), result.interval(simultaneous=True)
    assert (together[0] < one[0]).all()
    assert (one[1] < together[1]).all()


def test_many_cells_are_shown_some_a_line():
    result = protocols.simulate(local(cells=50), np.full(N, 30.0))
    lines = [line for line in repr(result).splitlines() if "…" in line]
    assert len(lines) == 17
    assert "3 cells a line" in repr(result)
    first = lines[0].split()
    assert first[:2] == ["0", "6"]
    assert lines[-1].split()[:2] == ["96", "100"]


def test_people_who_stay_away_are_not_counted():
    for plan in (shuffled, local):
        result = protocols.simulate(plan(cells=4), np.full(N - 100, 17.0))
        assert result.n == N - 100
        assert any("1400 of 1500" in line for line in result.assumptions)
        assert result.value.sum() == pytest.approx(N - 100)


@pytest.mark.usefixtures("without_noise")
@pytest.mark.parametrize(("cells", "sizes"), [(20, (1,)), (20, (1, 4)), (13, (1, 2, 8))])
def test_without_noise_counts_are_exact(cells, sizes):
    estimator = ShuffleRanges(EqualCells(-5, 8, cells), MIXED, 300)
    protocol = Protocol(estimator, estimator._asks(BlockTree(cells, sizes), 270), 300, 270)
    people = np.random.default_rng(1).normal(0, 4, 290)
    people[:5] = [np.nan, np.inf, -5.0, 8.0, 1e300]
    result = protocols.simulate(protocol, people)
    exact = exact_counts(estimator.grid, people)
    np.testing.assert_allclose(result.value, exact, atol=1e-9)
    assert exact[cells // 2] >= 2
    # The last block of 13 cells in eights has three cells that nobody can be in.
    assert protocol.randomizer.encoding.cells == -(-cells // sizes[-1]) * sizes[-1]


def test_sharp_answers_give_exact_counts_in_the_local_model():
    protocol = local(cells=4, privacy=mh.PureDP(epsilon=60.0))
    people = np.repeat([np.nan, -1.0, 30.0, 99.0], [100, 200, 400, 800])
    result = protocols.simulate(protocol, people)
    np.testing.assert_allclose(result.value, [200, 400, 100, 800], atol=1e-6)
    assert result.standard_error.max() < 1e-3


# What is said about errors, over repeated runs.


def mixed_runs(protocol: Protocol, people: np.ndarray, runs: int) -> list[mh.Release]:
    """Results of many rounds; that messages are mixed changes no sum."""
    shares = protocol.randomizer
    every = np.tile(people, runs)[:, None]
    nonces = np.zeros((len(people), 16), np.uint8)
    payloads = shares.randomize(every, np.zeros((len(every), 16), np.uint8))
    parts = payloads.reshape(runs, len(people), -1)
    return [protocol.estimator.after(protocol, Received(nonces, part)) for part in parts]


def off(errors: np.ndarray, predicted: np.ndarray, slack: float = 0.0) -> float:
    """How far the mean square of (runs, ranges) is from 1, in standard errors of it."""
    squares = (errors**2 / predicted**2).mean(axis=1)
    return (abs(squares.mean() - 1) - slack) / (squares.std() / np.sqrt(len(squares)))


def errors_of(result: mh.Release, exact: np.ndarray) -> np.ndarray:
    starts, ends = all_ranges(len(exact))
    wrong = np.concatenate([[0.0], np.cumsum(result.value - exact)])
    return wrong[ends] - wrong[starts]


@pytest.mark.parametrize(
    ("sizes", "law", "delta"), [((1,), "laplace", 1e-6), ((1, 2, 4), "gaussian", 1e-2)]
)
def test_stated_errors_are_those_of_repeated_rounds_in_the_shuffle_model(sizes, law, delta):
    """10 cells, 45 people of whom the noise counts on 40, 600 rounds."""
    runs, cells = 600, 10
    people = np.repeat([0.5, 3.5, 9.5], [20, 15, 10])
    promise = mh.ApproxDP(epsilon=1.0, delta=delta)
    estimator = ShuffleRanges(EqualCells(0, 10, cells), promise, 50)
    protocol = Protocol(estimator, estimator._asks(BlockTree(cells, sizes), 40), 50, 40)
    assert protocol.randomizer.noise.law == law
    results = mixed_runs(protocol, people, runs)
    exact = exact_counts(estimator.grid, people)
    errors = np.array([errors_of(result, exact) for result in results])
    stated = results[0].answers[0].spread.errors(*all_ranges(cells))
    assert (np.abs(errors.mean(axis=0)) < ERRORS * stated / np.sqrt(runs)).all()
    assert off(errors, stated) < ERRORS
    # Noise of half the size; cells that were independent.
    fewer = BlockSpread(
        results[0].answers[0].spread.tree, results[0].answers[0].spread.variance / 4, law
    )
    assert off(errors, fewer.errors(*all_ranges(cells))) > 1.3 * ERRORS
    starts, ends = all_ranges(cells)
    wide = ends - starts > 6
    independent = results[0].standard_error[0] * np.sqrt(ends - starts)
    assert off(errors[:, wide], independent[wide]) > 2 * ERRORS
    covered = [
        (low <= exact) & (exact <= high) for low, high in (each.interval(0.9) for each in results)
    ]
    assert np.mean(covered) > 0.9 - 5.5 * np.sqrt(0.09 / runs)
    assert np.mean(covered) < 0.95


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_stated_errors_are_those_of_repeated_rounds_in_the_local_model(epsilon):
    """12 cells, 2000 people in three of them, 200 rounds.

    Stated errors vary from round to round with the estimated shares; 5 % is for that.
    """
    runs, cells = 200, 12
    people = np.repeat([0.5, 6.5, 7.5], [900, 700, 400])[:, None]
    protocol = local(upper=12, cells=cells, n=2000, privacy=mh.PureDP(epsilon=epsilon))
    rng, starts_ends = np.random.default_rng(8), all_ranges(cells)
    exact = exact_counts(protocol.estimator.grid, people[:, 0])
    errors, stated = [], []
    for _ in range(runs):
        nonces = rng.integers(0, 256, (2000, 16), np.uint8)
        received = Received(nonces, protocol.randomizer.randomize(people, nonces))
        result = protocol.estimator.after(protocol, received)
        errors.append(errors_of(result, exact))
        stated.append(result.answers[0].spread.errors(*starts_ends))
    errors, stated = np.array(errors), np.array(stated)
    assert (np.abs(errors.mean(axis=0)) < ERRORS * stated.mean(axis=0) / np.sqrt(runs)).all()
    assert off(errors, stated, slack=0.05) < ERRORS
    assert off(errors, 0.5 * stated, slack=0.05) > 1.3 * ERRORS


@pytest.mark.parametrize("cells", [8, 64])
def test_the_error_is_known_in_advance(cells):
    """The root mean square over all ranges, next to that of the spread it predicts."""
    pairs = np.array(list(itertools.combinations(range(cells + 1), 2))).T
    mixed = shuffled(cells=cells)
    result = protocols.simulate(mixed, np.full(N, 3.0))
    found = np.sqrt((result.answers[0].spread.errors(*pairs) ** 2).mean())
    assert mixed.estimator.expected_error(mixed) == pytest.approx(found)
    alone = local(cells=cells)
    ranges, even = alone.randomizer, np.full(cells, 1 / cells)
    spread = AnswerSpread(
        ranges.mix, ranges.response, tuple(N * ranges.mix.chances), tuple(even.tolist())
    )
    found = np.sqrt((spread.errors(*pairs) ** 2).mean())
    assert alone.estimator.expected_error(alone) == pytest.approx(found, rel=1e-6)


def test_blocks_are_chosen_by_their_predicted_error():
    few, many = shuffled(cells=16), shuffled(cells=512, n=100_000)
    assert few.randomizer.encoding.blocks == (1,)
    assert len(many.randomizer.encoding.blocks) > 1
    for protocol in (few, many):
        estimator, least = protocol.estimator, protocol.minimum
        cells = estimator.grid.cells
        for sizes in ((1,), (1, 2), (1, 4), (1, 4, 16)):
            if sizes[-1] < cells:
                other = estimator._asks(BlockTree(cells, sizes), least)
                error = estimator.expected_error(replace(protocol, randomizer=other))
                # Shorter messages may have cost a hundredth.
                assert estimator.expected_error(protocol) <= 1.011 * error


def test_laplace_noise_reaches_further_than_normal_noise_of_the_same_deviation():
    fine = np.array(10.0)
    assert reach("gaussian", 0.95, fine) == pytest.approx(19.6, abs=0.01)
    assert reach("laplace", 0.95, fine) == pytest.approx(10 * np.log(20) / np.sqrt(2) + 0.5)
    assert reach("laplace", 0.5, fine) == reach("gaussian", 0.5, fine) + 0.5
    draws = np.random.default_rng(3).laplace(0, 10 * np.sqrt(0.5), (4, 400_000))
    for parts, confidence in itertools.product((1, 2, 4), (0.8, 0.9, 0.95, 0.999)):
        far = reach("laplace", confidence, np.sqrt(parts) * fine)
        inside = np.abs(draws[:parts].sum(axis=0)) <= far
        slack = 5.5 * np.sqrt(confidence * (1 - confidence) / draws.shape[1])
        assert inside.mean() > confidence - slack


@pytest.mark.parametrize("scale", [2.0, 1.0, 0.7, 0.5, 0.25, 0.15])
def test_noise_as_coarse_as_whole_people_stays_within_its_reach_too(scale):
    """Without the allowance for one more, 99 % would be 96 % at a scale of a quarter."""
    chance = -np.expm1(-1 / scale)
    drawn = np.random.default_rng(4).geometric(chance, (2, 8, 400_000)).astype(np.int64)
    noise = drawn[0] - drawn[1]
    deviation = np.sqrt(2 * (1 - chance)) / chance
    for parts, confidence in itertools.product((1, 2, 3, 8), (0.8, 0.9, 0.95, 0.99, 0.999)):
        far = reach("laplace", confidence, np.array(np.sqrt(parts) * deviation))
        slack = 5.5 * np.sqrt(confidence * (1 - confidence) / noise.shape[1])
        assert (np.abs(noise[:parts].sum(axis=0)) <= far).mean() > confidence - slack


# Bad descriptions and arguments.


def test_a_round_with_another_randomizer_is_refused():
    cases = [
        (local(), local(cells=21)),
        (local(), local(upper=101)),
        (local(), protocols.local_quantile(lower=0, upper=19, resolution=1, n=N, privacy=ALONE)),
        (local(), protocols.local_mean(domain=mh.Ball(1.0, dim=1), n=N, privacy=ALONE)),
        (shuffled(), shuffled(upper=101)),
        (shuffled(), shuffled(cells=21)),
        (shuffled(), protocols.shuffle_mean(domain=mh.Ball(1.0, dim=1), n=N, privacy=MIXED)),
    ]
    for protocol, other in cases:
        with pytest.raises(mh.InvalidInput, match="randomizer"):
            replace(protocol, randomizer=other.randomizer)


def test_blocks_that_do_not_divide_each_other_are_refused(numbers):
    fields = json.loads(shuffled(cells=12).to_json())
    estimator = ShuffleRanges(EqualCells(0, 100, 12), MIXED, N)
    asks = estimator._asks(BlockTree(12, (1, 2)), 1350)
    described = {"kind": "shares", **asks.to_dict()}
    for blocks in ([3, 2], [2, 4]):
        described["encoding"]["blocks"] = blocks
        with pytest.raises(mh.InvalidInput, match="begin with single cells"):
            Protocol.from_json(json.dumps({**fields, "randomizer": described}))
    described["encoding"]["blocks"] = [2, 1]
    turned = Protocol.from_json(json.dumps({**fields, "randomizer": described}))
    result = protocols.simulate(turned, numbers)
    exact = exact_counts(estimator.grid, numbers)
    assert (np.abs(result.value - exact) < ERRORS * result.standard_error + 1).all()


def test_too_few_answers_give_no_counts(numbers):
    for plan, least in ((local, 750), (shuffled, 1350)):
        server = plan().server()
        server.take(server.protocol.crowd().randomize_many(numbers[: least - 1]))
        with pytest.raises(mh.InvalidInput, match=f"{least - 1} of 1500"):
            server.finish()


@pytest.mark.parametrize(
    "change",
    [
        {"cells": 1},
        {"cells": 5000},
        {"cells": 2.5},
        {"cells": None},
        {"lower": 5, "upper": 5},
        {"upper": float("inf")},
        {"lower": "x"},
        {"n": 0},
        {"n": 10**14},
        {"privacy": None},
        {"minimum": N + 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("plan", [shuffled, local])
def test_arguments_that_make_no_sense_are_refused(plan, change):
    with pytest.raises(mh.InvalidInput):
        plan(**change)


def test_the_shuffle_model_needs_some_delta():
    with pytest.raises(mh.InvalidInput, match="epsilon, delta"):
        shuffled(privacy=ALONE)


@pytest.mark.parametrize("promise", [mh.ZCDP(rho=0.5), mh.GDP(mu=1.0), MIXED], ids=repr)
def test_every_promise_is_kept_in_the_local_model(promise, numbers):
    protocol = local(privacy=promise)
    assert protocol.privacy == protocol.randomizer.privacy == promise
    assert protocols.simulate(protocol, numbers).n == N


def test_ranges_that_are_none_are_refused(alone):
    for low, high in ((25, 25), (50, 25), (26, 50), (25, 101), (float("nan"), 50), (None, 50)):
        with pytest.raises(mh.InvalidInput):
            alone.between(low, high)
    with pytest.raises(mh.InvalidInput):
        alone.below(0)
    with pytest.raises(mh.InvalidInput, match="confidence"):
        alone.between(25, 50).interval(1.0)
    with pytest.raises(mh.InvalidInput, match="confidence"):
        alone.interval(0)


@pytest.mark.parametrize(
    "change",
    [
        {"value": [1.0]},
        {"value": None},
        {"value": ["x"] * 20},
        {"n": 0},
        {"columns": ["a", "b"]},
        {"grid": {"kind": "cells", "lower": 0, "upper": 1, "cells": 3}},
        {"grid": {"kind": "uniform"}},
        {"spread": {"kind": "blocks", "cells": 20, "sizes": [2], "variance": 1.0, "law": "x"}},
        {"spread": {"kind": "blocks", "cells": 20, "sizes": [1], "variance": -1, "law": "laplace"}},
        {"spread": {"kind": "blocks", "cells": 9, "sizes": [1], "variance": 1, "law": "laplace"}},
        {"spread": {"kind": "none"}},
    ],
    ids=str,
)
@pytest.mark.parametrize("model", ["mixed", "alone"])
def test_results_that_contradict_themselves_are_refused(model, change, request):
    fields = request.getfixturevalue(model).to_dict()
    with pytest.raises(mh.InvalidInput):
        mh.Release.from_json(json.dumps({**fields, **change}))


def test_spreads_that_contradict_themselves_are_refused(alone):
    fields = alone.to_dict()
    for change in (
        {"messages": [1.0]},
        {"shares": [0.5, 0.5]},
        {"shares": [-0.1, *fields["spread"]["shares"][1:]]},
        {"chosen": 10**6},
    ):
        spread = {**fields["spread"], **change}
        with pytest.raises(mh.InvalidInput):
            mh.Release.from_json(json.dumps({**fields, "spread": spread}))


def test_estimators_come_back_from_their_descriptions():
    for protocol, kind in ((local(column="age"), LocalRanges), (shuffled(), ShuffleRanges)):
        again = Protocol.from_json(protocol.to_json())
        assert isinstance(again.estimator, kind)
        assert again.estimator == protocol.estimator
        assert again.digest == protocol.digest
        assert "20 cells from 0 to 100" in again.describe()
