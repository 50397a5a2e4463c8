"""Exact draws of the discrete Gaussian law: P(k) ∝ exp(−k²/(2·variance)), k a whole number.

By rejection from discrete Laplace noise of the whole scale t = ⌊σ⌋ + 1 (Canonne, Kamath and
Steinke 2020): −|k|/t − γ(k) = −k²/(2σ²) − const for γ(k) = (|k| − σ²/t)²/(2σ²), so a proposal k
is kept with probability e^−γ(k), that is if a standard exponential number is at least γ(k).
That number is known to 55 fractional bits, which mostly decide in floats with a proved error;
otherwise it gets more bits and is compared in rationals. Where many are drawn of a small variance
a table of the law pays (`inversion.py`): one random word a number.

Whole numbers have no stable Gaussian law: the sum of h independent N_Z(0, s²), the parts of noise
that h people add, is not quite N_Z(0, h·s²). It is so close, though, that the promise of
N_Z(0, h·s²) holds up to a factor that a careful sum of theta series bounds at every point
(`closeness`). Proof: docs/proofs/shared-noise.md.
"""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat.errors import InvalidInput
from muhat.noise.density import FRACTION_BITS, LAPLACE
from muhat.noise.discrete import discrete_laplace
from muhat.noise.enclosures import falling_exponential
from muhat.noise.entropy import Words, system_words
from muhat.noise.exact import Enclosure, multiply
from muhat.noise.inversion import Cumulative, inverted
from muhat.noise.norms import RealNumbers
from muhat.noise.strips import BLOCK, draw
from muhat.privacy.rounding import MARGIN, float_at_least

MOST_VARIANCE = Fraction(1 << 80)
LEAST_VARIANCE = Fraction(1, 1 << 80)
"""Between them samples are int64 and the floats of a decision are far from their limits."""

OFTEN = 64
"""So many numbers for each unit of the scale are drawn with a table."""

_BITS = FRACTION_BITS + 1
LEAST_PART_VARIANCE = Fraction(1, 8)
"""Below it the first theta series is no longer safely less than 1."""

_DIGITS = 50
_TWICE_PI_SQUARE = Decimal("19.7392088021787172376689819997523022706")  # rounded down
_FARTHEST = Decimal(2000)  # e^−2000 is far below every float
_FINE = 64
_NOTHING = Decimal("1e-60")


def discrete_gaussian(
    variance: Fraction, size: int, words: Words = system_words
) -> NDArray[np.int64]:
    """Independent whole numbers with P(k) ∝ exp(−k²/(2·variance)), of shape (size,), exactly.

    `variance` is the parameter σ²; the variance of the law itself is a little below it.

    >>> discrete_gaussian(Fraction(9, 4), 3).shape
    (3,)
    """
    if not LEAST_VARIANCE <= variance <= MOST_VARIANCE:
        raise InvalidInput("variance must lie between 2^-80 and 2^80.")
    variance = Fraction(variance)  # an int or a float would be divided inexactly
    size = _check.count("size", size, least=0)
    scale = math.isqrt(math.floor(variance)) + 1
    if size >= OFTEN * scale:
        drawn = inverted(_Gaussian(variance), size, words)
        return np.where(drawn & 1, (drawn + 1) >> 1, -(drawn >> 1))
    found = np.empty(size, np.int64)
    missing = np.arange(size)
    while missing.size:
        rejected = [missing[:0]]
        for begin in range(0, missing.size, BLOCK):
            places = missing[begin : begin + BLOCK]
            proposed = discrete_laplace(Fraction(1, scale), places.size, words)
            found[places] = proposed
            rejected.append(places[~_kept(proposed, variance / scale, variance, words)])
        missing = np.concatenate(rejected)
    return found


