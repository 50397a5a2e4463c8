"""Every command that reads files: delimiters, standard input, compressed files, JSON lines."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from muhat.cli import main
from muhat.data.files import standard_input

ROWS = 500
LINES = [f'"a;\n{place}";{place % 10}' for place in range(ROWS)]
SEMICOLONS = ("who;x\n" + "\n".join(LINES) + "\n").encode()
COMMAS = SEMICOLONS.replace(b'";', b'",').replace(b"who;", b"who,")
OBJECTS = "".join(json.dumps({"x": place % 10}) + "\n" for place in range(ROWS)).encode()
PROMISE = ("--rho", "100")

COMMANDS = {
    "mean": ("mean", "FILE", "--bounds", "x=0:10", *PROMISE, "--json"),
    "quantile": (
        *("quantile", "FILE", "--columns", "x", "--lower", "0", "--upper", "10"),
        *("--q", "0.5", "--resolution", "1", *PROMISE, "--json"),
    ),
    "queries": (
        *("queries", "FILE", "--histogram", "--columns", "x", "--bins", "x=0,5,10"),
        *(*PROMISE, "--json"),
    ),
    "check": ("check", "FILE", "--columns", "x", "--json"),
    "labels": ("check", "FILE", "--labels", "x", "--json"),
    "simulate": ("protocol", "simulate", "FILE", "--bounds", "x=0:10", "--epsilon", "8", "--quiet"),
}


def run(*arguments: object, stdin: bytes | None = None, code: int = 0) -> Any:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)
    assert result.exit_code == code, (result.output, result.exception)
    return result


def called(command: str, file: object, *more: object, **options: Any) -> Any:
    typed = [file if word == "FILE" else word for word in COMMANDS[command]]
    return run(*typed, *more, **options)


def check_answer(command: str, said: str) -> None:
    """What 500 rows from 0 to 9 must give."""
    if command == "mean":
        release = json.loads(said)
        assert release["n"] == ROWS
        assert abs(release["value"][0] - 4.5) < 0.1
    elif command == "quantile":
        assert 4 <= np.ravel(json.loads(said)["value"])[0] <= 5
    elif command == "queries":
        assert np.allclose(json.loads(said)["value"], 250, atol=10)
    elif command == "check":
        report = json.loads(said)
        assert (report["rows"], report["ragged"]) == (ROWS, 0)
        assert report["columns"][0]["maximum"] == 9
    elif command == "labels":
        assert sorted(json.loads(said)["x"]) == [str(digit) for digit in range(10)]
    else:
        assert "x" in said


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_a_delimiter_and_names_the_one_it_lacks(
    tmp_path: Path, command: str
) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(SEMICOLONS)
    said = called(command, path, code=2)
    assert "more semicolons than commas" in said.stderr
    assert "--delimiter ';'" in said.stderr
    check_answer(command, called(command, path, "--delimiter", ";").stdout)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_reads_standard_input(command: str) -> None:
    check_answer(command, called(command, "-", stdin=COMMAS).stdout)
    check_answer(command, called(command, "-", "--delimiter", ";", stdin=SEMICOLONS).stdout)


def parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": np.arange(ROWS) % 10}), sink)
    return sink.getvalue()


FORMS = {
    "csv": COMMAS,
    "csv.gz": gzip.compress(COMMAS),
    "csv.bz2": bz2.compress(COMMAS),
    "csv.zst": pa.Codec("zstd").compress(COMMAS, asbytes=True),
    "tsv": COMMAS.replace(b'",', b'"\t').replace(b"who,", b"who\t"),
    "jsonl": OBJECTS,
    "jsonl.gz": gzip.compress(OBJECTS),
    "parquet": parquet(),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read_from_a_file_and_from_standard_input(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"x.{form}"
    path.write_bytes(FORMS[form])
    check_answer("mean", called("mean", path).stdout)
    tabs = ("--delimiter", "tab") if form == "tsv" else ()
    check_answer("mean", called("mean", "-", *tabs, stdin=FORMS[form]).stdout)


def test_clients_read_the_same_files(tmp_path: Path) -> None:
    round_ = tmp_path / "round.json"
    planned = ("--bounds", "x=0:10", "--n", ROWS, "--epsilon", "1", "--out", round_)
    run("protocol", "new", *planned)
    client = ("protocol", "client", round_)
    made = run(*client, "-", "--columns", "x", "--out", tmp_path / "a.bin", stdin=COMMAS)
    assert "500 messages made" in made.stderr
    semicolons = (*client, "-", "--delimiter", ";", "--columns", "x", "--out", tmp_path / "b.bin")
    assert "500 messages made" in run(*semicolons, stdin=SEMICOLONS).stderr


@pytest.mark.parametrize(
    ("arguments", "stdin", "words"),
    [
        (("-", "x.csv"), COMMAS, "read alone"),
        (("-",), b"", "must begin with a header"),
        (("-",), COMMAS.decode().encode("utf-16"), "UTF-16"),
        (("-",), SEMICOLONS, "--delimiter ';'"),
        (("-",), b"y\n1\n", "'x' is not in the data"),
        (("-",), FORMS["csv.gz"][:-9], "standard input cannot be read"),
        (("-", "--delimiter", ";;"), COMMAS, "--delimiter must be one ASCII character"),
        (("-", "--delimiter", ";"), FORMS["parquet"], "standard input is no CSV file"),
        (("-", "--delimiter", ";"), OBJECTS, "standard input is no CSV file"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    arguments: tuple[str, ...], stdin: bytes, words: str
) -> None:
    said = run("mean", *arguments, "--bounds", "x=0:10", *PROMISE, stdin=stdin, code=2)
    assert words in said.stderr
    assert said.stdout == ""


def test_what_was_piped_in_has_no_name_and_is_for_its_owner_alone() -> None:
    kept = standard_input(io.BytesIO(COMMAS))
    status = os.stat(str(kept.paths))
    assert stat.S_ISREG(status.st_mode)
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert status.st_nlink == 0
    assert "proc" not in repr(kept)


def test_a_real_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    # More than a pipe holds, and several blocks.
    data = b"x,y\n" + b"5,abcdefghij\n" * 400_000
    command = [sys.executable, "-c", "from muhat.cli import main; main()", "mean", "-", "--json"]
    done = subprocess.run(
        [*command, "--bounds", "x=0:10", *PROMISE], input=data, capture_output=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n"] == 400_000
