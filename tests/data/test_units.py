"""People with many rows: nobody's rows decide on anybody else's, and no person has too many."""

from __future__ import annotations

import copy
import math
import os
import tempfile
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from muhat.data import exact_sums, open_source, unit_crowds, unit_rows
from muhat.data.base import Accumulated, PartitionedSource, Source, paced
from muhat.data.categories import categories_of
from muhat.data.engine import gathered
from muhat.data.histogram import open_cells
from muhat.data.states import packed, unpacked
from muhat.data.unit_choice import Mixer
from muhat.data.unit_ids import IdentityCoder, label_of
from muhat.data.units import People, PeopleElsewhere, of_people
from muhat.domains.lattice import BoxLattice
from muhat.errors import InvalidInput, SourceFailed

KEY = Mixer(bytes(range(32)))
PERSON = "person"

# By what people may be named. A name must come out as it is whatever is around it.
NAMES: dict[str, Callable[[int], Any]] = {
    "int64": lambda person: pa.scalar((-1) ** person * person * 10**12, pa.int64()),
    "int8": lambda person: pa.scalar(person - 20, pa.int8()),
    "uint64": lambda person: pa.scalar(2**64 - 1 - person, pa.uint64()),
    "bool": lambda person: pa.scalar(person % 2 == 0),
    "float": lambda person: pa.scalar(person / 7),
    "half": lambda person: pa.scalar(np.float16(person), pa.float16()),
    "text": lambda person: pa.scalar("p" * person),
    "long text": lambda person: pa.scalar("p" * 100 + str(person) * 9),
    "text with zeros": lambda person: pa.scalar("a" + "\0" * person),
    "bytes": lambda person: pa.scalar(b"\xff\x80" * person + b"\x80", pa.binary()),
    "fixed bytes": lambda person: pa.scalar(bytes([person]) * 16, pa.binary(16)),
    "decimal": lambda person: pa.scalar(Decimal(person).scaleb(-2), pa.decimal128(20, 2)),
    "wide decimal": lambda person: pa.scalar(Decimal(person) * 10**50, pa.decimal256(60, 0)),
    "date": lambda person: pa.scalar(date(2000, 1, 1) + timedelta(person)),
    "moment": lambda person: pa.scalar(datetime(2000, 1, 1) + timedelta(seconds=person)),
}


def arrow_ids(kind: str, persons: np.ndarray) -> Any:
    """Ids of persons; −1 is nobody."""
    name = NAMES[kind]
    named = {int(person): name(int(person)) for person in set(persons.tolist()) - {-1}}
    kinds = {each.type for each in named.values()} or {name(1).type}
    values = [None if person < 0 else named[person].as_py() for person in persons.tolist()]
    return pa.array(values, kinds.pop())


def random_persons(random: np.random.Generator, rows: int = 60) -> np.ndarray:
    """Some have many rows, most have few, and some rows are nobody's."""
    people = int(random.integers(1, 25))
    weights = random.pareto(0.7, people) + 0.01
    persons = random.choice(people, rows, p=weights / weights.sum()) + 1
    return np.where(random.random(rows) < 0.1, -1, persons)


def table_of(kind: str, persons: np.ndarray, values: np.ndarray) -> pa.Table:
    return pa.table({PERSON: arrow_ids(kind, persons), "owner": persons, "value": values})


def limited(data: Any, people: People, columns: list[str], mixer: Mixer = KEY) -> Source:
    """As `open_source` makes it, with a key that the test decides."""
    coders = [*(None for _ in columns), IdentityCoder()]
    source = open_source(data, [*columns, people.unit], len(columns), coders=coders)
    return of_people(source, people, (), mixer)


def entered(data: Any, most: int, mixer: Mixer = KEY) -> Counter[tuple[float, ...]]:
    """The rows that enter, as (owner, value)."""
    rows = gathered(limited(data, People(PERSON, most), ["owner", "value"], mixer))
    return Counter(map(tuple, np.where(np.isnan(rows), -9.0, rows).tolist()))


