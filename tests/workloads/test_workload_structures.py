"""Every workload against its dense matrix, and never a dense matrix where it would not fit."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from muhat.errors import InvalidInput
from muhat.workloads import (
    Kron,
    Marginals,
    Workload,
    from_dict,
    identity,
    kron,
    marginals,
    matrix,
    parity,
    prefix,
    ranges,
    stack,
)
from muhat.workloads.products import Centred

ADULT = (85, 9, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2, 2)


def lower_triangle(n):
    return np.tril(np.ones((n, n)))


def all_ranges(n):
    return np.array([[s <= j <= e for j in range(n)] for s in range(n) for e in range(s, n)], float)


def all_parities(dim, width):
    cells = list(itertools.product((0, 1), repeat=dim))
    sets = itertools.combinations(range(dim), width)
    return np.array([[(-1.0) ** sum(x[i] for i in s) for x in cells] for s in sets])


def all_marginals(shape, sets):
    cells = list(itertools.product(*map(range, shape)))
    return np.array(
        [
            [float(all(x[axis] == v for axis, v in zip(axes, values, strict=True))) for x in cells]
            for axes in sets
            for values in itertools.product(*(range(shape[axis]) for axis in axes))
        ]
    )


def some_matrix(rows, columns, seed=0):
    return np.random.default_rng(seed).integers(-5, 6, (rows, columns)).astype(float)


SETS = [(), (1,), (0, 2), (0, 1, 2)]
CASES = [
    (identity(5), np.eye(5)),
    (identity((2, 3)), np.eye(6)),
    (prefix(1), np.ones((1, 1))),
    (prefix(7), lower_triangle(7)),
    (ranges(1), np.ones((1, 1))),
    (ranges(6), all_ranges(6)),
    *((parity(4, width), all_parities(4, width)) for width in range(5)),
    (parity(1, 1), all_parities(1, 1)),
    (marginals((2, 3, 2), sets=SETS), all_marginals((2, 3, 2), SETS)),
    (
        marginals((1, 3, 1, 2), order=2),
        all_marginals((1, 3, 1, 2), itertools.combinations(range(4), 2)),
    ),
    (marginals((1, 1), order=1), np.ones((2, 1))),
    (matrix(some_matrix(4, 6)), some_matrix(4, 6)),
    (matrix(scipy.sparse.csr_matrix(some_matrix(5, 3))), some_matrix(5, 3)),
    (kron(prefix(3), ranges(2)), np.kron(lower_triangle(3), all_ranges(2))),
    (
        kron(ranges(3), parity(2, 1), matrix(some_matrix(1, 4))),
        np.kron(np.kron(all_ranges(3), all_parities(2, 1)), some_matrix(1, 4)),
    ),
    (stack([prefix(3), identity(3)], [1, 0.5]), np.vstack([lower_triangle(3), np.eye(3) / 2])),
    (prefix(4) + identity(4), lower_triangle(4) + np.eye(4)),
    (prefix(4) - identity(4), lower_triangle(4) - np.eye(4)),
    (3 * ranges(3), 3 * all_ranges(3)),
    (np.float64(-2) * (prefix(3) * 0.5), -lower_triangle(3)),
    (
        stack([2 * prefix(6), marginals((2, 3), order=1) + matrix(some_matrix(5, 6))]),
        np.vstack([2 * lower_triangle(6), all_marginals((2, 3), [(0,), (1,)]) + some_matrix(5, 6)]),
    ),
]


@pytest.mark.parametrize(("workload", "dense"), CASES, ids=lambda case: str(case)[:40])
class TestEveryStructure:
    def test_is_its_dense_matrix(self, workload, dense):
        assert workload.shape == dense.shape
        assert math.prod(workload.cells) == workload.shape[1]
        np.testing.assert_array_equal(workload.dense(), dense)
        np.testing.assert_array_equal(np.asarray(workload), dense)

    def test_multiplies_one_vector_and_several(self, workload, dense):
        numbers = np.random.default_rng(1)
        for tail in ((), (1,), (4,)):
            x = numbers.integers(-50, 50, (dense.shape[1], *tail)).astype(float)
            y = numbers.integers(-50, 50, (dense.shape[0], *tail)).astype(float)
            np.testing.assert_array_equal(workload @ x, dense @ x)
            np.testing.assert_array_equal(workload.transposed(y), dense.T @ y)
            np.testing.assert_array_equal(y.T @ workload, y.T @ dense)

    def test_leaves_its_argument_alone(self, workload, dense):
        x, y = np.ones(dense.shape[1]), np.ones(dense.shape[0])
        answers, totals = workload.apply(x), workload.transposed(y)
        assert not np.shares_memory(answers, x)
        assert not np.shares_memory(totals, y)
        assert (x == 1).all()
        assert (y == 1).all()

    def test_knows_its_gram_matrix_exactly(self, workload, dense):
        np.testing.assert_array_equal(workload.gram(), dense.T @ dense)

    def test_knows_its_norms(self, workload, dense):
        rows, columns = (dense**2).sum(axis=1), (dense**2).sum(axis=0)
        np.testing.assert_allclose(workload.row_norms(), np.sqrt(rows), rtol=1e-15)
        np.testing.assert_allclose(workload.column_norms(), np.sqrt(columns), rtol=1e-15)

    def test_comes_back_from_its_description(self, workload, dense):
        fields = json.loads(json.dumps(workload.to_dict()))
        again = from_dict(fields)
        assert type(again) is type(workload)
        assert again == workload
        assert hash(again) == hash(workload)
        assert again.cells == workload.cells
        np.testing.assert_array_equal(again.dense(), dense)
        assert workload.describe() in repr(workload)


@given(st.integers(1, 40), st.data())
def test_ranges_and_prefixes_of_integers_are_exact(n, data):
    x = np.array(data.draw(st.lists(st.integers(-(2**40), 2**40), min_size=n, max_size=n)), float)
    exact = np.cumsum(x.astype(object))
    assert (prefix(n) @ x).tolist() == [float(value) for value in exact]
    sums = [float(sum(x.astype(object)[s : e + 1])) for s in range(n) for e in range(s, n)]
    assert (ranges(n) @ x).tolist() == sums


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4).flatmap(
        lambda shape: st.tuples(
            st.just(tuple(shape)),
            st.lists(
                st.sets(st.integers(0, len(shape) - 1)).map(lambda axes: tuple(sorted(axes))),
                min_size=1,
                max_size=5,
                unique=True,
            ),
        )
    )
)
def test_marginals_of_any_sets_are_their_dense_matrix(case):
    shape, sets = case
    W, dense = Marginals(shape, sets), all_marginals(shape, sets)
    np.testing.assert_array_equal(W.dense(), dense)
    np.testing.assert_array_equal(W.gram(), dense.T @ dense)
    y = np.arange(1.0, W.shape[0] + 1)
    np.testing.assert_array_equal(W.transposed(y), dense.T @ y)
    np.testing.assert_allclose(W.row_norms(), np.linalg.norm(dense, axis=1), rtol=1e-15)


def test_products_are_products_in_any_grouping():
    parts = [prefix(2), ranges(3), identity(2)]
    flat = kron(*parts)
    nested = kron(kron(*parts[:2]), parts[2])
    assert flat == nested
    assert isinstance(flat, Kron)
    assert flat.cells == (2, 3, 2)
    assert kron(parts[0]) is parts[0]


def test_long_prefixes_are_cheap():
    W = prefix(1_000_000)
    answers = W @ np.ones(1_000_000)
    assert answers[-1] == 1_000_000
    assert W.row_norms()[-1] == 1000
    with pytest.raises(InvalidInput, match="not built"):
        W.dense()
    with pytest.raises(InvalidInput, match="not built"):
        W.gram()


def test_marginals_of_a_census_table_build_nothing_of_its_size():
    W = marginals(ADULT, order=3)
    assert W.shape[1] == math.prod(ADULT) > 10**14
    assert len(W.sets) == math.comb(14, 3)
    sums = [
        math.prod(ADULT[axis] for axis in axes) for axes in itertools.combinations(range(14), 3)
    ]
    assert W.shape[0] == sum(sums) == W.offsets[-1]
    assert W.sets[:2] == ((0, 1, 2), (0, 1, 3))
    norms = W.row_norms()
    assert norms.shape == (W.shape[0],)
    assert norms[0] == math.sqrt(W.shape[1] // sums[0])
    huge = np.broadcast_to(np.float64(1), (W.shape[1],))
    for attempt in (
        W.dense,
        W.gram,
        W.column_norms,
        lambda: W.apply(huge),
        lambda: W @ huge,
        lambda: W.transposed(np.ones(W.shape[0])),
    ):
        with pytest.raises(InvalidInput, match=r"written out|not built"):
            attempt()


def test_one_attribute_is_not_called_attributes():
    assert marginals(shape=(4,), order=1).describe().endswith("of 1 attribute, 4 answers")


def test_marginals_of_thirty_attributes_are_allowed():
    W = marginals((10,) * 30, order=3)
    assert W.shape == (math.comb(30, 3) * 1000, 10**30)


def test_products_of_ranges_never_build_the_matrix():
    W = kron(ranges(64), ranges(64))
    assert W.shape == (2080**2, 4096)
    x = np.arange(4096.0)
    table = (W @ x).reshape(2080, 2080)
    assert table[63, 63] == x.sum()
    assert W.transposed(np.ones(W.shape[0]))[0] == 64 * 64
    assert W.gram().shape == (4096, 4096)
    with pytest.raises(InvalidInput, match="not built"):
        W.dense()


def test_too_many_answers_are_refused_before_they_are_written():
    with pytest.raises(InvalidInput, match="written out"):
        ranges(10**6) @ np.ones(10**6)
    with pytest.raises(InvalidInput, match="written out"):
        ranges(10**6).row_norms()
    with pytest.raises(InvalidInput, match="written out"):
        _ = parity(40, 20).sets
    with pytest.raises(InvalidInput, match="written out"):
        kron(ranges(1000), ranges(1000)) @ np.ones(10**6)
    with pytest.raises(InvalidInput, match="written out"):
        prefix(2**40).row_norms()
    with pytest.raises(InvalidInput, match="not computed"):
        (prefix(2**20) + identity(2**20)).row_norms()


def test_tables_and_answers_are_the_same_numbers():
    W = marginals((2, 3, 2), sets=[(), (2, 0), (1,)])
    assert W.sets == ((), (0, 2), (1,))
    assert W.table_shapes == ((), (2, 2), (3,))
    x = np.arange(12)
    tables = W.tables(W @ x)
    cube = x.reshape(2, 3, 2)
    np.testing.assert_array_equal(tables[1], cube.sum(axis=1))
    np.testing.assert_array_equal(W.answers_from(tables), W @ x)
    by_axes = dict(zip(W.sets, tables, strict=True))
    np.testing.assert_array_equal(W.answers_from(by_axes), W @ x)
    assert W.labels(0).shape == (1, 0)
    assert W.labels(1).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert W.labels(2).tolist() == [[0], [1], [2]]
    for wrong in (tables[:2], [tables[0], tables[1].T[:1], tables[2]], {(0,): tables[2]}):
        with pytest.raises(InvalidInput):
            W.answers_from(wrong)
    with pytest.raises(InvalidInput, match="shape"):
        W.tables(np.ones(3))
    with pytest.raises(InvalidInput, match="table"):
        W.labels(3)


def test_orders_are_lexicographic_and_may_be_several():
    assert marginals((2, 2, 2), order=0).sets == ((),)
    assert marginals((2, 2, 2), order=[2, 0, 1]).sets == (
        (),
        (0,),
        (1,),
        (2,),
        (0, 1),
        (0, 2),
        (1, 2),
    )


@pytest.mark.parametrize(
    "size", [0, -1, 2.5, True, "3", None, float("nan"), float("inf"), 2**63, [3]]
)
@pytest.mark.parametrize("make", [prefix, ranges, lambda n: parity(n, 1)])
def test_sizes_that_are_no_sizes_are_refused(make, size):
    with pytest.raises(InvalidInput):
        make(size)


@pytest.mark.parametrize(
    "size", [0, -1, 2.5, True, "3", None, float("nan"), (), (2, 0), ("a",), "ab"]
)
def test_shapes_that_are_no_shapes_are_refused(size):
    with pytest.raises(InvalidInput):
        identity(size)
    with pytest.raises(InvalidInput):
        marginals(size, order=0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: identity((2**31, 2**32)),
        lambda: ranges(2**32),
        lambda: parity(63, 1),
        lambda: kron(prefix(2**40), prefix(2**40)),
        lambda: kron(ranges(2**16), ranges(2**16), ranges(2)),
        lambda: marginals((2**32, 2**32), order=1),
        lambda: marginals((10**6,) * 22, order=1),
        lambda: marginals((10**5,) * 3, order=2),
        lambda: marginals((2,) * 60, order=30),
    ],
)
def test_products_that_overflow_are_refused(make):
    with pytest.raises(InvalidInput, match=r"at most|overflow|more than"):
        make()


@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"order": 1, "sets": [(0,)]},
        {"order": 4},
        {"order": -1},
        {"order": 1.5},
        {"order": True},
        {"order": "1"},
        {"order": []},
        {"order": [1, 1]},
        {"sets": []},
        {"sets": [(0,), (0,)]},
        {"sets": [(0, 1), (1, 0)]},
        {"sets": [(0, 0)]},
        {"sets": [(3,)]},
        {"sets": [(-1,)]},
        {"sets": [(float("nan"),)]},
        {"sets": [(True,)]},
        {"sets": ["01"]},
        {"sets": "01"},
        {"sets": [0]},
        {"sets": 3},
    ],
)
def test_sets_that_are_no_sets_are_refused(keywords):
    with pytest.raises(InvalidInput):
        marginals((2, 3, 4), **keywords)


@pytest.mark.parametrize(("dim", "width"), [(3, 4), (3, -1), (3, 1.5), (3, True), (3, "1"), (0, 0)])
def test_parities_wider_than_their_bits_are_refused(dim, width):
    with pytest.raises(InvalidInput):
        parity(dim, width)


@pytest.mark.parametrize(
    "entries",
    [
        [[1.0, float("nan")]],
        [[1.0, float("inf")]],
        [[0, 0], [0, 0]],
        [1, 2],
        [[[1]]],
        [[]],
        [["a"]],
        [[1j]],
        [[1], [1, 2]],
        [[2**53 + 1]],
        [[1e200]],
        [[1e-200]],
        None,
        "matrix",
        scipy.sparse.csr_matrix((3, 3)),
        scipy.sparse.csr_matrix([[float("nan")]]),
    ],
)
def test_matrices_that_are_no_workload_are_refused(entries):
    with pytest.raises(InvalidInput):
        matrix(entries)


def test_a_cell_that_no_query_counts_is_allowed():
    W = matrix([[1, 0, 2], [0, 0, 1]], cells=(3, 1))
    assert W.column_norms()[1] == 0
    assert W.cells == (3, 1)
    with pytest.raises(InvalidInput, match="cells"):
        matrix([[1, 0, 2]], cells=(2, 2))


def test_a_matrix_is_kept_as_it_was():
    A = np.eye(3)
    W = matrix(A)
    A[0, 0] = 7
    W.dense()[1, 1] = 7
    np.testing.assert_array_equal(W.dense(), np.eye(3))
    assert matrix([[-0.0, 1.0]]) == matrix([[0, 1]])


@pytest.mark.parametrize(
    "make",
    [
        lambda: kron(),
        lambda: kron(np.eye(2)),
        lambda: kron(prefix(2), "prefix"),
        lambda: stack([]),
        lambda: stack(prefix(2)),
        lambda: stack([np.eye(2)]),
        lambda: stack([prefix(2), prefix(3)]),
        lambda: stack([identity((2, 3)), identity((3, 2))]),
        lambda: stack([prefix(2)], [1, 2]),
        lambda: stack([prefix(2)], [0]),
        lambda: stack([prefix(2)], [-1]),
        lambda: stack([prefix(2)], [float("nan")]),
        lambda: stack([prefix(2)], "1"),
        lambda: prefix(2) + ranges(2),
        lambda: prefix(2) - prefix(2),
        lambda: 0 * prefix(2),
        lambda: float("nan") * prefix(2),
        lambda: prefix(2) * float("inf"),
    ],
)
def test_combinations_that_mean_nothing_are_refused(make):
    with pytest.raises(InvalidInput):
        make()


def test_only_numbers_and_workloads_combine():
    for attempt in (lambda: prefix(2) + 1, lambda: "2" * prefix(2), lambda: prefix(2) - np.eye(2)):
        with pytest.raises(TypeError):
            attempt()


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"workload": "nothing"},
        {"workload": "prefix"},
        {"workload": "prefix", "n": "many"},
        {"workload": "kron", "factors": [3]},
        {"workload": "matrix", "rows": 2, "cells": [3], "entries": "????"},
        {"workload": "scaled", "factor": 2, "inner": {"workload": "prefix", "n": 3}},
        None,
        [],
    ],
)
def test_descriptions_that_describe_nothing_are_refused(fields):
    with pytest.raises(InvalidInput):
        from_dict(fields)


def test_flat_parts_take_the_shape_of_the_others():
    W = stack([matrix(np.ones((1, 6))), marginals((2, 3), order=1)])
    assert W.cells == (2, 3)
    assert isinstance(W, Workload)


def test_vectors_of_the_wrong_length_are_refused():
    for x in (np.ones(3), np.ones((5, 1, 1)), "text", np.ones(0)):
        with pytest.raises(InvalidInput, match="vector"):
            prefix(4) @ x


@pytest.mark.parametrize("workload", [prefix(7), ranges(5), marginals((2, 3), order=1)], ids=repr)
def test_differences_between_cells_are_the_rows_less_their_means(workload):
    rows = workload.dense()
    expected, found = rows - rows.mean(axis=1)[:, None], Centred(workload)
    x, y = some_matrix(rows.shape[1], 3), some_matrix(rows.shape[0], 2, seed=1)
    assert np.allclose(found.dense(), expected)
    assert np.allclose(found.apply(x), expected @ x)
    assert np.allclose(found.transposed(y), expected.T @ y)
    assert np.allclose(found.row_norms(), np.linalg.norm(expected, axis=1))
