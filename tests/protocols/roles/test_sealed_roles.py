"""Sealed reports: a shuffler mixes what it cannot read, and a server opens what was mixed."""

from __future__ import annotations

import random
import stat
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import muhat as mh
from muhat import _cbor, protocols
from muhat.protocols import DeviceAccount, SealedProtocol, ServerKey, Signer

PROMISE = mh.ApproxDP(epsilon=1.0, delta=1e-6)
N = 20
BALL = mh.Ball(1.0, dim=2)
KINDS = ("fragments", "single", "local", "joint")
KEY = ServerKey(bytes(range(32)), "2999-01-01")
OTHER = ServerKey(bytes(range(1, 33)), "2999-01-01")
SIGNER = Signer(bytes(range(2, 34)))


@cache
def plain(kind="fragments") -> protocols.Protocol:
    asked = {"n": N, "privacy": PROMISE, "minimum": 15}
    if kind == "local":
        return protocols.local_mean(domain=BALL, **asked)
    if kind == "joint":
        asked |= {"n": 800, "honest": 15}
        return protocols.shuffle_mean(domain=mh.Reals(dim=1, magnitude=10.0), **asked)
    most = 60 if kind == "single" else None
    return protocols.shuffle_mean(domain=BALL, most_bytes=most, **asked)


def sealed(kind="fragments") -> SealedProtocol:
    return SealedProtocol(plain(kind), KEY.public)


def reports_of(round_, people=N):
    dim = round_.protocol.randomizer.record_dim
    return round_.crowd().randomize_many(np.full((people, dim), 0.3))


@pytest.fixture(scope="module")
def reports():
    return {kind: reports_of(sealed(kind), 2 if kind == "joint" else N) for kind in KINDS}


@pytest.mark.parametrize("kind", ["fragments", "single"])
def test_what_is_sealed_mixed_and_opened_is_what_people_sent(kind, reports):
    round_ = sealed(kind)
    shuffler, server = round_.shuffler(), round_.server(KEY)
    assert shuffler.take(reports[kind]).accepted == N
    mixed = shuffler.mixed()
    assert server.take(mixed).accepted == N
    # Opened without a shuffler in between, the same messages give the same result.
    straight = round_.server(KEY)
    straight.take(reports[kind])
    release = server.finish()
    np.testing.assert_array_equal(release.value, straight.finish().value)
    assert release.n == N
    assert not set(mixed) & set(reports[kind])


def test_several_sums_of_one_round_are_sealed_alike(reports):
    round_ = sealed("joint")
    assert len({part.noise.modulus_bits for part in round_.protocol.randomizer.parts}) > 1
    server = round_.server(KEY)
    server.take(reports["joint"])
    opened = server._opened()
    assert round_.protocol.randomizer.valid(opened.payloads).all()
    assert len({len(report) for report in reports["joint"]}) == 1


def test_in_the_local_model_reports_go_to_the_server_as_they_are(reports):
    server = sealed("local").server(KEY)
    assert server.take(reports["local"]).accepted == N
    assert server.finish().n == N


@pytest.mark.parametrize("kind", KINDS)
def test_sealing_keeps_the_message_bit_for_bit(kind):
    round_ = sealed(kind)
    protocol = round_.protocol
    message = protocol.client(account=False).randomize([0.3] * protocol.randomizer.record_dim)
    payload = np.frombuffer(round_.reports.seal(message), np.uint8)[None, 28:]
    pieces, whole = round_.reports.opened(payload, KEY)
    assert whole == [True]
    _, payloads = protocol.randomizer.joined(pieces)
    assert payloads.tobytes() == message[28:]


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_says_nothing_by_its_length_or_its_label(kind, reports):
    assert {len(report) for report in reports[kind]} == {sealed(kind).bytes_per_user}
    assert len({report[:12] for report in reports[kind]}) == 1
    # Numbers and encapsulated keys are all different, also for the same record.
    assert len({report[12:28] for report in reports[kind]}) == len(reports[kind])
    round_ = sealed(kind)
    pieces = round_.reports.piece_bytes
    begins = [r[at : at + 32] for r in reports[kind] for at in range(28, len(r), pieces)]
    assert len(set(begins)) == len(begins)


