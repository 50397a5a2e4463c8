"""What the hostile tests share: canaries, every kind of source, and where words may leak."""

from __future__ import annotations

import gzip
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import muhat as mh
from muhat.errors import MuhatError

CANARY_TEXT = "Rumpelstiltskin"
CANARY_NUMBER = 7391743.9125
CANARIES = (CANARY_TEXT, "7391743.9", "7.3917439", "7.391744e", "7,391,743.9")
"""With their points: digits alone would turn up in a hash, an address or a time by chance."""

BOX = mh.Box([0, -1], [8, 5])
BALL = mh.Ball(radius=4, dim=2, center=[1, 2])
ELLIPSOID = mh.Ellipsoid([[9, 2], [2, 4]], center=[1, 2])
DOMAINS = {"box": BOX, "ball": BALL, "ellipsoid": ELLIPSOID}


class Again:
    """An object that hands out its Arrow stream as often as it is asked."""

    def __init__(self, table, fail_after=None):
        self.table, self.fail_after = table, fail_after

    def __arrow_c_stream__(self, requested_schema=None):
        def batches():
            for index, batch in enumerate(self.table.to_batches(max_chunksize=2)):
                if index == self.fail_after:
                    raise RuntimeError(f"cell {CANARY_TEXT} {CANARY_NUMBER}")
                yield batch

        reader = pa.RecordBatchReader.from_batches(self.table.schema, batches())
        return reader.__arrow_c_stream__()


def arrow_table(rows):
    columns = [[row[j] for row in rows] for j in range(2)]
    return pa.table([pa.array(c, pa.float64(), from_pandas=False) for c in columns], ["a", "b"])


def csv_cell(value):
    return "" if value is None else repr(float(value))


def csv_bytes(rows):
    lines = ["a,b", *(",".join(map(csv_cell, row)) for row in rows)]
    return ("\n".join(lines) + "\n").encode()


def floats(rows):
    return np.array([[np.nan if x is None else x for x in row] for row in rows]).reshape(-1, 2)


