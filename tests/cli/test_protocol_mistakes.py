"""`muhat protocol` with wrong files, terminals and canaries: one sentence, and nothing told."""

from __future__ import annotations

import pytest
from protocol_command import run

AGE = ("--bounds", "age=16:90")
EPSILON = ("--epsilon", "1")
MIXED = (*EPSILON, "--delta", "1e-6", "--model", "shuffle")
pytestmark = pytest.mark.usefixtures("own_device")

CANARY = "4198765431"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("age,pay\n" + "41,1\n" * 20)
    return path


@pytest.fixture
def first(tmp_path):
    path = tmp_path / "round1.json"
    run("new", *AGE, *EPSILON, "--n", 20, "--out", path)
    return path


def test_a_description_that_cannot_be_read_is_named(tmp_path, first, table):
    mistakes = ((table, "not deterministic CBOR"), (tmp_path / "none.json", "cannot be read"))
    for wrong, said in mistakes:
        for arguments in (("show", wrong), ("client", first, "--record", 3, "--answered", wrong)):
            done = run(*arguments, code=2)
            assert done.stderr.startswith(f"Error: {wrong}")
            assert said in done.stderr


def test_messages_of_another_round_are_called_so_whatever_their_length(tmp_path, first, table):
    other, sent = tmp_path / "other.json", tmp_path / "sent.bin"
    run("new", *AGE, *MIXED, "--n", 20, "--out", other)
    made = run("client", other, table, "--columns", "age", "--out", sent)
    assert "20 messages made" in made.stderr
    done = run("server", first, sent, code=2)
    assert "0 taken, rejected: 20 another protocol" in done.stderr
    assert "0 of 20 planned users" in done.stderr


def test_a_promise_that_the_shuffle_model_does_not_keep_is_explained_in_words_of_the_shell():
    done = run("new", *AGE, *EPSILON, "--model", "shuffle", "--n", 20, code=2)
    assert "Use --epsilon with --delta, or the local model." in done.stderr


def test_more_people_than_there_can_be_are_refused_by_their_name():
    for model in (EPSILON, MIXED):
        done = run("new", *AGE, *model, "--n", 10**14, code=2)
        assert "n must be at most 4294967296" in done.stderr


def test_a_table_without_rows_is_called_so(tmp_path, first):
    empty, sent = tmp_path / "empty.csv", tmp_path / "sent.bin"
    empty.write_text("age\n")
    assert "no rows" in run("simulate", empty, *AGE, *EPSILON, code=2).stderr
    assert "0 messages made" in run("client", first, empty, "--out", sent).stderr
    assert "1 number, one a coordinate" in run("client", first, "--record", "1,2", code=2).stderr


def test_bytes_are_not_written_to_a_terminal_nor_waited_for_from_one(first, monkeypatch):
    class Terminal:
        def isatty(self):
            return True

    class System:
        stdin = stdout = Terminal()

    monkeypatch.setattr("muhat.cli.protocol_files.sys", System)
    done = run("client", first, "--record", 41, code=2)
    assert done.stderr == "Error: messages are bytes, not text: give --out FILE, or a pipe.\n"
    assert "pipe them in" in run("server", first, code=2).stderr


def test_no_program_shows_a_record(tmp_path, first):
    table, sent = tmp_path / "people.csv", tmp_path / "sent.bin"
    table.write_text(f"age,name\n{CANARY},x\nx{CANARY},{CANARY}\n" + "41,y\n" * 18)
    outcomes = [
        run("client", first, "--record", CANARY, "--out", sent),
        run("client", first, "--record", f"{CANARY},1", code=2),
        run("client", first, "--record", f"{CANARY}x", code=2),
        run("client", first, "--record", "-", stdin=f"{CANARY};\n", code=2),
        run("client", first, table, code=2, stdin=CANARY),
        run("client", first, table, "--columns", "age", "--out", sent),
        run("server", first, sent),
        run("server", first, table, code=2),
        run("simulate", table, *AGE, *EPSILON),
    ]
    assert not any("98765" in done.output for done in outcomes)
    assert b"98765" not in sent.read_bytes()