def of_person(rows: Counter[tuple[float, ...]], person: int) -> Counter[tuple[float, ...]]:
    return Counter({row: count for row, count in rows.items() if row[0] == person})


def expected_sizes(persons: np.ndarray, most: int) -> Counter[float]:
    sizes = Counter(persons[persons > 0].tolist())
    kept = {float(person): min(size, most) for person, size in sizes.items()}
    return (
        Counter({**kept, -1.0: int((persons < 0).sum())}) if (persons < 0).any() else Counter(kept)
    )


@pytest.mark.parametrize("kind", NAMES)
def test_nobody_elses_rows_decide_and_nobody_has_too_many(kind: str) -> None:
    random = np.random.default_rng(len(kind))
    for trial in range(12):
        persons = random_persons(random)
        if kind == "bool":
            persons = np.where(persons > 0, persons % 2 + 1, persons)
        values = random.integers(0, 4, len(persons)).astype(float)
        values[random.random(len(persons)) < 0.2] = np.nan
        most = int(random.choice([1, 2, 3, 1000]))
        before = entered(table_of(kind, persons, values), most)
        owners: Counter[float] = Counter()
        for (owner, _), count in before.items():
            owners[owner] += count
        assert owners == expected_sizes(persons, most)
        somebody = int(random.choice(persons[persons > 0]))
        others = persons != somebody
        after = entered(table_of(kind, persons[others], values[others]), most)
        # In another order, and with other rows of that person between.
        new = np.where(others, values, values + 100)
        order = random.permutation(len(persons))
        changed = entered(table_of(kind, persons[order], new[order]), most)
        for person in set(persons.tolist()) - {somebody}:
            assert of_person(before, person) == of_person(after, person)
            assert of_person(before, person) == of_person(changed, person), trial
        assert not of_person(after, somebody)


def test_objects_are_the_same_person_if_they_are_equal_and_only_then() -> None:
    class Text(str):
        def encode(self, *_: object, **__: object) -> bytes:
            raise AssertionError("called")

    alike = [
        [1, 1.0, True, np.int8(1), np.float32(1), Decimal("1.00"), Fraction(1), np.bool_(True)],
        [0, -0.0, Decimal("-0"), Decimal("0E+5000")],
        [0.5, Decimal("0.5"), Fraction(1, 2), np.float16(0.5)],
        [10**30, Decimal("1E30"), (1e30).as_integer_ratio()[0] + 10**30 - int(1e30)],
        [math.inf, Decimal("Infinity")],
        [-math.inf, Decimal("-Infinity")],
        ["1", b"1", np.str_("1"), Text("1")],
        ["\0n1"],
        [1 << 70],
        [Decimal("1E+5000"), Decimal("10E+4999")],
        [Decimal("1E-5000")],
        [date(2000, 1, 1)],
        [datetime(2000, 1, 1)],
        [UUID(int=1)],
        ["\udcff", "\udcff".encode("utf-8", "surrogatepass")],
    ]
    labels = [{label_of(each) for each in some} for some in alike]
    assert all(len(some) == 1 for some in labels)
    assert len(set.union(*labels)) == len(alike)
    nobody = [
        None,
        math.nan,
        np.nan,
        Decimal("NaN"),
        Decimal("sNaN"),
        "",
        b"",
        np.datetime64("NaT"),
    ]
    assert {label_of(each) for each in nobody} == {(b"", True)}
    assert {label_of(each) for each in ([1], {}, object(), 1j)} == {None}


def test_a_row_whose_id_cannot_be_told_is_left_out_and_one_without_an_id_enters() -> None:
    ids = [None, [1], "a", {}, "a", math.nan, object(), 7, 7.0, Decimal(7)]
    data = {PERSON: ids, "owner": np.arange(10.0), "value": np.zeros(10)}
    assert {row[0] for row in entered(data, 5)} == {0, 2, 4, 5, 7, 8, 9}
    assert len(entered(data, 1)) == 4