def write_ipc(path, table, *, stream):
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with pa.OSFile(str(path), "wb") as sink, make(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return path


def write_parquet(path, table):
    pq.write_table(table, path, row_group_size=2)
    return path


def write_csv(path, rows):
    data = csv_bytes(rows)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def nullable_frame(rows):
    masks = np.array([[x is None for x in row] for row in rows], bool).reshape(-1, 2)
    values = np.array([[0.0 if x is None else x for x in row] for row in rows], float)
    values = values.reshape(-1, 2)
    return pd.DataFrame(
        {n: pd.arrays.FloatingArray(values[:, j], masks[:, j]) for j, n in enumerate("ab")}
    )


SOURCES = {
    "C array": lambda rows, _: floats(rows),
    "Fortran array": lambda rows, _: np.asfortranarray(floats(rows)),
    "list": lambda rows, _: [list(row) for row in rows],
    "dict": lambda rows, _: {n: floats(rows)[:, j] for j, n in enumerate("ab")},
    "pandas": lambda rows, _: pd.DataFrame(floats(rows), columns=["a", "b"]),
    "nullable pandas": lambda rows, _: nullable_frame(rows),
    "polars": lambda rows, _: pl.from_arrow(arrow_table(rows)),
    "Arrow table": lambda rows, _: arrow_table(rows),
    "Arrow stream": lambda rows, _: Again(arrow_table(rows)),
    "Parquet file": lambda rows, folder: write_parquet(folder / "d.parquet", arrow_table(rows)),
    "Arrow file": lambda rows, folder: write_ipc(
        folder / "d.arrow", arrow_table(rows), stream=False
    ),
    "Arrow stream file": lambda rows, folder: write_ipc(
        folder / "d.feather", arrow_table(rows), stream=True
    ),
    "CSV file": lambda rows, folder: write_csv(folder / "d.csv", rows),
    "gzipped CSV file": lambda rows, folder: write_csv(folder / "d.csv.gz", rows),
}


def ledger_in(folder, neighbors="substitute", name="budget.db", rho=1000.0):
    return mh.Ledger.create(folder / name, budget=mh.ZCDP(rho=rho), neighbors=neighbors)


ROUNDED = ("normal", "laplace", "euclidean", "maximum")
WHOLE_LAWS = (
    "stairs.Stairs",
    "radial_stairs.RadialStairs",
    "balanced.Balanced",
    "balanced_laplace.BalancedLaplace",
)


def noise_is(monkeypatch, drawn, whole=None):
    """Have every sampler give `drawn(dim)`, laws of whole numbers `whole(law, dim)`."""
    for name in ROUNDED:
        monkeypatch.setattr(f"muhat.noise.rounded_{name}", drawn)
    for name in WHOLE_LAWS:
        monkeypatch.setattr(f"muhat.noise.{name}.sample", whole or (lambda _, dim: drawn(dim)))


def silence(monkeypatch):
    """Releases without noise: what is left is the exact answer. Only tests may see it."""
    noise_is(monkeypatch, lambda dim: np.zeros(dim, np.int64))


class Served:
    """A sampler that hands out given integers, so many at a time as it is asked for."""

    def __init__(self, integers):
        self.integers = list(integers)

    def __call__(self, dim):
        given, self.integers = self.integers[:dim], self.integers[dim:]
        assert len(given) == dim
        small = all(abs(entry) < 1 << 62 for entry in given)
        return np.array(given, np.int64 if small else object)

    @property
    def is_empty(self):
        return not self.integers


def chain_of(error):
    """The exception and everything that hangs on it."""
    found, waiting = [], [error]
    while waiting:
        one = waiting.pop()
        if one is not None and one not in found:
            found.append(one)
            waiting += [one.__cause__, one.__context__]
    return found


def words_of(error, *, frames=True):
    """All that an exception could show: messages, notes, arguments and the locals of muhat."""
    words = []
    for one in chain_of(error):
        words += [str(one), repr(one), repr(one.args), *getattr(one, "__notes__", [])]
        trace = one.__traceback__
        while frames and trace is not None:
            if trace.tb_frame.f_globals.get("__name__", "").startswith("muhat"):
                words += [repr(value) for value in trace.tb_frame.f_locals.values()]
            trace = trace.tb_next
    return "\n".join(words)


def steady(monkeypatch):
    """Releases with one fixed noise, for tests that look for digits."""
    noise_is(
        monkeypatch,
        lambda dim: np.full(dim, 3 << 57, np.int64),
        lambda law, dim: np.full(dim, 8 * law.unit, np.int64),
    )


def without_hashes(text):
    """The text without hexadecimal words, in which any digits may turn up by chance."""
    if isinstance(text, bytes):
        text = text.decode("latin-1")
    return re.sub(r"[0-9a-f]{16,}", "…", text)


def assert_no_canary(text):
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    assert not [canary for canary in CANARIES if canary in text]


def assert_one_sentence_with_a_hint(error):
    """A short message on one line, that ends like a sentence and says what to do or what holds."""
    message = str(error)
    assert message == message.strip()
    assert "\n" not in message
    assert 20 < len(message) < 400
    assert re.search(r"[.?…]$|substitute$", message)


def outcome(call):
    """What an observer sees of a call, apart from the noisy numbers themselves."""
    try:
        release = call()
    except MuhatError as error:
        return type(error).__name__, str(error)
    fields = release.to_dict()
    for noisy in ("value", "standard_error", "interval", "noise", "ledger_head"):
        fields.pop(noisy)
    for noisy in ("recorded", "squares", "population_interval"):
        fields.pop(noisy, None)
    if fields.get("n", 0) is None and fields.get("mechanism") == "ratio":
        fields.pop("certificate")  # for the noisy number of records
    return type(release).__name__, fields
