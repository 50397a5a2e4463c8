"""Intervals for the population that records were drawn from: noise and sampling together.

The default adds the sampling error √(S²/n) to the noise, with an upper bound S²₊ of the variance
in place of S²: the noisy variance and 1.645 of its deviations, or the most that the mean allows
(Bhatia and Davis: S² ≤ 1 − m² within [−1, 1]), whichever is less. The guaranteed interval holds
for every n and every distribution on the bounds: Bernstein's inequality, with Maurer and Pontil's
for the variance. Everything is in u = (x − centre)/half-width. Proof: docs/proofs/population.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from muhat._arrays import Floats
from muhat.mechanisms.sums.ratio import Ratio
from muhat.noise.laws import LAWS
from muhat.noise.spread import Spread
from muhat.release.answer import NOT_INDEPENDENT, refuse_population

if TYPE_CHECKING:
    from muhat.release.vector_answer import VectorAnswer


DEVIATIONS = 1.645
"""How far above the noisy variance its bound lies: chosen so that intervals hold as often as they
say for skewed and for rare values too."""

NOISE = 0.3
"""The part of a guaranteed interval's misses that the noise of a ratio may have."""


@dataclass(frozen=True, eq=False)
class Moments:
    """What is known of the values in units of u: noisy sums, counts, Σ(base − u²), and errors.

    `sums` has shape (d,), `count` too or (1,); errors are standard deviations. `lacking` has shape
    (d,), or (1,) if it is Σ(base − |u|²): then what is left of it for all columns together bounds
    the variance of each. It is None if no squares were released.
    """

    sums: Floats
    sum_error: Floats
    count: Floats
    count_error: Floats
    lacking: Floats | None
    lacking_error: Floats | None
    base: float = 1.0

    def variance(self) -> Floats:
        """S²₊, of shape (d,): rarely below the variance of the values."""
        count = np.maximum(self.count, 2.0)
        mean = np.clip(self.sums / count, -1, 1)
        error = np.sqrt(self.sum_error**2 + (mean * self.count_error) ** 2) / count
        most = 1 - np.clip(np.abs(mean) - DEVIATIONS * error, 0, 1) ** 2
        if self.lacking is None or self.lacking_error is None:
            return np.asarray(most)
        lack = np.clip(self.lacking / count, self.base - 1, self.base)
        squared, blurred = self._gathered(mean**2), self._gathered(error**2)
        found = (self.base - self.lacking / count - squared + blurred) * count / (count - 1)
        spread = np.sqrt(
            (
                self.lacking_error**2
                + self._gathered((2 * mean * self.sum_error) ** 2)
                + ((lack + 2 * squared) * self.count_error) ** 2
            )
            / count**2
            + 2 * self._gathered(error**4)
        )
        return np.asarray(np.maximum(np.minimum(found + DEVIATIONS * spread, most), 0.0))

    def _gathered(self, columns: Floats) -> Floats:
        """What belongs to each sum of squares: of one column, or of all of them."""
        assert self.lacking is not None
        together = len(self.lacking) < len(self.sums)
        return np.asarray(columns.sum(keepdims=True) if together else columns)

    def deviation_at_most(self, quantile: float, square_quantile: float, miss: float) -> Floats:
        """A bound on the population's standard deviation, at most 1, of shape (d,).

        It holds but for a chance of `miss`, if the noise of sums and counts does not reach beyond
        `quantile` deviations, and that of the squares not beyond `square_quantile`.
        """
        ones = np.ones(self.sums.shape)
        if self.lacking is None or self.lacking_error is None:
            return ones
        least = np.maximum(self.count - quantile * self.count_error, 2.0)
        most = np.maximum(self.count + quantile * self.count_error, 2.0)
        lacking = self.lacking - square_quantile * self.lacking_error
        # At least this a value; below 0 fewer values make it less.
        lack = np.maximum(lacking / np.where(lacking > 0, most, least), self.base - 1)
        mean = np.maximum(np.abs(self.sums) - quantile * self.sum_error, 0.0) / most
        sample = np.maximum(self.base - lack - mean**2, 0.0) * least / (least - 1)
        beyond = 2 * np.sqrt(2 * math.log(1 / miss) / (least - 1))
        return np.asarray(np.minimum(np.sqrt(sample) + beyond, ones))


