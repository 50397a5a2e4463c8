"""Products in integers: every part as if it were alone, records dropped from all parts alike."""

from __future__ import annotations

import numpy as np

from muhat.data import exact_sums, open_source
from muhat.data.engine import record_integers
from muhat.domains.lattice import (
    BallLattice,
    BoxLattice,
    MomentLattice,
    PointsLattice,
    ProductLattice,
    SimplexLattice,
)
from muhat.domains.moment_basis import TensorBasis
from muhat.domains.moment_differences import WeightedSets
from muhat.records.columns import Batch

PARTS = (
    BoxLattice.around([0.0, -1.0], [1.0, 5.0]),
    SimplexLattice(3, offset=(1.0, 2.0, 3.0)),
    PointsLattice.of([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], nearest=True),
    MomentLattice.of(WeightedSets.whole(TensorBasis(2, 2))),
    BallLattice.around([1.0], 2.0),
)
PRODUCT = ProductLattice(PARTS)
RNG = np.random.default_rng(42)
X = RNG.normal(size=(4000, 10)) * 3
X[::50, 3] = np.nan
X[::70, 9] = np.inf
X[5] = 1e308


def integers(lattice, x, missing="center"):
    return record_integers(lattice, Batch(len(x), matrix=np.ascontiguousarray(x)), missing)


def test_every_part_is_summed_as_if_it_were_alone():
    whole = exact_sums(open_source(X, None, 10), PRODUCT)
    parts, start = [], 0
    for part in PARTS:
        stop = start + part.record_dim
        x = np.ascontiguousarray(X[:, start:stop])
        alone = exact_sums(open_source(x, None, x.shape[1]), part)
        parts += alone.total
        assert alone.rows == whole.rows
        start = stop
    assert whole.total == tuple(parts)
    assert whole.total == tuple(sum(column) for column in integers(PRODUCT, X).T.tolist())


def test_a_record_is_dropped_from_all_parts_alike():
    complete = np.isfinite(X).all(axis=1)
    dropped = exact_sums(open_source(X, None, 10), PRODUCT, missing="drop")
    assert dropped == exact_sums(open_source(X[complete], None, 10), PRODUCT)
    assert not integers(PRODUCT, X, "drop")[~complete].any()


def test_a_ragged_line_counts_like_a_line_of_missing_values(tmp_path):
    names = ",".join("abcdefghij")
    line = ",".join(["0.5"] * 10)
    (tmp_path / "ragged.csv").write_text(f"{names}\n{line}\n1\n{line}\n")
    (tmp_path / "missing.csv").write_text(f"{names}\n{line}\n{',' * 9}\n{line}\n")
    sums = [
        exact_sums(open_source(tmp_path / name, None, 10), PRODUCT)
        for name in ("ragged.csv", "missing.csv")
    ]
    assert sums[0] == sums[1]
