"""One record a person: its rows added up or averaged, exactly, before anything else is done.

A coordinate is the sum of a person's recorded values, as the nearest floats, correctly rounded, and
for a mean divided by how many there are; it is missing if there is none. A sum beyond all floats is
the largest of them. A column of categories has the category of the person's first row, in the order
that the key decides.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from muhat.data.unit_choice import Ordered
from muhat.records.columns import Column, FloatArray, Floats, Integers
from muhat.records.tiles import floats

_FEW = 32
"""Rows of a person up to which sums are made for many people at once."""


def averaged(
    blocks: Sequence[Sequence[Column]], coded: Sequence[bool], people: Ordered, *, mean: bool
) -> list[Column]:
    """A value a person for every column, from the columns of blocks of rows.

    `people` number the rows through; those of a person in the order that decides on categories.
    """
    return [
        _first([block[place] for block in blocks], people)
        if coded[place]
        else _combined([block[place] for block in blocks], people, mean=mean)
        for place in range(len(coded))
    ]


def counted(people: Ordered) -> list[Column]:
    """How many rows every person has."""
    return [Floats(people.sizes.astype(np.float64))]


def _first(columns: Sequence[Column], people: Ordered) -> Column:
    codes = np.concatenate([column.values for column in columns])
    return Integers(codes[people.rows[people.firsts]])


def _combined(columns: Sequence[Column], people: Ordered, *, mean: bool) -> Column:
    values = np.concatenate([floats(column) for column in columns])[people.rows]
    recorded = np.isfinite(values)
    counts = np.add.reduceat(recorded.astype(np.int64), people.firsts)
    totals = exact_sums_of(values[recorded], counts, counts if mean else np.ones_like(counts))
    return Floats(totals, None if (counts > 0).all() else counts > 0)


def exact_sums_of(
    values: FloatArray, counts: NDArray[np.int64], parts: NDArray[np.int64]
) -> FloatArray:
    """The correctly rounded sums of the first counts[0] values, the next counts[1], and so on.

    Each is divided by its entry of `parts`; nothing adds up to 0.
    """
    firsts = np.cumsum(counts) - counts
    totals = np.zeros(len(counts))
    doubtful = counts > _FEW
    people = (~doubtful & (counts > 0)).nonzero()[0]
    high, low = np.zeros(len(counts)), np.zeros(len(counts))
    for place in range(int(counts[people].max(initial=0))):
        people = people[counts[people] > place]
        # The error of a sum of two floats is a float; while the errors add up without one of
        # their own, high + low is the sum itself.
        high[people], error = _two_sum(high[people], values[firsts[people] + place])
        low[people], lost = _two_sum(low[people], error)
        doubtful[people[~(lost == 0)]] = True
    totals = high + low
    doubtful |= ~np.isfinite(totals)
    for person in doubtful.nonzero()[0].tolist():
        some = values[firsts[person] : firsts[person] + counts[person]].tolist()
        totals[person] = _slowly(some)
    with np.errstate(all="ignore"):
        found: FloatArray = totals / np.maximum(parts, 1)
    for person in (~np.isfinite(totals)).nonzero()[0].tolist():
        some = values[firsts[person] : firsts[person] + counts[person]].tolist()
        found[person] = _within_floats(some, int(parts[person]))
    return found


def _two_sum(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The rounded sum, and its error."""
    total = left + right
    taken = total - left
    return total, (left - (total - taken)) + (right - taken)


def _slowly(values: list[float]) -> float:
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf


def _within_floats(values: list[float], parts: int) -> float:
    total = sum(map(Fraction, values), Fraction(0))
    try:
        return float(total / parts)
    except OverflowError:
        return math.copysign(sys.float_info.max, 1 if total > 0 else -1)
