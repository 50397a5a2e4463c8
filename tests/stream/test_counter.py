"""A running sum, push by push: clipping, noise drawn once, one charge, no data in words."""

from __future__ import annotations

import copy
import math
import os
import pickle
import threading
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import muhat as mh
from muhat.stream import PrefixCounter
from muhat.stream.engines import KeptNoise
from muhat.stream.grid import EventGrid
from muhat.workloads.toeplitz import SquareRootDecoder

PROMISE = mh.ZCDP(rho=0.5)
WEAK = mh.GDP(mu=2.0**20)
"""Noise of a millionth: answers show what was added."""


def exact(counter: PrefixCounter) -> float:
    """The sum inside; tests may look."""
    return math.ldexp(counter._engine.sums[0], counter._plan.grids[0].exponent)


def twin(counter: PrefixCounter) -> PrefixCounter:
    """Another counter with the same noise: what must never happen outside of a test."""
    engine = KeptNoise(counter._engine.noise, [0])
    return PrefixCounter(counter._plan, engine, 0, [0], None)


def test_a_push_returns_a_float_near_the_sum():
    counter = mh.stream.prefix_counter(horizon=100, privacy=WEAK, lower=0, upper=1)
    answers = [counter.push(0.7) for _ in range(10)]
    assert all(type(answer) is float for answer in answers)
    assert np.allclose(answers, 0.7 * np.arange(1, 11), atol=1e-3)
    assert counter.pushed == 10


@pytest.mark.parametrize(
    ("value", "added"),
    [
        (0.25, 0.25),
        (1, 1.0),
        (True, 1.0),
        (Fraction(1, 4), 0.25),
        (Decimal("0.5"), 0.5),
        (np.float32(0.5), 0.5),
        (np.int64(1), 1.0),
        (-3, -2.0),
        (10**400, 4.0),
        (-(10**400), -2.0),
        (Fraction(10**400), 4.0),
        (1e308, 4.0),
        (-1e308, -2.0),
        (5e-324, 0.0),
        (-0.0, 0.0),
        (math.nan, 1.0),
        (math.inf, 1.0),
        (-math.inf, 1.0),
        (None, 1.0),
        (Decimal("sNaN"), 1.0),
        (np.array(0.5), 0.5),
    ],
)
def test_every_push_is_clipped_and_a_missing_one_is_the_middle(value, added):
    one = mh.stream.prefix_counter(5, WEAK, lower=-2, upper=4)
    one.push(value)
    assert exact(one) == added
    many = mh.stream.prefix_counter(5, WEAK, lower=-2, upper=4)
    many.push_many(np.array([value], object))
    assert exact(many) == added


@pytest.mark.parametrize("value", ["0.5", b"1", 1j, [0.5], np.ones(2), object(), {}])
def test_what_is_no_number_is_refused_and_adds_nothing(value):
    counter = mh.stream.prefix_counter(5, PROMISE)
    with pytest.raises(mh.InvalidInput, match="number"):
        counter.push(value)
    assert counter.pushed == 0


def test_scalars_and_arrays_go_to_the_same_grid_points():
    grid = EventGrid.between(Fraction(-7, 3), Fraction(5), -36)
    values = np.concatenate(
        [np.linspace(-3, 6, 999), [math.nan, math.inf, 1e300, -1e300, 5e-324, -0.0]]
    )
    assert grid.place_all(values).tolist() == [grid.place(float(value)) for value in values]


def test_no_push_is_larger_than_the_reach_of_the_plan():
    counter = mh.stream.prefix_counter(5, PROMISE, lower=-0.3, upper=0.7)
    grid = counter._plan.grids[0]
    rng = np.random.default_rng(1)
    values = rng.standard_normal(1000) * 10.0 ** rng.integers(-300, 300, 1000)
    assert np.abs(grid.place_all(values)).max() <= counter._plan.noise.reaches[0]


def test_one_by_one_and_all_at_once_are_the_same_stream():
    a = mh.stream.prefix_counter(100, PROMISE)
    b = twin(a)
    values = np.random.default_rng(0).uniform(-1, 2, 100)
    singly = [a.push(value) for value in values]
    together = np.concatenate([b.push_many(values[:33]), b.push_many([]), b.push_many(values[33:])])
    assert singly == together.tolist()
    assert a.value == b.value == singly[-1]


def test_asking_again_gives_the_same_answer():
    counter = mh.stream.prefix_counter(10, PROMISE)
    assert counter.value == 0.0
    assert counter.standard_error == 0.0
    answer = counter.push(1)
    assert counter.value == answer == counter.value


def test_beyond_the_horizon_nothing_is_added_or_released():
    counter = mh.stream.prefix_counter(3, PROMISE)
    with pytest.raises(mh.InvalidInput, match="horizon is 3"):
        counter.push_many([1, 1, 1, 1])
    counter.push_many([1, 1, 1])
    last = counter.value
    with pytest.raises(mh.InvalidInput, match="horizon is 3"):
        counter.push(1)
    assert (counter.pushed, counter.value, exact(counter)) == (3, last, 3.0)


