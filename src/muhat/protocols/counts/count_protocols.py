"""Quantiles and counts of ranges when nobody may see the records.

    protocol = muhat.protocols.shuffle_quantile(q=0.5, lower=0, upper=1e6, n=…, privacy=…)
    protocol = muhat.protocols.shuffle_ranges(lower=0, upper=100, cells=20, n=…, privacy=…)

They are protocols like those of means; the last round gives quantiles or counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from muhat import _check
from muhat.data.grids import UniformGrid
from muhat.errors import InvalidInput
from muhat.privacy import Privacy, as_typed, check_promise
from muhat.privacy.worth import warn_of_large_delta
from muhat.protocols.counts.count_estimator import LOCAL_CELLS, checked_quantiles
from muhat.protocols.counts.quantiles import LocalQuantile, ShuffleQuantile
from muhat.protocols.counts.ranges import LocalRanges, ShuffleRanges
from muhat.protocols.encodings.equal_cells import EqualCells
from muhat.protocols.roles.protocol import MOST_USERS, Protocol
from muhat.release.quantile_grids import AnyGrid, RelativeGrid


def local_quantile(
    q: float | Sequence[float] = 0.5,
    *,
    lower: float,
    upper: float,
    n: int,
    privacy: Privacy,
    resolution: float | None = None,
    relative: float | None = None,
    column: str = "0",
    minimum: int | None = None,
) -> Protocol:
    """Quantiles of a number in the local model, in one round of a byte each.

    Args:
        q: a quantile strictly between 0 and 1, or a list of them; more of them cost nothing.
        lower: the least that numbers are; smaller ones count as that.
        upper: the largest.
        n: how many people are planned to take part.
        privacy: what every message promises about its record.
        resolution: the step of the grid that values lie on; unless stated, a round number that
            makes at most 1024 steps. The finer it is, the larger is the noise.
        relative: the step as a part of the value instead, for numbers above 0.
        column: what the number is called.
        minimum: with fewer answers no result is given; half of the users unless stated.

    >>> import muhat as mh
    >>> protocol = local_quantile(lower=0, upper=100, n=1000, privacy=mh.PureDP(epsilon=1.0))
    >>> protocol.bytes_per_user
    29
    """
    n = _people(n, privacy)
    if resolution is None and relative is None:
        resolution = _round_step(_check.real("lower", lower), _check.real("upper", upper))
    grid = _grid(lower, upper, resolution, relative)
    warn_of_large_delta(privacy, n)
    return LocalQuantile(checked_quantiles(q), grid, privacy, n, str(column)).first(minimum)


def shuffle_quantile(
    q: float | Sequence[float] = 0.5,
    *,
    lower: float,
    upper: float,
    n: int,
    privacy: Privacy,
    resolution: float | None = None,
    relative: float | None = None,
    column: str = "0",
    minimum: int | None = None,
    honest: int | None = None,
) -> Protocol:
    """Quantiles of a number in the shuffle model, in a few rounds that look closer and closer.

    As `local_quantile`, but more quantiles cost little, the grid has at most 2^20 steps unless
    one is stated (a coarser one saves rounds), `privacy` is ApproxDP and about the mixed messages,
    and its noise counts on `honest` people among the `minimum` who must answer: all of them unless
    stated, and they nine in ten.

    >>> import muhat as mh
    >>> promise = mh.ApproxDP(epsilon=1.0, delta=1e-6)
    >>> protocol = shuffle_quantile(lower=0, upper=1e6, n=1000, privacy=promise)
    >>> protocol.round, protocol.randomizer.kind
    (1, 'shares')
    """
    n = _people(n, privacy)
    grid = _grid(lower, upper, resolution, relative)
    warn_of_large_delta(privacy, n)
    return ShuffleQuantile(checked_quantiles(q), grid, privacy, n, str(column)).first(
        minimum, honest
    )


def local_ranges(
    *,
    lower: float,
    upper: float,
    cells: int,
    n: int,
    privacy: Privacy,
    column: str = "0",
    minimum: int | None = None,
) -> Protocol:
    """Counts of cells and ranges of a number in the local model, in one round of a byte each.

    Args:
        lower: the least that numbers are; smaller ones count as that.
        upper: the largest.
        cells: how many cells of the same width there are between them, from 2 to 4096. The more
            there are, the larger is the noise.
        n: how many people are planned to take part.
        privacy: what every message promises about its record.
        column: what the number is called.
        minimum: with fewer answers no result is given; half of the users unless stated.

    >>> import muhat as mh
    >>> promise = mh.PureDP(epsilon=1.0)
    >>> protocol = local_ranges(lower=0, upper=100, cells=20, n=1000, privacy=promise)
    >>> protocol.bytes_per_user
    29
    """
    n, grid = _people(n, privacy), EqualCells(lower, upper, cells)
    warn_of_large_delta(privacy, n)
    return LocalRanges(grid, privacy, n, str(column)).first(minimum)


def shuffle_ranges(
    *,
    lower: float,
    upper: float,
    cells: int,
    n: int,
    privacy: Privacy,
    column: str = "0",
    minimum: int | None = None,
    honest: int | None = None,
) -> Protocol:
    """Counts of cells and ranges of a number in the shuffle model, in one round.

    As `local_ranges`, but what a device sends grows with the cells, `privacy` is ApproxDP and about
    the mixed messages, and its noise counts on `honest` people among the `minimum` who must answer:
    all of them unless stated, and they nine in ten.

    >>> import muhat as mh
    >>> promise = mh.ApproxDP(epsilon=1.0, delta=1e-6)
    >>> protocol = shuffle_ranges(lower=0, upper=100, cells=20, n=1000, privacy=promise)
    >>> protocol.round, protocol.randomizer.kind
    (1, 'shares')
    """
    n, grid = _people(n, privacy), EqualCells(lower, upper, cells)
    warn_of_large_delta(privacy, n)
    return ShuffleRanges(grid, privacy, n, str(column)).first(minimum, honest)


def _people(n: int, promise: Privacy) -> int:
    """How many take part, after a look at the promise."""
    check_promise(promise)
    return _check.count("n", n, most=MOST_USERS)


def _grid(lower: float, upper: float, resolution: float | None, relative: float | None) -> AnyGrid:
    if resolution is not None and relative is not None:
        raise InvalidInput("resolution and relative are two ways to choose a step; give one.")
    if relative is not None:
        return RelativeGrid.between(lower, upper, relative)
    return UniformGrid.between(lower, upper, resolution)


def _round_step(lower: float, upper: float) -> float | None:
    """The least of 1, 2, 5 times a power of ten that makes at most `LOCAL_CELLS` cells."""
    least = (as_typed(upper) - as_typed(lower)) / (LOCAL_CELLS - 1)
    if least <= 0:
        return None  # the grid refuses the bounds
    exponent = math.floor(math.log10(least.numerator) - math.log10(least.denominator)) - 1
    powers = (Fraction(10) ** (exponent + further) for further in range(4))
    return float(
        next(digit * each for each in powers for digit in (1, 2, 5) if digit * each >= least)
    )
