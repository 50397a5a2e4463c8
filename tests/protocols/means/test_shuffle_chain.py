"""A ball around records that nobody has bounded is learnt by mixed shares, within one promise."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hard_shapes import hard_shapes
from hypothesis import given, settings
from hypothesis import strategies as st

import muhat as mh
from changed import changed
from muhat import protocols
from muhat.protocols import Protocol
from muhat.protocols.encodings.tree_encoding import TreeEncoding
from muhat.protocols.estimators.cut_counts import CutCounts
from muhat.protocols.means.shuffle_chain import ChainRounds
from muhat.protocols.means.shuffle_chain_schedule import (
    LEAST_LEFT,
    MOST_NEAR,
    PULL_SHARE,
    ShuffleChainSchedule,
)
from muhat.protocols.means.shuffle_chain_state import (
    ChainState,
    after_aside,
    after_last,
    after_near,
    after_pull,
)
from muhat.protocols.randomizers.allowance import Allowance
from muhat.protocols.randomizers.fragment_randomizer import FragmentRandomizer
from muhat.protocols.randomizers.joint_randomizer import JointRandomizer

PROMISE = mh.ApproxDP(epsilon=4.0, delta=1e-6)
N, DIM, MAGNITUDE = 600, 2, 1e3
CENTER = np.array([300.0, -120.0])


def planned(**changes) -> Protocol:
    options = {"domain": mh.Reals(DIM, MAGNITUDE), "n": N, "privacy": PROMISE, **changes}
    return protocols.shuffle_mean(**options)


@pytest.fixture(scope="module")
def people() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(N, DIM)) * [1.0, 2.0] + CENTER


@pytest.fixture(scope="module")
def rounds(people) -> list[Protocol]:
    """All rounds of one run, every one of them read from JSON, and its result."""
    seen: list[Protocol] = []
    protocol: Protocol | mh.Release = planned()
    while isinstance(protocol, Protocol):
        protocol = Protocol.from_json(protocol.to_json())
        seen.append(protocol)
        protocol = closed(protocol, people)
    return [*seen, protocol]


def closed(protocol: Protocol, people: np.ndarray) -> Protocol | mh.Release:
    """A round over bytes: devices, a shuffler, and two servers whose states are merged."""
    description = protocol.to_json()
    shuffler = Protocol.from_json(description).shuffler()
    shuffler.take(Protocol.from_json(description).crowd().randomize_many(people))
    handed_on = shuffler.mixed()
    one, other = (Protocol.from_json(description).server() for _ in range(2))
    one.take(handed_on[::2])
    other.take(handed_on[1::2])
    one.merge(Protocol.from_json(description).server(other.state()))
    return one.finish()


# The result.


def test_rounds_end_in_a_release_of_a_learnt_ball(rounds):
    *described, release = rounds
    assert release.mechanism == "shuffle-chain"
    assert release.n == N
    assert release.certificate is None
    assert release.domain_is_learnt
    assert np.linalg.norm(release.domain.center - CENTER) < 40
    assert release.privacy == PROMISE
    assert f"near {described[1].learnt[0]['share']}" in release.assumptions[-1]
    again = mh.Release.from_json(release.to_json())
    assert again.value.tolist() == release.value.tolist()


def clipped_mean(release: mh.Release, people: np.ndarray) -> np.ndarray:
    """Of the records, clipped to the last ball."""
    moved = people - release.domain.center
    length = np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-300)
    return release.domain.center + (moved * np.minimum(1, release.domain.radius / length)).mean(0)


def residual(release: mh.Release, people: np.ndarray) -> float:
    """χ² of the noise about the mean of the clipped records."""
    middle = release.value if release.unshrunk is None else release.unshrunk
    return float(np.sum(((middle - clipped_mean(release, people)) / release.standard_error) ** 2))


LARGEST = 33.0
"""χ² with two degrees of freedom exceeds it with a probability of e^-16.5 = 7e-8."""


def test_the_error_is_the_noise_that_the_release_states(rounds, people):
    release = rounds[-1]
    assert residual(release, people) < LARGEST
    moved = 12 * release.standard_error
    unshrunk = None if release.unshrunk is None else release.unshrunk + moved
    assert residual(changed(release, value=release.value + moved, unshrunk=unshrunk), people) > 33


def test_people_outside_the_last_ball_are_counted_for_a_part_of_what_is_left(rounds, people):
    """Within seven standard errors; the 95 % interval is a little over two of them each way."""
    *_, last, release = rounds
    count = last.randomizer.parts[-1]
    assert count.encoding.cuts == (release.domain.radius,)
    share = float(count.noise.allowance.share / last.randomizer.share)
    assert share == pytest.approx(0.05, rel=0.1)
    length = np.linalg.norm(people - release.domain.center, axis=1)
    truth = int((length > release.domain.radius).sum())
    error = count.variance(len(people)) ** 0.5 / count.encoding.scale / 2
    assert abs(release.outside.value - truth) < 7 * error
    assert release.outside.records == len(people)
    assert "records lie outside" in repr(release)


def test_weights_and_names_are_those_asked_for(people):
    protocol = planned(weights=[1.0, 0.1], columns=["x", "y"])
    last: list[Protocol] = []
    release = protocols.simulate(protocol, people, watch=last.append)
    assert release.columns == ("x", "y")
    ratio = release.standard_error[1] / release.standard_error[0]
    assert ratio == pytest.approx(10, rel=0.02)
    assert isinstance(release.domain, mh.Ellipsoid)


def test_people_may_stay_away_down_to_the_minimum(people):
    release = protocols.simulate(planned(minimum=500), people[:520])
    assert release.n == 520
    assert any("520 of 600" in line for line in release.assumptions)


# The promise.


def test_rounds_share_the_promise_exactly(rounds):
    *described, _ = rounds
    spent = Fraction(0)
    for protocol in described:
        assert [Fraction(entry["share"]) for entry in protocol.learnt] == [
            each.randomizer.share for each in described[: protocol.round - 1]
        ]
        spent += protocol.randomizer.share
        assert protocol.randomizer.privacy == PROMISE
    assert spent == 1
    digests = [entry["description"] for entry in described[-1].learnt]
    assert digests == [protocol.digest for protocol in described[:-1]]


class Shares(ChainRounds):
    """What rounds spend, without making them."""

    def _mean(self, center, radius, share):
        return self._spend(share, radius)

    def _shell(self, center, inner, outer, share):
        assert inner < outer
        return self._spend(share, inner)

    def _counts(self, center, cuts, share):
        assert len(cuts) in (1, 15, 31, 63)
        assert (np.diff(cuts) >= 0).all()
        return self._spend(share, cuts[0])

    def _spend(self, share, length):
        assert share > 0
        assert 0 < length < np.inf
        return share


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    dim=st.sampled_from([1, 2, 8, 40]),
    n=st.sampled_from([500, 4000, 10**6]),
    epsilon=st.sampled_from([0.1, 1.0, 8.0]),
    wild=st.booleans(),
)
def test_no_answers_whatever_make_rounds_spend_more_than_the_promise(seed, dim, n, epsilon, wild):
    rng = np.random.default_rng(seed)
    promise = mh.ApproxDP(epsilon=epsilon, delta=1e-9)
    schedule = ShuffleChainSchedule(1e4, (1.0,) * dim, n, promise)
    state, spent = ChainState.first(schedule), Fraction(0)
    asked = Shares(schedule, None, n)
    lengths = np.sort(np.exp(rng.normal(rng.uniform(-9, 9), rng.uniform(0, 3), 1000)))
    for number in range(1, MOST_NEAR + 5):
        parts = asked._parts(state, spent)
        spent += sum(parts)
        assert spent <= 1
        if state.stage == "mean":
            assert spent == 1
            assert sum(parts) >= LEAST_LEFT
            return
        counts = answers(rng, cuts_of(schedule, state), lengths, n, wild)
        pull = rng.normal(size=dim) * rng.choice([0.0, 1.0, 1e6])
        noise = float(np.exp(rng.normal(0, 3)))
        if state.stage == "near":
            noise = state.radius * schedule.noise(0.02)
            state = after_near(schedule, state, counts, pull, noise, spent, number)
        elif state.stage == "pull":
            state = after_pull(schedule, state, counts, pull, noise)
        else:
            after = after_last if state.stage == "last" else after_aside
            state = after(schedule, state, counts)
        assert ChainState.from_dict(json.loads(json.dumps(state.to_dict()))) == state
    pytest.fail("the rounds do not end")


def cuts_of(schedule: ShuffleChainSchedule, state: ChainState) -> np.ndarray:
    if state.stage == "near":
        if state.is_first:
            return np.array(schedule.first_cuts())
        if state.sharp:
            return np.array(schedule.sharp_cuts(state.noise, state.radius, state.high))
        return np.array(schedule.near_cuts(state.low, state.radius, state.high, state.noise))
    if state.stage == "last":
        return np.array(schedule.last_cuts(state.radius))
    if state.stage == "pull":
        return np.array(schedule.again_cuts(state.radius, state.high) or [state.high] * 15)
    return np.array(schedule.aside_cuts(state.radius, state.high))


def answers(rng, cuts: np.ndarray, lengths: np.ndarray, n: int, wild: bool) -> CutCounts:
    """Counts of made-up distances, or no counts at all."""
    differences = differences_of(cuts, lengths) * n / len(lengths)
    spread = n if wild else 0.01 * n
    return CutCounts(cuts, differences + rng.normal(size=len(cuts)) * spread, n, spread)


def differences_of(cuts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Left half less right half of every node."""
    cells = np.bincount(np.searchsorted(cuts, lengths), minlength=len(cuts) + 1)
    nodes: list[np.ndarray] = []
    while len(cells) > 1:
        nodes.insert(0, cells[::2] - cells[1::2])
        cells = cells[::2] + cells[1::2]
    return np.concatenate(nodes).astype(float)


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: {**entry, "share": "9/10"},
        lambda entry: {**entry, "share": "-1/2"},
        lambda entry: {**entry, "share": "1e-9"},
        lambda entry: {**entry, "share": None},
        lambda entry: {**entry, "share": "1/0"},
        lambda entry: {key: value for key, value in entry.items() if key != "share"},
    ],
)
def test_a_description_that_lies_about_what_was_spent_is_not_answered(rounds, change):
    fields = json.loads(rounds[-2].to_json())
    fields["learnt"][0] = change(fields["learnt"][0])
    with pytest.raises(mh.InvalidInput):
        Protocol.from_json(json.dumps(fields))


