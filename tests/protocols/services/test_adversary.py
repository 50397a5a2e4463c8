"""People, networks, shufflers and servers that do not follow the protocol, one after the other."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from collections_of_tests import APPROX, BALL, KEY, PURE, Collection, described, reports_of

import muhat as mh
from muhat import protocols
from muhat.errors import BudgetExceeded, InvalidInput
from muhat.protocols import DeviceAccount, Protocol, SealedProtocol, ServerKey
from muhat.protocols.randomizers.randomizer import random_order
from muhat.protocols.roles import sealed_roles
from muhat.protocols.roles.messages import HEADER_BYTES, LABEL_BYTES, pack
from muhat.protocols.roles.sealing_keys import OVERHEAD, SealingKey
from muhat.protocols.services.server_service import ServerService
from muhat.protocols.services.service import Service
from muhat.protocols.services.shuffler_service import ShufflerService, parts_of

HONEST = 40


def single(users: int) -> Protocol:
    """Sealed messages of one piece, and room for many who are not honest."""
    return protocols.shuffle_mean(
        domain=BALL, n=users, minimum=30, honest=30, privacy=APPROX, most_bytes=60
    )


def service_of(folder, protocol: Protocol, *, sealed: bool = True) -> tuple[Service, object]:
    """What devices send to, and the round as they get it."""
    collection = Collection.of(folder, protocol, sealed=sealed)
    if collection.shuffler is not None:
        return ShufflerService(collection.shuffler.checked("shuffler")), collection
    return ServerService(collection.server.checked("server")), collection


def result_of(collection: Collection, shuffler: Service) -> mh.Release:
    """What the server makes of what a shuffler hands on."""
    assert shuffler._close(30).status == 200
    server = ServerService(collection.server.checked("server"))
    server._due = asyncio.Event()

    async def hand_on():
        while (part := shuffler.store.unsent(1)) is not None:
            assert (await server.take_part("batch", part[1])).status == 201
            shuffler.store.mark_sent(1, part[0], True)
        answer, _ = await server.complete("batch", shuffler.users)
        assert answer.status == 202
        await server._step()

    asyncio.run(hand_on())
    assert server.kept.phase == "finished", server.kept.result
    found = mh.Release.from_json(server.kept.result.decode())
    server.store.close()
    return found


def direct(round_: SealedProtocol, reports: list[bytes]) -> mh.Release:
    server = round_.server(KEY)
    server.take(reports)
    return server.finish()


# The network and other people: what is sent again, in another order, in part, or changed.


def changed(source: random.Random, reports: list[bytes]) -> bytes:
    """A report after something has happened to it."""
    made = bytearray(source.choice(reports))
    match source.randrange(7):
        case 0:
            for _ in range(source.randint(1, 3)):
                made[source.randrange(len(made))] ^= 1 << source.randrange(8)
        case 1:
            return bytes(made[: source.randrange(len(made))])
        case 2:
            return bytes(made) + source.randbytes(source.randint(1, 40))
        case 3:
            cut = source.randrange(len(made))
            made[cut:] = source.choice(reports)[cut:]
        case 4:
            return source.randbytes(source.choice([0, 1, len(made), len(made) + 1]))
        case 5:  # another number for the same pieces
            made[LABEL_BYTES:HEADER_BYTES] = source.randbytes(HEADER_BYTES - LABEL_BYTES)
        case _:
            made[source.randrange(LABEL_BYTES)] ^= 1 << source.randrange(8)
    return bytes(made)


def fuzzed(folder, messages: int) -> None:
    """Honest people's reports, and many that were changed: the result is that of the honest."""
    shuffler, collection = service_of(folder, single(messages))
    reports = reports_of(collection.round, HONEST)
    assert {answer.status for answer in shuffler._take_all(reports)} == {201}
    source, seen = random.Random(7), Counter()
    for start in range(0, messages, 500):
        sent = [changed(source, reports) for _ in range(start, min(start + 500, messages))]
        seen.update(answer.status for answer in shuffler._take_all(sent))
    assert set(seen) == {200, 201, 400, 409}
    assert shuffler.users == HONEST + seen[201]
    assert result_of(collection, shuffler).value.tolist() == (
        direct(collection.round, reports).value.tolist()
    )
    shuffler.store.close()


def test_changed_reports_change_nothing(tmp_path):
    fuzzed(tmp_path, 2000)


@pytest.mark.slow
def test_a_hundred_thousand_changed_reports_change_nothing(tmp_path):
    fuzzed(tmp_path, 100_000)


def test_changed_messages_that_anybody_can_read_take_no_honest_ones_place(tmp_path):
    """In the local model a changed message may be one, and then is one false message of many."""
    service, collection = service_of(tmp_path, described("local", 400), sealed=False)
    reports = reports_of(collection.round, 300)
    service._take_all(reports)
    source = random.Random(8)
    service._take_all([changed(source, reports) for _ in range(1000)])
    kept = service.store.reports(1)
    assert set(reports) <= set(kept)
    assert len(kept) == len({each[LABEL_BYTES:HEADER_BYTES] for each in kept}) == service.users
    assert service.users <= 400
    phase, result, _ = service._result(kept)
    assert phase == "finished"
    assert np.isfinite(mh.Release.from_json(result.decode()).value).all()
    service.store.close()