def test_ids_are_the_same_whatever_holds_them(tmp_path: Path) -> None:
    import polars as pl

    random = np.random.default_rng(3)
    persons = random_persons(random, 300)
    persons[persons < 0] = 1
    names = np.array([f"näme {person}" for person in persons])
    table = pa.table({PERSON: names, "owner": persons, "value": random.integers(0, 9, 300)})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=37)
    frame = table.to_pandas()
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    holders: list[Any] = [
        table,
        str(tmp_path / "t.parquet"),
        str(tmp_path / "t.csv"),
        str(tmp_path / "t.jsonl"),
        frame,
        frame.astype({PERSON: "category"}),
        frame.astype({PERSON: object}),
        pl.DataFrame(table),
        {PERSON: names, "owner": persons.astype(float), "value": frame["value"].to_numpy(float)},
        {name: frame[name].tolist() for name in frame},
        pa.table(
            {PERSON: table[PERSON].dictionary_encode(), **{n: table[n] for n in ("owner", "value")}}
        ),
        pa.Table.from_batches(table.to_batches(max_chunksize=7)),
    ]
    people = People(PERSON, 2)
    kept = [
        sorted(map(tuple, gathered(limited(each, people, ["owner", "value"])).tolist()))
        for each in holders
    ]
    # Codes, whole numbers and floats are unlike content to a hash: sizes are the same, and rows
    # are the same where the columns are read as the same types.
    sizes = [Counter(owner for owner, _ in rows) for rows in kept]
    assert all(each == sizes[0] for each in sizes)
    as_integers = [kept[place] for place in (0, 1, 4, 5, 6, 7, 10, 11)]
    as_floats = [kept[place] for place in (2, 3, 8, 9)]
    assert all(each == as_integers[0] for each in as_integers)
    assert all(each == as_floats[0] for each in as_floats)


def test_rows_on_disk_in_any_parts_by_any_number_of_threads_are_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = np.random.default_rng(5)
    persons = random_persons(random, 5000)
    table = table_of("text", persons % 40, random.integers(0, 5, 5000).astype(float))
    table = pa.Table.from_batches(table.to_batches(max_chunksize=100))
    plain = entered(table, 3)
    for memory, threads in ((1, 1), (1, 4), (5000, 3), (50_000, 1)):
        monkeypatch.setattr(unit_rows, "MEMORY_BYTES", memory)
        with paced(threads=threads):
            source = limited(table, People(PERSON, 3), ["owner", "value"])
            for _ in range(3):
                rows = gathered(source)
                assert Counter(map(tuple, np.where(np.isnan(rows), -9.0, rows).tolist())) == plain
    monkeypatch.setattr(unit_rows, "MEMORY_BYTES", 1 << 28)
    monkeypatch.setattr(unit_rows, "PART_BYTES", 1 << 10)
    assert entered(table, 3) == plain


