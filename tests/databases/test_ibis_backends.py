"""Real databases that add up in the words of Ibis: the sums of the embedded engine, bit for bit."""

from __future__ import annotations

import signal

import numpy as np
import pytest
from benchmarks.ibis_backends import NAMES, connected, mariadb, mysql, why_not

import muhat as mh
from data.sql_tables import (
    COLUMNS,
    boxes,
    cells_of_numbers,
    cells_of_texts,
    counting,
    of_several,
    of_windows,
    table,
)
from muhat.data import exact_sums, open_source
from muhat.data.engine import Accumulator
from muhat.data.ibis_source import IbisSource
from muhat.data.ibis_sql import WORDS, rows_text
from muhat.data.sql import queries_of
from muhat.data.tables import open_table
from muhat.domains.lattice import BoxLattice, ColumnsLattice
from muhat.errors import DataChanged, InvalidInput, SourceFailed

pytestmark = [
    pytest.mark.databases,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
    # A new MariaDB knows no time zones.
    pytest.mark.filterwarnings("ignore:Unable to set session timezone"),
    # chDB's process is that of the tests, and leaves a socket to the collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
ibis = pytest.importorskip("ibis", reason="Ibis is not installed: muhat[ibis]")

AGES = np.arange(300) % 97 * 1.0


@pytest.fixture(scope="module", params=NAMES)
def backend(request):
    if (missing := why_not(request.param)) is not None:
        pytest.skip(missing)
    with connected(request.param) as backend:
        memory = "ENGINE = MergeTree ORDER BY k" if backend.name == "clickhouse" else ""
        text = "String" if backend.name == "clickhouse" else "VARCHAR(8)"
        run(backend, f"CREATE TABLE people (k INTEGER, age DOUBLE PRECISION, sex {text}) {memory}")
        rows = ", ".join(f"({k}, {age}, '{'fm'[k % 2]}')" for k, age in enumerate(AGES))
        run(backend, f"INSERT INTO people VALUES {rows}")
        yield backend


def run(backend, text):
    """What a backend does and does not answer."""
    done = backend.raw_sql(text)
    if backend.name == "mysql":
        done.close()
        backend.con.commit()


def literal(backend, data):
    """Rows of Arrow as a table of the backend's, as far as its types have them."""
    schema = ibis.Schema.from_pyarrow(data.schema)
    return backend.sql(rows_text(data, dict(schema.items()), backend), schema=schema)


def shown(backend, columns, coders, accumulator):
    """Whether a backend shows its sums; None where there is no SQL."""
    source = IbisSource(literal(backend, table(1)), backend, columns, None, coders)
    queries = queries_of(accumulator(), source._sql, WORDS)
    return None if queries is None else source._is_shown(accumulator, queries)


@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "text"])
def test_sums_squares_and_counts_are_those_of_the_kernel(backend, name):
    found = [
        shown(backend, (name,), (), lambda box=box: Accumulator(both(box))) for box in boxes()[::4]
    ]
    assert False not in found
    wide = name in ("unsigned", "decimal")
    assert found.count(None) == len(found) if wide else found.count(None) <= 4


def both(box):
    return ColumnsLattice(box, squares=True, counts=True)


@pytest.mark.parametrize("name", ["real", "short", "whole", "money", "text"])
def test_values_are_in_the_same_cells_and_blocks(backend, name):
    for categories in cells_of_texts()[::2] if name == "text" else cells_of_numbers()[::3]:
        counter = counting(categories)
        assert shown(backend, (name,), tuple(counter()._coders), counter)
    for windows in [] if name == "text" else of_windows()[::3]:
        assert shown(backend, (name,), (), windows)


@pytest.mark.parametrize("name", of_several())
def test_tables_of_several_columns_are_the_same(backend, name):
    columns, coders, accumulator = of_several()[name]
    narrower = {"unsigned": "whole", "decimal": "money"}
    columns = tuple(narrower.get(column, column) for column in columns)
    assert shown(backend, columns, coders, accumulator)


