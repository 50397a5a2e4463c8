"""CSV files that Spark reads, as RFC 4180 has them: a cell keeps its line breaks.

Spark's own reader finds the records; nothing of its defaults is used that would split a quoted
cell or guess a type. Cells are text, and numbers are read from it as in files on this machine. A
record with too few or too many fields is one of which everything is missing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from muhat.data.files import delimiter_from
from muhat.data.spark import SparkData, quoted
from muhat.data.spark_quiet import quietly
from muhat.data.spark_rows import numbered
from muhat.data.spark_ship import require_running
from muhat.errors import InvalidInput

UNREAD = "muhat_unread"
"""Where Spark puts a record that does not have as many fields as the header."""


def spark_csv(
    session: Any,
    paths: str | Sequence[str],
    *,
    delimiter: str = ",",
    materialize: str | os.PathLike[str] | None = None,
) -> SparkData:
    """CSV files with a header, in UTF-8, to be passed as `data`; `materialize` as in `spark_data`.

    A file is one partition, since its quotes decide where records begin. Spark leaves blank lines
    out, and reads a file with stray quotes in its own way.
    """
    delimiter = delimiter_from("delimiter", delimiter)
    listed = [paths] if isinstance(paths, str) else list(paths)
    require_running(session)
    frame = quietly(session, lambda: _frame(session, listed, delimiter))
    if frame is None:
        shown = ", ".join(f"{path!r:.80}" for path in listed)
        raise InvalidInput(
            f"Spark cannot open {shown} as CSV: all executors must be able to read it, and it "
            "must begin with a header."
        )
    rows = None if materialize is None else numbered(frame, os.fspath(materialize))
    return SparkData(frame, rows, reads_text=True)


def _frame(session: Any, paths: list[str], delimiter: str) -> Any:
    from pyspark.sql import functions
    from pyspark.sql.types import StringType, StructField, StructType

    options = {
        "sep": delimiter,
        "header": True,
        "multiLine": True,
        "quote": '"',
        "escape": '"',
        "inferSchema": False,
        "enforceSchema": False,
        "ignoreLeadingWhiteSpace": False,
        "ignoreTrailingWhiteSpace": False,
        "maxCharsPerColumn": -1,
        "columnNameOfCorruptRecord": UNREAD,
    }
    names = session.read.options(**options).csv(paths[:1]).columns
    if not names or UNREAD in names:
        return None
    fields = [StructField(name, StringType()) for name in (*names, UNREAD)]
    frame = session.read.options(**options).schema(StructType(fields)).csv(paths)
    whole = functions.col(UNREAD).isNull()
    return frame.select(
        *(functions.when(whole, functions.col(quoted(name))).alias(name) for name in names)
    )
