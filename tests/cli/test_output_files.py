"""What `muhat protocol` writes: never what it reads, never where a link leads, nothing to show."""

from __future__ import annotations

import os
import stat

import pytest
from protocol_command import run

pytestmark = pytest.mark.usefixtures("own_device")

MIXED = ("--bounds", "age=16:90", "--epsilon", "1", "--delta", "1e-6", "--model", "shuffle")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("age\n" + "41\n" * 60)
    return path


@pytest.fixture
def first(tmp_path):
    path = tmp_path / "round1.json"
    run("new", *MIXED, "--n", 60, "--out", path)
    return path


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_no_command_writes_what_it_reads_under_whichever_name(tmp_path, table, first):
    other, sent = tmp_path / "other.csv", tmp_path / "sent.bin"
    other.hardlink_to(table)
    run("client", first, table, "--out", sent)
    wrong = [
        ("client", first, table, "--out", table),
        ("client", first, table, "--out", tmp_path / "." / "people.csv"),
        ("client", first, table, "--out", other),
        ("client", first, table, "--out", first),
        ("client", first, "--record", "3", "--answered", first, "--out", first),
        ("shuffle", first, sent, "--out", sent),
        ("shuffle", first, sent, "--out", first),
        ("server", first, sent, "--next", first),
        ("server", first, sent, "--next", sent),
    ]
    before = {path: path.read_bytes() for path in (table, first, sent)}
    for arguments in wrong:
        assert "one of the files that are read" in run(*arguments, code=2).stderr
    assert before == {path: path.read_bytes() for path in before}


def test_messages_that_nobody_has_mixed_are_for_their_owner_alone(tmp_path, table, first):
    sent, mixed = tmp_path / "sent.bin", tmp_path / "mixed.bin"
    sent.write_bytes(b"old")
    sent.chmod(0o644)
    for turn in range(2):
        claims = tmp_path / f"claims{turn}"
        claims.mkdir()
        run("client", first, table, "--out", sent)
        assert mode(sent) == 0o600
        run("shuffle", first, sent, "--claims", claims, "--out", mixed)
        assert mode(mixed) == 0o600
        sent.unlink()
    assert mode(first) == 0o666 & ~_umask()


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_links_to_files_are_not_followed(tmp_path, table, first):
    victim, link, dangling = (tmp_path / name for name in ("victim", "link", "dangling"))
    victim.write_text("precious")
    link.symlink_to(victim)
    dangling.symlink_to(tmp_path / "nothing")
    for path in (link, dangling):
        assert "is a link" in run("new", *MIXED, "--n", 60, "--out", path, code=2).stderr
        assert "is a link" in run("client", first, table, "--out", path, code=2).stderr
    assert victim.read_text() == "precious"
    assert mode(victim) != 0o600
    assert not (tmp_path / "nothing").exists()


def test_a_folder_is_no_file(tmp_path, table, first):
    assert "cannot be written" in run("client", first, table, "--out", tmp_path, code=2).stderr


def test_links_to_pipes_and_devices_are_written_as_usual(tmp_path, table, first):
    void = tmp_path / "void"
    void.symlink_to("/dev/null")
    assert "60 messages made" in run("client", first, table, "--out", void).stderr


def test_who_stops_halfway_leaves_what_was_there_and_nothing_beside_it(
    tmp_path, table, first, monkeypatch
):
    kept = tmp_path / "kept.bin"
    kept.write_bytes(b"precious")
    before = set(os.listdir(tmp_path))

    def stops(stream, messages):
        stream.write(next(messages))
        raise KeyboardInterrupt

    monkeypatch.setattr("muhat.protocols.roles.messages.write_messages", stops)
    with pytest.raises(AssertionError):  # the command was interrupted
        run("client", first, table, "--out", kept)
    assert kept.read_bytes() == b"precious"
    assert set(os.listdir(tmp_path)) == before


def test_a_round_is_mixed_once_by_whichever_process(tmp_path, table, first):
    sent, mixed, again = (tmp_path / name for name in ("sent.bin", "mixed.bin", "again.bin"))
    run("client", first, table, "--out", sent)
    run("shuffle", first, sent, "--out", mixed)
    handed_on = mixed.read_bytes()
    for out in (mixed, again, "-"):
        refused = run("shuffle", first, sent, "--out", out, code=2)
        assert "mixed and handed on already" in refused.stderr
        assert refused.stdout == ""
    assert mixed.read_bytes() == handed_on
    assert not again.exists()


def test_what_could_not_be_mixed_may_be_mixed_later(tmp_path, table, first):
    sent, mixed = tmp_path / "sent.bin", tmp_path / "mixed.bin"
    run("client", first, table, "--out", sent)
    run("shuffle", first, "--out", mixed, stdin=sent.read_bytes()[:500], code=2)  # too few
    run("shuffle", first, sent, "--out", tmp_path / "nowhere" / "mixed.bin", code=2)
    run("shuffle", first, sent, "--out", mixed)


def test_a_server_closes_a_round_with_one_set_of_messages(tmp_path, table):
    local = tmp_path / "local.json"
    run("new", "--bounds", "age=16:90", "--epsilon", "1", "--n", 60, "--out", local)
    sent, other = tmp_path / "sent.bin", tmp_path / "other.bin"
    run("client", local, table, "--out", sent)
    run("client", local, table, "--out", other)
    first = run("server", local, sent, "--json").stdout
    assert run("server", local, sent, "--json").stdout == first
    refused = run("server", local, other, "--json", code=2)
    assert "closed already, with other messages" in refused.stderr
    assert refused.stdout == ""