def test_a_release_is_near_the_truth_and_its_rows_stay_there(backend, monkeypatch):
    people = backend.table("people")
    monkeypatch.setattr(IbisSource, "partitions", None)
    release = mh.mean(people, domain={"age": (0, 100)}, privacy=mh.ZCDP(rho=1e6))
    assert release.value[0] == pytest.approx(AGES.mean(), abs=0.1)
    young = people.filter(people.age < 30).mutate(twice=people.age * 2)
    lattice = BoxLattice.around([0], [100])
    expected = exact_sums(open_source(2 * AGES[AGES < 30]), lattice)
    assert exact_sums(open_source(young, ["twice"], 1), lattice) == expected
    by_sex = mh.mean(
        people, columns=["age"], domain=mh.Box([0], [100]), privacy=mh.ZCDP(rho=1e6), by="sex",
        groups=["f", "m"],
    )  # fmt: skip
    assert by_sex.value[1][0] == pytest.approx(AGES[1::2].mean(), abs=0.2)
    median = mh.quantile(people, 0.5, columns=["age"], lower=0, upper=100, privacy=mh.ZCDP(rho=1e6))
    assert median.value[0] == pytest.approx(np.median(AGES), abs=1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT age + {random} AS age FROM people", r"\(\), which may differ"),
        ("SELECT age FROM people LIMIT 5", "a limit"),
        ("SELECT age, row_number() OVER (ORDER BY sex) AS k FROM people", "rows that may tie"),
        ("SELECT age, sum(k) OVER (ORDER BY sex ROWS UNBOUNDED PRECEDING) AS k FROM people", "tie"),
        ("SELECT max(age) AS age, now() AS t FROM people", "which may differ"),
    ],
)
def test_views_that_may_have_other_rows_are_refused(backend, text, reason):
    random = "rand64()" if backend.name == "clickhouse" else "RAND()"
    run(backend, "CREATE OR REPLACE VIEW inner_view AS " + text.format(random=random))
    run(backend, "CREATE OR REPLACE VIEW drawn AS SELECT * FROM inner_view")
    for name in ("inner_view", "drawn"):
        with pytest.raises(InvalidInput, match=f"expression has a view, '{name}'.*{reason}"):
            open_source(backend.table(name), ["age"], 1)


def test_views_that_are_fixed_are_taken(backend):
    text = "SELECT CASE WHEN age < 30 THEN upper(sex) ELSE sex END AS word, abs(age) AS age"
    run(backend, f"CREATE OR REPLACE VIEW fixed AS {text} FROM people WHERE sex IN ('f', 'm')")
    assert open_source(backend.table("fixed"), ["age"], 1).rows() == 300


def test_rows_that_come_between_passes_fail_the_release(backend, monkeypatch, tmp_path):
    made = "CREATE TABLE few (k INTEGER, age DOUBLE PRECISION)"
    run(backend, made + (" ENGINE = Memory" if backend.name == "clickhouse" else ""))
    run(backend, "INSERT INTO few VALUES (1, 30), (2, 40), (3, 50)")
    few, before = backend.table("few"), IbisSource.fold

    def fold(self, accumulator):
        run(backend, "INSERT INTO few VALUES (4, 60)")
        return before(self, accumulator)

    monkeypatch.setattr(IbisSource, "fold", fold)
    ledger, promise = account(tmp_path), mh.ZCDP(rho=0.5)
    with pytest.raises(DataChanged):
        mh.mean(few, domain={"age": (0, 100)}, privacy=promise, ledger=ledger)
    assert ledger.spent == promise


def account(folder):
    return mh.Ledger.create(folder / "account.db", budget=mh.ZCDP(rho=1), neighbors="substitute")


@pytest.mark.skipif(why_not("mysql") is not None, reason="MariaDB is not installed")
def test_texts_are_compared_byte_by_byte_whatever_a_column_compares_by():
    with connected("mysql") as backend:
        run(
            backend,
            "CREATE TABLE odd (sex VARCHAR(8) CHARACTER SET latin1 COLLATE latin1_general_ci)",
        )
        run(backend, "INSERT INTO odd VALUES ('f'), ('F'), ('f '), ('é'), (NULL), ('m')")
        values = ["f", "F", "f ", "é", None, "m"]
        data = table(1, ("text",)).slice(0, 0)
        counter = counting(cells_of_texts()[0])
        coders = tuple(counter()._coders)
        source = IbisSource(backend.table("odd"), backend, ("sex",), None, coders)
        (found,) = source.fold(counter)
        rows = type(data).from_pydict({"text": values})
        (here,) = open_table(rows, ("text",), None, coders).fold(counter)
        assert found.state().tolist() == here.state().tolist()


@pytest.mark.skipif(why_not("mysql") is not None, reason="MariaDB is not installed")
def test_a_server_that_is_killed_fails_after_the_charge_and_says_nothing(tmp_path, monkeypatch):
    with mariadb() as (socket, server):
        backend = mysql(socket)
        run(backend, "CREATE TABLE people (age DOUBLE)")
        run(backend, "INSERT INTO people VALUES (31.25), (40)")
        people, before = backend.table("people"), IbisSource.fold

        def fold(self, accumulator):
            server.send_signal(signal.SIGKILL)
            server.wait(60)
            return before(self, accumulator)

        monkeypatch.setattr(IbisSource, "fold", fold)
        ledger, promise = account(tmp_path), mh.ZCDP(rho=0.5)
        with pytest.raises(SourceFailed) as failed:
            mh.mean(people, domain={"age": (0, 100)}, privacy=promise, ledger=ledger)
        assert ledger.spent == promise
        assert "31" not in str(failed.value)
        assert failed.value.__cause__ is failed.value.__context__ is None