def test_a_description_that_leaves_rounds_out_is_not_answered(rounds):
    fields = json.loads(rounds[-2].to_json())
    fields["learnt"] = fields["learnt"][1:]
    with pytest.raises(mh.InvalidInput):
        Protocol.from_json(json.dumps(fields))


def test_a_round_of_another_promise_or_with_too_little_noise_is_not_answered(rounds):
    first = rounds[0]
    fields = json.loads(first.to_json())
    for part in fields["randomizer"]["parts"]:
        part["noise"]["promise"]["epsilon"] = 64.0
    with pytest.raises(mh.InvalidInput):
        Protocol.from_json(json.dumps(fields))
    fields = json.loads(first.to_json())
    fields["randomizer"]["parts"][0]["noise"]["parameter"] = "5"
    with pytest.raises(mh.InvalidInput):
        Protocol.from_json(json.dumps(fields))
    fields = json.loads(first.to_json())
    fields["minimum"] = 10
    with pytest.raises(mh.InvalidInput):
        Protocol.from_json(json.dumps(fields))


@pytest.mark.parametrize(
    "lie",
    [
        {"stage": "mean"},
        {"stage": "nothing"},
        {"center": [1.0]},
        {"center": ["here", "there"]},
        {"center": [1.0, 1.0]},
        {"radius": 1.0},
        {"radius": -1.0},
        {"radius": None},
        {"high": "far"},
        {"further": 1},
        None,
    ],
    ids=str,
)
def test_what_was_learnt_may_be_a_lie_and_is_refused_where_it_is_read(rounds, lie):
    honest = rounds[1]
    entry = honest.learnt[-1]
    told = {**entry, "next": None if lie is None else {**entry["next"], **lie}}
    with pytest.raises(mh.InvalidInput):
        replace(honest, learnt=(*honest.learnt[:-1], told))


