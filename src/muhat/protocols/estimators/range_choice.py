"""Which levels to ask about, and in how many bits: what has the least predicted error.

For messages of b bits the variance of the estimated part of the people in the first t cells is

    (1/n)·Σ_j m_j(t)²/(information·c_j)      less the part's own t(1 − t)/n, for even records,

where c_j is how many characters of level j a message has on average. The c that sets of b levels
can have are a convex set, so the best mix is found once for each b, whatever ε is, to within a
proved factor; then b and the size of the answers' sets follow from the promise. Flat histograms,
hierarchical ones with 2, 4, 8 … branches and Haar wavelets are points of that set:
their errors are predicted by the same formula, and none is below the best.
docs/proofs/local-ranges.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from muhat import _check
from muhat._arrays import Floats
from muhat.privacy import Privacy
from muhat.protocols.encodings.range_cells import RangeLook
from muhat.protocols.encodings.range_levels import (
    MOST_BITS,
    ROW_BITS,
    WEIGHT_BITS,
    CellTree,
    LevelMix,
)
from muhat.protocols.estimators.range_errors import prefix_variance
from muhat.protocols.randomizers.frequency import MOST_ANSWERS
from muhat.protocols.randomizers.range_promise import calibrated
from muhat.protocols.randomizers.range_randomizer import RangeRandomizer
from muhat.release.quantile_grids import AnyGrid

_TOLERANCE = 1e-3
_STEPS = 300


@dataclass(frozen=True)
class PrefixError:
    """Standard errors of the estimated parts of the people in the first t cells, 0 < t < u."""

    average: float
    """Root mean square over t."""
    worst: float


def predicted_error(randomizer: RangeRandomizer, users: int) -> PrefixError:
    """The errors of one of the numbers looked at, known in advance, for records spread evenly.

    >>> from muhat.data.grids import UniformGrid
    >>> from muhat.privacy import PureDP
    >>> from muhat.protocols.encodings.range_cells import Coordinates
    >>> best = best_ranges(Coordinates(1), UniformGrid(0.0, 63.0, 1.0), PureDP(epsilon=1.0))
    >>> error = predicted_error(best, 10_000)
    >>> f"{error.average:.4f} {error.worst:.4f}"
    '0.0350 0.0408'
    """
    users = _check.count("users", users)
    messages = users / randomizer.look.numbers * randomizer.mix.chances
    cells = randomizer.grid.cells
    even = np.full(cells, 1 / cells)
    variance = prefix_variance(
        randomizer.tree, randomizer.mix, randomizer.response, messages, even
    )[1:-1]
    return PrefixError(float(np.sqrt(variance.mean())), float(np.sqrt(variance.max())))


def best_ranges(
    look: RangeLook, grid: AnyGrid, privacy: Privacy, *, two_sided: bool = False
) -> RangeRandomizer:
    """The randomizer with the least predicted error, averaged over all prefixes.

    If `two_sided`, over all ranges from any edge of a cell to any other.
    """
    tree = CellTree(grid.cells)
    best, least = None, np.inf
    difficulty = range_difficulty(tree) if two_sided else _difficulty(tree)
    for bits in range(1, _most_bits(tree.levels) + 1):
        mix = best_mix(grid.cells, bits, two_sided=two_sided)
        for chosen in range(1, (1 << bits) // 2 + 1):
            if math.comb(1 << bits, chosen) > MOST_ANSWERS:
                break
            response = calibrated(privacy, mix, chosen)
            error = float(np.sum(difficulty / mix.averages)) / response.information
            if error < least * (1 - _TOLERANCE):
                best, least = (mix, response), error
    assert best is not None
    return RangeRandomizer(look, grid, privacy, *best)


@lru_cache(maxsize=256)
def best_mix(cells: int, bits: int, *, two_sided: bool = False) -> LevelMix:
    """The mix of sets of `bits` levels with the least error, up to one part in a thousand."""
    tree = CellTree(cells)
    bits = _check.count("bits", bits, most=_most_bits(tree.levels))
    difficulty = range_difficulty(tree) if two_sided else _difficulty(tree)
    return _mixed(tree.levels, *_optimum(difficulty, bits))


def haar_mix(cells: int) -> LevelMix:
    """Haar wavelets with Hadamard response, every level equally often (Cormode et al.)."""
    levels = CellTree(cells).levels
    sets = [(level,) for level in range(1, levels + 1)]
    return _mixed(levels, sets, np.full(levels, 1 / levels))


def _difficulty(tree: CellTree) -> Floats:
    """The mean of m_j(t)² over 0 < t < u, of shape (levels,)."""
    return np.asarray((tree.slopes[:, 1:-1] ** 2).mean(axis=1))


def range_difficulty(tree: CellTree) -> Floats:
    """The mean over all pairs of edges s < t of the square of what a level has of the range.

    An edge is a vector over the nodes of a level, m_j(t) at its node, and a range the difference
    of two: Σ_{s<t} ‖w_s − w_t‖² = (u + 1)·Σ_t ‖w_t‖² − ‖Σ_t w_t‖².
    """
    edges = tree.cells + 1
    found = []
    for slopes, nodes in zip(tree.slopes, tree.nodes, strict=True):
        together = np.bincount(nodes, slopes)
        found.append(edges * np.sum(slopes**2) - np.sum(together**2))
    return np.array(found) / (edges * (edges - 1) / 2)


def _most_bits(levels: int) -> int:
    """As many levels of a set as any of them have room for their rows in a nonce."""
    needed = np.cumsum(np.arange(levels - 1, -1, -1))
    return min(MOST_BITS, int(np.searchsorted(needed, ROW_BITS, side="right")))


def _characters(levels: int, sets: Sequence[tuple[int, ...]]) -> Floats:
    table = np.zeros((len(sets), levels))
    for row, each in zip(table, sets, strict=True):
        row[np.array(each) - 1] = 2.0 ** np.arange(len(each))
    return table


def _optimum(difficulty: Floats, bits: int) -> tuple[list[tuple[int, ...]], Floats]:
    """Sets and their chances: Σ_j difficulty_j/c_j is within the tolerance of its least value.

    The sum is convex in the chances, and a set's slope is at most the largest one: when that is
    close to the sum itself no other mix is much better.
    """
    from scipy.optimize import nnls

    levels = len(difficulty)
    first = tuple(range(1, bits))
    sets = [(*first, level) for level in range(bits, levels + 1)]
    weights = np.full(len(sets), 1 / len(sets))
    while True:
        columns = _characters(levels, sets)
        weights = _weighed(difficulty, columns, weights)
        averages = weights @ columns
        slopes = difficulty / averages**2
        steepest = _steepest(slopes, bits)
        gain = _characters(levels, [steepest])[0] @ slopes
        if gain <= np.sum(difficulty / averages) * (1 + _TOLERANCE):
            # A basic solution: no more sets than levels have these averages.
            return sets, nnls(columns.T, averages)[0]
        if steepest not in sets:
            sets = [*sets, steepest]
            weights = np.append(weights, weights.max()) / (1 + weights.max())


def _steepest(slopes: Floats, bits: int) -> tuple[int, ...]:
    """The set with the largest Σ 2^(i−1)·slope of its i-th level, by dynamic programming."""
    nothing: tuple[int, ...] = ()
    best = [(0.0, nothing)] + [(-np.inf, nothing)] * bits
    for level, slope in enumerate(slopes.tolist(), start=1):
        for rank in range(bits, 0, -1):
            value, before = best[rank - 1]
            best[rank] = max(best[rank], (value + 2.0 ** (rank - 1) * slope, (*before, level)))
    return best[bits][1]


def _weighed(difficulty: Floats, columns: Floats, weights: Floats) -> Floats:
    """Minimise Σ_j difficulty_j/(weights @ columns)_j by multiplicative steps, which never rise."""
    for _ in range(_STEPS):
        averages = weights @ columns
        slopes = columns @ (difficulty / averages**2)
        weights = weights * np.sqrt(slopes)
        weights /= weights.sum()
    return weights


def _mixed(levels: int, sets: Sequence[tuple[int, ...]], chances: Floats) -> LevelMix:
    """Chances as whole multiples of 2^-32; what rounding leaves goes to the likeliest set."""
    whole = np.floor(chances / chances.sum() * (1 << WEIGHT_BITS)).astype(np.int64)
    whole[np.argmax(whole)] += (1 << WEIGHT_BITS) - whole.sum()
    used = [(each, int(weight)) for each, weight in zip(sets, whole, strict=True) if weight]
    return LevelMix(levels, tuple(each for each, _ in used), tuple(weight for _, weight in used))
