"""The loss of several cells at once by its definition: the least over all ranks they may have."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement

Cells = tuple[int, ...]


def doubled_loss(counts: Sequence[int], ranks: Sequence[int], end: int, cells: Cells) -> int:
    """2Λ, over ranks that are multiples of ½."""
    targets = [0, *(2 * rank - 1 for rank in ranks), 2 * end]
    best = {0: 0}
    for j, cell in enumerate(cells, 1):
        gap = targets[j] - targets[j - 1]
        low = 2 * sum(counts[:cell])
        best = {
            rank: min(loss + abs(rank - before - gap) for before, loss in best.items())
            for rank in range(low, low + 2 * counts[cell] + 1)
        }
    gap = targets[-1] - targets[-2]
    return min(loss + abs(2 * sum(counts) - before - gap) for before, loss in best.items())


def doubled_losses(counts: Sequence[int], ranks: Sequence[int], end: int) -> dict[Cells, int]:
    """2Λ of all cells in order."""
    lists = combinations_with_replacement(range(len(counts)), len(ranks))
    return {cells: doubled_loss(counts, ranks, end, cells) for cells in lists}
