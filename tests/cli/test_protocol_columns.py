"""`muhat protocol --q` and `--cells`: quantiles and counts of one column, by the same programs."""

from __future__ import annotations

import numpy as np
import pytest
from protocol_command import run

import muhat as mh

AGE = ("--bounds", "age=16:90")
pytestmark = pytest.mark.usefixtures("own_device")

LOCAL = ("--epsilon", "2")
SHUFFLE = (*LOCAL, "--delta", "1e-6", "--model", "shuffle")


@pytest.fixture
def people(tmp_path):
    rows = np.random.default_rng(3).uniform(20, 60, 400)
    path = tmp_path / "people.csv"
    path.write_text("pay,age\n" + "\n".join(f"1,{age:.3f}" for age in rows) + "\n")
    return path


@pytest.mark.parametrize(
    ("asked", "kind"), [(("--cells", 4), "ranges"), (("--q", "0.25,0.5"), "quantile")]
)
def test_all_programs_take_quantiles_and_counts(tmp_path, people, asked, kind):
    first, sent = tmp_path / "round1.json", tmp_path / "sent.bin"
    run("new", *AGE, *asked, *LOCAL, "--n", 400, "--out", first)
    assert "400 people's numbers" in run("show", first).stdout
    run("client", first, people, "--columns", "age", "--out", sent)
    result = mh.Release.from_json(run("server", first, sent, "--json").stdout)
    assert result.statistic == kind
    assert result.columns == ("age",)
    assert result.n == 400
    assert "age · 2-DP" in run("server", first, sent).stdout


def test_counts_are_mixed_by_the_shuffler(tmp_path, people):
    first, sent, mixed = (tmp_path / name for name in ("round1.json", "sent.bin", "mixed.bin"))
    run("new", *AGE, "--cells", 2, *SHUFFLE, "--n", 400, "--out", first)
    run("client", first, people, "--columns", "age", "--out", sent)
    run("shuffle", first, sent, "--out", mixed)
    result = mh.Release.from_json(run("server", first, mixed, "--json").stdout)
    assert result.value.sum() == pytest.approx(400)
    assert result.edges.tolist() == [16, 53, 90]


def test_simulations_take_one_quantile_or_all_cells(people):
    done = run("simulate", people, *AGE, "--cells", 4, *SHUFFLE)
    assert "Round 1, shuffle model" in done.stderr
    assert "Private counts of age" in done.stdout
    done = run("simulate", people, *AGE, "--q", "0.5", *LOCAL, "--json", "--quiet")
    assert mh.Release.from_json(done.stdout).q == 0.5


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((*AGE, "--cells", 4, "--q", "0.5"), "give one"),
        ((*AGE, "--cells", 1), "cells must be a whole number of at least 2"),
        ((*AGE, "--q", "half"), "'half' in '--q half' is not a number"),
        ((*AGE, "--q", "1.5"), "q must lie strictly between 0 and 1"),
        ((*AGE, "--bounds", "pay=0:1", "--cells", 4), "one column"),
        ((*AGE, "--columns", "pay", "--cells", 4), "one column"),
        (("--ball", "1", "--dim", "1", "--cells", 4), "one column"),
        (("--magnitude", "1", "--q", "0.5"), "one column"),
        (("--cells", 4), "--bounds COLUMN=LOW:HIGH"),
    ],
    ids=str,
)
def test_mistakes_are_explained(arguments, said):
    assert said in run("new", *arguments, *LOCAL, "--n", 400, code=2).stderr
