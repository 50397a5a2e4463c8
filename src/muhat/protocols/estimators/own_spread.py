"""How far off a mean is, as the messages show it themselves.

What is known before anybody answers is a bound for the worst records of the domain. The sample's
own error is often smaller: with z_i the unbiased estimate that message i is of its record,

    S = Σ(z_i − z̄)²/(n − 1)     has the mean     (mean of the messages' variances) + (that of the
                                                 records about their mean),

coordinate by coordinate. So S/n is no less than the variance of z̄ about the mean of these records,
and just the variance about the mean of the people whom they are a random part of. What is used is
S and 1.645 of its standard errors (`MeanRandomizer.shown_error`), at most what the worst records
would have. docs/proofs/local.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from muhat._arrays import Floats
from muhat.noise.spread import Spread
from muhat.protocols.randomizers.randomizer import MeanRandomizer, Received


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
        times = f"{self.gain:.3g}"
        if times == "1":
            return "standard errors are those of the worst records"
        return (
            "standard errors are those that the messages show by their own spread; for the worst "
            f"records they would be up to {times} times as large"
        )


def of_records(randomizer: MeanRandomizer, received: Received) -> OwnSpread:
    """Of the mean of the records whose messages were received."""
    worst, shown = randomizer.spread(received.users), randomizer.shown_error(received)
    if shown is None:
        return OwnSpread(worst, worst)
    return OwnSpread(worst.weighted(np.minimum(_factors(shown, worst), 1.0)), worst)


def of_people(randomizer: MeanRandomizer, received: Received, radius: float) -> OwnSpread:
    """Of the mean of all people of whom these are a random part, clipped to a ball."""
    noise, shown = randomizer.spread(received.users), randomizer.shown_error(received)
    # No coordinate of a record in a ball has a larger variance than the radius squared.
    sampled = np.hypot(noise.standard_error, radius / math.sqrt(received.users))
    worst = noise.weighted(sampled / noise.standard_error)
    return OwnSpread(worst if shown is None else noise.weighted(_factors(shown, noise)), worst)


def _factors(shown: Floats, noise: Spread) -> Floats:
    """How many times as wide as the noise every coordinate is; one without width has no error."""
    known = noise.standard_error
    return np.divide(shown, known, out=np.ones_like(shown), where=known > 0)
