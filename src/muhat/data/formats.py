"""The kinds of files that are read."""

from __future__ import annotations

from muhat.data.csv_file import CSV
from muhat.data.ipc import IPC
from muhat.data.json_lines import JSON_LINES
from muhat.data.orc import ORC
from muhat.data.parquet import PARQUET

FORMATS = (CSV, JSON_LINES, PARQUET, IPC, ORC)

KINDS = (
    ".csv, .tsv or .jsonl (compressed: .csv.gz, .csv.bz2, .csv.zst), "
    ".parquet, .arrow, .feather, .orc"
)
"""Them in words, for whoever named a file of another kind."""