def test_vectors_are_pushed_coordinate_by_coordinate():
    counter = mh.stream.prefix_counter(50, WEAK, lower=[0, -1, 0], upper=[1, 5, 100.0])
    answer = counter.push([0.5, 9, None])
    assert answer.shape == (3,)
    assert np.allclose(answer, [0.5, 5, 50], atol=0.01)
    assert counter.push_many(np.zeros((4, 3))).shape == (4, 3)
    assert counter.standard_errors.shape == (50, 3)
    assert (counter.value == counter.value).all()
    for wrong in ([1, 2], [[1, 2, 3]], 1.0, [1, 2, "x"], [1, [2], 3]):
        with pytest.raises(mh.InvalidInput, match="push"):
            counter.push(wrong)
    assert counter.pushed == 5


def test_noise_of_a_vector_is_largest_where_the_bounds_are_widest():
    counter = mh.stream.prefix_counter(10, PROMISE, lower=[0, 0], upper=[1, 100])
    ratio = counter.standard_errors[0, 1] / counter.standard_errors[0, 0]
    assert ratio == pytest.approx(10)  # variances in proportion to the reach


@pytest.mark.parametrize("planted", [False, True])
def test_streaming_equals_batch_in_distribution(planted):
    """Whitened by the factor of the batch, answers of many streams are standard normals."""
    size, count = 5, 1200
    plan = mh.stream.prefix_counter(size, PROMISE)._plan
    noise = np.empty((size, count))
    for k in range(count):
        counter = PrefixCounter(plan, plan.engine.start(plan.noise), 0, [0], None)
        noise[:, k] = [counter.push(1) - t for t in range(1, size + 1)]
    if planted:
        noise[1:] = noise[:-1].copy()
    factor = SquareRootDecoder(size).dense()  # at ρ = 1/2 and reach 1 the noise has unit scale
    white = np.linalg.solve(factor, noise)
    moments = white @ white.T / count
    errors = np.where(np.eye(size), np.sqrt(2 / count), np.sqrt(1 / count))
    assert (np.abs(moments - np.eye(size)) < 6 * errors).all() != planted


def test_the_ledger_is_charged_once_and_before_any_push(tmp_path):
    ledger = mh.Ledger.create(
        tmp_path / "budget.db", budget=mh.ZCDP(rho=1.0), neighbors="add-remove"
    )
    counter = mh.stream.prefix_counter(10, PROMISE, ledger=ledger)
    assert len(ledger.entries()) == 1
    for _ in range(10):
        counter.push(1)
    (entry,) = ledger.entries()
    assert ledger.spent == mh.ZCDP(rho=0.5) or str(ledger.spent) == "0.5-zCDP"
    assert counter.ledger_head == entry.head.to_dict()
    assert counter.cost == PROMISE == counter.privacy
    mh.stream.prefix_counter(10, PROMISE, ledger=str(tmp_path / "budget.db"))
    with pytest.raises(mh.BudgetExceeded):
        mh.stream.prefix_counter(10, PROMISE, ledger=ledger)


def test_bad_arguments_cost_nothing(tmp_path):
    ledger = mh.Ledger.create(
        tmp_path / "budget.db", budget=mh.ZCDP(rho=1.0), neighbors="add-remove"
    )
    for arguments in (
        {"horizon": 0},
        {"horizon": 10**9},
        {"horizon": 2.5},
        {"privacy": 1.0},
        {"privacy": mh.PureDP(epsilon=1.0), "memory": "few-buffers"},
        {"lower": 1, "upper": 0},
        {"lower": math.nan},
        {"lower": [0, 0], "upper": [1]},
        {"upper": "x"},
        {"contributions": 0},
        {"memory": "none"},
        {"p": 1},
        {"privacy": mh.GDP(mu=1e30)},
    ):
        with pytest.raises(mh.InvalidInput):
            mh.stream.prefix_counter(
                **{"horizon": 10, "privacy": PROMISE, "ledger": ledger, **arguments}
            )
    assert ledger.entries() == []
    with pytest.raises(mh.InvalidInput, match="delta"):
        mh.stream.prefix_counter(10, mh.PureDP(epsilon=1.0), memory="few-buffers")


def test_several_events_of_a_person_take_more_noise():
    one, three = (
        mh.stream.prefix_counter(10, PROMISE, contributions=k, memory="few-buffers") for k in (1, 3)
    )
    assert np.allclose(three.standard_errors, 3 * one.standard_errors)
    # Events are at different steps, so that the best noise is a little less than three times.
    one, three = (mh.stream.prefix_counter(10, PROMISE, contributions=k) for k in (1, 3))
    assert 2.5 < three.expected_error / one.expected_error < 2.7


