"""A release written down: what a file means, its digest, and mistakes with their lines."""

from __future__ import annotations

import json
import tomllib

import pytest

import muhat as mh
from muhat.errors import InvalidInput
from muhat.statistics.specification import Specification
from muhat.statistics.toml_document import toml_lines

WHOLE = """\
title = "Income in 2025"
note = "yearly"
team = "labour"

[privacy]
rho = 0.5

[data]
n = "secret"

[schema]
unit = "person"
max_rows = 3
complete = ["age"]

[schema.columns]
salary = "0:200000"
age = {bounds = [16, 90]}
region = ["north", "south"]
sex = {categories = ["f", "m"]}
joined = {bins = [2000, 2010, inf]}
trade = "learn"

[[statistic]]
kind = "mean"
column = "salary"
by = ["region", "sex"]
target = {standard_error = 200}
n_group = 2000

[[statistic]]
kind = "standard_deviation"
column = "age"
weight = 2

[[statistic]]
kind = "regression"
formula = "salary ~ age"

[[statistic]]
kind = "quantile"
column = "salary"
q = [0, 0.5, 1]

[[statistic]]
kind = "count"
by = "trade"

[[statistic]]
kind = "queries"
columns = ["region", "joined"]
workload = {marginals = 2}
"""


def test_a_file_means_what_python_would_say(tmp_path):
    file = tmp_path / "release.toml"
    file.write_text(WHOLE)
    read = Specification.read(file)
    assert read.schema == mh.Schema(
        {
            "salary": (0, 200_000),
            "age": (16, 90),
            "region": ["north", "south"],
            "sex": ["f", "m"],
            "joined": mh.Bins([2000, 2010, float("inf")]),
            "trade": "learn",
        },
        unit="person",
        max_rows=3,
        complete=["age"],
    )
    table = mh.workloads.marginals((2, 2), order=2)
    assert read.statistics == (
        mh.Mean("salary", by=["region", "sex"], target={"standard_error": 200}, n_group=2000),
        mh.StandardDeviation("age", weight=2),
        mh.Regression("salary ~ age"),
        mh.Quantile("salary", q=[0, 0.5, 1]),
        mh.Count(by="trade"),
        mh.Queries(table, columns=["region", "joined"]),
    )
    assert read.privacy == mh.ZCDP(0.5)
    assert (read.n, read.neighbors) == ("secret", None)
    assert (read.title, read.note, read.team) == ("Income in 2025", "yearly", "labour")
    assert read.text == WHOLE


def short(rest: str = "", privacy: str = "rho = 1", data: str = "", columns: str = "") -> str:
    return (
        f"[privacy]\n{privacy}\n[data]\n{data}\n[schema.columns]\n"
        f'age = "16:90"\nsex = ["f", "m"]\nyear = {{bins = [0, 1, 2, 3]}}\n{columns}\n'
        f'[[statistic]]\nkind = "count"\n{rest}'
    )


PROMISES = {
    "rho = 0.5": mh.ZCDP(0.5),
    "mu = 1": mh.GDP(1),
    "epsilon = 1": mh.PureDP(1),
    "epsilon = 1\ndelta = 1e-6": mh.ApproxDP(1, 1e-6),
    "alpha = 2\nepsilon = 1": mh.RDP(alpha=2, epsilon=1),
}


@pytest.mark.parametrize(("numbers", "promise"), PROMISES.items(), ids=PROMISES.keys())
def test_promises_are_written_as_on_the_command_line(numbers, promise):
    assert Specification.parse(short(privacy=numbers)).privacy == promise


def test_the_number_of_records_is_public_secret_or_counted():
    assert Specification.parse(short()).n == "counted"
    assert Specification.parse(short(data="n = 500")).n == 500
    replaced = Specification.parse(short(data='n = 500\nneighbors = "substitute"'))
    assert replaced.neighbors is mh.Neighbors.SUBSTITUTE
    assert Specification.parse(short(data='neighbors = "add-remove"')).n == "counted"


