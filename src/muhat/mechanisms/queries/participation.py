"""How far a person moves a strategy who has several events, at least so many steps apart.

For events at steps P, each of which moves its term by at most 1, C·q moves by at most

    ‖Σ_{j∈P} ±C_j‖² ≤ Σ_{i,j∈P} |⟨C_i, C_j⟩|,

with equality for columns without negative entries. The largest of these sums over all P of at most
k steps, any two at least b apart, is at most max_P Σ_{i∈P} u_i with
u_i = max_{P∋i} Σ_{j∈P} |⟨C_i, C_j⟩|: two searches by dynamic programming. It is exact where
columns b apart have nothing in common, as in strategies of b bands. For a Toeplitz matrix of
falling entries that are not negative the largest P is 0, b, 2b, …, in closed form. Proof:
docs/proofs/streams.md.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from muhat._arrays import Floats

MOST_SEARCHED = 64
"""More events of a person than this are taken as if all were at the worst step."""

_BITS = 20


def farthest_squared(strategy: Floats, contributions: int, apart: int) -> Fraction:
    """At least max_P ‖Σ_{j∈P} ±C_j‖², for C in units of 2^−20, entry by entry rounded up.

    Entries are at most 1; products of whole numbers below 2^21 add up exactly in floats.
    """
    size = strategy.shape[1]
    whole = np.ceil(np.abs(strategy))
    if whole.max() > 1 << (_BITS + 1) or size > 1 << 11:
        raise AssertionError("entries of a strategy are at most 2")
    steps = min(contributions, -(-size // apart))
    gram = whole.T @ whole
    if steps == 1:
        return Fraction(int(np.diag(gram).max()), 1 << 2 * _BITS)
    closed = _of_falling_bands(whole, steps, apart)
    if closed is not None:
        return Fraction(closed, 1 << 2 * _BITS)
    if steps > MOST_SEARCHED:
        return Fraction(steps**2 * int(np.diag(gram).max()), 1 << 2 * _BITS)
    with_others = np.diag(gram) + best_sums(gram, steps - 1, apart)
    return Fraction(int(best_pattern(with_others, steps, apart)), 1 << 2 * _BITS)


def _of_falling_bands(whole: Floats, steps: int, apart: int) -> int | None:
    """The square at 0, b, 2b, … for a Toeplitz matrix of falling entries; None for others."""
    column = whole[:, 0]
    size = len(column)
    if len(whole) != whole.shape[1] or np.any(np.diff(column) > 0):
        return None
    index = np.subtract.outer(np.arange(size), np.arange(size))
    if np.any(whole != np.where(index >= 0, column[index], 0)):
        return None
    moved = whole[:, : steps * apart : apart].sum(axis=1)
    return sum(int(x) ** 2 for x in moved.tolist())


def best_sums(gram: Floats, steps: int, apart: int) -> Floats:
    """For each i the most that `steps` others add, at least b from i and from each other."""
    size = len(gram)
    before = _running(np.where(np.tri(size, k=-apart, dtype=bool), gram, -np.inf), steps, apart)
    after = _running(
        np.where(np.tri(size, k=-apart, dtype=bool), gram[::-1, ::-1], -np.inf), steps, apart
    )[:, ::-1]
    # So many before, the rest after.
    return np.asarray(np.max(before + after[::-1], axis=0))


def _running(rows: Floats, steps: int, apart: int) -> Floats:
    """best[m, i]: the most of m or fewer entries of row i, any two at least b apart."""
    size = rows.shape[1]
    best = np.zeros((steps + 1, len(rows)))
    # table[m][:, j]: the most of m entries among the first j columns.
    previous = np.zeros((len(rows), size + 1))
    for m in range(1, steps + 1):
        table = np.zeros((len(rows), size + 1))
        for j in range(1, size + 1):
            taken = rows[:, j - 1] + previous[:, max(0, j - apart)]
            table[:, j] = np.maximum(table[:, j - 1], taken)
        best[m] = table[:, size]
        previous = table
    return best


def best_pattern(values: Floats, steps: int, apart: int) -> float:
    """The most of `steps` numbers, any two at least b apart."""
    return float(_running(values[None, :], steps, apart)[steps, 0])
