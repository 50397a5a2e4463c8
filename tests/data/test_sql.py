"""Sums that a database makes are those of the embedded engine, bit for bit; q is always clipped."""

from __future__ import annotations

import math

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sql_tables import (
    COLUMNS,
    boxes,
    cells_of_numbers,
    cells_of_texts,
    counting,
    made_here,
    of_several,
    of_windows,
    summands,
    table,
)

from muhat.data.duckdb import WORDS, DuckDBWords, RelationSource, sql_column
from muhat.data.engine import Accumulator
from muhat.data.shared import View, _Several
from muhat.data.sql import answered, compiled, queries_of
from muhat.data.tables import open_table
from muhat.data.tallies import BoxStep, Summand, SumTable, tallies_of
from muhat.domains.lattice import BallLattice, BoxLattice, ColumnsLattice


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as con:
        # So few that rows are read here, unless a test asks in SQL.
        con.execute("SET threads = 1")
        yield con


def states(con, data, columns, coders, accumulator, relation=None):
    """What an accumulator holds after a pass in SQL (None: not in SQL), and after one here.

    Rows that DuckDB has read, and texts that it has compared, make the same.
    """
    relation = con.from_arrow(data) if relation is None else relation
    source = RelationSource(relation, columns, None, coders)
    queries = queries_of(accumulator(), source._sql, WORDS)
    pushed = None if queries is None else answered(accumulator(), queries, source._asked)
    here = open_table(data, columns, None, coders).fold(accumulator)[0].state().tolist()
    assert source.fold(accumulator)[0].state().tolist() == here
    return None if pushed is None else pushed[0].state().tolist(), here


def tallied(words, relation, tally, kind):
    """What a query of one column finds."""
    query = compiled(tally, [sql_column("x0", kind)], words)
    source = RelationSource(relation, (relation.columns[0],), 1, (None,))
    return query.tallied(source._asked(query))


@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "text"])
def test_sums_squares_and_counts_of_every_type_are_those_of_the_kernel(con, name):
    data = table(97, (name,))
    relation = con.from_arrow(data)
    column = sql_column("x0", str(relation.types[0]))
    chosen, left_out = summands(column, WORDS)
    found = tallied(WORDS, relation, SumTable((), tuple(chosen)), str(relation.types[0]))
    assert list(found[()][1:]) == made_here(data, chosen)
    # At the ends of the range of floats, and for whole numbers in very small boxes.
    assert len(left_out) <= 4


def test_whole_numbers_of_128_bits_are_read_as_such(con):
    whole = [None, 0, 1, -1, 2**53 + 1, 2**63, -(2**64), 10**37, -(10**37), 3 * 2**45 + 1]
    data = pa.table({"x": pa.array(whole, pa.decimal128(38, 0))})
    relation = con.from_arrow(data).project("CAST(x AS HUGEINT) AS x")
    assert [str(kind) for kind in relation.types] == ["HUGEINT"]
    chosen, _ = summands(sql_column("x0", "HUGEINT"), WORDS)
    found = tallied(WORDS, relation, SumTable((), tuple(chosen)), "HUGEINT")
    assert list(found[()][1:]) == made_here(data, chosen)


@settings(max_examples=25)
@given(
    st.lists(st.floats() | st.none(), max_size=20),
    st.floats(-1e100, 1e100),
    st.floats(1e-100, 1e100),
    st.booleans(),
)
def test_any_floats_at_any_box(con, values, low, width, above):
    # Some of them next to the ends, where rounding decides.
    high = low + max(width, abs(low) * 1e-12)
    ends = [math.nextafter(end, math.inf if above else -math.inf) for end in (low, high)]
    data = pa.table({"x": pa.array([*values, low, high, *ends], pa.float64())})
    lattice = ColumnsLattice(BoxLattice.around([low], [high]), squares=True, counts=True)
    (tally,) = Accumulator(lattice).tallies()
    found = tallied(WORDS, con.from_arrow(data), tally, "DOUBLE")
    (here,) = open_table(data, ("x",), 1).fold(lambda: Accumulator(lattice))
    assert Accumulator(lattice).tallied([found]).tolist() == here.state().tolist()


@pytest.mark.parametrize("name", ["real", "whole", "unsigned", "money", "flag", "small"])
def test_numbers_are_in_the_same_cells_and_blocks(con, name):
    data = table(83, (name,))
    for categories in cells_of_numbers():
        counter = counting(categories)
        coders = tuple(counter()._coders)
        pushed, here = states(con, data, (name,), coders, counter)
        assert pushed == here
    for windows in of_windows():
        pushed, here = states(con, data, (name,), (None,), windows)
        # Whole numbers without a sign are not compared with a grid that begins below 0.
        assert pushed == here or (pushed is None and name == "unsigned")


