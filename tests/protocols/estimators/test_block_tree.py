"""Blocks of several sizes: the counts are those of least squares, and so are their errors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muhat.errors import InvalidInput
from muhat.protocols.estimators.block_tree import MOST_SIZES, BlockTree, best_sizes

TREES = [(2, (1,)), (8, (1,)), (8, (1, 2, 4)), (13, (1, 4)), (13, (1, 2, 8)), (12, (1, 3, 6)),
         (9, (1, 4)), (61, (1, 8, 32)), (100, (1, 10))]  # fmt: skip


def dense(tree: BlockTree) -> tuple[np.ndarray, np.ndarray]:
    """Which cells each block holds, and a basis of all changes that leave their sum alone."""
    rows = [
        (np.arange(tree.cells) // size == block).astype(float)
        for size in tree.sizes
        for block in range(-(-tree.cells // size))
    ]
    basis = np.linalg.qr(np.eye(tree.cells) - 1 / tree.cells)[0][:, : tree.cells - 1]
    return np.array(rows), basis


def all_ranges(cells: int) -> np.ndarray:
    return np.array(list(itertools.combinations(range(cells + 1), 2))).T


@pytest.mark.parametrize(("cells", "sizes"), TREES)
def test_counts_are_those_of_least_squares_with_the_known_total(cells, sizes):
    tree, rng = BlockTree(cells, sizes), np.random.default_rng(cells)
    blocks, basis = dense(tree)
    truth = rng.integers(0, 30, cells)
    noisy, people = blocks @ truth + rng.normal(0, 5, len(blocks)), int(truth.sum())
    even = np.full(cells, people / cells)
    fitted = np.linalg.lstsq(blocks @ basis, noisy - blocks @ even, rcond=None)[0]
    counted = []
    for size in sizes:
        # Blocks that nobody can be in may say what they like.
        full = rng.normal(0, 100, tree.padded // size)
        used = -(-cells // size)
        full[:used], noisy = noisy[:used], noisy[used:]
        counted.append(full)
    np.testing.assert_allclose(tree.smoothed(counted, people), even + basis @ fitted, atol=1e-9)


@pytest.mark.parametrize(("cells", "sizes"), TREES)
def test_the_variance_of_every_range_is_that_of_least_squares(cells, sizes):
    tree = BlockTree(cells, sizes)
    blocks, basis = dense(tree)
    inner = blocks @ basis
    covariance = basis @ np.linalg.inv(inner.T @ inner) @ basis.T
    starts, ends = all_ranges(cells)
    exact = [covariance[a:b, a:b].sum() for a, b in zip(starts, ends, strict=True)]
    np.testing.assert_allclose(tree.variance(starts, ends), exact, atol=1e-10)
    assert tree.average == pytest.approx(np.mean(exact))
    assert tree.variance(np.array([0]), np.array([cells]))[0] == pytest.approx(0, abs=1e-12)


@given(
    cells=st.integers(3, 40),
    bits=st.sets(st.integers(1, 5), max_size=3),
    seed=st.integers(0, 2**32 - 1),
)
def test_exact_counts_come_back_exactly(cells, bits, seed):
    sizes = (1, *sorted(1 << bit for bit in bits if 1 << bit < cells))
    tree = BlockTree(cells, sizes)
    truth = np.random.default_rng(seed).integers(0, 1000, cells)
    filled = np.append(truth, np.zeros(tree.padded - cells))
    counted = [filled.reshape(-1, size).sum(axis=1) for size in sizes]
    np.testing.assert_allclose(tree.smoothed(counted, int(truth.sum())), truth, atol=1e-9)


@pytest.mark.parametrize("cells", [2, 3, 16, 100])
def test_the_best_sizes_are_the_best_of_all_powers_of_two(cells):
    powers = [1 << bit for bit in range(1, 10) if 1 << bit < cells]
    for count in range(1, MOST_SIZES + 1):
        chains = list(itertools.combinations(powers, count - 1))
        best = best_sizes(cells, count)
        if not chains:
            assert best is None
            continue
        assert best is not None
        assert len(best.sizes) == count
        starts, ends = all_ranges(cells)
        errors = [BlockTree(cells, (1, *chain)).variance(starts, ends).mean() for chain in chains]
        assert best.average == pytest.approx(min(errors))


@pytest.mark.parametrize("sizes", [(), (2,), (1, 2, 3), (1, 1), (2, 1), (1, 8), (1, 4, 2)])
def test_blocks_that_are_no_tree_are_refused(sizes):
    with pytest.raises(InvalidInput):
        BlockTree(8, sizes)