@pytest.mark.parametrize("numbers", [None, 3])
def test_parts_that_are_too_large_for_memory_are_the_same(
    numbers: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if numbers is not None:
        few_numbers(monkeypatch, numbers)
    random = np.random.default_rng(15)
    persons = np.where(random.random(3000) < 0.6, 1, random_persons(random, 3000))
    table = table_of("long text", persons % 30, random.integers(0, 5, 3000).astype(float))
    table = pa.Table.from_batches(table.to_batches(max_chunksize=200))
    categories = categories_of({"value": [0, 1, 2]})
    one_each = People(PERSON, one_row_per=("value",))

    def found() -> list[Any]:
        return [
            entered(table, 3),
            entered(table, 500),
            sorted(gathered(limited(table, People(PERSON, 4, per="sum"), ["value"])).ravel()),
            sorted(gathered(open_source(table, people=People(PERSON, per="rows"))).ravel()),
            sorted(gathered(open_source(table, people=People(PERSON, 7, per="rows"))).ravel()),
            open_cells(table, ["value"], categories, people=one_each).count([(0,)])[0,].tolist(),
        ]

    plain = found()
    monkeypatch.setattr(unit_rows, "MEMORY_BYTES", 20_000)
    monkeypatch.setattr(unit_rows, "DEALT_BYTES", 3000)
    monkeypatch.setattr(unit_rows, "MOST_BITS", 2)
    for large, slab in ((1, 1 << 18), (2000, 100), (20_000, 7)):
        monkeypatch.setattr(unit_crowds, "LARGE_BYTES", large)
        monkeypatch.setattr(unit_crowds, "SLAB_ROWS", slab)
        assert found() == plain


def few_numbers(monkeypatch: pytest.MonkeyPatch, numbers: int) -> None:
    """Have the hash meet itself all the time."""
    whole = Mixer._finished
    monkeypatch.setattr(
        Mixer,
        "_finished",
        lambda self, mixed, purpose: whole(self, mixed, purpose) % np.uint64(numbers),
    )


@pytest.mark.parametrize("numbers", [1, 3])
def test_a_hash_that_meets_itself_changes_nothing_of_all_this(
    numbers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_numbers(monkeypatch, numbers)
    random = np.random.default_rng(numbers)
    for _ in range(20):
        persons = random_persons(random)
        values = random.integers(0, 4, len(persons)).astype(float)
        before = entered(table_of("long text", persons, values), 2)
        somebody = int(random.choice(persons[persons > 0]))
        order = random.permutation((persons != somebody).nonzero()[0])
        after = entered(table_of("long text", persons[order], values[order]), 2)
        assert before - of_person(before, somebody) == after


def test_columns_of_unlike_types_in_several_files_are_rows_of_the_same_people(
    tmp_path: Path,
) -> None:
    values = np.arange(12)
    persons = np.repeat([1, 2, 3], 4)
    for place, kind in enumerate([pa.int64(), pa.float64(), pa.decimal128(30, 2)]):
        rows = pa.table(
            {PERSON: persons, "owner": persons, "value": pa.array(values).cast(kind, safe=False)}
        )
        pq.write_table(rows, tmp_path / f"{place}.parquet")
    data = str(tmp_path / "*.parquet")
    kept = entered(data, 5)
    assert Counter(owner for owner, _ in kept.elements()) == {1: 5, 2: 5, 3: 5}
    sums = gathered(limited(data, People(PERSON, per="sum"), ["value"])).ravel()
    assert sorted(sums.tolist()) == [18.0, 66.0, 114.0]


def test_a_person_with_a_million_rows_has_as_few_as_anybody() -> None:
    rows = 1_000_000
    persons = np.ones(rows, np.int64)
    persons[::1000] = np.arange(2, 1002)
    values = np.arange(rows, dtype=float) % 7
    kept = entered(pa.table({PERSON: persons, "owner": persons, "value": values}), 3)
    assert Counter(owner for owner, _ in kept.elements()) == {
        1.0: 3,
        **{float(person): 1 for person in range(2, 1002)},
    }


def test_where_nobody_has_more_rows_everything_enters() -> None:
    persons = random_persons(np.random.default_rng(2), 200)
    values = np.arange(200.0)
    table = table_of("text", persons, values)
    assert entered(table, 1000) == Counter(zip(persons.tolist(), values.tolist(), strict=True))


def chosen_counts(mixer: Mixer, people: int, values: list[float], most: int) -> dict[float, int]:
    persons = np.repeat(np.arange(people), len(values))
    data = {PERSON: persons, "value": np.tile(values, people)}
    rows = gathered(limited(data, People(PERSON, most), ["value"], mixer)).ravel()
    return Counter(rows.tolist())


def chi_square(counts: dict[float, int], values: list[float]) -> float:
    """Of the numbers of entering rows against equal chances, over degrees of freedom."""
    weights = Counter(values)
    total = sum(counts.values())
    return sum(
        (counts.get(value, 0) - total * weight / len(values)) ** 2 / (total * weight / len(values))
        for value, weight in weights.items()
    )


def test_every_row_is_as_likely_as_any_other_copies_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """False alarms: a χ² of 5 degrees beyond 40 has a probability of 1.5e−7, one of 2 degrees of
    2.1e−9, and each is tried twice. Rows are drawn without replacement, which lowers it.
    """
    people = 30_000
    unlike = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    copies = [0.0, 0.0, 0.0, 0.0, 1.0, 2.0]
    for values in (unlike, copies):
        for most in (1, 2):
            assert chi_square(chosen_counts(Mixer.fresh(), people, values, most), values) < 40
    # Without numbers for copies, each value would be as likely as any other.
    monkeypatch.setattr(Mixer, "copies", lambda self, numbers, copies: numbers + (copies << 60))
    assert chi_square(chosen_counts(KEY, people, copies, 1), copies) > 1000


def test_the_choice_follows_from_a_fresh_secret_key() -> None:
    persons = np.repeat(np.arange(50), 10)
    data = {PERSON: persons, "owner": persons, "value": np.arange(500.0)}
    some = [entered(data, 1, Mixer.fresh()) for _ in range(3)]
    assert some[0] != some[1] != some[2]
    assert entered(data, 1) == entered(data, 1)
    assert repr(KEY) == "Mixer()"


def test_one_row_for_every_category_and_then_at_most_so_many() -> None:
    random = np.random.default_rng(4)
    persons = random.integers(1, 40, 2000)
    regions = random.choice(["a", "b", "c", "elsewhere"], 2000)
    data = pa.table({PERSON: persons, "region": regions})
    categories = categories_of({"region": ["a", "b", "c"]}, missing="drop")[0]
    everyone = open_cells(
        data, ["region"], [categories], people=People(PERSON, one_row_per=("region",))
    )
    present = {(p, r) for p, r in zip(persons.tolist(), regions.tolist(), strict=True)}
    expected = [sum(r == each for _, r in present) for each in "abc"]
    assert everyone.count([(0,)])[0,].tolist() == expected
    few = open_cells(
        data, ["region"], [categories], people=People(PERSON, 2, one_row_per=("region",))
    )
    # Somebody's two rows may be one that has no cell.
    assert 39 <= int(few.count([(0,)])[0,].sum()) <= 78


def test_sums_and_means_of_people_are_exact_whatever_their_rows() -> None:
    random = np.random.default_rng(6)
    rows = 4000
    persons = random.integers(0, 300, rows)
    persons[:500] = 0
    values = random.standard_normal(rows) * 10.0 ** random.integers(-300, 300, rows)
    values[random.random(rows) < 0.1] = np.nan
    values[persons == 7] = [1e308] * int((persons == 7).sum())
    values[persons == 8] = np.nan
    data = {PERSON: persons, "value": values}
    lists = {int(p): [v for v in values[persons == p].tolist() if v == v] for p in set(persons)}
    sums = {
        p: (math.fsum(some) if p != 7 else float("1.7976931348623157e308"))
        for p, some in lists.items()
    }
    for per in ("sum", "mean"):
        found = gathered(limited(data, People(PERSON, per=per), ["value"])).ravel()
        expected = [
            math.nan
            if not lists[p]
            else 1e308
            if (p, per) == (7, "mean")
            else total / (len(lists[p]) if per == "mean" else 1)
            for p, total in sums.items()
        ]
        np.testing.assert_array_equal(np.sort(found), np.sort(expected))


def test_a_person_is_in_the_group_of_one_of_its_rows_and_counts_once() -> None:
    random = np.random.default_rng(9)
    persons = random.integers(0, 200, 3000)
    regions = random.choice(["a", "b"], 3000, p=[0.8, 0.2])
    table = pa.table({PERSON: persons, "region": regions})
    categories = categories_of({"region": ["a", "b"]}, missing="drop")[0]
    for order in (np.arange(3000), random.permutation(3000)):
        source = open_cells(
            table.take(order), ["region"], [categories], people=People(PERSON, per="mean")
        )
        found = source.count([(0,)])[0,]
        assert found.sum() == len(set(persons.tolist()))
        assert found[0] > found[1] > 0


def test_rows_of_people_can_be_counted() -> None:
    persons = np.array([5, 5, 5, 2, 2, 9])
    data = {PERSON: np.where(persons == 9, np.nan, persons.astype(float))}
    source = open_source(data, people=People(PERSON, per="rows"))
    assert source.columns == ("rows",)
    assert sorted(gathered(source).ravel().tolist()) == [1, 2, 3]


def test_rows_of_which_nothing_can_be_read_are_nobodys(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("person,value\n1,2\n1,4\nragged\n1,8\n2,16\n,32\n,64\nbroken,1,2,3\n")
    source = open_source(str(path), ["value"], 1, people=People(PERSON, 1))
    assert source.rows() == 6
    assert np.isnan(gathered(source)).sum() == 2
    mean = open_source(str(path), ["value"], 1, people=People(PERSON, per="sum"))
    assert sorted(gathered(mean).ravel().tolist())[:4] == [14.0, 16.0, 32.0, 64.0]
    assert mean.rows() == 6
    assert sum(gathered(open_source(str(path), people=People(PERSON, per="rows"))).ravel()) == 8


def test_cells_of_others_that_are_no_numbers_change_nothing(tmp_path: Path) -> None:
    """A block of text with such a cell, or with such a letter, is read in another way."""
    cells = ["nan", "inf", "-inf", "1e400", "-0", "0", "5", "", "1e-400", "0.1", "NaN", "1", "2"]
    random = np.random.default_rng(31)
    mine = [f"b{p},{p},{cell}" for p in range(300) for cell in random.permutation(cells)]
    names = {"plain": "a,-5,7", "text": "a,-5,seven", "letter": "ä,-5,7", "both": "ä,-5,sieben ü"}
    kept = {}
    for name, other in names.items():
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join(["person,owner,value", other, *mine]) + "\n")
        kept[name] = entered(str(path), 2)
        assert sum(kept[name].values()) == 601
    mine_alone = {
        name: Counter({r: n for r, n in each.items() if r[0] >= 0}) for name, each in kept.items()
    }
    assert all(each == mine_alone["plain"] for each in mine_alone.values())


def test_objects_of_others_change_nothing() -> None:
    """A slice with an object of another kind is read in another way."""
    import pandas as pd

    mine: list[Any] = [each for p in range(100) for each in [f"b{p}", "\0n1", f"ü{p}", None] * 3]
    rows = len(mine) + 1
    values = {"owner": np.append(np.zeros(len(mine)), 1), "value": np.arange(rows) % 5.0}
    kept = []
    for other in ("a", 1, b"\xff", 2.5, "\udcff", object(), bytearray(b"b1")):
        ids = object_array([*mine, other])
        kept += [of_person(entered({PERSON: ids, **values}, 2), 0)]
        kept += [
            of_person(entered(pd.DataFrame({PERSON: pd.Series(ids, dtype=object), **values}), 2), 0)
        ]
    for other in ("a", "\udcff"):
        text = pd.Series([*mine, other], dtype=pd.StringDtype("python"))
        kept += [of_person(entered(pd.DataFrame({PERSON: text, **values}), 2), 0)]
    assert all(each == kept[0] for each in kept)


def object_array(values: list[Any]) -> np.ndarray:
    made = np.empty(len(values), object)
    made[:] = values
    return made


def test_a_line_of_json_without_the_key_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"person": 1, "v": 1}\n{"v": 2}\n{"person": null, "v": 4}\nbroken\n')
    source = open_source(str(path), ["v"], 1, people=People(PERSON, 5))
    assert sorted(gathered(source).ravel().tolist()) == [1.0, 4.0]
    wrong = open_source(str(path), ["v"], 1, people=People("persn", 5))
    assert wrong.rows() == 0


class Elsewhere(Source):
    """An engine that brings people together in three partitions, and has sums come home."""

    def __init__(self, source: Source, persons: np.ndarray) -> None:
        assert isinstance(source, PartitionedSource)
        self.columns, self.types = source.columns, source.types
        self._source, self._persons = source, persons

    known_rows = None

    def rows(self) -> int:
        return self._source.rows()

    def check_unchanged(self) -> None:
        self._source.check_unchanged()

    def together(self) -> Source:
        return self

    def fold(self, accumulator: Callable[[], Accumulated]) -> list[Accumulated] | None:
        (batch,) = [batch for part in self._source.partitions() for batch in part.batches()]
        total = accumulator()
        for part in range(3):
            there = copy.deepcopy(accumulator())
            rows = (self._persons % 3 == part).nonzero()[0]
            values = [column.pick(rows) for column in batch.columns[:-1]]
            ids = IdentityCoder().of_array(self._persons[rows])
            there.add(type(batch)(len(rows), [*values, ids]))
            total.absorb(unpacked(packed(there.state())))
        return [total]


@pytest.mark.parametrize("per", ["row", "mean", "rows"])
def test_people_on_a_cluster_have_the_sums_that_they_have_here(per: str) -> None:
    random = np.random.default_rng(12)
    persons = random.integers(0, 50, 900)
    data = {PERSON: persons, "value": random.standard_normal(900)}
    lattice = BoxLattice.around([-1.0], [2.0])
    people = People(PERSON, 3, per=per)
    names = [PERSON] if per == "rows" else ["value", PERSON]
    source = open_source(data, names, coders=[*(None for _ in names[1:]), IdentityCoder()])
    there = of_people(Elsewhere(source, persons), people, (), KEY)
    here = of_people(source, people, (), KEY)
    assert isinstance(there, PeopleElsewhere)
    assert exact_sums(there, lattice) == exact_sums(here, lattice)
    assert there.rows() == here.rows()


def test_what_waits_on_disk_has_no_name_and_belongs_to_the_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(unit_rows, "MEMORY_BYTES", 1000)
    modes: list[int] = []
    whole = tempfile.TemporaryFile

    def seen() -> Any:
        file = whole()
        modes.append(os.fstat(file.fileno()).st_mode & 0o777)
        return file

    monkeypatch.setattr(tempfile, "TemporaryFile", seen)
    persons = np.arange(5000) % 100
    data = {PERSON: persons, "owner": persons, "value": np.arange(5000.0)}
    assert sum(entered(data, 2).values()) == 200
    assert set(modes) == {0o600}
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(unit_rows._Disk, "read", broken)
    source = limited(data, People(PERSON, 2), ["value"])
    with pytest.raises(SourceFailed) as failed:
        exact_sums(source, BoxLattice.around([0.0], [1.0]))
    assert "4711" not in str(failed.value)
    monkeypatch.setattr(unit_rows._Disk, "write", broken)
    with pytest.raises(SourceFailed):
        exact_sums(limited(data, People(PERSON, 2), ["value"]), BoxLattice.around([0.0], [1.0]))
    assert not list(tmp_path.iterdir())


def broken(*_: object) -> Any:
    raise OSError("no space left for 4711")


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "no rows": (lambda: People(PERSON, 0), "max_rows must be a whole number of at least 1"),
    "rows less than none": (lambda: People(PERSON, -3), "max_rows must be"),
    "half a row": (lambda: People(PERSON, 1.5), "max_rows must be a whole number"),
    "rows not said": (lambda: People(PERSON), "max_rows must say how many rows"),
    "no name": (lambda: People(3.5, 1), "unit must be the name"),
    "no way": (lambda: People(PERSON, 1, per="median"), "per must be one of"),
    "averaged": (
        lambda: open_source(DATA, ["value", PERSON], people=People(PERSON, 1)),
        "unit must not be one of the columns",
    ),
    "missing": (
        lambda: open_source(DATA, ["value"], people=People("persn", 1)),
        "Did you mean 'person'",
    ),
    "not named": (lambda: open_source(DATA, people=People(PERSON, 1)), "columns must be named"),
    "a list": (
        lambda: open_source(
            pa.table({PERSON: [[1], [2]], "value": [1, 2]}), ["value"], people=People(PERSON, 1)
        ),
        "cannot name people",
    ),
    "cells of numbers": (
        lambda: open_source(DATA, ["value"], people=People(PERSON, 1, one_row_per=("value",))),
        "one_row_per must be columns that are read as categories",
    ),
    "dimensions": (
        lambda: open_source(DATA, ["value"], 2, people=People(PERSON, 1)),
        "got 1 for a domain of dimension 2",
    ),
}
DATA = {PERSON: np.arange(3), "value": np.zeros(3)}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_before_a_value_is_read(case: str) -> None:
    call, words = REFUSED[case]
    with pytest.raises(InvalidInput, match=words.replace("(", "\\(")):
        call()