def test_nothing_pushed_turns_up_in_words():
    counter = mh.stream.prefix_counter(10, PROMISE, upper=10**9)
    counter.push(123456789.125)
    words = [repr(counter), counter.describe(), str(counter.certificate.to_dict())]
    with pytest.raises(mh.InvalidInput) as caught:
        counter.push_many([987654321.5] * 20)
    words.append(str(caught.value))
    for text in words:
        assert "123456789" not in text.replace(",", "")
        assert "987654321" not in text.replace(",", "")
    assert repr(counter) == "<PrefixCounter: 1 of 10 pushed, 0.5-zCDP>"


def test_a_counter_is_neither_copied_nor_pickled():
    counter = mh.stream.prefix_counter(10, PROMISE)
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(mh.InvalidInput, match="once"):
            attempt(counter)


def test_a_fork_cannot_use_the_noise_again():
    counter = mh.stream.prefix_counter(10, PROMISE)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            counter.push(1)
            os.write(writer, b"released")
        except mh.InvalidInput:
            os.write(writer, b"refused")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 20) == b"refused"
    os.close(reader)
    os.close(writer)
    counter.push(1)


def test_threads_share_a_counter_and_every_noise_is_used_once():
    counter = mh.stream.prefix_counter(4000, PROMISE)
    answers: list[float] = []
    threads = [
        threading.Thread(target=lambda: answers.extend(counter.push(0) for _ in range(1000)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    exponent = counter._plan.grids[0].exponent
    noise = np.ldexp(counter._engine.noise[:, 0].astype(float), exponent)
    assert sorted(answers) == sorted(noise.tolist())


@pytest.mark.parametrize("p", [2.0, 4.0, math.inf])
def test_the_certificate_bounds_the_error_from_below(p):
    counter = mh.stream.prefix_counter(300, mh.ZCDP(rho=0.01), p=p)
    certificate = counter.certificate
    assert certificate.error == counter.expected_error
    assert 1 <= certificate.ratio < (1.002 if p == 2 else 4.5)
    longer = mh.stream.plan_prefix_counter(1100, mh.ZCDP(rho=0.01), p=p)
    assert 1 <= longer.certificate.ratio < (1.02 if p == 2 else 4.5)
    if p == 2:
        total = math.sqrt(float(np.sum(counter.standard_errors**2)))
        assert counter.expected_error == pytest.approx(total)
        assert certificate.method == "exact"
    approximate = mh.stream.prefix_counter(100, mh.ApproxDP(epsilon=1.0, delta=1e-6))
    assert {bound.mechanisms for bound in approximate.certificate.bounds} >= {"additive"}


def test_the_certificate_of_vectors_uses_the_body_of_one_event():
    counter = mh.stream.prefix_counter(100, mh.ZCDP(rho=0.01), lower=[-1, -2], upper=[1, 2])
    assert 1 <= counter.certificate.ratio < 1.04


def test_a_few_buffers_do_the_same_with_the_same_error():
    full, few = (
        mh.stream.prefix_counter(1100, PROMISE, memory=memory) for memory in ("full", "few-buffers")
    )
    assert np.allclose(few.standard_errors, full.standard_errors, rtol=0.02)
    assert few.expected_error < full.expected_error * 1.001
    full = mh.stream.prefix_counter(300, PROMISE)
    few = mh.stream.prefix_counter(300, PROMISE, memory="few-buffers")
    assert full.expected_error < few.expected_error < full.expected_error * 1.014
    assert 1 <= few.certificate.ratio < few.certificate.error
    answers = few.push_many(np.ones(200))
    assert few.value == answers[-1] == few.value
    assert np.abs((answers - np.arange(1, 201)) / few.standard_errors[:200]).max() < 7
    many = mh.stream.prefix_counter(50, WEAK, lower=[0, 0], upper=[1, 10], memory="few-buffers")
    assert np.allclose(many.push([0.5, 20]), [0.5, 10], atol=0.01)
    with pytest.raises(mh.InvalidInput, match="horizon"):
        few.push_many(np.ones(101))
    with pytest.raises(mh.InvalidInput, match="few-buffers"):
        mh.stream.prefix_counter(300, PROMISE, memory="few-bufers")


def test_a_promise_too_strong_for_few_buffers_costs_nothing(tmp_path):
    ledger = mh.Ledger.create(tmp_path / "budget.db", budget=mh.GDP(mu=1.0), neighbors="add-remove")
    with pytest.raises(mh.InvalidInput, match="too strong"):
        mh.stream.prefix_counter(10, mh.GDP(mu=1e-13), memory="few-buffers", ledger=ledger)
    assert ledger.entries() == []


@pytest.mark.slow
def test_a_million_pushes():
    counter = mh.stream.prefix_counter(10**6, PROMISE)
    for _ in range(10**6):
        counter.push(1)
    assert counter.pushed == 10**6
    assert abs(counter.value - 10**6) < 8 * counter.standard_error