def test_another_kind_of_round_is_refused(rounds):
    counts = FragmentRandomizer.of(
        TreeEncoding(2, (1,), dim=DIM), Allowance(PROMISE, Fraction(1, 9)), honest=540, users=N
    )
    for randomizer in (counts, JointRandomizer((counts,))):
        with pytest.raises(mh.InvalidInput):
            replace(rounds[0], randomizer=randomizer)


# Refusals.


def test_too_few_people_are_refused_before_anybody_is_asked():
    with pytest.raises(mh.InvalidInput, match=r"n = 50 is too small .* at least \d+ people"):
        planned(n=50)
    least = ShuffleChainSchedule(MAGNITUDE, (1.0,) * DIM, 50, PROMISE).least_n
    assert planned(n=least).users == least
    with pytest.raises(mh.InvalidInput, match=f"at least {least}"):
        planned(n=least - 1)


def test_too_few_answers_end_a_round_without_a_result(people):
    protocol = planned()
    shuffler, server = protocol.shuffler(), protocol.server()
    messages = protocol.crowd().randomize_many(people[:539])
    shuffler.take(messages)
    with pytest.raises(mh.InvalidInput, match="539 of 600"):
        shuffler.mixed()
    server.take(messages)
    with pytest.raises(mh.InvalidInput, match="539 of 600"):
        server.finish()