def test_files_that_name_people_in_two_ways_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({PERSON: [1, 2], "value": [1, 2]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({PERSON: ["1", "2"], "value": [1, 2]}), tmp_path / "b.parquet")
    with pytest.raises(InvalidInput, match="could have two ids"):
        open_source(str(tmp_path / "*.parquet"), ["value"], people=People(PERSON, 1))
    pq.write_table(
        pa.table({PERSON: pa.array([1, 2], pa.int32()), "value": [1, 2]}), tmp_path / "b.parquet"
    )
    source = open_source(str(tmp_path / "*.parquet"), ["value"], people=People(PERSON, 1))
    assert source.rows() == 2


def test_columns_of_an_array_may_be_people_too() -> None:
    data = np.array([[1.0, 5.0], [1.0, 6.0], [2.0, 7.0], [np.nan, 8.0]])
    source = open_source(data, [1], 1, people=People(0, 1))
    assert source.rows() == 3
    assert source.columns == ("1",)
    assert open_source(data.tolist(), [1], 1, people=People(0, 1)).rows() == 3


@pytest.mark.slow
def test_a_million_pairs_of_neighbouring_tables_differ_in_one_person_alone() -> None:
    """A table has six people of up to nine rows; all rows of one of them are replaced."""
    random = np.random.default_rng(77)
    tables, people, most = 1_000_000, 6, 2
    for part in range(4):
        rows = random.poisson(1.5, (tables // 4, people))
        persons = np.repeat(np.arange(rows.size), rows.reshape(-1))
        values = random.integers(0, 3, len(persons)).astype(float)
        changes = persons % people == part
        kept_rows = (~changes).nonzero()[0]
        extra = np.repeat(np.arange(tables // 4) * people + part, random.poisson(1.5, tables // 4))
        order = random.permutation(len(kept_rows) + len(extra))
        new_persons = np.concatenate([persons[kept_rows], extra])[order]
        new_values = np.concatenate(
            [values[kept_rows], random.integers(0, 3, len(extra)).astype(float)]
        )[order]
        before = cells_entered(persons, values, most, rows.size)
        after = cells_entered(new_persons, new_values, most, rows.size)
        assert before.sum(axis=1).max() == most == after.sum(axis=1).max()
        same = (before == after).all(axis=1).reshape(-1, people)
        same[:, part] = True
        assert same.all()
        moved = np.abs(before - after).reshape(-1, people * 3).sum(axis=1)
        assert moved.max() == 2 * most


def cells_entered(persons: np.ndarray, values: np.ndarray, most: int, people: int) -> np.ndarray:
    data = {PERSON: persons, "owner": persons.astype(float), "value": values}
    found = gathered(limited(data, People(PERSON, most), ["owner", "value"])).astype(np.int64)
    return np.bincount(found[:, 0] * 3 + found[:, 1], minlength=people * 3).reshape(people, 3)