def population_interval(
    answer: VectorAnswer, confidence: float, *, simultaneous: bool, guaranteed: bool
) -> tuple[Floats, Floats]:
    """Lower and upper ends for the population's mean (of a sum: n times that), shape (d,) each."""
    refuse_population(why_no_population(answer))
    noise, n = answer.noise, answer.n
    moments, halves = _moments(answer)
    divided = answer.statistic == "mean"
    if isinstance(noise, Ratio):
        assert answer.domain is not None
        level, sampling = confidence, _sampling(moments, confidence, len(halves), simultaneous)
        if guaranteed:
            level, sampling = _guaranteed_ratio(answer, moments, confidence, simultaneous)
        lower, upper = noise.interval(level, joint=simultaneous, sampling=sampling * halves)
        return answer.domain.center + lower, answer.domain.center + upper
    assert isinstance(noise, Spread)
    assert n is not None
    scale = halves / n if divided else halves
    if guaranteed:
        half = _guaranteed_half(answer, moments, confidence, simultaneous, scale)
    else:
        sampling = _sampling(moments, confidence, len(halves), simultaneous) * scale
        # Noise with lighter tails than the normal counts as normal beside a normal variable.
        z = _normal_quantile(confidence, len(halves), simultaneous)
        reach = noise.half_widths(confidence, joint=simultaneous)
        half = np.hypot(np.maximum(reach, z * noise.standard_error), sampling)
    middle = answer.value
    return middle - half, middle + half


def why_no_population(answer: VectorAnswer) -> str | None:
    """Why a release has no interval for the population; None if it has one."""
    if answer.statistic not in ("mean", "sum") or answer.domain is None:
        return f"a {answer.statistic} estimates nothing of the population"
    if answer.unprojected is not None:
        return "a projection moves the value for reasons of its own: ask before projected()"
    if answer.contributions > 1:
        return f"{NOT_INDEPENDENT} with contributions > 1"
    if answer.domain_is_learnt:
        return (
            "the set was learnt from these records and leaves some of them outside, so it says "
            "nothing about a population. Bound the records by mh.Box or mh.Ball for that"
        )
    if answer.statistic == "sum" and answer.n is None:
        return "how large a sum would be in another sample depends on n, which is secret here"
    if not isinstance(answer.noise, Ratio) and answer.n is None:
        return "the sampling error depends on the number of records, which is secret here"
    if not isinstance(answer.noise, Spread | Ratio):
        return f"nothing is known of the sampling error by the mechanism {answer.mechanism!r}"
    return None


def shows_population(answer: VectorAnswer) -> bool:
    """Whether the interval is printed beside the other; protocols have errors of their own."""
    known = answer.noise is not None and not answer.failed
    return known and not answer.from_devices and why_no_population(answer) is None


def _moments(answer: VectorAnswer) -> tuple[Moments, Floats]:
    """The moments of a release and the half-widths that they are measured in.

    A constant has no width: it is 0 in any unit, and nothing is drawn.
    """
    noise, squares, domain = answer.noise, answer.squares, answer.domain
    assert domain is not None
    if squares is not None:
        center, halves = squares.center, squares.half_widths
    elif answer.statistic == "sum" and answer.missing == "drop":
        low, high = (np.minimum(domain.bounding_box[0], 0), np.maximum(domain.bounding_box[1], 0))
        center, halves = (low + high) / 2, (high - low) / 2
    else:
        center, halves = domain.center, domain.half_widths
    units = np.where(halves > 0, halves, 1.0)
    lacking = None if squares is None else squares.lacking
    lacking_error = None if squares is None else squares.spread.standard_error
    if isinstance(noise, Ratio):
        start = noise.shift + domain.center - center
        sums = (noise.sums + start * noise.count) / units
        spread = noise.sum_spread.standard_error + np.abs(start) * noise.count_error
        parts = (sums, spread / units, noise.count, noise.count_error)
    else:
        assert isinstance(noise, Spread)
        assert answer.n is not None
        n = np.array([float(answer.n)])
        times = n if answer.statistic == "mean" else np.ones(1)
        sums = (answer.value * times - n * center) / units
        parts = (sums, noise.standard_error * times / units, n, np.zeros(1))
    base = 1.0 if squares is None else squares.base
    return Moments(*parts, lacking, lacking_error, base), halves