WORKLOADS = {
    '["sex", "year"]\nworkload = {identity = true}': mh.workloads.identity((2, 3)),
    '"year"\nworkload = {prefix = true}': mh.workloads.prefix(3),
    '["sex", "year"]\nworkload = {prefix = true}': mh.workloads.kron(
        mh.workloads.prefix(2), mh.workloads.prefix(3)
    ),
    '"year"\nworkload = {ranges = true}': mh.workloads.ranges(3),
    '["sex", "year"]\nworkload = {marginals = [1, 2]}': mh.workloads.marginals((2, 3), [1, 2]),
    '["sex", "year"]\nworkload = {marginals = [[], ["year"]]}': mh.workloads.marginals(
        (2, 3), sets=[(), (1,)]
    ),
    '"sex"\nworkload = {matrix = [[1, 1], [1, 0]]}': mh.workloads.matrix([[1, 1], [1, 0]]),
}


@pytest.mark.parametrize(("written", "workload"), WORKLOADS.items(), ids=WORKLOADS.keys())
def test_a_workload_is_built_from_the_sizes_of_its_columns(written, workload):
    text = short(f'[[statistic]]\nkind = "queries"\ncolumns = {written}')
    assert Specification.parse(text).statistics[1].workload == workload


def test_a_specification_comes_back_from_json():
    read = Specification.parse(WHOLE)
    assert Specification.from_dict(json.loads(json.dumps(read.to_dict()))) == read


def test_the_digest_is_of_the_meaning():
    digest = Specification.parse(WHOLE).digest
    lines = WHOLE.splitlines()
    first, second = lines.index("[privacy]"), lines.index("[data]")
    moved = [
        *lines[:first],
        *lines[second : second + 3],
        *lines[first:second],
        *lines[second + 3 :],
    ]
    same = {
        "lines": "\n".join(moved),
        "spaces": WHOLE.replace(" = ", "   =  ").replace("\n", "  # a comment\n"),
        "numbers": WHOLE.replace("rho = 0.5", "rho = 5e-1").replace("weight = 2", "weight = 2.0"),
        "words": WHOLE.replace('"0:200000"', "{bounds = [0.0, 2e5]}").replace("yearly", "again"),
    }
    for text in same.values():
        assert Specification.parse(text).digest == digest
    others = [
        WHOLE.replace("rho = 0.5", "rho = 0.6"),
        WHOLE.replace('n = "secret"', ""),
        WHOLE.replace("max_rows = 3", "max_rows = 4"),
        WHOLE.replace("weight = 2", "weight = 3"),
        WHOLE.replace("salary ~ age", "age ~ salary"),
        WHOLE.replace("marginals = 2", "marginals = 1"),
    ]
    assert len({digest, *(Specification.parse(text).digest for text in others)}) == 7