@dataclass(frozen=True)
class _Gaussian:
    """The same law on 0, 1, −1, 2, −2, … as 0, 1, 2, 3, 4, …."""

    variance: Fraction

    def cumulative(self, precision: int) -> Cumulative:
        """With w_k = exp(−k²/(2σ²)), w_{k+1}/w_k falls by the same factor from k to k + 1."""
        one = 1 << precision
        halved = 1 / (2 * self.variance)
        ratio = _over(falling_exponential(halved, precision), one)
        factor = _over(falling_exponential(2 * halved, precision), one)
        weight, sums = (one, one), [(one, one)]
        while weight[1] >> (precision - precision // 4):
            weight = multiply(weight, ratio, precision)
            ratio = multiply(ratio, factor, precision)
            for _ in range(2):
                sums.append((sums[-1][0] + weight[0], sums[-1][1] + weight[1]))
        # What is left out is on both sides less than a geometric series.
        tail = -(-2 * weight[1] * ratio[1] // (one - ratio[1]))
        least, most = sums[-1][0], sums[-1][1] + tail
        return (
            tuple((low << precision) // most for low, _ in sums),
            tuple(min(-(-(high << precision) // least), one) for _, high in sums),
        )


def _over(enclosure: tuple[Fraction, Fraction], whole: int) -> Enclosure:
    """Multiples of 1/whole as integers."""
    least, most = (bound * whole for bound in enclosure)
    return least.numerator, most.numerator


def _kept(
    proposed: NDArray[np.int64], centre: Fraction, variance: Fraction, words: Words
) -> NDArray[np.bool_]:
    """Which proposals are kept: those with an exponential number of at least γ."""
    sample = draw(LAPLACE, proposed.size, words)
    floors = sample.floors
    sizes = np.abs(proposed)
    reached = np.maximum(floors, ~floors).astype(np.float64) * 2.0**-_BITS
    gap = sizes.astype(np.float64) - float(centre)
    wanted = gap * gap * float(1 / (2 * variance))
    # Roundings move γ by less than (11γ + 4)·2^-53, as centre ≤ σ, and the number by less than
    # its 2^-53 and the 2^-55 that are not drawn yet: shared-noise.md.
    unsure = np.abs(reached - wanted) <= (reached + wanted + 1) * 2.0**-48
    unsure[list(sample.settled)] = True
    kept: NDArray[np.bool_] = reached > wanted
    for index in np.flatnonzero(unsure).tolist():
        settled = sample.settled.get(index)
        floor = int(floors[index]) if settled is None else settled.floor
        ahead = [] if settled is None else list(settled.next_words)
        exponent = (int(sizes[index]) - centre) ** 2 / (2 * variance)
        kept[index] = _reaches(exponent, RealNumbers([floor], _BITS, {0: ahead}), words)
    return kept


def _reaches(exponent: Fraction, number: RealNumbers, words: Words) -> bool:
    """Whether |t| is at least the exponent, with as many more bits of t as it takes."""
    while True:
        (least,) = number.magnitudes()
        wanted = exponent * (1 << number.bits)
        if least >= wanted:
            return True
        if least + 1 <= wanted:
            return False
        number.refine(words)


def closeness(part_variance: Fraction, parts: int) -> float:
    """τ such that the sum of h parts is within e^{±τ} of one N_Z(0, h·s²) at every integer.

    With s² = part_variance, h = parts and η(v) = 2Σ_{j≥1} e^{−2π²·v·j²},

        τ = h·η(s²) + Σ_{k=1}^{h−1} η_k/(1 − η_k),   η_k = η(s²·k/(k + 1)),

    rounded up. The law itself is P(x) ∝ exp(−x²/(2s²)), as `discrete_gaussian` draws it. Among d
    independent coordinates the factor is e^{±dτ}: if N_Z(0, h·s²) is (ε, δ)-private, the sum of
    parts is (ε + 2dτ, e^{dτ}δ)-private.

    >>> closeness(Fraction(4), 1000) < 1e-16, closeness(Fraction(1), 1)
    (True, 0.0)
    """
    if not part_variance >= LEAST_PART_VARIANCE:
        raise InvalidInput("part_variance must be at least 1/8: smaller parts are not bounded.")
    parts = _check.count("parts", parts)
    if parts == 1:
        return 0.0
    context = decimal.Context(prec=_DIGITS, rounding=decimal.ROUND_HALF_EVEN, Emin=-99_999)
    with decimal.localcontext(context):
        exact = Fraction(part_variance)
        variance = Decimal(exact.numerator) / exact.denominator
        total = parts * _ripple(variance)
        k = 1
        while k < parts:
            # η_k falls with k, so the first of a few neighbours stands for all of them, and one
            # that is nothing for all that follow.
            ripple = _ripple(variance * k / (k + 1))
            alike = min(max(1, k // _FINE), parts - k) if ripple > _NOTHING else parts - k
            total += alike * ripple / (1 - ripple)
            k += alike
        # It covers the roundings of the few operations on each of about 1,500 terms too.
        return float_at_least(total * MARGIN)


def _ripple(variance: Decimal) -> Decimal:
    """η(variance), rounded up: with r = e^{−2π²·variance}, at most 2r/(1 − r³) as j² ≥ 3j − 2."""
    ratio = (-min(_TWICE_PI_SQUARE * variance, _FARTHEST)).exp()
    return 2 * ratio / (1 - ratio**3)