def _sampling(moments: Moments, confidence: float, dim: int, simultaneous: bool) -> Floats:
    """z·√(n·S²₊): what a draw of the records may add to the sums, in half-widths."""
    z = _normal_quantile(confidence, dim, simultaneous)
    return np.asarray(z * np.sqrt(np.maximum(moments.count, 0.0) * moments.variance()))


def _normal_quantile(confidence: float, dim: int, simultaneous: bool) -> float:
    return LAWS["normal"].quantile(confidence, dim, joint=simultaneous)


def _guaranteed_half(
    answer: VectorAnswer, moments: Moments, confidence: float, simultaneous: bool, scale: Floats
) -> Floats:
    """Bernstein's bound for n public; with normal noise in the same exponent."""
    noise = answer.noise
    assert isinstance(noise, Spread)
    miss, law = _miss(moments, confidence, simultaneous), noise.law
    deviation = _deviation(answer, moments, noise, miss / 10)
    # 7/10 of the miss for the mean itself, 1/10 each for both noises and the variance.
    if law.stable:
        log = math.log(2 / (0.7 * miss))
        total = moments.sum_error**2 + moments.count * deviation**2
        return np.asarray((np.sqrt(2 * log * total) + 2 * log / 3) * scale)
    log = math.log(2 / (0.35 * miss))
    sampling = np.sqrt(2 * log * moments.count) * deviation + 2 * log / 3
    return np.asarray(noise.half_widths(1 - 0.35 * miss, joint=False) + sampling * scale)


def _deviation(answer: VectorAnswer, moments: Moments, spread: Spread, miss: float) -> Floats:
    """The bound on the population's deviation, with a `miss` for each noise and for itself."""
    quantile = _quantile(spread, 1 - miss)
    squares = quantile if answer.squares is None else _quantile(answer.squares.spread, 1 - miss)
    return moments.deviation_at_most(quantile, squares, miss)


def _quantile(spread: Spread, level: float) -> float:
    """How many deviations this noise reaches, in the column where it reaches farthest."""
    deviations = spread.standard_error
    reaches = spread.half_widths(level, joint=False)
    return float(np.max(reaches[deviations > 0] / deviations[deviations > 0], initial=0.0))


def _guaranteed_ratio(
    answer: VectorAnswer, moments: Moments, confidence: float, simultaneous: bool
) -> tuple[float, Floats]:
    """A level for the noise and an allowance for sampling that hold together for every n."""
    noise, squares = answer.noise, answer.squares
    assert isinstance(noise, Ratio)
    miss = _miss(moments, confidence, simultaneous)
    of_squares = noise.sum_spread if squares is None else squares.spread
    of_both = (noise.sum_spread, noise.count_spread or noise.sum_spread)
    sampling = guaranteed_sampling(
        moments,
        miss,
        lambda missed: max(_quantile(spread, 1 - missed) for spread in of_both),
        lambda missed: _quantile(of_squares, 1 - missed),
    )
    # The ratio shares a miss among its columns by itself.
    return 1 - NOISE * miss * (len(moments.sums) if simultaneous else 1), sampling


def guaranteed_sampling(
    moments: Moments,
    miss: float,
    quantile: Callable[[float], float],
    square_quantile: Callable[[float], float],
) -> Floats:
    """What sampling may add to A − τ·N̂ beside noise that is allowed a miss of `NOISE` times all.

    |noise| + |sampling| ≤ q + s is allowed for by √(q² + (2qs + s²)), with the largest q. The
    quantiles are, for a chance, how many deviations the noise exceeds with it.
    """
    # 6/10 of the miss for the mean itself, 1/10 each for three noises and the variance.
    reach = quantile(miss / 10)
    deviation = moments.deviation_at_most(reach, square_quantile(miss / 10), miss / 10)
    most = np.maximum(moments.count + reach * moments.count_error, 1.0)
    log = math.log(2 / (NOISE * miss))
    sampling = np.sqrt(2 * log * most) * deviation + 2 * log / 3
    largest = quantile(NOISE * miss) * (moments.sum_error + moments.count_error)
    return np.sqrt(2 * largest * sampling + sampling**2)


def _miss(moments: Moments, confidence: float, simultaneous: bool) -> float:
    return (1 - confidence) / (len(moments.sums) if simultaneous else 1)