def test_replays_duplicates_and_another_order_change_nothing(tmp_path):
    shuffler, collection = service_of(tmp_path, single(50))
    reports = reports_of(collection.round, HONEST)
    sent = [*reports[::-1], *reports, *reports[:7]]
    statuses = Counter(answer.status for answer in shuffler._take_all(sent))
    assert statuses == {201: HONEST, 200: HONEST + 7}
    value = result_of(collection, shuffler).value
    assert value.tolist() == direct(collection.round, reports).value.tolist()
    shuffler.store.close()


def test_what_is_dropped_is_missing_and_too_few_give_nothing(tmp_path):
    """A shuffler that hands on less than it says, or too few, is noticed."""
    collection = Collection.of(tmp_path, single(50))
    reports = reports_of(collection.round, HONEST)
    server = ServerService(collection.server.checked("server"))
    server._due = asyncio.Event()

    async def scenario():
        for part in parts_of(reports[:29]):
            await server.take_part("batch", part)
        answer, _ = await server.complete("batch", HONEST)
        assert answer.status == 409  # not all are here
        answer, _ = await server.complete("batch", 29)
        assert answer.status == 400  # below the minimum

    asyncio.run(scenario())
    assert server.kept.phase == "collecting"
    server.store.close()


# Keys and descriptions: wrong, ended, old.


def test_reports_for_another_key_are_refused_or_left_out(tmp_path):
    shuffler, collection = service_of(tmp_path, single(60))
    other = SealedProtocol(collection.round.protocol, ServerKey(bytes(range(1, 33))).public)
    reports, foreign = reports_of(collection.round, HONEST), reports_of(other, 5)
    assert {answer.words for answer in shuffler._take_all(foreign)} == {"another protocol"}
    # Under the right label nobody but the server sees it.
    label = collection.round.reports.label
    relabelled = [label + each[LABEL_BYTES:] for each in foreign]
    assert {answer.status for answer in shuffler._take_all(reports + relabelled)} == {201}
    release = result_of(collection, shuffler)
    assert release.n == HONEST
    assert release.value.tolist() == direct(collection.round, reports).value.tolist()
    shuffler.store.close()


def test_nobody_seals_to_a_key_that_has_ended_and_no_service_takes_it(tmp_path):
    shuffler, collection = service_of(tmp_path, single(50))
    ended = SealedProtocol(collection.round.protocol, replace(KEY.public, expires="2020-01-01"))
    with pytest.raises(InvalidInput, match="ended"):
        ended.client(account=False)
    reports = reports_of(collection.round, 1)
    shuffler.round = ended
    assert [answer.status for answer in shuffler._take_all(reports)] == [410]
    shuffler.store.close()


def test_an_old_description_is_answered_by_no_device_and_its_reports_by_no_service(tmp_path):
    asked = described("local").surveyed("commuting", version=2)
    service, _ = service_of(tmp_path, asked, sealed=False)
    account = DeviceAccount.create(tmp_path / "device.db", budget=mh.PureDP(epsilon=9.0))
    old = described("local").surveyed("commuting", version=1)
    (late,) = reports_of(old, 1)
    assert [answer.words for answer in service._take_all([late])] == ["another protocol"]
    fresh = asked.client(account=account).randomize([0.1, 0.2])
    assert [answer.status for answer in service._take_all([fresh])] == [201]
    with pytest.raises(InvalidInput, match="version"):
        old.client(account=account).randomize([0.1, 0.2])
    service.store.close()


# Sybils: what is said beforehand about false messages holds for the worst that they can send.


@pytest.mark.parametrize("part", [1, 5, 10])
def test_sybils_move_the_mean_by_no_more_than_was_said(part, tmp_path):
    n = 400
    protocol = protocols.local_mean(domain={"x": (0.0, 1.0)}, n=n, privacy=PURE)
    false = part * n // 100
    honest = protocol.crowd().randomize_many(np.full((n - false, 1), 0.5))
    loudest = ranked(protocol)
    values = []
    for name, sybils in (("low", loudest[:false]), ("high", loudest[-false:])):
        service, _ = service_of(tmp_path / name, protocol, sealed=False)
        assert {answer.status for answer in service._take_all(honest + sybils)} == {201}
        phase, result, _ = service._result(service.store.reports(1))
        assert phase == "finished"
        values.append(mh.Release.from_json(result.decode()).value[0])
        service.store.close()
    bound = false * protocol.randomizer.false_step(n)[0]
    moved = abs(values[1] - values[0])
    assert moved <= bound * (1 + 1e-12)
    assert moved >= 0.9 * bound  # said as it is, and not a thousand times as much
    said = " ".join(mh.Release.from_json(result.decode()).assumptions)
    assert "k of them k times as far" in said


