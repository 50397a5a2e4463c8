"""How far out a record lies in the body of a gauge, with element-wise operations only.

Coordinates in ascending order, no library function whose bits could depend on a batch: a record
gets the same gauge wherever it stands. docs/proofs/integers.md says what rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from muhat.data.columns import FloatArray
from muhat.data.powers import power
from muhat.domains.lattice import BlockGauge, EllipsoidGauge, Gauge, LpGauge, SchattenGauge

GaugeFunction = Callable[[Sequence[FloatArray]], FloatArray]

_SWEEPS = 40
_CHUNK_VALUES = 1 << 16
_FEWEST_CHUNK_ROWS = 1 << 8
# How far from orthogonal a pair may stay, a coordinate, and how short (squared) a vector may be
# to be left alone, beside a matrix whose largest entry is 1.
_ORTHOGONAL = 2.0**-51
_NEGLIGIBLE = 2.0**-104


def gauge_functions(gauge: Gauge | None, scale: float) -> list[tuple[slice, GaugeFunction]]:
    """Blocks of coordinates, and the gauge of each."""
    if gauge is None:
        return []
    functions, start = [], 0
    for part in gauge.parts if isinstance(gauge, BlockGauge) else (gauge,):
        functions.append((slice(start, start + part.dim), gauge_function(part, scale)))
        start += part.dim
    return functions


def gauge_function(gauge: LpGauge | SchattenGauge | EllipsoidGauge, scale: float) -> GaugeFunction:
    """The gauge of scale·z from the coordinates of scale·z: one array a coordinate, one a record.

    Up to 1 it may be an upper bound, at most 2^10 times too large: records inside are not moved.
    Not-a-number and infinity are possible answers for records that are not finite, or huge.
    """
    if isinstance(gauge, LpGauge):
        return _lp_function(gauge, scale)
    if isinstance(gauge, EllipsoidGauge):
        return _ellipsoid_function(gauge, scale)
    return _schatten_function(gauge, scale)


def _lp_function(gauge: LpGauge, scale: float) -> GaugeFunction:
    widths = [width * scale for width in gauge.half_widths]

    def function(moved: Sequence[FloatArray]) -> FloatArray:
        result = np.empty(len(moved[0]))
        for part in _chunks(len(result), gauge.dim):
            relative = [values[part] / width for values, width in zip(moved, widths, strict=True)]
            result[part] = norms(relative, gauge.order)
        return result

    return function


def _ellipsoid_function(gauge: EllipsoidGauge, scale: float) -> GaugeFunction:
    rows = [[weight / scale for weight in row] for row in gauge.whitening]

    def function(moved: Sequence[FloatArray]) -> FloatArray:
        result = np.empty(len(moved[0]))
        for part in _chunks(len(result), gauge.dim):
            some = [values[part] for values in moved]
            whitened = [
                _total(values * weight for values, weight in zip(some, row, strict=False))
                for row in rows
            ]
            result[part] = norms(whitened, 2)
        return result

    return function


def _schatten_function(gauge: SchattenGauge, scale: float) -> GaugeFunction:
    radius = gauge.radius * scale
    # ‖σ‖_p ≤ ‖σ‖_2 for p ≥ 2, and ‖σ‖_p ≤ ‖σ‖_1 ≤ √k·‖σ‖_2 for k singular values.
    growth = 1.0 if gauge.order >= 2 else math.sqrt(min(gauge.shape))

    def function(moved: Sequence[FloatArray]) -> FloatArray:
        result = np.empty(len(moved[0]))
        for part in _chunks(len(result), gauge.dim):
            result[part] = norms([values[part] for values in moved], 2) / radius
        if gauge.order == 2:
            return result
        result *= growth
        # Records that are inside by this bound stay where they are: no more need be known.
        unsure = np.flatnonzero(~(result <= 1.0))
        for part in _chunks(len(unsure), gauge.dim):
            rows = unsure[part]
            sizes = singular_values([values[rows] for values in moved], gauge.shape)
            result[rows] = norms(sizes, gauge.order) / radius
        return result

    return function


def _chunks(rows: int, dim: int) -> Iterator[slice]:
    """Few enough records at a time to stay in the cache."""
    step = max(_CHUNK_VALUES // dim, _FEWEST_CHUNK_ROWS)
    for start in range(0, rows, step):
        yield slice(start, start + step)


def norms(vectors: Sequence[FloatArray], order: float) -> FloatArray:
    """‖v‖_order of every record, 1 ≤ order ≤ ∞, without overflow or underflow on the way."""
    sizes = [np.abs(vector) for vector in vectors]
    if order == 1:
        return _total(sizes)
    largest = _largest(sizes)
    if math.isinf(order):
        return largest
    divisor = np.where(largest > 0, largest, 1.0)
    if order == 2:
        return largest * np.sqrt(_total(np.square(size / divisor) for size in sizes))
    return largest * power(_total(power(size / divisor, order) for size in sizes), 1 / order)


def singular_values(entries: Sequence[FloatArray], shape: tuple[int, int]) -> list[FloatArray]:
    """The singular values of every record's matrix, by one-sided Jacobi rotations.

    The rows or the columns, whichever are fewer, are turned in pairs until all are orthogonal;
    then their lengths are the singular values. A pair that is orthogonal already is left alone,
    to the last bit, so stopping once no record of a chunk moves changes no record.
    """
    height, breadth = shape
    largest = _largest([np.abs(values) for values in entries])
    divisor = np.where(largest > 0, largest, 1.0)
    grid = np.stack([values / divisor for values in entries]).reshape(height, breadth, -1)
    vectors = grid if height <= breadth else np.ascontiguousarray(grid.transpose(1, 0, 2))
    count = len(vectors)
    for _ in range(_SWEEPS):
        turned = [
            _make_orthogonal(vectors[first], vectors[second])
            for first in range(count)
            for second in range(first + 1, count)
        ]
        if not any(turned):
            break
    return [largest * norms(list(vector), 2) for vector in vectors]


def _make_orthogonal(first: FloatArray, second: FloatArray) -> bool:
    """Turn each record's pair of vectors, of shape (length, rows), in their plane, in place."""
    alpha, beta = _dot(first, first), _dot(second, second)
    gamma = _dot(first, second)
    turns = np.abs(gamma) > len(first) * _ORTHOGONAL * (np.sqrt(alpha) * np.sqrt(beta))
    turns &= np.minimum(alpha, beta) > _NEGLIGIBLE
    if not turns.any():
        return False
    zeta = (beta - alpha) / (2.0 * gamma)
    slope = 1.0 / (np.abs(zeta) + np.sqrt(1.0 + zeta * zeta))
    tangent = np.where(turns, np.where(zeta < 0, -slope, slope), 0.0)
    cosine = 1.0 / np.sqrt(1.0 + tangent * tangent)
    sine = cosine * tangent
    for left, right in zip(first, second, strict=True):
        turned = cosine * left - sine * right
        right[:] = sine * left + cosine * right
        left[:] = turned
    return True


def _dot(first: FloatArray, second: FloatArray) -> FloatArray:
    return _total(left * right for left, right in zip(first, second, strict=True))


def _total(vectors: Iterable[FloatArray]) -> FloatArray:
    """The sum over the coordinates, in ascending order."""
    remaining = iter(vectors)
    total = next(remaining).copy()
    for vector in remaining:
        np.add(total, vector, out=total)
    return total


def _largest(sizes: Sequence[FloatArray]) -> FloatArray:
    """The largest over the coordinates; not-a-number if any of them is."""
    largest = sizes[0].copy()
    for size in sizes[1:]:
        np.maximum(largest, size, out=largest)
    return largest
