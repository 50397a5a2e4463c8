"""Even moments in integers: close to the exact powers of one point, and never far apart."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest

import muhat as mh
from muhat.data import exact_sums, open_source
from muhat.data.engine import record_integers
from muhat.domains.lattice import MomentLattice
from muhat.domains.moment_basis import TensorBasis
from muhat.domains.moment_differences import WeightedSets, weighted_sets
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


def lattice_of(order: int, dim: int, weights: str = "equal") -> MomentLattice:
    K = TensorBasis(order, dim)
    if weights == "equal":
        return MomentLattice.of(WeightedSets.whole(K))
    w = np.ones(K.dim)
    w[0] = 10.0
    drawn = np.exp(np.random.default_rng(order + dim).normal(size=K.dim))
    return MomentLattice.of(weighted_sets(K, 2, w if weights == "one" else drawn))


def integers(lattice, x, missing="center"):
    return record_integers(lattice, Batch(len(x), matrix=np.ascontiguousarray(x)), missing)


@pytest.mark.parametrize(("order", "dim"), CASES)
def test_the_integers_are_the_powers_of_one_point_of_the_ball(order, dim):
    """Within `slack`, in rational arithmetic, of a point that is proved to be short enough."""
    lattice = lattice_of(order, dim)
    x = np.nan_to_num(hostile(120, dim), nan=0.0, posinf=0.0, neginf=0.0)
    found = integers(lattice, x).tolist()
    inside = np.column_stack(in_unit_ball(list(x.T.copy())))
    multisets = list(combinations_with_replacement(range(dim), order))
    for point, q in zip(inside.tolist(), found, strict=True):
        exact = [Fraction(value) for value in point]
        square = sum(value * value for value in exact)
        assert square <= (1 + Fraction(1, 1 << 40)) ** 2
        for multiset, steps in zip(multisets, q, strict=True):
            times = [multiset.count(i) for i in set(multiset)]
            m = math.factorial(order) // math.prod(map(math.factorial, times))
            value = lattice.unit * math.prod(exact[i] for i in multiset)
            # |steps − √m·value| ≤ slack, without a root of an irrational number.
            root = Fraction(math.isqrt(m << 200), 1 << 100)
            assert abs(steps - root * value) <= lattice.slack


def squares_apart(lattice, x) -> int:
    """The largest squared distance of the rows of two records, in whole numbers."""
    q = integers(lattice, x).tolist()
    rows = np.array([lattice.measured(record, 1, False) for record in q], object)
    lengths = np.sum(rows * rows, axis=1)
    return int((lengths[:, None] + lengths - 2 * rows.dot(rows.T)).max())


@pytest.mark.parametrize("weights", ["equal", "one", "drawn"])
@pytest.mark.parametrize(("order", "dim"), CASES)
def test_two_records_are_as_far_apart_as_is_proved(order, dim, weights):
    lattice = lattice_of(order, dim, weights)
    moved = lattice.sensitivity([1], 2, True, False)
    observed = squares_apart(lattice, hostile(200, dim))
    assert (moved * (1 - 1e-9)) ** 2 <= observed <= moved**2


@pytest.mark.parametrize("planted", ["alone", "mixed", "shares"])
def test_rows_that_are_longer_than_their_forms_are_proved_to_be_so(planted):
    lattice = lattice_of(2, 3, "one")
    if planted == "alone":
        wrong = replace(lattice, alone=tuple(n * 3 for n in lattice.alone))
    elif planted == "mixed":
        wrong = replace(lattice, mixed=tuple(tuple(n * 3 for n in row) for row in lattice.mixed))
    else:  # forms that are not those of the rows
        wrong = replace(lattice, shares=lattice.shares[::-1])
    moved = wrong.sensitivity([1], 2, True, False)
    assert squares_apart(wrong, hostile(200, 3)) <= moved**2
    assert moved > 1.2 * lattice.sensitivity([1], 2, True, False)


def test_a_coordinate_in_no_set_is_refused():
    lattice = replace(lattice_of(2, 2), sets=((0,),))
    with pytest.raises(mh.InvalidInput, match="in no set"):
        lattice.sensitivity([1], 2, True, False)


@pytest.mark.parametrize(("order", "dim"), CASES)
def test_a_record_does_not_depend_on_the_others(order, dim):
    lattice, x = lattice_of(order, dim), hostile(300, dim)
    together = integers(lattice, x)
    for start, stop in ((0, 1), (7, 8), (50, 60), (100, 299)):
        assert (integers(lattice, x[start:stop]) == together[start:stop]).all()
    total = exact_sums(open_source(x, None, dim), lattice)
    assert total.total == tuple(sum(column) for column in together.T.tolist())


def test_incomplete_records_are_dropped_on_request():
    lattice = lattice_of(2, 2)
    x = np.array([[0.5, 0.5], [np.nan, 0.1], [0.1, 0.2]])
    dropped = exact_sums(open_source(x, None, 2), lattice, missing="drop")
    assert dropped == exact_sums(open_source(x[[0, 2]], None, 2), lattice)


def test_an_odd_order_is_refused():
    with pytest.raises(mh.InvalidInput, match="even"):
        replace(lattice_of(2, 2), order=3)
