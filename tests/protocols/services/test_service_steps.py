"""Reports are written before they are answered, counted once, mixed once, and never lost."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import contextmanager, suppress
from dataclasses import replace

import numpy as np
import pytest
from collections_of_tests import (
    APPROX,
    KEY,
    KINDS,
    PURE,
    SIGNER,
    Collection,
    N,
    described,
    reports_of,
)

import muhat as mh
from muhat import protocols
from muhat.errors import InvalidInput
from muhat.protocols import SealedProtocol, ServerKey
from muhat.protocols.roles.messages import HEADER_BYTES, LABEL_BYTES
from muhat.protocols.services import service as service_module
from muhat.protocols.services import shuffler_service
from muhat.protocols.services.sending import Response
from muhat.protocols.services.server_service import ServerService
from muhat.protocols.services.service import BUSY, CLOSED, KNOWN, NOT_WRITTEN, TAKEN, token_of
from muhat.protocols.services.shuffler_service import ShufflerService, parts_of
from muhat.protocols.services.store import Store
from muhat.release.release import Release


class Killed(BaseException):
    """What a process does not survive."""


class Pair:
    """A shuffler and a server in one loop, whose steps a test takes one by one."""

    def __init__(self, collection: Collection):
        self.collection = collection
        self.posted: dict[str, set[bytes]] = {}
        self.watch = lambda: None
        self.shuffler = self.server = None
        self.open()

    def open(self):
        self.server = ServerService(self.collection.server.checked("server"))
        self.server._due = asyncio.Event()
        self.shuffler = ShufflerService(self.collection.shuffler.checked("shuffler"))
        self.shuffler._post = self.post
        for each in (self.shuffler, self.server):
            # A process that is killed loses nothing that it wrote; waiting is for power cuts.
            each.store._connection.execute("PRAGMA synchronous = OFF")

    def kill(self):
        """What is in no transaction that has ended is gone."""
        for each in (self.shuffler, self.server):
            each._thread.shutdown()
            each.store.close()

    async def post(self, path, body):
        self.watch()
        _, _, batch, part = path.split("/")
        if part == "close":
            answer, following = await self.server.complete(batch, int(body))
            found = following if answer.status == 200 else answer.words.encode()
        else:
            self.posted.setdefault(path, set()).add(body)
            answer = await self.server.take_part(batch, body)
            found = answer.words.encode()
        self.watch()
        return Response(answer.status, found)

    async def run(self, reports, at_once=10):
        """Send everything, as devices do that were not answered, and take all steps."""
        for start in range(0, len(reports), at_once):
            await self.shuffler._do(self.shuffler._take_all, reports[start : start + at_once])
        rounds = self.shuffler.kept.number
        while self.shuffler.kept.phase == "collecting":
            assert await self.shuffler._step()
        while self.shuffler.kept.number == rounds and self.shuffler.kept.phase != "finished":
            await self.shuffler._step()
            await self.server._step()


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch):
    for module in (service_module, shuffler_service):
        monkeypatch.setattr(module, "PAUSE", 0.0)
    monkeypatch.setattr(shuffler_service, "PART_BYTES", 1000)


def released(pair: Pair) -> Release:
    return Release.from_json(pair.server.kept.result.decode())


@pytest.mark.parametrize("kind", ["single", "fragments"])
def test_what_devices_send_is_mixed_handed_on_and_released(kind, tmp_path):
    collection = Collection.of(tmp_path, described(kind))
    reports = reports_of(collection.round, N)

    async def scenario():
        pair = Pair(collection)
        await pair.run(reports)
        kept = pair.server.store.reports(1)
        assert released(pair).n == N
        assert not pair.shuffler.store.reports(1)
        assert pair.shuffler.store.unsent(1) is None
        assert len(pair.posted) > 1
        assert pieces(collection.round, kept) == pieces(collection.round, reports)
        # In an order of its own, under numbers that nobody has seen.
        assert not {each[LABEL_BYTES:HEADER_BYTES] for each in kept} & {
            each[LABEL_BYTES:HEADER_BYTES] for each in reports
        }
        assert await pair.shuffler._do(pair.shuffler._take_all, reports[:2]) == [KNOWN, KNOWN]
        pair.kill()

    asyncio.run(scenario())


def pieces(round_, reports):
    """All pieces of reports, in no order."""
    rows = np.frombuffer(b"".join(each[HEADER_BYTES:] for each in reports), np.uint8)
    size = round_.reports.piece_bytes
    return sorted(each.tobytes() for each in rows.reshape(-1, size))


@contextmanager
def killed_at(monkeypatch, moment: int):
    """Fail at the so-manieth moment: around a transaction, a write by itself, or a request."""
    left = [moment]

    def watch():
        left[0] -= 1
        if left[0] == 0:
            raise Killed

    transaction, mark_sent = Store.transaction, Store.mark_sent

    @contextmanager
    def watched(self):
        watch()
        with transaction(self):
            yield
            watch()
        watch()

    def watched_mark(self, *arguments):
        watch()
        mark_sent(self, *arguments)
        watch()

    with monkeypatch.context() as patch:
        patch.setattr(Store, "transaction", watched)
        patch.setattr(Store, "mark_sent", watched_mark)
        yield watch, left


def test_a_kill_at_any_moment_loses_nothing_and_counts_nothing_twice(tmp_path, monkeypatch):
    """Both are killed at every moment there is, one after the other, and started again."""
    protocol = described("single")
    reports = reports_of(Collection.of(tmp_path / "first", protocol).round, N)
    moment, died = 1, True
    while died:
        collection = Collection.of(tmp_path / str(moment), protocol)

        async def scenario(collection=collection, moment=moment):
            pair = Pair(collection)
            with killed_at(monkeypatch, moment) as (pair.watch, left), suppress(Killed):
                await pair.run(reports)
            pair.watch = lambda: None
            died, seen = left[0] <= 0, pair.posted
            pair.kill()
            pair.open()
            await pair.run(reports)
            # One order of the reports, and no other, has ever been seen.
            assert all(len(bodies) == 1 for bodies in seen.values())
            assert len({path.split("/")[2] for path in seen}) == 1
            assert released(pair).n == N
            assert pieces(collection.round, pair.server.store.reports(1)) == pieces(
                collection.round, reports
            )
            pair.kill()
            return died

        died = asyncio.run(scenario())
        moment += 1
    assert moment > 25


def test_of_two_mixes_of_one_batch_the_server_takes_one(tmp_path):
    """A shuffler whose store was lost mixes again what devices send again."""
    collection = Collection.of(tmp_path, described("single"))
    reports = reports_of(collection.round, N)

    async def scenario():
        pair = Pair(collection)
        await pair.shuffler._do(pair.shuffler._take_all, reports)
        await pair.shuffler._step()
        await pair.shuffler._hand_on()
        name = pair.shuffler.kept.batch
        other = await pair.server.take_part("another", b"")
        assert other.status == 403
        assert (await pair.server.complete("another", N))[0].status == 409
        assert pair.server.kept.batch == name
        pair.kill()

    asyncio.run(scenario())


def test_a_server_that_has_lost_its_store_gets_the_batch_again(tmp_path):
    collection = Collection.of(tmp_path, described("single"))
    reports = reports_of(collection.round, N)

    async def scenario():
        pair = Pair(collection)
        await pair.shuffler._do(pair.shuffler._take_all, reports)
        while pair.shuffler.store.unsent(1) or pair.shuffler.kept.phase == "collecting":
            await pair.shuffler._step()
        pair.kill()
        for file in (tmp_path / "server").iterdir():
            file.unlink()
        pair.open()
        await pair.run(reports)
        assert released(pair).n == N
        pair.kill()

    asyncio.run(scenario())


def taken(service, reports):
    return service._take_all(reports)


def test_what_is_no_report_of_the_round_is_refused_with_its_reason(tmp_path):
    collection = Collection.of(tmp_path, described("local"), sealed=False)
    service = ServerService(collection.server.checked("server"))
    one, two = reports_of(collection.round, 2)
    (other,) = reports_of(described("local", 40), 1)
    same_number = one[:HEADER_BYTES] + bytes([one[HEADER_BYTES] ^ 1])
    answers = taken(service, [one, two, one, one[:-1], b"", b"x" * len(one), other, same_number])
    assert [answer.status for answer in answers] == [201, 201, 200, 400, 400, 400, 409, 409]
    assert [answer.words for answer in answers[3:]] == [
        "too short",
        "too short",
        "not a message of muhat",
        "another protocol",
        "replayed",
    ]
    assert service.store.users(1) == service.users == 2
    service.store.close()


def test_late_reports_are_refused_and_those_that_counted_are_known(tmp_path):
    collection = Collection.of(tmp_path, described("local"), sealed=False, turnout=15)
    service = ServerService(collection.server.checked("server"))
    reports = reports_of(collection.round, N)

    async def scenario():
        assert set(taken(service, reports[:14])) == {TAKEN}
        assert not await service._step()
        service._due = asyncio.Event()
        below = await service.close()
        assert below.status == 409
        assert taken(service, reports[14:15]) == [TAKEN]
        assert await service._step()
        assert taken(service, reports[14:16]) == [KNOWN, CLOSED]
        await service._step()
        assert Release.from_json(service.kept.result.decode()).n == 15
        assert taken(service, reports[14:16]) == [KNOWN, CLOSED]

    asyncio.run(scenario())
    service.store.close()


def test_more_reports_than_planned_are_refused(tmp_path):
    collection = Collection.of(tmp_path, described("local"), sealed=False)
    service = ServerService(collection.server.checked("server"))
    answers = taken(service, reports_of(collection.round, N + 2))
    assert [answer.words for answer in answers[N - 1 :]] == ["taken"] + [
        "more messages than users"
    ] * 2
    service.store.close()


def test_a_key_that_ends_refuses_new_reports_and_mixes_those_there_are(tmp_path, monkeypatch):
    collection = Collection.of(tmp_path, described("single"), turnout=15)
    reports = reports_of(collection.round, N)

    async def scenario():
        pair = Pair(collection)
        assert set(taken(pair.shuffler, reports[:14])) == {TAKEN}
        ended = SealedProtocol(collection.round.protocol, replace(KEY.public, expires="2020-01-01"))
        pair.shuffler.round = ended
        (late,) = taken(pair.shuffler, reports[14:15])
        assert late.status == 410
        assert "ended" in late.words
        pair.shuffler.round = collection.round
        assert taken(pair.shuffler, reports[14:15]) == [TAKEN]
        pair.shuffler.round = ended
        assert (await pair.shuffler._do(pair.shuffler._close, 15)).status == 200
        pair.kill()

    asyncio.run(scenario())


@pytest.mark.parametrize("kind", ["local", "single", "fragments"])
def test_of_copies_of_a_piece_the_first_counts(kind, tmp_path):
    """A copy is refused; one that was changed is no copy, and takes nobody's place."""
    collection = Collection.of(tmp_path, described(kind))
    config = collection.shuffler or collection.server
    made = ShufflerService if collection.shuffler else ServerService
    service = made(config.checked("shuffler" if collection.shuffler else "server"))
    reports = reports_of(collection.round, 2)
    label = collection.round.reports.label
    spoilt = reports[0][HEADER_BYTES:-1] + bytes([reports[0][-1] ^ 1])
    if kind != "fragments":  # what does not open is left out: before its original, or after it
        assert taken(service, [label + bytes(16) + spoilt]) == [TAKEN]
    assert taken(service, reports) == [TAKEN, TAKEN]
    (copy,) = taken(service, [label + b"x" * 16 + reports[0][HEADER_BYTES:]])
    assert (copy.status, copy.words) == (409, "replayed")
    fresh = bytearray(reports_of(collection.round, 1)[0])
    size = collection.round.reports.piece_bytes
    if kind == "fragments":  # one piece twice in one report
        fresh[HEADER_BYTES + size : HEADER_BYTES + 2 * size] = fresh[HEADER_BYTES:][:size]
        assert taken(service, [bytes(fresh)]) == [copy]
    assert service.users == (2 if kind == "fragments" else 3)
    assert set(reports) <= set(service.store.reports(1))
    service.store.close()


