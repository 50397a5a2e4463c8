"""The tree of cells, and the public hash of a message."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from muhat.errors import InvalidInput
from muhat.protocols.encodings.range_levels import CellTree, LevelMix
from muhat.protocols.estimators.range_choice import best_mix

WHOLE = 1 << 32


def nonces_for(mix: LevelMix, which: int, free: int) -> np.ndarray:
    """A nonce that draws this set of levels, and these free bits of its rows."""
    start = sum(mix.weights[:which])
    words = np.array([0, start, free & 0xFFFFFFFF, free >> 32], "<u4")
    return words.view(np.uint8)[None]


@pytest.mark.parametrize("cells", [*range(2, 40), 100, 1000, 1025])
def test_prefixes_are_cuts_and_differences_of_halves(cells):
    tree = CellTree(cells)
    shares = np.random.default_rng(cells).dirichlet(np.ones(cells))
    filled = np.zeros(1 << tree.levels)
    filled[tree.leaves(np.arange(cells))] = shares
    total = tree.cuts / (1 << tree.levels)
    for level in range(tree.levels):
        halves = filled.reshape(1 << level, 2, -1).sum(axis=2)
        difference = halves[:, 0] - halves[:, 1]
        total = total + tree.slopes[level] * difference[tree.nodes[level]]
    np.testing.assert_allclose(total, np.concatenate([[0], np.cumsum(shares)]), atol=1e-12)
    assert (np.diff(tree.leaves(np.arange(cells))) >= 1).all()


@pytest.mark.parametrize("sets", [((1,), (3,)), ((1, 2), (2, 3)), ((1, 2, 3),)])
def test_a_character_averaged_over_its_row_tells_the_halves_of_a_node(sets):
    """Every row is tried: the mean of χ(x)·χ(y) is 0 unless x and y share the node."""
    mix = LevelMix(3, sets, (WHOLE - len(sets) + 1, *[1] * (len(sets) - 1)))
    leaves = np.arange(8)
    for which, levels in enumerate(sets):
        bits = sum(levels) - len(levels)
        table = np.array(
            [
                mix.buckets(leaves, np.repeat(nonces_for(mix, which, free), 8, axis=0))
                for free in range(1 << bits)
            ]
        )
        for character in range(1, 1 << len(levels)):
            signs = 1 - 2 * (np.bitwise_count(table & character).astype(int) & 1)
            finest = levels[character.bit_length() - 1]
            node, half = leaves >> (4 - finest), 1 - 2 * (leaves >> (3 - finest) & 1)
            expected = (node[:, None] == node) * np.outer(half, half)
            np.testing.assert_array_equal(signs.T @ signs / len(table), expected)


def test_the_chance_of_different_buckets_is_counted_over_all_rows():
    sets = ((1, 2), (1, 4), (2, 3), (3, 4))
    mix = LevelMix(4, sets, (WHOLE // 2, WHOLE // 4, WHOLE // 8, WHOLE // 8))
    for level in range(1, 5):
        pair = np.array([0b0101, 0b0101 ^ (1 << (4 - level))])
        apart = Fraction(0)
        for which, levels in enumerate(sets):
            rows = 1 << (sum(levels) - 2)
            different = sum(
                len(set(mix.buckets(pair, np.repeat(nonces_for(mix, which, free), 2, axis=0)))) == 2
                for free in range(rows)
            )
            apart += Fraction(different, rows) * Fraction(mix.weights[which], WHOLE)
        assert mix.apart(level) == apart


def test_sets_are_drawn_as_often_as_their_weights_say():
    mix = best_mix(64, 2)
    ends = np.cumsum(mix.weights)
    edges = sorted({0, *(ends - 1), *(ends[:-1])})
    nonces = np.zeros((len(edges), 4), "<u4")
    nonces[:, 1] = edges
    drawn = mix.drawn(nonces.view(np.uint8))
    assert drawn.tolist() == [int((ends <= edge).sum()) for edge in edges]


def test_shares_of_characters_add_up():
    for bits, mix in ((bits, best_mix(1024, bits)) for bits in (1, 2, 3, 5)):
        assert mix.averages.sum() == pytest.approx(2**bits - 1)
        assert len(mix.sets) <= 10
        assert LevelMix.from_dict(mix.to_dict()) == mix


@pytest.mark.parametrize(
    ("levels", "sets", "weights"),
    [
        (2, (), ()),
        (2, ((1,),), (WHOLE - 1,)),
        (2, ((1,), (2,)), (WHOLE,)),
        (2, ((1,), (1, 2)), (WHOLE - 1, 1)),
        (2, ((2, 1),), (WHOLE,)),
        (2, ((1, 1),), (WHOLE,)),
        (2, ((3,),), (WHOLE,)),
        (2, ((0,),), (WHOLE,)),
        (2, ((),), (WHOLE,)),
        (2, ((1,), (2,)), (WHOLE + 1, -1)),
        (21, ((1,),), (WHOLE,)),
        (20, (tuple(range(13, 21)),), (WHOLE,)),
    ],
)
def test_mixes_that_are_none_are_refused(levels, sets, weights):
    with pytest.raises(InvalidInput):
        LevelMix(levels, sets, weights)


def test_the_rows_of_a_set_use_different_bits_of_the_nonce():
    mix = LevelMix(5, ((2, 4, 5),), (WHOLE,))
    seen = {
        tuple(mix.rows(nonces_for(mix, 0, free))[0].tolist()) for free in range(1 << (1 + 3 + 4))
    }
    masks = [[(upper << 1 | 1) << (5 - a) for upper in range(1 << (a - 1))] for a in (2, 4, 5)]
    assert seen == set(itertools.product(*masks))


def test_a_tree_needs_two_cells_and_not_too_many():
    for cells in (0, 1, (1 << 20) + 1):
        with pytest.raises(InvalidInput):
            CellTree(cells)