def test_mixed_pieces_stay_in_their_group_and_in_no_report(reports):
    round_ = sealed()
    shuffler = round_.shuffler()
    shuffler.take(reports["fragments"])
    mixed = shuffler.mixed()
    size, groups = round_.reports.piece_bytes, round_.reports.groups

    def by_group(messages):
        found = {}
        for message in messages:
            for place, group in enumerate(groups):
                start = 28 + place * size
                found.setdefault(group, []).append(message[start : start + size])
        return {group: sorted(pieces) for group, pieces in found.items()}

    assert by_group(mixed) == by_group(reports["fragments"])
    assert not {m[28:] for m in mixed} & {m[28:] for m in reports["fragments"]}


def test_only_the_key_opens(reports):
    with pytest.raises(mh.InvalidInput, match="not to this"):
        sealed().server(OTHER)
    payload = np.frombuffer(reports["fragments"][0], np.uint8)[None, 28:]
    _, whole = sealed().reports.opened(payload, OTHER)
    assert whole == [False]


def test_a_shuffler_takes_reports_of_one_key_only(reports):
    """A server that gives a person a key of their own does not see them in the crowd."""
    marked = SealedProtocol(plain(), OTHER.public)
    shuffler = sealed().shuffler()
    taken = shuffler.take([*reports["fragments"][:3], *reports_of(marked, 1)])
    assert taken.accepted == 3
    assert taken.rejected == {"another protocol": 1}


def test_plain_messages_are_no_reports_and_reports_no_messages(reports):
    messages = plain().crowd().randomize_many(np.zeros((2, 2)))
    assert sealed().shuffler().take(messages).accepted == 0
    assert plain().shuffler().take(reports["fragments"]).accepted == 0
    assert plain().server().take(reports["fragments"]).accepted == 0


def test_a_key_that_has_ended_seals_nothing_and_its_shuffler_is_closed(reports):
    ended = ServerKey(KEY.secret, "2020-01-01")
    late = SealedProtocol(plain(), ended.public)
    for attempt in (late.client, late.crowd, lambda: late.shuffler().take(reports["fragments"])):
        with pytest.raises(mh.InvalidInput, match="ended at 2020-01-01"):
            attempt()
    # What was sealed before can still be opened.
    server = late.server(ended)
    server.take(reports["fragments"])
    assert server.finish().n == N


def test_copies_of_pieces_are_seen_without_opening_them(reports):
    round_, sent = sealed(), reports["fragments"]
    renumbered = sent[0][:12] + bytes(16) + sent[0][28:]
    size = round_.reports.piece_bytes
    borrowed = sent[1][:12] + bytes([1] * 16) + sent[1][28 : 28 + size] + sent[2][28 + size :]
    shuffler = round_.shuffler()
    assert shuffler.take([sent[0], sent[0], renumbered, *sent[3:], borrowed]).rejected == {
        "replayed": 1
    }
    assert len(shuffler.mixed()) == N - 1  # 0, 3 … 19 and the borrowed one, but not both of 0
    server = round_.server(KEY)
    server.take([*sent[3:], renumbered, sent[0]])
    with pytest.raises(mh.InvalidInput, match="1 mixed reports cannot be opened or occur twice"):
        server.finish()


def test_a_fragment_that_was_changed_or_moved_is_not_opened(reports):
    round_, sent = sealed(), reports["fragments"]
    size, groups = round_.reports.piece_bytes, round_.reports.groups
    other = groups.index(1)
    first, second = sent[0][28 : 28 + size], sent[0][28 + other * size : 28 + (other + 1) * size]
    swapped = bytearray(sent[0])
    swapped[28 : 28 + size], swapped[28 + other * size : 28 + (other + 1) * size] = second, first
    flipped = bytearray(sent[0])
    flipped[-1] ^= 1
    for wrong in (swapped, flipped):
        server = round_.server(KEY)
        server.take([bytes(wrong), *sent[1:]])
        with pytest.raises(mh.InvalidInput, match="nothing is released"):
            server.finish()


