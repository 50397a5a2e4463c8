"""A device: any record in, one message out, and not a word about the record."""

from __future__ import annotations

import traceback
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import muhat as mh
from muhat import protocols
from muhat.protocols.encodings.domain_encoding import DomainEncoding
from muhat.protocols.randomizers.allowance import Allowance
from muhat.protocols.randomizers.fragment_randomizer import FragmentRandomizer


@pytest.mark.filterwarnings("error")
def test_a_record_is_a_number_or_a_list_of_numbers():
    line = protocols.local_mean(domain=mh.Box([0], [1]), n=10, privacy=mh.GDP(mu=1.0))
    plane = protocols.local_mean(domain=mh.Ball(1.0, dim=2), n=10, privacy=mh.GDP(mu=1.0))
    for record in (0.5, 1, np.float32(0.5), [0.5], (0.5,), np.array([0.5]), None, float("nan")):
        assert len(line.client(account=False).randomize(record)) == line.bytes_per_user
    for record in (
        [0.1, None],
        (1e308, -1e308),
        np.array([np.inf, np.nan]),
        np.array([np.longdouble("1e4000"), 1]),
        [10**400, -(10**400)],
        [Fraction(10**400, 3), Decimal("sNaN")],
        [True, np.bool_(False)],
        np.array([3, 4], np.uint8),
    ):
        assert len(plane.client(account=False).randomize(record)) == plane.bytes_per_user


