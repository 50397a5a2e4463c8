"""Quantiles without a trusted curator: ranks and intervals hold, within one promise."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import muhat as mh
from changed import changed
from muhat import protocols
from muhat.data.grids import UniformGrid
from muhat.protocols import Protocol
from muhat.protocols.counts.quantiles import MOST_ZOOMS, ZOOM_SHARE, ShuffleQuantile
from muhat.protocols.encodings.cut_encoding import CutEncoding, CutPlace, padded
from muhat.protocols.estimators.cut_counts import CutCounts
from muhat.protocols.estimators.quantile_result import CountedQuantiles, rank_of

MIXED = mh.ApproxDP(epsilon=2.0, delta=1e-6)
ALONE = mh.PureDP(epsilon=2.0)
N = 1500
SURELY = 1 - 1e-7
QUANTILES = (0.1, 0.5, 0.9)


@pytest.fixture(scope="module")
def numbers() -> np.ndarray:
    return np.exp(np.random.default_rng(4).normal(5, 1, size=N))


def shuffled(q=0.5, **changes) -> Protocol:
    options = {"lower": 0, "upper": 1e6, "n": N, "privacy": MIXED, **changes}
    return protocols.shuffle_quantile(q, **options)


def local(q=0.5, **changes) -> Protocol:
    options = {"lower": 0, "upper": 2000, "n": N, "privacy": ALONE, "resolution": 20, **changes}
    return protocols.local_quantile(q, **options)


@pytest.fixture(scope="module")
def described() -> list[Protocol]:
    return []


@pytest.fixture(scope="module")
def mixed(numbers, described) -> mh.Release:
    """The quantiles of one run, every round of which was read from JSON."""
    protocol: Protocol | mh.Release = shuffled(QUANTILES)
    while isinstance(protocol, Protocol):
        described.append(Protocol.from_json(protocol.to_json()))
        text = described[-1].to_json()
        client, shuffler, server = (Protocol.from_json(text) for _ in range(3))
        collector, receiver = shuffler.shuffler(), server.server()
        collector.take(client.crowd().randomize_many(numbers))
        receiver.take(collector.mixed())
        protocol = server.server(receiver.state()).finish()
    return protocol


@pytest.fixture(scope="module")
def alone(numbers) -> mh.Release:
    return protocols.simulate(local(QUANTILES), numbers)


def holds(release: mh.Release, numbers: np.ndarray) -> bool:
    """Whether all that is said about ranks and intervals, at its surest, is true."""
    (result,) = release.answers
    cells = np.sort(result.grid.codes(np.asarray(numbers, float)))
    ranks = [rank_of(fraction, len(cells)) for fraction in result.fractions]
    exact = np.array([result.grid.value(int(cells[rank - 1])) for rank in ranks])
    lower, upper = (np.ravel(end) for end in result.interval(SURELY))
    errors = np.ravel(result.rank_error(SURELY))
    inside = bool(((lower <= exact) & (exact <= upper)).all())
    for rank, cell, error in zip(ranks, result.found, errors, strict=True):
        most, least = min(rank + error, len(cells)), max(rank - error, 1)
        inside &= bool(cells[least - 1] <= cell) or rank - error < 1
        inside &= bool(cell <= cells[most - 1]) or rank + error > len(cells)
    return inside


def test_ranks_and_intervals_hold_in_the_shuffle_model(mixed, numbers):
    assert holds(mixed, numbers)
    assert not holds(mixed, numbers * 3)
    assert max(mixed.answers[0].errors) < 0.02 * N


def test_ranks_and_intervals_hold_in_the_local_model(alone, numbers):
    assert holds(alone, numbers)
    assert not holds(alone, numbers * 10)


@pytest.mark.parametrize("model", ["mixed", "alone"])
def test_results_survive_json(model, request):
    result = request.getfixturevalue(model)
    again = mh.Release.from_json(result.to_json())
    assert again.to_json() == result.to_json()
    assert again.value.shape == (3, 1)
    assert (np.diff(again.value[:, 0]) > 0).all()
    assert again.privacy == result.privacy == again.cost
    assert "0.9" in repr(again)
    assert "grid" in again.describe()
    with pytest.raises(TypeError):
        float(again)


def test_rounds_share_the_promise_exactly(mixed, described):
    shares = [protocol.randomizer.noise.allowance.share for protocol in described]
    assert sum(shares) == 1
    assert shares[:-1] == [ZOOM_SHARE] * (len(shares) - 1)
    assert [Fraction(entry["share"]) for entry in described[-1].learnt] == shares[:-1]
    assert 2 <= len(shares) <= MOST_ZOOMS + 1
    assert mixed.mechanism == "shuffle-cuts"


def test_a_coarse_grid_takes_one_round_and_the_whole_promise():
    protocol = shuffled(upper=60, resolution=1)
    assert protocol.randomizer.noise.allowance.is_whole
    result = protocols.simulate(protocol, np.full(N, 17.0))
    assert float(result) == 17.0
    assert holds(result, np.full(N, 17.0))


def test_people_who_stay_away_are_not_counted():
    result = protocols.simulate(shuffled(upper=60, resolution=1), np.full(N - 100, 17.0))
    assert result.n == N - 100
    assert any("1400 of 1500" in line for line in result.assumptions)


# Without noise, the rounds find every quantile exactly.


def exact_counts(estimator: ShuffleQuantile, cuts: list[int], cells: np.ndarray) -> CutCounts:
    places = padded([float(cut) for cut in cuts], len(cuts).bit_length())
    encoding = CutEncoding(CutPlace(estimator.grid), places)
    values = np.array([estimator.grid.value(int(cell)) for cell in cells])
    sums = encoding.integers(values[:, None]).sum(axis=0).astype(float)
    return CutCounts(np.array(places), sums, len(cells), 0.0)


@settings(max_examples=60, deadline=None)
@given(
    cells=st.lists(st.integers(0, 5000), min_size=1, max_size=30),
    asked=st.lists(st.floats(0.01, 0.99), min_size=1, max_size=4),
)
def test_windows_close_in_on_the_exact_quantiles(cells, asked):
    estimator = ShuffleQuantile(tuple(asked), UniformGrid(0.0, 5000.0, 1.0), MIXED, 1000)
    people = np.array(cells)
    expected = [int(np.sort(people)[rank_of(q, len(people)) - 1]) for q in asked]
    windows = [(0, 5000)] * len(asked)
    cuts, is_last = estimator._cuts(windows)
    for _ in range(MOST_ZOOMS):
        counts = exact_counts(estimator, cuts, people)
        before, windows = windows, estimator._windows(counts, windows)
        for (first, last), cell, (start, end) in zip(windows, expected, before, strict=True):
            assert start <= first <= cell <= last <= end
        if is_last:
            break
        cuts, is_last = estimator._cuts(windows, counts)
        assert len(cuts) < 1 << estimator.levels
        assert cuts == sorted(set(cuts))
    assert [first for first, _ in windows] == [last for _, last in windows] == expected


def result_of(below, errors, found, n=100) -> mh.Release:
    answer = CountedQuantiles(
        q=0.5,
        columns=("x",),
        grid=UniformGrid(0.0, 10.0, 1.0),
        cuts=tuple(range(10)),
        reached=tuple(below),
        errors=tuple(errors),
        found=(found,),
        mechanism="shuffle-cuts",
        n=n,
        contributions=1,
        assumptions=(),
    )
    relation = mh.Neighbors.SUBSTITUTE
    return mh.Release(answers=(answer,), privacy=MIXED, neighbors=relation, plan_digest="")


def test_exact_counts_make_exact_statements():
    result = result_of([0, 0, 10, 30, 49, 80, 90, 95, 99, 100], [0.0] * 10, 5)
    assert result.rank_error().tolist() == [0]
    assert [end.tolist() for end in result.interval()] == [[4.5], [5.5]]
    beside = changed(result, found=(4,))
    assert beside.rank_error().tolist() == [1]
    above = changed(result, found=(7,))
    assert above.rank_error().tolist() == [41]
    assert changed(result, found=(10,)).rank_error().tolist() == [51]
    assert changed(result, found=(0,)).rank_error().tolist() == [50]


def test_counts_that_tell_nothing_leave_everything_possible():
    result = result_of([50.0] * 10, [1e6] * 10, 5)
    assert [end.tolist() for end in result.interval()] == [[0.0], [10.0]]
    assert result.rank_error().tolist() == [51]


def test_intervals_cover_as_often_as_they_say():
    """Normal counts, 80 %: 5.5 standard errors less have a chance of 2e-8."""
    rng = np.random.default_rng(6)
    truth = np.array([2.0, 9, 20, 38, 49, 60, 75, 88, 93, 99])
    errors, covered = np.linspace(2, 8, 10), 0
    runs = 2000
    for _ in range(runs):
        result = result_of(rng.normal(truth, errors), errors, 5)
        (lower,), (upper,) = result.interval(0.8)
        covered += lower <= 5 <= upper
    assert covered / runs > 0.8 - 5.5 * np.sqrt(0.16 / runs)
    wrong = [result_of(rng.normal(truth, errors), errors / 4, 5) for _ in range(runs)]
    hit = sum(bool(w.interval(0.8)[0][0] <= 5 <= w.interval(0.8)[1][0]) for w in wrong)
    assert hit / runs < 0.8 - 5.5 * np.sqrt(0.16 / runs)


# Bad descriptions and arguments.


def test_a_description_that_lies_about_what_was_spent_is_not_answered(mixed, described):
    for share in ("1/2", "0", "-1/25", 3):
        fields = json.loads(described[-1].to_json())
        fields["learnt"][0]["share"] = share
        if share == "0":
            # What was spent is said to be less: the device answers, within the share it is told.
            assert Protocol.from_json(json.dumps(fields)).randomizer == described[-1].randomizer
            continue
        with pytest.raises(mh.InvalidInput):
            Protocol.from_json(json.dumps(fields))


@pytest.mark.parametrize(
    "windows",
    [None, 3, [[0, 1]], [[5, 3]] * 3, [[-7, 3]] * 3, [[0, 10**9]] * 3, [["a", "b"]] * 3, [[0]] * 3],
    ids=str,
)
def test_windows_that_cannot_be_are_refused_where_they_are_read(described, windows):
    honest = described[1]
    told = {**honest.learnt[-1], "windows": windows}
    with pytest.raises(mh.InvalidInput, match="windows"):
        replace(honest, learnt=(*honest.learnt[:-1], told))


def test_windows_that_never_were_cuts_lead_to_another_round(mixed, described, numbers):
    honest = described[1]
    told = {**honest.learnt[-1], "windows": [[12_345, 700_001]] * 3}
    hostile = replace(honest, learnt=(*honest.learnt[:-1], told))
    server = hostile.server()
    server.take(hostile.crowd().randomize_many(numbers))
    assert isinstance(server.finish(), Protocol)


def test_a_round_with_another_randomizer_is_refused():
    other = protocols.local_quantile(lower=0, upper=500, n=N, privacy=ALONE)
    with pytest.raises(mh.InvalidInput, match="grid"):
        replace(local(), randomizer=other.randomizer)
    mean = protocols.shuffle_mean(domain=mh.Ball(1.0, dim=1), n=N, privacy=MIXED)
    with pytest.raises(mh.InvalidInput, match="randomizer"):
        replace(shuffled(), randomizer=mean.randomizer)
    finer = protocols.shuffle_quantile(lower=0, upper=500, resolution=0.5, n=N, privacy=MIXED)
    with pytest.raises(mh.InvalidInput, match="grid"):
        replace(shuffled(), randomizer=finer.randomizer)


def test_too_few_answers_give_no_quantile(numbers):
    server = local().server()
    server.take(server.protocol.crowd().randomize_many(numbers[: N // 2 - 1]))
    with pytest.raises(mh.InvalidInput, match="749 of 1500"):
        server.finish()


@pytest.mark.parametrize(
    "change",
    [
        {"q": 0.0},
        {"q": []},
        {"q": [0.5] * 17},
        {"q": "median"},
        {"lower": 5, "upper": 5},
        {"lower": 0, "upper": float("inf")},
        {"resolution": 1.0, "relative": 0.1},
        {"resolution": -1.0},
        {"lower": 0, "resolution": None, "relative": 0.1},
        {"n": 0},
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


def test_relative_steps_and_words():
    protocol = shuffled(lower=1, relative=0.05)
    assert "5 %" in protocol.describe()
    result = protocols.simulate(local(lower=1, resolution=None, relative=0.1), np.full(N, 99.0))
    assert result.resolution.tolist() == pytest.approx([0.1])
    assert holds(result, np.full(N, 99.0))


def test_the_local_grid_is_coarse_unless_asked_otherwise():
    assert 512 <= local(resolution=None).randomizer.grid.cells <= 1025


@pytest.mark.parametrize(
    "change",
    [{"found": [99]}, {"cuts": [0]}, {"q": [0.5]}, {"columns": ["a", "b"]}, {"errors": None}],
    ids=str,
)
def test_results_that_contradict_themselves_are_refused(change):
    fields = result_of([50.0] * 10, [1.0] * 10, 5).to_dict()
    with pytest.raises(mh.InvalidInput):
        mh.Release.from_json(json.dumps({**fields, **change, "found": [1, 2]}))
    if "q" not in change:
        with pytest.raises(mh.InvalidInput):
            mh.Release.from_json(json.dumps({**fields, **change}))