def test_a_single_message_that_was_changed_is_left_out(reports):
    round_, sent = sealed("single"), reports["single"]
    flipped = sent[0][:-1] + bytes([sent[0][-1] ^ 1])
    server = round_.server(KEY)
    server.take([flipped, *sent[1:]])
    assert server.finish().n == N - 1
    # The same message sealed again, by a device without an account, is one message.
    message = plain("single").client(account=False).randomize([0.1, 0.1])
    server = round_.server(KEY)
    server.take([round_.reports.seal(message), round_.reports.seal(message), *sent[2:]])
    assert server.finish().n == N - 1


def test_a_spoilt_copy_does_not_push_the_honest_report_aside(reports):
    round_, sent = sealed("single"), reports["single"][1:]
    # The least number there is: of two that are the same it would be the one that stays.
    spoilt = sent[0][:12] + bytes(16) + sent[0][28:-1] + bytes([sent[0][-1] ^ 1])
    shuffler, server = round_.shuffler(), round_.server(KEY)
    shuffler.take([spoilt, *sent])
    server.take(shuffler.mixed())
    assert server.finish().n == N - 1


def test_below_the_minimum_nothing_is_mixed_or_opened(reports):
    for kind in ("fragments", "single"):
        shuffler, server = sealed(kind).shuffler(), sealed(kind).server(KEY)
        shuffler.take(reports[kind][:14])
        with pytest.raises(mh.InvalidInput, match="14 of 20"):
            shuffler.mixed()
        server.take(reports[kind][:14])
        with pytest.raises(mh.InvalidInput, match="14 of 20"):
            server.finish()


def test_states_are_saved_sealed_and_belong_to_one_key(reports):
    round_ = sealed()
    shuffler, server = round_.shuffler(), round_.server(KEY)
    shuffler.take(reports["fragments"])
    server.take(reports["fragments"])
    assert round_.shuffler().restore(shuffler.state()).users == N
    assert round_.server(KEY, server.state()).finish().n == N
    marked = SealedProtocol(round_.protocol, OTHER.public)
    with pytest.raises(mh.InvalidInput, match="another protocol"):
        marked.shuffler().restore(shuffler.state())
    with pytest.raises(mh.InvalidInput, match="not that of a SealedServer"):
        round_.server(KEY, shuffler.state())
    with pytest.raises(mh.InvalidInput, match="not that of a Server"):
        round_.protocol.server(server.state())


def test_fuzzed_reports_never_stop_anybody(reports):
    draw = random.Random(7)
    fuzzed = []
    for report in reports["single"] * 25:
        wrong = bytearray(report)
        for _ in range(draw.randint(1, 3)):
            wrong[draw.randrange(len(wrong))] ^= 1 << draw.randrange(8)
        fuzzed.append(bytes(wrong)[: draw.choice([len(wrong), draw.randrange(len(wrong))])])
    round_ = replace(sealed("single"), protocol=replace(plain("single"), users=1000))
    own = reports_of(round_)
    relabelled = [own[0][:12] + message[12:] for message in fuzzed]
    server = round_.server(KEY)
    server.take([*own, *relabelled, *fuzzed])
    assert server.finish().n == N


def test_a_device_sends_the_same_sealed_bytes_for_good(tmp_path):
    account = DeviceAccount.create(tmp_path / "device.db", budget=PROMISE)
    round_ = sealed()
    first = round_.client(account=account).randomize([0.1, 0.2])
    again = SealedProtocol(round_.protocol, OTHER.public)  # another key, the same round
    assert round_.client(account=account).randomize([0.5, 0.2]) == first
    assert again.client(account=account).randomize([0.1, 0.2]) == first
    assert round_.shuffler().take(first).accepted == 1


def test_a_signed_description_is_read_by_whoever_pins_its_signer():
    round_ = sealed()
    text = SIGNER.signed(round_.protocol, KEY.public)
    assert SealedProtocol.from_signed(text, signer=SIGNER.public) == round_
    stranger = Signer(bytes(range(3, 35)))
    with pytest.raises(mh.InvalidInput, match="was not signed by"):
        SealedProtocol.from_signed(text, signer=stranger.public)
    for wrong in ("", "00", "zz" * 32, 7, None):
        with pytest.raises(mh.InvalidInput, match="signer must be"):
            SealedProtocol.from_signed(text, signer=wrong)


