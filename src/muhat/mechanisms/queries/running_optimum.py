"""Short streams with the best normal noise: running sums, sums over windows, sums that decay.

The answers are W·q for integer terms q that one event moves by at most Q, W a lower triangular
Toeplitz matrix of whole numbers (over 2^24 where sums decay). L is a lower triangular matrix of
multiples of 2^−36, made from the factorisation that the solver finds, and C = L⁻¹·W. With an
integer K ≥ Q·r/(μ·ω), where r bounds ‖Σ_j ±C_j‖ for all sets of steps that a person may have,

    y = C·q/K + z,   z standard normal,

is μ·ω-GDP, and released is round(K·L·y) = W·q + round(K·L·z): a fixed function of y, step by step,
because C and L are lower triangular. C itself is never computed. C̃, the nearest that floats come to
it, has a residual E = L·C̃ − W that is found exactly, and ‖C̃_j − C_j‖ ≤ ‖L⁻¹‖·‖E_j‖ with
‖L⁻¹‖ ≤ ‖C‖·‖W⁻¹‖. Proof: docs/proofs/streams.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats, Integers
from muhat._integers import root_up
from muhat._plain import Key
from muhat.domains.norms import p_norm
from muhat.errors import InvalidInput
from muhat.mechanisms.arithmetic.exact_product import exact_product
from muhat.mechanisms.queries.event_weights import Weights
from muhat.mechanisms.queries.participation import farthest_squared
from muhat.mechanisms.queries.streaming import RunningNoise
from muhat.noise.entropy import Words, system_words
from muhat.noise.real_normal import RealNormals
from muhat.workloads.explicit import Explicit
from muhat.workloads.factorization import Factorization
from muhat.workloads.factorize import LONGEST_SOLVED, factorize

WEIGHED_BITS = 30
"""The noise on one term, in units, where terms are weighed: weights and noise fit into 64 bits."""

TOLERANCE, SOLVED_CLOSELY = 1e-3, 256
"""Longer streams are solved to a part in 2,000 of the error, which takes a second or two."""

_BITS = 36
_LIMB = 18


class Factor(NamedTuple):
    """L in units of 2^−36, a bound r on how far a person moves C·q, and what is known of both."""

    decoder: NDArray[np.int64]
    reach: Fraction
    rows: Floats
    floor: float
    method: str


@dataclass(frozen=True, eq=False)
class OptimalRunningNoise(
    RunningNoise,
    keys=(
        "mechanism",
        "size",
        "exponents",
        Key("reaches", text=True),
        "shares",
        "strength_squared",
        "contributions",
        "apart",
        Key("p", infinite=True),
        "window",
        "decay",
    ),
):
    """The noise of up to 1,024 sums, of little ℓ_p error; a person has events that are `apart`."""

    mechanism: ClassVar[str] = "optimal-sums"
    p: float = 2.0
    window: int | None = None
    decay: Fraction | None = None

    @property
    def events(self) -> Weights:
        """What events count in the sums after them."""
        return Weights(self.window, self.decay)

    @cached_property
    def best(self) -> Factor:
        """The factors; proved, and found once."""
        given = self.events, self.contributions, self.apart
        return best_factor(self.size, self.p, *given)

    @property
    def name(self) -> str:  # type: ignore[override]
        """Which factorisation it is."""
        return self.best.method

    def multiplier(self, coordinate: int) -> int:
        """K, the least whole number of at least Q·r/(μ·ω)."""
        square = (self.reaches[coordinate] * self.best.reach) ** 2
        square /= self.strength_squared * self.shares[coordinate]
        return math.isqrt(math.ceil(square) - 1) + 1

    def rounded(self, source: Words) -> Integers:
        """round(K·L·z) for every coordinate, of shape (n, d), over 2^shift."""
        shift = self.events.shift
        columns = [
            rounded_product(self.best.decoder, self.multiplier(j) << shift, source)
            for j in range(self.dim)
        ]
        return np.stack(columns, axis=1)

    def floor(self, p: float) -> float:
        """What ‖√variances‖_p cannot be below, with unit sensitivity."""
        known = self.best.floor if p == self.p else 0.0
        return max(known, super().floor(p)) if self.events == Weights() else known

    @cached_property
    def standard_deviations(self) -> Floats:
        """Of the noise on every sum, of shape (n, d)."""
        scales = [math.ldexp(self.multiplier(j), e) for j, e in enumerate(self.exponents)]
        return np.asarray(np.multiply.outer(self.best.rows, np.array(scales)))


def rounded_product(
    decoder: NDArray[np.int64], multiplier: int, source: Words = system_words
) -> Integers:
    """⌊K·L·z + ½⌋ for standard normals z, as if computed exactly, of shape (n,)."""
    size = len(decoder)
    normals = RealNormals.draw(size, source)
    spread = [int(x) * multiplier for x in np.abs(decoder).sum(axis=1)]
    while True:
        normals.refine()
        values = exact_product(decoder, np.array(normals.integers(), object))
        places = _BITS + normals.bits
        half = 1 << (places - 1)
        found = []
        for value, slack in zip(values, spread, strict=True):
            middle = int(value) * multiplier + half
            low, high = (middle - slack) >> places, (middle + slack) >> places
            if low != high:
                break
            found.append(low)
        if len(found) == size:
            return np.array(found, np.int64)


@lru_cache(maxsize=8)
def solved(size: int, p: float, weights: Weights) -> Factorization:
    """What the solver finds for one event of a person."""
    tolerance = TOLERANCE if size > SOLVED_CLOSELY else 1e-5
    return factorize(weights.workload(size), p, tol=tolerance)


@lru_cache(maxsize=8)
def several_floor(size: int, p: float, weights: Weights, contributions: int, apart: int) -> float:
    """What ‖√variances‖_p cannot be below if k events, b apart, move the answers by at most 1.

    They may be at steps j, j + b, …, for every j: the answers move by a column of W·B, B_tj = 1 for
    these t.
    """
    index = np.subtract.outer(np.arange(size), np.arange(size))
    taken = (index >= 0) & (index % apart == 0) & (index < contributions * apart)
    workload = weights.workload(size) @ taken.astype(np.float64)
    return factorize(Explicit(workload, (size,)), p, tol=TOLERANCE).floor


@lru_cache(maxsize=8)
def best_factor(size: int, p: float, weights: Weights, contributions: int, apart: int) -> Factor:
    """The factorisation of the least error among those that are known, with its proof."""
    if size > LONGEST_SOLVED:
        raise InvalidInput(f"sums are solved for up to {LONGEST_SOLVED:,} steps.")
    whole = weights.matrix(size)
    matrix = np.ldexp(whole.astype(np.float64), -weights.shift)
    f = solved(size, p, weights)
    found = []
    for method, strategy in _candidates(matrix, f.strategy, contributions, apart):
        decoder = np.linalg.solve(strategy.T, matrix.T).T
        squared = farthest_squared(np.rint(strategy * 2.0**20), contributions, apart)
        error = float(p_norm(np.linalg.norm(decoder, axis=1), p)) * math.sqrt(squared)
        found.append((error, method, strategy, decoder))
    _, method, strategy, decoder = min(found, key=lambda each: each[0])
    exact = np.rint(np.ldexp(np.tril(decoder), _BITS)).astype(np.int64)
    reach = proved_reach(exact, strategy, weights, contributions, apart)
    rows = np.linalg.norm(np.ldexp(exact.astype(np.float64), -_BITS), axis=1) * (1 + 2.0**-40)
    return Factor(exact, reach, rows, f.floor, method)


def _candidates(
    matrix: Floats, strategy: object, contributions: int, apart: int
) -> Iterator[tuple[str, Floats]]:
    """Lower triangular strategies: the optimum for one event, square roots, the events."""
    dense = np.asarray(strategy if isinstance(strategy, np.ndarray) else strategy.dense())  # type: ignore[attr-defined]
    gram = dense.T @ dense
    turned = np.linalg.cholesky(gram[::-1, ::-1] + 1e-15 * np.eye(len(gram)))
    yield "optimal factorisation", np.ascontiguousarray(turned[::-1, ::-1].T)
    if contributions > 1:
        size = len(matrix)
        root = _root_series(matrix[:, 0])
        index = np.subtract.outer(np.arange(size), np.arange(size))
        for width in sorted({size, min(apart, size)}, reverse=True):
            kept = np.where((index >= 0) & (index < width), root[index], 0.0)
            yield "square-root factorisation" if width == size else "banded square root", kept
        yield "noise on events", np.eye(size)


def _root_series(series: Floats) -> Floats:
    """The power series whose square is the given one, of first coefficient 1."""
    root = np.zeros(len(series))
    root[0] = 1.0
    for k in range(1, len(series)):
        root[k] = (series[k] - root[1:k] @ root[k - 1 : 0 : -1]) / 2
    return root


def proved_reach(
    decoder: NDArray[np.int64],
    strategy: Floats,
    weights: Weights,
    contributions: int,
    apart: int,
) -> Fraction:
    """At least ‖Σ_j ±C_j‖ for C = L⁻¹·W and all sets of steps of a person, whatever floats did."""
    size = len(decoder)
    if np.any(np.diag(decoder) <= 0) or np.any(np.triu(decoder, 1)):
        raise AssertionError("the decoder is not a lower triangular matrix that can be undone")
    near = np.rint(np.ldexp(np.tril(strategy), _BITS)).astype(np.int64)
    residual = _residual(decoder, near, weights.matrix(size), weights.shift)
    worst = root_up(Fraction(_longest_squared(residual), 1 << 2 * _BITS))
    longest = root_up(Fraction(_longest_squared(near), 1 << 2 * _BITS))
    # ‖C̃_j − C_j‖ ≤ √n·(longest of C)·‖W⁻¹‖·(longest of E).
    grown = root_up(Fraction(size)) * weights.inverse_norm(size) * worst
    if grown >= Fraction(1, 1 << 10):
        raise InvalidInput("the factorisation is too ill-conditioned for exact arithmetic.")
    off = longest / (1 - grown) * grown
    if contributions == 1:
        return longest + off
    several = farthest_squared(np.ldexp(near.astype(np.float64), 20 - _BITS), contributions, apart)
    return root_up(Fraction(several)) + contributions * off


def _longest_squared(matrix: NDArray[np.int64]) -> int:
    """The square of the longest column."""
    columns: list[list[int]] = matrix.T.tolist()
    return max(sum(x * x for x in column) for column in columns)


def _residual(
    decoder: NDArray[np.int64], near: NDArray[np.int64], matrix: NDArray[np.int64], shift: int
) -> NDArray[np.int64]:
    """At least |L·C̃ − W| in units of 2^−36, entry by entry: products of 18 bits are exact."""
    parts = []
    for values in (decoder, near):
        high = values >> _LIMB
        if np.abs(high).max() >= 1 << (_LIMB + 3):
            raise InvalidInput("the factorisation is too uneven for exact arithmetic.")
        parts.append((high.astype(np.float64), (values - (high << _LIMB)).astype(np.float64)))
    (a, b), (c, d) = parts
    top, low = (a @ c).astype(np.int64), (b @ d).astype(np.int64)
    middle = (a @ d).astype(np.int64) + (b @ c).astype(np.int64) + (low >> _LIMB)
    top += middle >> _LIMB
    return np.asarray(np.abs(top - (matrix << (_BITS - shift))) + 1)