def ranked(protocol: Protocol) -> list[bytes]:
    """Every message there can be for some hundred numbers, by what it says alone."""
    source, size = random.Random(9), protocol.randomizer.payload_bytes
    assert size == 1
    nonces = np.frombuffer(source.randbytes(16 * 100), np.uint8).reshape(100, 16)
    nonces = np.repeat(nonces, 256, axis=0)
    payloads = np.tile(np.arange(256, dtype=np.uint8), 100)[:, None]
    valid = protocol.randomizer.valid(payloads)
    nonces, payloads = nonces[valid], payloads[valid]
    says = [
        protocol.randomizer.mean(nonces[i : i + 1], payloads[i : i + 1])[0]
        for i in range(len(nonces))
    ]
    order = np.argsort(says, kind="stable")
    messages = pack(protocol.label, nonces[order], payloads[order])
    # Of messages with one number only the first is taken: each Sybil has one of its own.
    low = list({each[LABEL_BYTES:HEADER_BYTES]: each for each in messages[::-1]}.values())[::-1]
    high = list({each[LABEL_BYTES:HEADER_BYTES]: each for each in messages}.values())
    return low[:40] + high[-40:]


# A shuffler that keeps copies, and a server that has what was mixed.

VALUES = (-1.0, -0.3, 0.0, 1.0, 7.0, float("nan"))


@pytest.mark.parametrize("kind", ["single", "fragments"])
def test_a_shuffler_that_keeps_copies_learns_nothing(kind, monkeypatch):
    """All that it sees but what HPKE has made is the same for all records of a small domain."""
    round_ = SealedProtocol(described(kind), KEY.public)
    asked = []

    def opaque(key, piece, info):
        asked.append((key.public, len(piece), info))
        return bytes(len(piece) + OVERHEAD)

    monkeypatch.setattr(SealingKey, "seal", opaque)
    views, calls = set(), set()
    for record in product(VALUES, repeat=2):
        asked.clear()
        report = round_.client(account=False).randomize(list(record))
        views.add(report[:LABEL_BYTES] + report[HEADER_BYTES:])
        calls.add(tuple(asked))
    assert len(views) == len(calls) == 1


def test_a_shuffler_that_can_read_learns_the_record():
    """What sealing is for: the same copies, unsealed, add up to the record with little noise.

    Nine in ten of 400 people's end on the side of their record; three in four are 9 standard
    errors from that.
    """
    protocol = described("fragments")
    randomizer = protocol.randomizer
    records = np.repeat([-0.9, 0.9], 200)
    messages = protocol.crowd().randomize_many([[value, 0.0] for value in records])
    found = []
    for message in messages:
        payload = np.frombuffer(message[HEADER_BYTES:], np.uint8)[None, :]
        nonce = np.frombuffer(message[LABEL_BYTES:HEADER_BYTES], np.uint8)[None, :]
        found.append(randomizer.mean(nonce, payload)[0])
    assert np.mean(np.array(found) * records > 0.3 * 0.9) > 0.75


def test_of_mixed_reports_every_order_is_as_likely_whoever_sent_what(monkeypatch):
    """Three people, all six orders: the server sees the same things equally often."""
    round_ = SealedProtocol(
        protocols.shuffle_mean(
            domain=BALL, n=50, minimum=3, honest=3, privacy=mh.ApproxDP(6.0, 0.01), most_bytes=60
        ),
        KEY.public,
    )
    reports = reports_of(round_, 3)
    seen = []
    for senders in (reports, [reports[1], reports[2], reports[0]]):
        views = Counter()
        for words in permutations((5, 77, 1000)):
            # Distinct words are every order once; numbers are drawn anew and say nothing.
            def order(size, words=words):
                return random_order(size, lambda count: np.array(words[:count], np.uint64))

            monkeypatch.setattr(sealed_roles, "random_order", order)
            shuffler = round_.shuffler()
            shuffler.take(senders)
            views[tuple(each[HEADER_BYTES:] for each in shuffler.mixed())] += 1
        assert len(views) == 6
        seen.append(views)
    assert seen[0] == seen[1]


# A server that lies about the number of people.


def test_a_server_that_names_sixty_numbers_of_people_gets_two_answers(tmp_path):
    account = DeviceAccount.create(tmp_path / "device.db", budget=mh.PureDP(epsilon=2.0), days=30)
    answers = set()
    for n in range(1000, 1060):
        lie = protocols.local_mean(domain=BALL, n=n, privacy=PURE)
        with suppress(BudgetExceeded):
            answers.add(lie.client(account=account).randomize([0.1, 0.2]))
    assert len(answers) == 2


def test_noise_that_counts_on_more_people_than_there_are_is_refused_by_the_device():
    """Fewer who must be honest than the noise was made for: no device reads such a description."""
    with pytest.raises(InvalidInput):
        Protocol.from_json(json.dumps({**single(1000).to_dict(), "minimum": 2, "honest": 2}))
