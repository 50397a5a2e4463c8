"""Even moments in integers: close to the exact powers of one point, and never far apart."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest

import muhat as mh
from muhat.data import exact_sums, open_source
from muhat.data.engine import record_integers
from muhat.domains.lattice import MomentLattice
from muhat.records.columns import Batch
from muhat.records.norms import in_unit_ball

CASES = [(2, 2), (2, 5), (4, 2), (4, 3), (6, 2)]
RNG = np.random.default_rng(41)


def hostile(rows: int, dim: int) -> np.ndarray:
    x = RNG.normal(size=(rows, dim)) * RNG.choice([1e-3, 0.5, 1, 3, 1e150], rows)[:, None]
    x[:50] /= np.linalg.norm(x[:50], axis=1)[:, None]
    x[50:60] = [[np.nan], [np.inf], [-np.inf], [1e308], [-1e308], [5e-324], [-0.0], [0], [1], [-1]]
    x[60 : 60 + dim] = np.eye(dim)
    return x


def integers(lattice, x, missing="center"):
    return record_integers(lattice, Batch(len(x), matrix=np.ascontiguousarray(x)), missing)


@pytest.mark.parametrize(("order", "dim"), CASES)
def test_the_integers_are_the_powers_of_one_point_of_the_ball(order, dim):
    """Within `slack`, in rational arithmetic, of a point that is proved to be short enough."""
    lattice = MomentLattice(order, dim)
    x = np.nan_to_num(hostile(120, dim), nan=0.0, posinf=0.0, neginf=0.0)
    found = integers(lattice, x).tolist()
    inside = np.column_stack(in_unit_ball(list(x.T.copy())))
    multisets = list(combinations_with_replacement(range(dim), order))
    for point, q in zip(inside.tolist(), found, strict=True):
        exact = [Fraction(value) for value in point]
        square = sum(value * value for value in exact)
        assert square <= (1 + Fraction(1, 1 << 40)) ** 2
        for multiset, steps in zip(multisets, q[:-1], strict=True):
            times = [multiset.count(i) for i in set(multiset)]
            m = math.factorial(order) // math.prod(map(math.factorial, times))
            value = lattice.unit * math.prod(exact[i] for i in multiset)
            # |steps − √m·value| ≤ slack, without a root of an irrational number.
            root = Fraction(math.isqrt(m << 200), 1 << 100)
            assert abs(steps - root * value) <= lattice.slack
        assert abs(q[-1] - lattice.unit * square ** (order // 2)) <= lattice.slack


@pytest.mark.parametrize(("order", "dim"), CASES)
def test_two_records_are_hardly_more_than_the_root_of_two_apart(order, dim):
    lattice = MomentLattice(order, dim)
    q = integers(lattice, hostile(400, dim)).astype(float) * float(lattice.grid)
    apart = np.linalg.norm(q[:, None] - q[None], axis=2)
    assert math.sqrt(2) * (1 - 1e-9) <= apart.max() <= math.sqrt(2) * (1 + 1e-9)


@pytest.mark.parametrize(("order", "dim"), CASES)
def test_a_record_does_not_depend_on_the_others(order, dim):
    lattice, x = MomentLattice(order, dim), hostile(300, dim)
    together = integers(lattice, x)
    for start, stop in ((0, 1), (7, 8), (50, 60), (100, 299)):
        assert (integers(lattice, x[start:stop]) == together[start:stop]).all()
    total = exact_sums(open_source(x, None, dim), lattice)
    assert total.total == tuple(sum(column) for column in together.T.tolist())


def test_incomplete_records_are_dropped_on_request():
    lattice = MomentLattice(2, 2)
    x = np.array([[0.5, 0.5], [np.nan, 0.1], [0.1, 0.2]])
    dropped = exact_sums(open_source(x, None, 2), lattice, missing="drop")
    assert dropped == exact_sums(open_source(x[[0, 2]], None, 2), lattice)


def test_an_odd_order_is_refused():
    with pytest.raises(mh.InvalidInput, match="even"):
        MomentLattice(3, 2)