@pytest.mark.parametrize(
    "change",
    [
        {"domain": mh.Reals(DIM)},
        {"privacy": mh.PureDP(epsilon=1.0)},
        {"privacy": "strong"},
        {"n": 0},
        {"p": 1.0},
        {"weights": {"x": 1.0}},
        {"weights": [1.0]},
        {"weights": [1.0, 0.0]},
        {"columns": ["x"]},
        {"minimum": 601},
        {"most_bytes": 100},
    ],
    ids=str,
)
def test_arguments_that_make_no_sense_are_refused(change):
    with pytest.raises(mh.InvalidInput):
        planned(**change)


def test_a_description_in_words_says_what_is_estimated():
    text = repr(planned())
    assert "wherever they lie in Reals(dim=2, magnitude=1000)" in text
    assert "bytes in all" in text


# Several shapes of records.


def shapes() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(8)
    cluster = rng.normal(size=(N, DIM))
    cluster[:60] += 60.0
    lopsided = rng.lognormal(0, 2, size=(N, DIM))
    constant = np.full((N, DIM), 7.5)
    missing = np.where(rng.random((N, DIM)) < 0.3, np.nan, 20.0)
    return {
        "cluster": cluster,
        "lopsided": lopsided,
        "constant": constant,
        "missing": missing,
        "beyond the magnitude": np.full((N, DIM), -1e9),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", shapes())
def test_records_of_any_shape_have_an_error_of_the_stated_size(name):
    records = shapes()[name]
    described: list[Protocol] = []
    release = protocols.simulate(planned(), records, watch=described.append)
    assert sum(each.randomizer.share for each in described) == 1
    last = described[-1]
    center = np.array(ChainState.from_dict(last.learnt[-1]["next"]).center)
    assert residual(release, np.where(np.isfinite(records), records, center)) < LARGEST


# Without noise, the rounds find the ball that they should.


def exact_run(schedule: ShuffleChainSchedule, records: np.ndarray) -> tuple[ChainState, int]:
    """The last state, and the number of rounds, if every answer is exact."""
    state, spent, asked = (
        ChainState.first(schedule),
        Fraction(0),
        Shares(schedule, None, len(records)),
    )
    for number in range(1, MOST_NEAR + 5):
        if state.stage == "mean":
            return state, number
        spent += sum(asked._parts(state, spent))
        moved = records - np.array(state.aside or state.center)
        length = np.maximum(np.linalg.norm(moved, axis=1), 1e-300)
        counts = exact(cuts_of(schedule, state), length, len(records))
        if state.stage == "near":
            clipped = moved * np.minimum(1, state.radius / length)[:, None]
            center = np.array(state.center) + clipped.mean(axis=0)
            noise = state.radius * schedule.noise(float(schedule.center_share))
            state = after_near(schedule, state, counts, center, noise, spent, number)
        elif state.stage == "pull":
            beyond = np.clip(1 - state.radius / length, 0, None)
            pull = (moved * np.minimum(beyond, state.high / length)[:, None]).mean(axis=0)
            noise = (state.high - state.radius) * schedule.noise(float(PULL_SHARE))
            state = after_pull(schedule, state, counts, pull, noise)
        else:
            after = after_last if state.stage == "last" else after_aside
            state = after(schedule, state, counts)
    raise AssertionError("the rounds do not end")


def exact(cuts: np.ndarray, lengths: np.ndarray, n: int) -> CutCounts:
    return CutCounts(cuts, differences_of(cuts, lengths), n, 1e-9)


@pytest.mark.parametrize("dim", [1, 2, 8, 40])
@pytest.mark.parametrize("offset", [0.0, 10.0, 1000.0])
def test_exact_answers_lead_to_a_ball_of_most_records(dim, offset):
    n = 20_000
    records = np.random.default_rng(dim).normal(size=(n, dim)) + offset
    schedule = ShuffleChainSchedule(1e4, (1.0,) * dim, n, PROMISE)
    state, rounds = exact_run(schedule, records)
    lengths = np.sort(np.linalg.norm(records - np.array(state.center), axis=1))
    assert 0.7 * n < np.searchsorted(lengths, state.radius) < 0.9 * n
    assert np.searchsorted(lengths, state.high) > n - 2 * schedule.outside
    assert state.high < 1.2 * lengths[-1]
    # In one dimension the last radius is so far out that the pull is asked for.
    assert rounds <= (4 if offset == 0 else 5 if offset < 100 else 7) + (dim == 1)


@pytest.mark.parametrize("dim", [1, 2, 3, 8])
@pytest.mark.parametrize("times", [0.5, 1.0, 1.5, 2.0, 2.5, 3.0])
def test_noise_of_a_centre_is_not_taken_for_distances(dim, times):
    schedule = ShuffleChainSchedule(1e4, (1.0,) * dim, 20_000, PROMISE)
    ball = 1.1 * schedule.reach(2.326)
    state = ChainState("near", (0.0,) * dim, ball, 0.5, 50.0, 1.0, True)
    lengths = np.full(20_000, times)
    for sharp in (True, False):
        state = replace(state, sharp=sharp)
        counts = exact(cuts_of(schedule, state), lengths, 20_000)
        found = after_near(schedule, state, counts, np.ones(dim), 0.01, Fraction(1, 10), 3)
        assert found.stage == "near"
        far = exact(cuts_of(schedule, state), 3 * schedule.clear * lengths / times, 20_000)
        found = after_near(schedule, state, far, np.ones(dim), 0.01, Fraction(1, 10), 3)
        assert found.stage in (("pull", "mean") if sharp else ("last",))


def test_a_magnitude_close_to_the_records_takes_three_rounds():
    records = np.random.default_rng(1).normal(size=(20_000, 2)) + 3.0
    _, rounds = exact_run(ShuffleChainSchedule(10.0, (1.0, 1.0), 20_000, PROMISE), records)
    assert rounds == 3


def test_people_far_outside_on_one_side_make_the_centre_move():
    records = np.random.default_rng(1).normal(size=(20_000, 3))
    records[:1000] += 50.0
    state, rounds = exact_run(ShuffleChainSchedule(1e4, (1.0,) * 3, 20_000, PROMISE), records)
    assert rounds == 6
    lengths = np.linalg.norm(records - np.array(state.center), axis=1)
    assert (lengths <= state.high).mean() > 0.99
    assert state.high < 0.65 * 50 * np.sqrt(3)
    records[:500] -= 100.0
    state, _ = exact_run(ShuffleChainSchedule(1e4, (1.0,) * 3, 20_000, PROMISE), records)
    assert np.linalg.norm(state.center) < 3
    assert 80 < state.high < 100


@pytest.mark.slow
@pytest.mark.parametrize("name", hard_shapes(1))
def test_what_is_said_about_records_of_every_shape_holds(name):
    """12 chains: seven misses or more of 95 % statements have a chance of 5e-7."""
    n, missed, miscounted = 1_000, 0, 0
    records = hard_shapes(n)[name][:, None]
    protocol = planned(domain=mh.Reals(1, 1e4), n=n, privacy=mh.ApproxDP(epsilon=3.0, delta=1e-6))
    for _ in range(12):
        release = protocols.simulate(protocol, records)
        (low, high), outside = release.interval(), release.outside
        target = clipped_mean(release, records)[0]
        beyond = int((np.abs(records - release.domain.center) > release.domain.radius).sum())
        missed += not low[0] <= target <= high[0]
        miscounted += not outside.lower <= beyond <= outside.upper
        assert outside.is_small or "(clipped)" in repr(release)
    assert missed <= 6
    assert miscounted <= 6


@pytest.mark.slow
def test_intervals_are_about_the_mean_before_the_shell_was_shrunk():
    """A few people pull one of many coordinates, and the rest of the shell is noise.

    χ² with 24 degrees of freedom exceeds 90 with a probability of 1e-9.
    """
    records = np.random.default_rng(1).standard_normal((1_200, 24))
    records[:40, 0] += 40
    promise = mh.ApproxDP(epsilon=8.0, delta=1e-6)
    protocol = planned(domain=mh.Reals(24, 1e3), n=1_200, privacy=promise)
    release = protocols.simulate(protocol, records)
    low, high = release.interval()
    assert release.unshrunk is not None
    assert (low + high) / 2 == pytest.approx(release.unshrunk)
    assert ((low <= release.value) & (release.value <= high)).all()
    assert residual(release, records) < 90
    assert residual(changed(release, unshrunk=release.domain.center), records) > 90