def test_texts_are_in_the_same_cells_whatever_a_column_compares_by(con):
    data = table(83, ("text",))
    folded = con.from_arrow(data).project("(text COLLATE NOCASE) AS text")
    for categories in cells_of_texts():
        counter = counting(categories)
        coders = tuple(counter()._coders)
        for relation in (None, folded):
            pushed, here = states(con, data, ("text",), coders, counter, relation)
            assert pushed == here


@pytest.mark.parametrize("name", of_several())
def test_tables_of_several_columns_are_the_same(con, name):
    columns, coders, accumulator = of_several()[name]
    pushed, here = states(con, table(401), columns, coders, accumulator)
    assert pushed == here
    assert here[0] == 401


def test_a_table_without_rows_has_sums_too(con):
    for columns, coders, accumulator in of_several().values():
        pushed, here = states(con, table(0), columns, coders, accumulator)
        assert pushed == here


def test_readers_of_one_table_share_queries(con):
    data = table(101, ("whole", "real"))
    box = BoxLattice.around([0], [90])
    source = RelationSource(con.from_arrow(data), ("whole", "real"), 2, ())
    views = [View(source, [1]), View(source, [0])]
    makers = [view.changing(lambda: Accumulator(box)) for view in views]

    def both():
        return _Several([make() for make in makers])

    queries = queries_of(both(), source._sql, WORDS)
    (pushed,) = answered(both(), queries, source._asked)
    (read,) = source.fold(both)
    (here,) = open_table(data, ("whole", "real"), 2).fold(both)
    assert pushed.state().tolist() == read.state().tolist() == here.state().tolist()


def test_what_has_no_sql_is_left_to_arrow():
    ball = Accumulator(BallLattice.around([0.0, 0.0], 1.0))
    assert tallies_of(ball) is None
    assert tallies_of(object()) is None


class Lying(DuckDBWords):
    """An engine whose floats are whatever they like."""

    def __init__(self, lie):
        self.lie = lie

    def whole(self, value):
        return self.lie


@pytest.mark.parametrize(
    "lie",
    ["CAST(NULL AS BIGINT)", "9223372036854775807", "-9223372036854775808", "7", "-35184372088833"],
)
def test_q_is_an_integer_of_the_box_whatever_floats_do(con, lie):
    relation = con.from_arrow(table(97, ("real",))).project("#1 AS x0")
    places = [box.coordinates()[0] for box in boxes()]
    places = [place for place in places if not place.scale_exponent]
    steps = tuple(Summand(BoxStep(0, place)) for place in places)
    query = compiled(SumTable((), steps), [sql_column("x0", "DOUBLE")], Lying(lie))
    *projections, added = query.stages
    for projection in projections:
        relation = relation.project(f"*, {', '.join(projection.columns)}")
    names = [each.removeprefix("sum(").partition(")")[0] for each in added.columns[1:]]
    for row in relation.project(", ".join(names)).fetchall():
        for place, q in zip(places, row, strict=True):
            assert place.lower <= q <= place.upper or q == place.absent


def test_an_engine_that_rounds_in_another_way_is_found_out(con):
    class Twice(DuckDBWords):
        """Rounds twice: to a float of 32 bits first."""

        def whole(self, value):
            return super().whole(f"CAST({value} AS FLOAT)")

    data = table(97, ("real",))
    lattice = BoxLattice.around([0], [128])
    tally = tallies_of(Accumulator(lattice))[0]
    here = open_table(data, ("real",), 1).fold(lambda: Accumulator(lattice))[0].total
    relation = con.from_arrow(data)
    for words, same in ((WORDS, True), (Twice(), False)):
        found = tallied(words, relation, tally, "DOUBLE")
        assert (list(found[()][2:]) == here) == same


@pytest.mark.parametrize(
    "rows", [[(1, 3, 1)] * 2, [(1, None, 1)], [(1, -1, 1)], [(1, 99, 1)], [(2, 0, 1)]]
)
def test_an_answer_of_another_shape_is_refused(rows):
    categories = cells_of_numbers()[2]
    (first, *_) = counting(categories)().tallies()
    query = compiled(first, [sql_column("x0", "BIGINT")], WORDS)
    assert len(query.cells) == 2
    with pytest.raises(ValueError, match="another shape"):
        query.tallied(rows)
