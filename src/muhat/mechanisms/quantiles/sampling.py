"""What noise and the draw of a sample do not explain together: intervals for a population."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from muhat.noise.laws import INDEPENDENT

if TYPE_CHECKING:
    from muhat.mechanisms.quantiles.noisy_search import NoisySearch
    from muhat.mechanisms.quantiles.recorded_count import RecordedCount

NOISE_SHARES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95)
"""Parts of the misses of an interval for the population that its noise may have: the best is
taken, and the draw of the sample has what is left."""

COUNT_SHARE = 0.02
"""The part that the noisy number of values has, where it is not public."""

_PRECISION = 1e-5


def clear_of_population(
    search: NoisySearch,
    fraction: float,
    miss: float,
    known: float,
    count: RecordedCount | None = None,
) -> float:
    """How far from the target a noisy count shows on which side of it the population lies.

    But for a chance of `miss`, and whichever the records' law is. Their number is `known`, with
    the noise of the `count` if there is one: too large a number is none too few.
    """
    if count is not None:
        known += count.half_width(1 - 2 * COUNT_SHARE * miss)
        miss *= 1 - COUNT_SHARE
    return min(
        search.clear(1 - share * miss, sampling_reach(known, fraction, (1 - share) * miss / 2))
        for share in NOISE_SHARES
    )


def sampling_reach(draws: float, share: float, miss: float) -> float:
    """k: of so many independent draws, more than share·draws + k hit a set of that share, or fewer
    than share·draws − k, each with probability `miss` at most; for fewer draws, too.

    Zubkov and Serov (2012) bound the binomial law by the normal one of √(2n·KL): 2n·KL(share +
    κ/n ‖ share) = z² and k = κ + 1, where z is exceeded with probability `miss`.
    Proof: docs/proofs/quantiles.md.

    >>> round(sampling_reach(1000, 0.5, 0.025), 1)
    32.0
    """
    if not 0 < share < 1 or draws <= 0:
        return 0.0
    squared = INDEPENDENT["normal"].one_sided(miss) ** 2
    return max(_reach(draws, one, squared) for one in (share, 1 - share))


def _reach(draws: float, share: float, squared: float) -> float:
    """The side above."""
    least, most = 0.0, draws * (1 - share)
    if 2 * draws * math.log(1 / share) <= squared:
        return most
    while most - least > _PRECISION * most:
        middle = (least + most) / 2
        if 2 * draws * _divergence(share, middle / draws) < squared:
            least = middle
        else:
            most = middle
    return min(most + 1, draws * (1 - share))


def _divergence(share: float, more: float) -> float:
    """KL of a coin that shows heads with probability share + more, from one with share."""
    rest = 1 - share
    if more >= rest:
        return math.log(1 / share)
    return (share + more) * math.log1p(more / share) + (rest - more) * math.log1p(-more / rest)