def test_a_report_is_answered_when_it_is_written_and_put_off_when_it_cannot_be(
    tmp_path, monkeypatch
):
    collection = Collection.of(tmp_path, described("local"), sealed=False)
    service = ServerService(collection.server.checked("server"))
    reports = reports_of(collection.round, 2)

    def full(*_):
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "add", full)
        assert taken(service, reports) == [NOT_WRITTEN] * 2
    assert service.users == service.store.users(1) == 0
    assert taken(service, reports) == [TAKEN] * 2
    service.store.close()


def test_what_waits_is_bounded(tmp_path):
    limits = replace(
        Collection.of(tmp_path, described("local"), sealed=False).server.limits, waiting=3
    )
    collection = Collection.of(tmp_path, described("local"), sealed=False, limits=limits)
    reports = reports_of(collection.round, 5)

    async def scenario():
        service = ServerService(collection.server.checked("server"))
        await service.start()
        answers = await asyncio.gather(*(service.take(report) for report in reports))
        assert sorted(answers) == sorted([TAKEN] * 3 + [BUSY] * 2)
        again = await asyncio.gather(*(service.take(report) for report in reports[3:]))
        assert set(again) == {TAKEN}
        await service.stop()

    asyncio.run(scenario())


def test_the_shuffler_follows_from_round_to_round(tmp_path):
    asked = protocols.shuffle_mean(
        domain=mh.Reals(dim=1, magnitude=10.0), n=800, minimum=3, honest=3, privacy=APPROX
    )
    collection = Collection.of(tmp_path, asked, turnout=3)
    reports = reports_of(collection.round, 3)

    async def scenario():
        pair = Pair(collection)
        await pair.shuffler._do(pair.shuffler._take_all, reports)
        while pair.server.kept.phase == "collecting":
            await pair.shuffler._step()
        await pair.server._step()
        assert pair.server.kept.phase == "unsigned"
        batch = pair.shuffler.kept.batch
        assert (await pair.server.complete(batch, 3))[0].status == 202
        with pytest.raises(InvalidInput, match="another round"):
            pair.shuffler._follow(SIGNER.signed(asked, KEY.public))
        following = protocols.Protocol.from_cbor(pair.server.kept.result)
        text = SIGNER.signed(following, KEY.public)
        assert (await pair.server.publish(text)).status == 200
        while pair.shuffler.kept.number == 1:
            await pair.shuffler._step()
        assert pair.shuffler.kept.description == pair.server.kept.description == text
        # Of a later round the same part is waited for.
        assert pair.shuffler.turnout == -(-3 * following.users // 800)
        # The old batch may be asked for again; what counted is known, and what is late refused.
        assert (await pair.server.complete(batch, 3))[1] == text
        assert await pair.server.take_part(batch, b"") == KNOWN
        assert taken(pair.shuffler, reports[:1]) == [KNOWN]
        assert taken(pair.shuffler, reports_of(collection.round, 1))[0].words == "another round"
        pair.kill()

    asyncio.run(scenario())


@pytest.mark.parametrize("signs", [True, False])
def test_the_next_round_is_signed_by_the_server_or_waits_for_its_operator(signs, tmp_path):
    asked = protocols.local_mean(domain=mh.Reals(dim=1, magnitude=10.0), n=2000, privacy=PURE)
    signer = {"sign_with": str(tmp_path / "signer.key")} if signs else {}
    collection = Collection.of(tmp_path, asked, turnout=asked.minimum, **signer)
    server = ServerService(collection.server.checked("server"))
    server._due = asyncio.Event()

    async def scenario():
        assert set(taken(server, reports_of(collection.round, asked.minimum))) == {TAKEN}
        while server.kept.number == 1 and server.kept.phase != "unsigned":
            await server._step()
        if not signs:
            following = protocols.Protocol.from_cbor(server.kept.result)
            other = ServerKey(bytes(range(1, 33)))
            for protocol, key in ((asked, KEY), (following, other)):
                text = SIGNER.signed(protocol, key.public)
                assert (await server.publish(text)).status == 409
            text = SIGNER.signed(following, KEY.public)
            assert (await server.publish(text)).status == 200
            assert (await server.publish(text)).status == 409
        text = server.kept.description
        assert SealedProtocol.from_signed(text, signer=SIGNER.public).protocol.round == 2

    asyncio.run(scenario())
    server.store.close()


@pytest.mark.parametrize("signs", [True, False])
def test_further_rounds_have_a_further_key(signs, tmp_path):
    """Also after a restart; without the key nothing is opened."""
    asked = protocols.local_mean(domain=mh.Reals(dim=1, magnitude=10.0), n=2000, privacy=PURE)
    second = ServerKey.create(tmp_path / "second.key", expires="2999-02-02")
    changes = {"turnout": asked.minimum, "further_keys": (str(tmp_path / "second.key"),)}
    if signs:
        changes["sign_with"] = str(tmp_path / "signer.key")
    collection = Collection.of(tmp_path, asked, **changes)

    async def scenario():
        server = ServerService(collection.server.checked("server"))
        server._due = asyncio.Event()
        assert set(taken(server, reports_of(collection.round, asked.minimum))) == {TAKEN}
        while server.kept.number == 1 and server.kept.phase != "unsigned":
            await server._step()
        if not signs:
            following = protocols.Protocol.from_cbor(server.kept.result)
            text = SIGNER.signed(following, second.public)
            assert (await server.publish(text)).status == 200
        server.store.close()
        server = ServerService(collection.server.checked("server"))
        server._due = asyncio.Event()
        round_ = SealedProtocol.from_signed(server.kept.description, signer=SIGNER.public)
        assert (round_.protocol.round, round_.key) == (2, second.public)
        people = server.turnout
        assert set(taken(server, reports_of(round_, people))) == {TAKEN}
        while server.kept.number == 2 and server.kept.phase != "unsigned":
            assert server.kept.phase != "failed"
            await server._step()
        server.store.close()

    asyncio.run(scenario())
    with pytest.raises(InvalidInput, match="are sealed to the key"):
        ServerService(replace(collection.server, further_keys=()).checked("server"))


def test_a_round_that_comes_to_nothing_says_why(tmp_path):
    """Mixed fragments that nobody can open: their sums are lost."""
    collection = Collection.of(tmp_path, described("fragments"))
    reports = reports_of(collection.round, N)
    reports[0] = reports[0][:-1] + bytes([reports[0][-1] ^ 1])

    async def scenario():
        pair = Pair(collection)
        await pair.run(reports)
        assert pair.server.kept.phase == "failed"
        assert b"cannot be opened" in pair.server.kept.result
        pair.kill()

    asyncio.run(scenario())


def test_a_store_has_one_process_and_one_collection(tmp_path):
    collection = Collection.of(tmp_path, described("local"), sealed=False)
    setup = collection.server.checked("server")
    service = ServerService(setup)
    with pytest.raises(InvalidInput, match="in use by another process"):
        ServerService(setup)
    service.store.close()
    Collection.of(tmp_path, described("local", 40), sealed=False)
    with pytest.raises(InvalidInput, match="another description"):
        ServerService(collection.server.checked("server"))
    (tmp_path / "server" / "server.db").write_bytes(b"no database" * 100)
    with pytest.raises(InvalidInput, match="not the store"):
        ServerService(collection.server.checked("server"))


def test_stores_and_tokens_are_for_their_owner_alone(tmp_path):
    collection = Collection.of(tmp_path, described("local"), sealed=False)
    service = ServerService(collection.server.checked("server"))
    taken(service, reports_of(collection.round, 2))
    files = list((tmp_path / "server").iterdir())
    assert len(files) >= 2
    assert all(file.stat().st_mode & 0o077 == 0 for file in [*files, tmp_path / "server"])
    service.store.close()


def test_a_service_that_was_killed_while_it_made_its_files_makes_them_again(tmp_path):
    collection = Collection.of(tmp_path, described("local"), sealed=False)
    (tmp_path / "server").mkdir()
    for name in ("server.db", "server.token"):
        (tmp_path / "server" / name).touch()
    service = ServerService(collection.server.checked("server"))
    assert taken(service, reports_of(collection.round, 1)) == [TAKEN]
    assert service.is_operator(token_of(tmp_path / "server", "server"))
    service.store.close()


def test_a_batch_of_more_people_than_planned_or_of_another_round_is_refused_whole(tmp_path):
    collection = Collection.of(tmp_path, described("single"))
    service = ServerService(collection.server.checked("server"))
    reports = reports_of(collection.round, N + 1)
    for batch, said in ((reports, "more messages than users"), ([b"x"], "too short")):
        assert service._take_part("batch", b"".join(parts_of(batch))) == (400, said)
        assert service.users == service.store.users(1) == 0
    service.store.close()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_set_up(kind, tmp_path):
    collection = Collection.of(tmp_path, described(kind))
    assert collection.server.checked("server").keys == (KEY,)