MISTAKES = {
    "no TOML": ("rho = 0.5", "rho 0.5", 6, "Text stands in quotes"),
    "an open string": ('title = "Income in 2025"', 'title = "Income', 1, "quotes"),
    "a key twice": ("max_rows = 3", 'unit = "id"', 13, "cannot overwrite a value"),
    "a section": ("[privacy]", "[privacyy]", 5, "Did you mean 'privacy'?"),
    "a key of the top": ('title = "I', 'titel = "I', 1, "Did you mean 'title'?"),
    "a title": ('title = "Income in 2025"', "title = 3", 1, "title must be text"),
    "a number's name": ("rho = 0.5", "roh = 0.5", 6, "Did you mean 'rho'?"),
    "two promises": ("rho = 0.5", "rho = 0.5\nmu = 1", 5, "exactly one of: epsilon; epsilon and d"),
    "no promise": ("rho = 0.5", "rho = 0", 6, "rho must be greater than 0"),
    "a promise in words": ("rho = 0.5", 'rho = "much"', 6, "rho must be a number"),
    "n misspelt": ('"secret"', '"secert"', 9, 'must be a whole number, or "secret"'),
    "n below": ('"secret"', "0", 9, "n must be a whole number of at least 1"),
    "a key of data": ('n = "s', 'm = "s', 9, "nothing is called 'm' here"),
    "relation": ('n = "secret"', 'neighbors = "replace"', 9, "neighbors must be one of"),
    "secret and replaced": (
        'n = "secret"',
        'neighbors = "substitute"\nn = "secret"',
        10,
        'neighbors = "add-remove"',
    ),
    "public and removed": (
        'n = "secret"',
        'neighbors = "add-remove"\nn = 5',
        10,
        'neighbors = "substitute"',
    ),
    "a key of the schema": ("max_rows = 3", "max_row = 3", 13, "Did you mean 'max_rows'?"),
    "no rows": ("max_rows = 3", "max_rows = 0", 13, "max_rows must be a whole number of at"),
    "rows of anybody": ("max_rows = 3", "", 12, "unit needs max_rows"),
    "complete": ('complete = ["age"]', 'complete = ["aeg"]', 14, "Did you mean 'age'?"),
    "bounds reversed": ('"0:200000"', '"200000:0"', 17, "Are they swapped?"),
    "bounds in words": ('"0:200000"', '"low:high"', 17, 'must be bounds, "0:200000"'),
    "a number alone": ('"0:200000"', "200000", 17, 'must be bounds, "0:200000"'),
    "bounds as text": ("[16, 90]", '"16:90"', 18, "the bounds of column 'age' must be a list"),
    "a key of a column": ("{bounds = [16", "{bonds = [16", 18, "Did you mean 'bounds'?"),
    "categories twice": ('["north", "south"]', '["north", "north"]', 19, "must not repeat a label"),
    "categories mixed": ('["north", "south"]', '["north", 1]', 19, "not mixed"),
    "bins": ("[2000, 2010, inf]", "[2010, 2000]", 21, "increasing edges"),
    "dates": ("[2000, 2010, inf]", "[2000-01-01, 2010-01-01]", 21, "got date"),
    "a kind": ('"mean"', '"meen"', 25, "Did you mean 'mean'?"),
    "no kind": ('kind = "mean"\n', "", 24, "kind must be one of 'count'"),
    "a key of a statistic": ('column = "age"', 'colunm = "age"', 33, "Did you mean 'column'?"),
    "no column": ('column = "age"\n', "", 31, "needs column = …"),
    "a key of another": ("weight = 2", "q = 0.5", 34, "nothing is called 'q' here"),
    "an unknown column": ('column = "age"', 'column = "aeg"', 33, "Did you mean 'age'?"),
    "unknown groups": ('["region", "sex"]', '["region", "sexes"]', 27, "Did you mean 'sex'?"),
    "groups of numbers": ('["region", "sex"]', '["age"]', 27, "declare bins"),
    "numbers of groups": ('column = "age"', 'column = "sex"', 33, 'in a file by "0:100"'),
    "no weight": ("weight = 2", "weight = 0", 34, "weight must be greater than 0"),
    "a target": (
        "standard_error = 200",
        "standard_eror = 200",
        28,
        "Did you mean 'standard_error'",
    ),
    "a target of nothing": ("standard_error = 200", "standard_error = 0", 28, "greater than 0"),
    "a group of any size": ("n_group = 2000", "", 28, "needs n_group"),
    "a formula": ('"salary ~ age"', '"salary ~ age * sex"', 38, "columns of their own"),
    "a formula's column": ('"salary ~ age"', '"salary ~ aeg"', 38, "Did you mean 'age'?"),
    "per cent": ("[0, 0.5, 1]", "[0, 50, 100]", 43, "50 per cent is 0.5"),
    "a workload": ("{marginals = 2}", "{marginal = 2}", 52, "Did you mean 'marginals'?"),
    "half a workload": ("{marginals = 2}", "{prefix = 2}", 52, "{prefix = true}"),
    "no workload": ("{marginals = 2}", "3", 52, "must be a table of one key"),
    "a marginal": ("{marginals = 2}", '{marginals = [["sex"]]}', 52, "a marginal must be one of"),
    "cells to learn": ('["region", "joined"]', '["region", "trade"]', 51, "are learnt"),
    "one statistic": ("[[statistic]]", "[statistic]", 24, "in two pairs of brackets"),
    "twice": (
        'kind = "count"\nby = "trade"',
        'kind = "regression"\nformula="salary ~age"',
        45,
        "twice",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_said_with_its_line(mistake):
    right, wrong, line, words = mistake
    text = WHOLE.replace(right, wrong, 1)
    if wrong == "[statistic]":
        text = text.split("\n\n[[")[0] + "\n"
    assert text != WHOLE
    with pytest.raises(InvalidInput) as refused:
        Specification.parse(text, "release.toml")
    said = str(refused.value)
    assert said.startswith(f"release.toml, line {line}: "), said
    assert words in said


SHAPES = {
    "nothing": ("", r"^the specification: a section \[schema\] is needed"),
    "no promise": (
        'schema.columns.age = "0:1"\nstatistic = [{kind="count"}]',
        r"\[privacy\] with e",
    ),
    "no statistic": ('schema.columns.age = "0:1"\nprivacy.rho = 1', "nothing is asked for: add"),
    "no table": ("schema = 3", r"line 1: schema must be a table: \[schema\]"),
    "no tables": ("schema.unit = 'a'\nschema.max_rows = 1\nstatistic = 3", "statistics are tables"),
    "columns in a list": ("schema = {columns = [1]}", "schema.columns must be a table"),
    "nested": (f"a = {'[' * 5000}{']' * 5000}", "nested too deeply"),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_a_text_of_another_shape_is_refused(shape):
    text, words = shape
    with pytest.raises(InvalidInput, match=words):
        Specification.parse(text)


def test_files_that_are_no_specifications_are_refused_without_a_word_of_them(tmp_path):
    table = tmp_path / "people.csv"
    table.write_text("secret = 1")
    with pytest.raises(InvalidInput, match=r"ends in .toml; got 'people.csv'"):
        Specification.read(table)
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        Specification.read(tmp_path / "none.toml")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"PAR1\xff\xfe")
    with pytest.raises(InvalidInput, match=r"binary.toml is no text in UTF-8"):
        Specification.read(binary)
    marked = tmp_path / "marked.toml"
    marked.write_bytes(b"\xef\xbb\xbf" + WHOLE.encode())
    assert Specification.read(marked).digest == Specification.parse(WHOLE).digest


ODD = '''\
# [comment]
a."b c".'d' = 1  # = 2
text = """
[no.table]
key = 1 \\""" "" """""
raw = \'\'\'
[neither]\'\'\'
list = [ # [
  "]", [1,
  2], {x = 1}]
[ t . "u.v" ]
k = "# [no]"
[[t.many]]
[[t.many]]
[t.many.below]
z = {y = [1]}
'''


def test_lines_are_found_in_odd_texts():
    tomllib.loads(ODD)
    assert toml_lines(ODD) == {
        ("a",): 2,
        ("a", "b c"): 2,
        ("a", "b c", "d"): 2,
        ("text",): 3,
        ("raw",): 6,
        ("list",): 8,
        ("t",): 11,
        ("t", "u.v"): 11,
        ("t", "u.v", "k"): 12,
        ("t", "many"): 13,
        ("t", "many", 0): 13,
        ("t", "many", 1): 14,
        ("t", "many", 1, "below"): 15,
        ("t", "many", 1, "below", "z"): 16,
    }
