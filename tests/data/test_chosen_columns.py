"""Some columns of a source: the same sums as of data that have no others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from muhat.data import exact_sums, open_source
from muhat.data.chosen_columns import ChosenColumns
from muhat.data.states import packed, unpacked
from muhat.domains.lattice import BoxLattice
from muhat.errors import SourceFailed

LATTICE = BoxLattice.around([0.0, 0.0], [1.0, 2.0])


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    found = pd.DataFrame(rng.random((300, 3)), columns=["a", "b", "c"])
    found.loc[::7, "b"] = np.nan
    found.loc[::11, "c"] = np.nan
    return found


@pytest.mark.parametrize("kind", ["array", "frame", "csv", "parquet"])
def test_chosen_columns_have_the_sums_of_data_without_the_others(kind: str, tmp_path: Path) -> None:
    table = frame()
    wanted = exact_sums(open_source(table[["c", "a"]], None, 2), LATTICE)
    data: object = table.to_numpy() if kind == "array" else table
    if kind in ("csv", "parquet"):
        data = tmp_path / f"d.{kind}"
        table.to_csv(data, index=False) if kind == "csv" else table.to_parquet(data)
    chosen = ChosenColumns(open_source(data, None, 3), [2, 0])
    assert chosen.columns == (("2", "0") if kind == "array" else ("c", "a"))
    assert (chosen.dim, chosen.rows()) == (2, 300)
    assert exact_sums(chosen, LATTICE) == wanted
    chosen.check_unchanged()


def test_what_is_added_elsewhere_comes_home() -> None:
    whole = open_source(frame(), None, 3)
    sent = []

    class Elsewhere(type(whole)):  # type: ignore[misc]
        """Each accumulator sends its state to another one."""

        def fold(self, accumulator):  # type: ignore[no-untyped-def]
            home = accumulator()
            for one in super().fold(accumulator):
                sent.append(packed(one.state()))
                home.absorb(unpacked(sent[-1]))
            return [home]

    away = open_source(frame(), None, 3)
    away.__class__ = Elsewhere
    assert exact_sums(ChosenColumns(away, [2, 0]), LATTICE) == exact_sums(
        ChosenColumns(whole, [2, 0]), LATTICE
    )
    assert sent


def test_what_cannot_be_read_is_said_without_a_cause() -> None:
    whole = open_source(frame(), None, 3)
    whole.fold = lambda accumulator: None  # type: ignore[method-assign]
    with pytest.raises(SourceFailed):
        exact_sums(ChosenColumns(whole, [0, 2]), LATTICE)
