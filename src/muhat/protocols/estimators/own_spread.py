"""How far off a mean of cap messages is, as the messages show it themselves.

What is known before anybody answers is a bound for the worst records of the domain. The sample's
own error is often smaller: with z_i the unbiased estimate that message i is of its record,

    S = Σ(z_i − z̄)²/(n − 1)     has the mean     (mean of the messages' variances) + (that of the
                                                 records about their mean),

coordinate by coordinate. So S/n is no less than the variance of z̄ about the mean of these records,
and just the variance about the mean of the people whom they are a random part of. What is used is
S and 1.645 of its standard errors, kept between what the best and the worst records would have.
docs/proofs/local.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from muhat._arrays import Floats
from muhat.noise.spread import Spread
from muhat.protocols.randomizers.cap_randomizer import CapRandomizer
from muhat.protocols.randomizers.gaussian_randomizer import GaussianRandomizer
from muhat.protocols.randomizers.randomizer import MeanRandomizer
from muhat.protocols.roles.collector import Received

SURE = 1.645
"""Standard errors of S that are added to it: one in twenty samples has more."""


@dataclass(frozen=True, eq=False)
class OwnSpread:
    """The noise of a mean, and how it compares with what was known before: `worst`/`used`."""

    used: Spread
    worst: Spread

    @property
    def gain(self) -> float:
        """The most that a standard error would be larger for the worst records."""
        used, worst = self.used.standard_error, self.worst.standard_error
        return float(np.max(np.divide(worst, used, out=np.ones_like(used), where=used > 0)))

    def describe(self) -> str:
        """Both errors, in a sentence."""
        return (
            "standard errors are those that the messages show by their own spread; for the worst "
            f"records they would be up to {self.gain:.3g} times as large"
        )


def of_records(randomizer: MeanRandomizer, received: Received) -> OwnSpread:
    """Of the mean of the records whose messages were received."""
    worst = randomizer.spread(received.users)
    if not isinstance(randomizer, CapRandomizer) or received.users < 2:
        return OwnSpread(worst, worst)
    return OwnSpread(_scaled(randomizer, received, worst, most=1.0), worst)


def of_people(randomizer: MeanRandomizer, received: Received, radius: float) -> OwnSpread:
    """Of the mean of all people of whom these are a random part, clipped to a ball."""
    users = received.users
    noise = randomizer.spread(users)
    # No coordinate of a record in a ball has a larger variance than the radius squared.
    sampled = np.hypot(noise.standard_error, radius / math.sqrt(users))
    worst = noise.weighted(sampled / noise.standard_error)
    if isinstance(randomizer, GaussianRandomizer) or users < 2:
        return OwnSpread(worst, worst)
    assert isinstance(randomizer, CapRandomizer)
    return OwnSpread(_scaled(randomizer, received, noise, most=None), worst)


def _scaled(
    randomizer: CapRandomizer, received: Received, noise: Spread, most: float | None
) -> Spread:
    """A spread, every coordinate as wide as the messages show it, but for the largest factor."""
    own = np.sqrt(_variances(randomizer, received) / received.users) * randomizer.longest
    # A coordinate without width has no error at all.
    wide = noise.standard_error > 0
    factors = np.divide(own, noise.standard_error, out=np.ones_like(own), where=wide)
    return noise.weighted(factors if most is None else np.minimum(factors, most))


def _variances(randomizer: CapRandomizer, received: Received) -> Floats:
    """S and 1.645 of its standard errors, or the least variance of a message, of shape (d,).

    In squares of `randomizer.longest`.
    """
    n = received.users
    sums = np.zeros((4, randomizer.domain.dim))
    for estimates in randomizer.estimates(received.nonces, received.payloads):
        power = np.ones_like(estimates)
        for total in sums:
            power = power * estimates
            total += power.sum(axis=0)
    mean, second, third, fourth = sums / n
    spread = np.maximum(second - mean**2, 0.0) * n / (n - 1)
    tail = fourth - 4 * mean * third + 6 * mean**2 * second - 3 * mean**4
    error = np.sqrt(np.maximum(tail - spread**2, 0.0) / n)
    return np.asarray(np.maximum(spread + SURE * error, randomizer.least_variance))