def test_nothing_of_a_signed_description_can_be_changed():
    text = SIGNER.signed(plain(), KEY.public)
    fields = _cbor.read(text)
    other = plain("single").to_cbor()
    changes = [
        {"description": other},
        {"description": replace(plain(), users=21).to_cbor()},
        {"description": plain().to_json()},
        {"key": OTHER.public.to_dict()},
        {"key": {**fields["key"], "expires": None}},
        {"key": {**fields["key"], "more": 1}},
        {"signature": bytes(64)},
        {"signature": bytes(1)},
        {"signature": fields["signature"].hex()},
        {"more": 1},
        {"signature": None},
        {"schema": "muhat.signed/3"},
        {"description": 7},
    ]
    for change in changes:
        with pytest.raises(mh.InvalidInput):
            SealedProtocol.from_signed(_cbor.written({**fields, **change}), signer=SIGNER.public)
    for other in (b"", b"{}", b"\xa0", b"\x80", plain().to_cbor(), text + b"\0", text[:-1]):
        with pytest.raises(mh.InvalidInput):
            SealedProtocol.from_signed(other, signer=SIGNER.public)


def test_another_key_for_the_same_round_is_the_same_task():
    first, second = sealed(), SealedProtocol(plain(), OTHER.public)
    assert first.protocol.task == second.protocol.task
    assert first.key.id != second.key.id
    assert first.reports.label != second.reports.label


def test_keys_are_files_for_their_owner_alone(tmp_path):
    path, signer = tmp_path / "server.key", tmp_path / "signer.key"
    made, vouching = ServerKey.create(path, expires="2030-01-01"), Signer.create(signer)
    assert ServerKey.open(path) == made
    assert made.public.expires == "2030-01-01T00:00:00Z"
    assert Signer.open(signer).public == vouching.public
    for each in (path, signer):
        assert stat.S_IMODE(each.stat().st_mode) == 0o600
    assert made.secret.hex() not in repr(made)
    assert vouching.secret.hex() not in repr(vouching)
    for attempt in (
        lambda: ServerKey.create(path),
        lambda: Signer.create(path),
        lambda: Signer.open(path),
        lambda: ServerKey.open(signer),
        lambda: ServerKey.open(tmp_path / "none.key"),
        lambda: ServerKey.create(tmp_path / "none" / "none.key"),
        lambda: ServerKey.create(tmp_path / "bad.key", expires="soon"),
    ):
        with pytest.raises(mh.InvalidInput):
            attempt()
    assert not (tmp_path / "bad.key").exists()


def test_without_the_library_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.hpke", None)
    for attempt in (ServerKey.new, Signer.new, lambda: KEY.public.seal(b"", b"")):
        with pytest.raises(mh.InvalidInput, match=r"pip install 'muhat\[protocol\]'"):
            attempt()


@pytest.mark.parametrize("kind", ["fragments", "single"])
def test_roles_without_any_report_say_that_there_are_too_few(kind):
    round_ = sealed(kind)
    with pytest.raises(mh.InvalidInput, match="0 of 20 planned users"):
        round_.shuffler().mixed()
    with pytest.raises(mh.InvalidInput, match="0 of 20 planned users"):
        round_.server(KEY).finish()


def test_what_was_taken_before_is_resumed_though_the_key_has_ended(reports):
    ended = SealedProtocol(plain("single"), replace(KEY.public, expires="2020-01-01"))
    shuffler = ended.shuffler()
    with pytest.raises(mh.InvalidInput, match="ended"):
        shuffler.take(reports["single"])
    assert shuffler.resume(reports["single"]).accepted == N
    assert len(shuffler.mixed()) == N


def test_pieces_are_marked_each_by_itself(reports):
    for kind in KINDS:
        round_, (one, two, *_) = sealed(kind), reports[kind]
        marks = round_.shuffler().marks(one)
        assert len(marks) == len(round_.reports.groups) == len(set(marks))
        assert not set(marks) & set(round_.server(KEY).marks(two))
        assert plain(kind).server().marks(one) == []
