"""`muhat protocol`: descriptions, devices and servers as separate programs."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from click.testing import CliRunner

import muhat as mh
from muhat.cli import main

pytestmark = pytest.mark.usefixtures("own_device")

AGE = ("--bounds", "age=16:90")
EPSILON = ("--epsilon", "1")


@pytest.fixture
def people(tmp_path):
    rows = np.random.default_rng(3).uniform(20, 60, 400)
    path = tmp_path / "people.csv"
    path.write_text("age\n" + "\n".join(f"{age:.3f}" for age in rows) + "\n")
    return path


def run(*arguments, code=0, stdin=None):
    result = CliRunner().invoke(main, ["protocol", *map(str, arguments)], input=stdin)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    if code:
        assert result.stdout == ""
    return result


def new(tmp_path, *arguments, n=400):
    path = tmp_path / "round1.json"
    run("new", *arguments, "--n", n, "--out", path)
    return path


def test_clients_and_server_are_separate_programs_over_files(tmp_path, people):
    first = new(tmp_path, *AGE, *EPSILON)
    messages = tmp_path / "messages.bin"
    run("client", first, people, "--out", messages)
    done = run("server", first, messages, "--json")
    assert "400 taken" in done.stderr
    release = mh.Release.from_json(done.stdout)
    assert release.columns == ("age",)
    assert release.n == 400
    assert release.mechanism == "local-interval"


def test_clients_and_server_speak_through_a_pipe(tmp_path, people):
    first = new(tmp_path, *AGE, "--rho", "1")
    stream = run("client", first, people).stdout_bytes
    assert json.loads(run("server", first, "--json", stdin=stream).stdout)["n"] == 400


def test_devices_of_single_people_send_single_messages(tmp_path):
    first = new(tmp_path, "--ball", "1", "--dim", "2", *EPSILON, n=3)
    files = []
    for index, record in enumerate(("0.1,0.2", ",0.5", "1e300,-3")):
        files.append(tmp_path / f"{index}.bin")
        device = ("--account", tmp_path / f"{index}.db")
        run("account", "create", device[1], *EPSILON)
        run("client", first, f"--record={record}", *device, "--out", files[-1])
    assert "3 planned" not in run("server", first, *files).output


def test_a_description_is_shown_in_words(tmp_path):
    first = new(tmp_path, *AGE, *EPSILON)
    text = run("show", first).stdout
    assert "Round 1, local model" in text
    assert "nobody" in text


def test_a_simulation_runs_every_row_as_a_person(people):
    done = run("simulate", people, *AGE, *EPSILON)
    assert "Private mean" in done.stdout
    assert "Round 1, local model" in done.stderr
    quiet = run("simulate", people, *AGE, *EPSILON, "--quiet", "--json")
    assert "Round" not in quiet.stderr
    assert mh.Release.from_json(quiet.stdout).n == 400


def test_a_damaged_file_of_messages_costs_its_messages_only(tmp_path, people):
    first = new(tmp_path, *AGE, *EPSILON)
    messages = tmp_path / "messages.bin"
    run("client", first, people, "--out", messages)
    whole = messages.read_bytes()
    messages.write_bytes(whole[:-10])
    done = run("server", first, messages)
    assert "399 taken, rejected: 1 too short" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "nowhere.json"),
        ("show", "/"),
        ("new", *AGE, "--n", "100"),
        ("new", *EPSILON, "--n", "100"),
        ("new", *AGE, *EPSILON, "--n", "0"),
        ("new", *AGE, *EPSILON, "--n", "10", "--minimum", "20"),
        ("new", *AGE, *EPSILON, "--n", "10", "--out", "/nowhere/at/all.json"),
        ("simulate", "nowhere.csv", *AGE, *EPSILON),
    ],
)
def test_mistakes_are_explained_before_anything_happens(arguments):
    assert run(*arguments, code=2).stderr.startswith("Error: ")


def test_wrong_records_and_files_are_refused_without_quoting_them(tmp_path):
    first = new(tmp_path, *AGE, *EPSILON)
    for arguments in (("--record", "secret77"), ("--record", "1,2"), (), (first, "--record", "3")):
        done = run("client", first, *arguments, code=2)
        assert "secret77" not in done.output
    empty = tmp_path / "empty.bin"
    empty.write_bytes(b"")
    assert "0 of 400 planned users" in run("server", first, empty, code=2).stderr
    assert "cannot be read" in run("server", first, tmp_path / "none.bin", code=2).stderr
    assert "not deterministic CBOR" in run("show", empty, code=2).stderr


def test_a_record_that_is_typed_into_a_pipe_is_not_on_the_command_line(tmp_path):
    first = new(tmp_path, *AGE, *EPSILON, n=1)
    message = run("client", first, "--record", "-", stdin="41.5\n").stdout_bytes
    assert "1 taken" in run("server", first, stdin=message).stderr
    done = run("client", first, "--record", "-", stdin="secret77\n", code=2)
    assert "secret77" not in done.output


def test_a_device_says_which_rounds_it_has_answered(tmp_path):
    first = new(tmp_path, *AGE, *EPSILON, n=1)
    record = ("--record", "41.5")
    done = run("client", first, *record, "--answered", first, code=2)
    assert "one round and no other" in done.stderr
    other = tmp_path / "other.json"
    run("new", "--bounds", "age=0:9", *EPSILON, "--n", "5", "--out", other)
    assert "same protocol" in run("client", first, *record, "--answered", other, code=2).stderr


def test_a_mistake_does_not_cost_the_file_that_was_there(tmp_path, people):
    first = new(tmp_path, *AGE, *EPSILON)
    kept = tmp_path / "kept.bin"
    kept.write_bytes(b"precious")
    run("client", first, people, "--columns", "wage", "--out", kept, code=2)
    run("client", first, tmp_path / "nowhere.csv", "--out", kept, code=2)
    run("shuffle", first, tmp_path / "nowhere.bin", "--out", kept, code=2)
    assert kept.read_bytes() == b"precious"


def test_a_full_disk_and_a_failing_one_are_one_sentence(tmp_path, people, monkeypatch):
    def fails(*_):
        raise OSError(28, "No space left on device")

    first, messages = new(tmp_path, *AGE, *EPSILON), tmp_path / "messages.bin"
    run("client", first, people, "--out", messages)
    monkeypatch.setattr("muhat.protocols.roles.messages.write_messages", fails)
    monkeypatch.setattr("muhat.protocols.roles.messages.read_messages", fails)
    written = run("client", first, people, "--out", messages, code=2).stderr
    assert written == f"Error: {messages} cannot be written.\n"
    assert "standard output cannot be written" in run("client", first, people, code=2).stderr
    assert "standard input cannot be read" in run("server", first, code=2, stdin=b"").stderr


def test_a_reader_that_leaves_early_is_no_mistake(tmp_path, people, monkeypatch):
    def leaves(*_):
        raise BrokenPipeError(32, "Broken pipe")

    first = new(tmp_path, *AGE, *EPSILON)
    monkeypatch.setattr("muhat.protocols.roles.messages.write_messages", leaves)
    assert run("client", first, people, code=1).stderr == ""


def test_a_description_without_an_end_is_not_read_to_the_end(tmp_path, monkeypatch):
    first = new(tmp_path, *AGE, *EPSILON)
    monkeypatch.setattr("muhat.protocols.roles.messages.LONGEST", 50)
    monkeypatch.setattr("muhat.protocols.roles.protocol.LONGEST", 50)
    assert "at most 50 bytes long; got 51" in run("show", first, code=2).stderr


def test_a_description_of_another_version_is_named(tmp_path):
    first = new(tmp_path, *AGE, *EPSILON)
    first.write_text(first.read_text().replace("muhat.protocol/2", "muhat.protocol/9"))
    said = "the text has schema 'muhat.protocol/9'; muhat.protocol/2 is read"
    assert said in run("show", first, code=2).stderr


def test_messages_of_another_round_or_of_any_length_are_counted_and_left_out(tmp_path, people):
    first, messages = new(tmp_path, *AGE, *EPSILON), tmp_path / "messages.bin"
    run("client", first, people, "--out", messages)
    with messages.open("ab") as stream:
        for length in (0, 5, 1000, 1 << 22):
            stream.write(struct.pack("<I", length) + bytes(length))
    done = run("server", first, messages)
    assert "400 taken, rejected: 2 too short, 2 oversized" in done.stderr


def test_what_was_collected_in_several_places_goes_together(tmp_path, people):
    messages = tmp_path / "messages.bin"
    description = new(tmp_path, *AGE, *EPSILON)
    run("client", description, people, "--columns", "age", "--out", messages)
    whole = messages.read_bytes()
    size = 4 + struct.unpack_from("<I", whole)[0]
    middle = len(whole) // size // 2 * size
    parts = [tmp_path / name for name in ("one.bin", "two.bin")]
    parts[0].write_bytes(whole[: middle + size])  # one message is in both
    parts[1].write_bytes(whole[middle:])
    states = []
    for number, part in enumerate(parts):
        states += ["--state", tmp_path / f"{number}.state"]
        run("collect", description, part, "--out", states[-1])
    assert states[-1].stat().st_mode & 0o777 == 0o600
    both = tmp_path / "both.state"
    told = run("collect", description, *states, "--out", both)
    assert f"taken from {states[-1]}" in told.stderr
    expected = run("server", description, messages, "--json").stdout
    # The same set of messages, so that the round may be closed again.
    for taken in (states, ["--state", both]):
        found = run("server", description, *taken, "--json").stdout
        assert json.loads(found)["value"] == json.loads(expected)["value"]
    damaged = tmp_path / "damaged.state"
    damaged.write_bytes(both.read_bytes()[:-1])
    refused = run("collect", description, "--state", damaged, "--out", tmp_path / "x", code=2)
    assert "damaged.state: the state is damaged" in refused.output
    assert not (tmp_path / "x").exists()
    other = tmp_path / "other.json"
    run("new", *AGE, *EPSILON, "--n", 400, "--survey", "another", "--out", other)
    refused = run("server", other, "--state", both, code=2)
    assert "belongs to another protocol or round" in refused.output


def test_the_shuffler_as_a_program(tmp_path, people):
    first = tmp_path / "round1.json"
    run(
        "new", *AGE, *EPSILON, "--delta", "1e-6", "--model", "shuffle", "--n", "400", "--out", first
    )
    sent = run("client", first, people).stdout_bytes
    mixed = run("shuffle", first, stdin=sent).stdout_bytes
    assert len(mixed) == len(sent)
    assert json.loads(run("server", first, "--json", stdin=mixed).stdout)["n"] == 400
    few = run("shuffle", first, stdin=sent[: len(sent) // 2], code=2)
    assert "needed to hide among" in few.stderr
