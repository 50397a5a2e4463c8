"""The benchmark of sets runs, alone where DuckDB is not installed."""

from __future__ import annotations

import importlib
from pathlib import Path

import pyarrow.parquet as pq
import pytest


@pytest.fixture
def sets(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    return importlib.import_module("benchmarks.sets")


def test_without_duckdb_a_sentence_says_so(sets, monkeypatch, capsys):
    monkeypatch.setattr(sets, "_duckdb", lambda: None)
    sets.main(rows=3_000)
    printed = capsys.readouterr().out
    assert "8 statistics of 3,000 rows by 3 columns of groups" in printed
    assert "DuckDB is not installed (pip install duckdb): nothing is compared." in printed


def test_the_rows_are_those_that_were_asked_for(sets, tmp_path):
    sets.write_people(tmp_path / "people.parquet", 1_000)
    table = pq.read_table(tmp_path / "people.parquet")
    assert table.num_rows == 1_000
    assert 0 < table["income"].null_count < 100


def test_duckdb_answers_the_same_questions(sets, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "people.parquet"
    sets.write_people(path, 1_000)
    sets._answers(duckdb.connect(), [*sets.QUERIES, sets.TOGETHER], path)
    assert len(sets.QUERIES) == len(sets.ASKED)
