"""Files are decoded once for methods that read several times; what is kept is what was read."""

import gc
import os
import stat
import tempfile
import weakref

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import muhat as mh
from muhat.data import kept, open_source, scratch
from muhat.data.base import paced
from muhat.data.csv_file import Parser
from muhat.data.engine import Accumulator, exact_sums, read_once
from muhat.data.parquet import ParquetFile
from muhat.data.scratch import Scratch
from muhat.domains.lattice import BallLattice
from muhat.errors import SourceFailed

ROWS = 3000
LATTICE = BallLattice.around([0.0, 0.0], 100.0)


@pytest.fixture(params=[1 << 28, 30_000, 0], ids=["memory", "both", "disk"])
def table(request, tmp_path, monkeypatch):
    """Two columns with missing cells, a word and a ragged record, in several pieces."""
    monkeypatch.setattr(kept, "MEMORY_BYTES", request.param)
    monkeypatch.setattr("muhat.data.text_file.BLOCK_BYTES", 4096)
    monkeypatch.setattr("muhat.data.text_file.PARTITION_BYTES", 16_384)
    values = np.random.default_rng(3).normal(5, 20, (ROWS, 2))
    lines = [f"{a!r},{b!r}" for a, b in values.tolist()]
    lines[7], lines[100], lines[2000] = ",1.5", "word,2", "1,2,3"
    path = tmp_path / "table.csv"
    path.write_text("x,y\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture
def decoded(monkeypatch):
    """How many pieces were decoded."""
    counted = []
    batch = Parser.batch

    def counting(self, piece):
        counted.append(piece.count)
        return batch(self, piece)

    monkeypatch.setattr(Parser, "batch", counting)
    return counted


@pytest.mark.parametrize("threads", [1, 3])
def test_what_is_kept_is_what_was_read(table, decoded, threads):
    plain = exact_sums(open_source(table), LATTICE)
    decoded.clear()
    source = open_source(table)
    source.keep()
    with paced(threads=threads):
        for _ in range(4):
            found = exact_sums(source, LATTICE)
            assert (found.total, found.rows) == (plain.total, plain.rows)
    assert sum(decoded) == ROWS


def test_no_more_than_a_quarter_of_free_memory_is_taken(table, monkeypatch):
    written, put = [], Scratch.put

    def watched(self, array, place=None):
        written.append(array.nbytes)
        return put(self, array, place)

    monkeypatch.setattr(Scratch, "put", watched)
    monkeypatch.setattr(kept, "MEMORY_BYTES", 1 << 28)
    assert scratch.room(1 << 28) <= scratch.free_memory() // 4
    for free in (1 << 40, 1000):
        monkeypatch.setattr(scratch, "free_memory", lambda free=free: free)
        source = open_source(table)
        source.keep()
        plain = exact_sums(source, LATTICE)
        assert exact_sums(source, LATTICE) == plain
        assert bool(written) == (free == 1000)


def test_without_it_every_pass_decodes(table, decoded):
    source = open_source(table)
    for _ in range(2):
        exact_sums(source, LATTICE)
    assert sum(decoded) == 2 * ROWS


def test_a_pass_that_was_broken_off_is_made_again(table, decoded):
    source = open_source(table)
    source.keep()

    class Breaks(Accumulator):
        def add(self, batch):
            super().add(batch)
            raise OSError

    with pytest.raises(SourceFailed):
        read_once(source, lambda: Breaks(LATTICE))
    assert exact_sums(source, LATTICE).rows == ROWS


def test_a_file_that_things_are_kept_in_has_no_name_and_is_the_users_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    scratch = Scratch()
    span = scratch.put(np.arange(1000))
    assert scratch.get(span, np.int64).tolist() == list(range(1000))
    assert not list(tmp_path.iterdir())
    status = os.fstat(scratch._file.fileno())
    assert (status.st_nlink, stat.S_IMODE(status.st_mode)) == (0, stat.S_IRUSR | stat.S_IWUSR)


def test_a_disk_that_fails_is_a_source_that_failed(table, monkeypatch):
    monkeypatch.setattr(kept, "MEMORY_BYTES", 0)
    source = open_source(table)
    source.keep()
    exact_sums(source, LATTICE)
    monkeypatch.setattr(Scratch, "get", lambda *_: 1 / 0)
    with pytest.raises(SourceFailed):
        exact_sums(source, LATTICE)


def test_a_mean_of_unknown_location_decodes_once(table, decoded):
    release = mh.mean(table, domain=mh.Reals(2, magnitude=1e6), n=ROWS, privacy=mh.ZCDP(rho=1))
    assert np.abs(release.value - 5).max() < 20
    assert sum(decoded) == ROWS


def test_what_was_kept_is_gone_with_the_release(table, monkeypatch):
    made, start = [], kept.Kept.__init__

    def watched(self, **given):
        made.append(weakref.ref(self))
        start(self, **given)

    monkeypatch.setattr(kept.Kept, "__init__", watched)
    # Nothing may wait for the collector: it would hold the records as long.
    gc.disable()
    try:
        mh.mean(table, domain=mh.Reals(2, magnitude=1e6), n=ROWS, privacy=mh.ZCDP(rho=1))
        assert [each() for each in made] == [None]
    finally:
        gc.enable()


@pytest.fixture
def columns(tmp_path):
    """Floats, whole numbers and decimals with gaps, and vectors, in several row groups."""
    rng = np.random.default_rng(4)
    values = rng.normal(5, 20, (ROWS, 2))
    flat = pa.array(np.append(values, values).reshape(-1))
    path = tmp_path / "columns.parquet"
    numbers = pa.array(rng.integers(0, 100, ROWS), mask=rng.random(ROWS) < 0.1)
    table = pa.table(
        {
            "real": values[:, 0],
            "whole": numbers,
            "decimal": numbers.cast(pa.decimal128(25, 3)),
            "vector": pa.FixedSizeListArray.from_arrays(flat, 4),
        }
    )
    pq.write_table(table, path, row_group_size=700)
    return path


@pytest.mark.parametrize("room", [1 << 28, 15_000, 0], ids=["memory", "some", "none"])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("names", [["real"], ["real", "whole", "decimal"], ["vector"]])
def test_what_is_kept_of_columns_is_what_was_read(columns, monkeypatch, room, threads, names):
    monkeypatch.setattr(kept, "MEMORY_BYTES", room)
    monkeypatch.setattr("muhat.data.parquet._PARTITION_BYTES", 1)
    read, batches = [], ParquetFile._batches

    def watched(self, *args):
        read.append(args)
        return batches(self, *args)

    monkeypatch.setattr(ParquetFile, "_batches", watched)
    dim = 4 if names == ["vector"] else len(names)
    lattice = BallLattice.around([0.0] * dim, 100.0)
    plain = exact_sums(open_source(columns, names), lattice)
    groups = len(read)
    read.clear()
    source = open_source(columns, names)
    source.keep()
    with paced(threads=threads):
        for _ in range(3):
            assert exact_sums(source, lattice) == plain
    if room == 0:
        assert len(read) == 3 * groups
    else:
        assert groups <= len(read) < 3 * groups
        assert (len(read) == groups) == (room == 1 << 28)


def test_other_sources_are_as_they_were():
    source = open_source(np.zeros((3, 2)))
    source.keep()
    assert exact_sums(source, LATTICE).rows == 3


def streams(tmp_path):
    """The same rows behind a stream of Arrow, in DuckDB, and in SQLite by Ibis."""
    import duckdb
    import ibis

    rows = pa.table({"x": np.arange(ROWS) % 97 * 1.0})
    con = duckdb.connect()
    con.execute("SET threads = 1")
    con.from_arrow(rows).create("rows")
    backend = ibis.sqlite.connect()
    backend.con.execute("CREATE TABLE lines (x REAL)")
    backend.con.executemany("INSERT INTO lines VALUES (?)", [(x,) for x in rows["x"].to_pylist()])
    return rows, [Streams(rows), con.table("rows"), backend.table("lines")]


class Streams:
    """Rows that come as a stream, whenever they are asked for."""

    def __init__(self, rows):
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema=None):
        return self._rows.__arrow_c_stream__(requested_schema)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_rows_that_come_as_streams_are_read_once_for_several_passes(tmp_path, monkeypatch):
    rows, sources = streams(tmp_path)
    lattice = BallLattice.around([0.0], 50.0)
    expected = exact_sums(open_source(rows), lattice)
    for data in sources:
        source = open_source(data, ["x"], 1)
        read = []
        chosen = type(source)._chosen
        monkeypatch.setattr(
            type(source), "_chosen", lambda self, c=chosen, r=read: r.append(1) or c(self)
        )
        source.keep()
        assert [exact_sums(source, lattice) for _ in range(3)] == [expected] * 3
        assert read == [1]


def test_a_mean_of_unknown_location_reads_a_stream_once(monkeypatch):
    from muhat.data.tables import StreamSource

    read = []
    chosen = StreamSource._chosen
    monkeypatch.setattr(StreamSource, "_chosen", lambda self: read.append(1) or chosen(self))
    rows = pa.table({"x": np.random.default_rng(2).normal(70, 3, ROWS)})
    found = mh.mean(
        Streams(rows), domain=mh.Reals(dim=1, magnitude=1e6), privacy=mh.ZCDP(rho=5), columns=["x"]
    )
    assert found.value[0] == pytest.approx(70, abs=1)
    assert read == [1]