@pytest.mark.parametrize(
    "record",
    [
        *("0.987654", b"0.987654", ["0.987654", "1"], ["0.987654x", 1], [None, "0.987654"]),
        *([0.987654], [0.987654] * 3, [[0.987654, 1]], 0.987654, None, [], [[0.987654], [1, 2]]),
        *([0.987654j, 1], np.array([0.987654j, 1]), {0.987654: 1}, {0.987654, 1}, [[0.987654], 1]),
        *(
            np.array(["2000-09-08", "2000-07-06"], "datetime64[D]"),
            [np.datetime64("1987-06-05"), 1],
        ),
        np.ma.masked_array([0.987654, 1.0], [True, False]),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("error")
def test_a_wrong_record_is_refused_without_a_word_of_it(record):
    protocol = protocols.local_mean(domain=mh.Ball(1.0, dim=2), n=10, privacy=mh.GDP(mu=1.0))
    with pytest.raises(mh.InvalidInput, match="record") as caught:
        protocol.client(account=False).randomize(record)
    assert "9876" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.filterwarnings("error")
def test_what_fails_to_become_an_array_is_refused_without_its_own_words():
    class Tensor:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("0.987654 requires grad")

    protocol = protocols.local_mean(domain=mh.Ball(1.0, dim=2), n=10, privacy=mh.GDP(mu=1.0))
    for randomize in (protocol.client(account=False).randomize, protocol.crowd().randomize_many):
        with pytest.raises(mh.InvalidInput, match="numbers") as caught:
            randomize(Tensor())
        assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_client_needs_nothing_but_the_description():
    protocol = protocols.local_mean(
        domain={"age": (16, 90), "pay": (0, 1e6)}, n=20, privacy=mh.ZCDP(rho=1.0)
    )
    devices = protocols.Protocol.from_json(protocol.to_json()).crowd()
    server = protocol.server()
    server.take(devices.randomize_many(np.full((20, 2), 50.0)))
    assert server.users == 20
    assert server.finish().columns == ("age", "pay")


def test_what_is_missing_counts_as_the_centre_and_what_is_outside_is_clipped():
    protocol = protocols.local_mean(
        domain=mh.Box([0, 10], [2, 30]), n=4000, privacy=mh.ZCDP(rho=200.0)
    )
    server = protocol.server()
    server.take(protocol.crowd().randomize_many([[np.nan, 1e300]] * 4000))
    release = server.finish()
    # 6 standard errors: P < 2e-9 for each of two.
    assert (np.abs(release.value - [1, 30]) < 6 * release.standard_error).all()


def test_many_records_are_rows_and_a_table_of_the_wrong_width_is_refused():
    plane = protocols.local_mean(domain=mh.Ball(1.0, dim=2), n=10, privacy=mh.GDP(mu=1.0)).crowd()
    line = protocols.local_mean(domain=mh.Box([0], [1]), n=10, privacy=mh.GDP(mu=1.0)).crowd()
    assert len(plane.randomize_many([[1, None], [2, 3]])) == 2
    assert len(line.randomize_many([1, 2, 3])) == len(line.randomize_many([[1], [2], [3]])) == 3
    assert line.randomize_many([]) == plane.randomize_many(np.empty((0, 2))) == []
    for wrong in ([1, 2], [[1, 2, 3]], np.zeros((1, 1, 2)), 3.0):
        with pytest.raises(mh.InvalidInput, match="rows of 2 numbers"):
            plane.randomize_many(wrong)


def test_every_kind_of_domain_takes_hostile_records():
    hostile = [0.0, -0.0, 5e-324, 1e308, -1e308, np.inf, -np.inf, np.nan, 2.0**63, 1e-310]
    domains = [
        mh.Ball(1e139, dim=2),
        mh.Ball(1e-139, dim=2),
        mh.Ball(1e-3, dim=2, center=[1e12, 0]),
        mh.Box([0, 1e6], [1e-100, 1e6 + 1e-3]),
        mh.Simplex(dim=2),
        mh.Points(np.array([[0.0, 3.0], [1.0, 3.0]])),
        mh.LpBall(p=1, radius=1.0, dim=2),
        np.array([[1.0, 2.0], [0.0, 1.0]]) @ mh.Ball(1.0, dim=2),
    ]
    records = np.array([[a, b] for a in hostile for b in hostile])
    for domain in domains:
        for promise in (mh.PureDP(epsilon=1.0), mh.ZCDP(rho=0.5)):
            protocol = protocols.local_mean(domain=domain, n=100, privacy=promise)
            server = protocol.server()
            assert server.take(protocol.crowd().randomize_many(records)).accepted == 100
            release = server.finish()
            assert np.isfinite(release.value).all()
            assert np.isfinite(release.standard_error).all()


def test_a_device_of_the_local_model_answers_one_round_and_no_other():
    protocol = protocols.local_mean(domain=mh.Ball(1.0, dim=2), n=10, privacy=mh.GDP(mu=1.0))
    other = protocols.local_mean(domain=mh.Ball(2.0, dim=2), n=10, privacy=mh.GDP(mu=1.0))
    with pytest.raises(mh.InvalidInput, match="one round and no other"):
        protocol.client(answered=[protocol])
    with pytest.raises(mh.InvalidInput, match="same protocol"):
        protocol.client(answered=[other])


def test_rounds_of_the_shuffle_model_are_answered_as_far_as_the_promise_reaches():
    promise = mh.ApproxDP(epsilon=1.0, delta=1e-6)
    first = protocols.shuffle_mean(domain=mh.Ball(1.0, dim=2), n=200, privacy=promise)
    with pytest.raises(mh.InvalidInput, match="together they take 2 times the promise"):
        first.client(answered=[first])

    def part(share: Fraction) -> protocols.Protocol:
        randomizer = FragmentRandomizer.of(
            DomainEncoding(first.estimator.domain),
            Allowance(promise, share),
            honest=first.minimum,
            users=first.users,
        )
        return protocols.Protocol(first.estimator, randomizer, first.users, first.minimum)

    third, half = part(Fraction(1, 3)), part(Fraction(1, 2))
    assert "takes 0.33" in third.describe()
    half.client(answered=[half])
    third.client(answered=iter([half]))
    # Whatever a description says about the rounds before it: these are the ones that count.
    for answered in ([half, half], [third, half], [first]):
        with pytest.raises(mh.InvalidInput, match="do not keep"):
            half.client(answered=answered)
