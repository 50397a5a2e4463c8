"""Name and shame: each record is published in the clear with probability δ, all others are not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from muhat import _check
from muhat.data import Source, open_source
from muhat.data.bin_counts import values_of
from muhat.data.distances import bounded
from muhat.data.engine import read_here
from muhat.data.selection import column_names
from muhat.errors import InvalidInput
from muhat.noise.discrete import coins
from muhat.privacy import as_typed
from muhat.records.columns import Batch, FloatArray

Transform = Callable[[FloatArray], FloatArray]

_LARGEST = float(np.finfo(np.float64).max)


def name_and_shame(
    data: Any,
    delta: float,
    *,
    columns: Sequence[str] | Sequence[int] | None = None,
    accept_disclosure: bool = False,
) -> float:
    """Publish each record in the clear with probability δ: their sum over δn is an unbiased mean.

    M(x) = (1/n)·Σ A(x_i), A(x) = x/δ with probability δ, else 0: (0, δ)-differentially private,
    and E[(M − μ)²] = (Var X + (1 − δ)μ²)/(δn). Of n records one or more are published with
    probability 1 − (1 − δ)^n. Kamath et al. (2024), Proposition 3.6. `data` is one column; a
    missing value is 0.

    >>> name_and_shame([0.0, 0.0], 0.5, accept_disclosure=True)
    0.0
    """
    require_acceptance(accept_disclosure)
    chance = as_typed(_check.probability("delta", delta))
    source = open_column(data, columns)
    total = disclosed_total(source, chance, lambda values: values)
    return float(Fraction(total) / (chance * source.rows()))


def require_acceptance(accepted: bool) -> None:
    """Refuse unless the caller has said in so many words that records may be published."""
    if accepted is not True:
        raise InvalidInput(
            "must be True: this estimator publishes a record in the clear with probability delta",
            parameter="accept_disclosure",
            hint="It is for research on data that are public already.",
        )


def open_column(data: Any, columns: Sequence[str] | Sequence[int] | None) -> Source:
    """The data as one column of at least one row; arguments and metadata are checked."""
    source = open_source(data, column_names(columns), 1)
    if not source.rows():
        raise InvalidInput("must have at least one row", parameter="data")
    return source


_LARGEST_SUM = Fraction(sys.float_info.max)


def disclosed_total(source: Source, chance: Fraction, transform: Transform) -> float:
    """One pass: the sum of the records chosen, each by a coin of its own, after a transform.

    The sum is rounded once, so that it does not depend on the order of the records.
    """
    accumulators = read_here(source, lambda: _Disclosing(chance, transform))
    total = sum((Fraction(value) for each in accumulators for value in each.values), Fraction(0))
    # A sum beyond the floats is held at their end: an exception would tell of the records.
    return float(max(-_LARGEST_SUM, min(total, _LARGEST_SUM)))


class _Disclosing:
    """Keeps the records that their coins chose; for one thread."""

    def __init__(self, chance: Fraction, transform: Transform) -> None:
        self._chance = chance
        self._transform = transform
        self.values: list[float] = []
        self.rows = 0

    def add(self, batch: Batch) -> None:
        """Toss a coin for every record of the batch."""
        self.rows += batch.rows + batch.absent
        values = values_of(bounded(batch, _LARGEST), 0)
        chosen = values[coins(self._chance, batch.rows)]
        # A missing value is 0, after whatever is done to the others.
        self.values += self._transform(chosen[~np.isnan(chosen)]).tolist()
