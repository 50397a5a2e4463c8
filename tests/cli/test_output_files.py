"""What `muhat protocol` writes: never what it reads, never where a link leads, nothing to show."""

from __future__ import annotations

import os
import stat

import pytest
from protocol_command import run

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
    for _ in range(2):
        run("client", first, table, "--out", sent)
        assert mode(sent) == 0o600
        run("shuffle", first, sent, "--out", mixed)
        sent.unlink()
    assert mode(mixed) == mode(first) == 0o666 & ~_umask()


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


def test_links_to_pipes_and_devices_are_written_as_usual(tmp_path, table, first):
    void = tmp_path / "void"
    void.symlink_to("/dev/null")
    assert "60 messages made" in run("client", first, table, "--out", void).stderr
