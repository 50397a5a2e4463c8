"""Moment tensors in integers: inside their ball, record by record, and right."""

from __future__ import annotations

import numpy as np
import pytest

import muhat as mh
from muhat.data import exact_sums, open_source
from muhat.data.columns import Batch
from muhat.data.kernel import record_integers
from muhat.mechanisms.body import Body

CASES = [(1, 3), (2, 2), (2, 4), (3, 2), (4, 2)]
RNG = np.random.default_rng(40)


def body_of(order, dim):
    K = mh.MomentTensor(order=order, dim=dim)
    return K, Body.of(K, 2, np.ones(K.dim))


def hostile(rows, dim):
    x = RNG.normal(size=(rows, dim)) * RNG.choice([1e-3, 0.5, 1, 3, 1e150], rows)[:, None]
    x[:50] /= np.linalg.norm(x[:50], axis=1)[:, None]
    x[50:60] = [[np.nan], [np.inf], [-np.inf], [1e308], [-1e308], [5e-324], [-0.0], [0], [1], [-1]]
    return x


def integers(lattice, x):
    return record_integers(lattice, Batch(len(x), matrix=np.ascontiguousarray(x)))


@pytest.mark.parametrize(("order", "dim"), CASES)
def test_every_record_lies_in_the_ball(order, dim):
    _, body = body_of(order, dim)
    q = integers(body.lattice, hostile(20_000, dim)).astype(object)
    assert max((q**2).sum(axis=1)) <= body.lattice.radius**2


@pytest.mark.parametrize(("order", "dim"), CASES)
def test_the_integers_stand_for_the_lifted_record(order, dim):
    K, body = body_of(order, dim)
    x = np.clip(hostile(2_000, dim), -1e150, 1e150)
    y = integers(body.lattice, x).astype(float) * float(body.lattice.grid)
    assert np.allclose(body.center + y @ body.transform.T, K.clip(x), atol=1e-9)


@pytest.mark.parametrize(("order", "dim"), CASES)
def test_a_record_does_not_depend_on_the_others(order, dim):
    _, body = body_of(order, dim)
    x = hostile(300, dim)
    together = integers(body.lattice, x)
    for start, stop in ((0, 1), (7, 8), (50, 60), (100, 299)):
        assert (integers(body.lattice, x[start:stop]) == together[start:stop]).all()


def test_a_ragged_line_counts_like_a_line_of_missing_values(tmp_path):
    _, body = body_of(2, 2)
    (tmp_path / "ragged.csv").write_text("a,b\n0.5,0.5\n1\n0.1,0.2\n")
    (tmp_path / "missing.csv").write_text("a,b\n0.5,0.5\n,\n0.1,0.2\n")
    sums = [
        exact_sums(open_source(tmp_path / name, None, 2), body.lattice)
        for name in ("ragged.csv", "missing.csv")
    ]
    assert sums[0] == sums[1]
    assert sums[0].rows == 3


def test_incomplete_records_are_dropped_on_request():
    _, body = body_of(2, 2)
    x = np.array([[0.5, 0.5], [np.nan, 0.1], [0.1, 0.2]])
    dropped = exact_sums(open_source(x, None, 2), body.lattice, missing="drop")
    assert dropped == exact_sums(open_source(x[[0, 2]], None, 2), body.lattice)
