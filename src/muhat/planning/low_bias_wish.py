"""What is asked of a mean of bounded bias, and the mechanisms that could do it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from muhat._arrays import Floats
from muhat._words import APPROXIMATE
from muhat.domains.reals import Reals
from muhat.errors import InvalidInput
from muhat.mechanisms.learning.moment_error import Moment
from muhat.mechanisms.learning.padded import PaddedMean
from muhat.mechanisms.learning.padded_means import PaddedMeans
from muhat.mechanisms.learning.sharing import Sharing
from muhat.mechanisms.learning.symmetric_method import SymmetricMethod
from muhat.noise.kinds import NoiseKind
from muhat.planning.low_bias_method import Alternative
from muhat.planning.terms import Terms, UnderTerms, kinds_of_noise
from muhat.statistics.reals import LowBias

BIASES = (1e-5, 0.5, 7)
"""Biases that are tried first, in scales: the least, the largest, and how many."""

PROBES = 10
"""How often it is looked closer around the best of them: to about 1 % of the bias."""

NOTABLE = 1 - 1e-4
"""Less gain than this is none, so that a plan made again for its own bias is the same plan."""

GOLDEN = (3 - math.sqrt(5)) / 2
"""The part of a segment at which it is probed, so that every probe serves twice."""

Maker = Callable[[Floats], PaddedMean | None]


@dataclass(frozen=True, eq=False)
class Wish(UnderTerms):
    """What was asked for, under which terms."""

    asked: LowBias
    terms: Terms

    @property
    def domain(self) -> Reals:
        """Where records are looked for."""
        return self.asked.domain

    @property
    def weights(self) -> Floats:
        """What errors are multiplied by."""
        return self.asked.weights

    @cached_property
    def n(self) -> int:
        """The public number of records."""
        assert self.terms.n is not None
        return self.terms.n

    @cached_property
    def moment(self) -> Moment:
        """What is assumed."""
        return self.asked.assumed

    @property
    def kinds(self) -> tuple[NoiseKind, ...]:
        """The kinds of noise that compete; in the paper it is Laplace noise."""
        kinds = kinds_of_noise(self.privacy, self.domain.dim)
        return (NoiseKind.PURE,) if self.asked.faithful and NoiseKind.PURE in kinds else kinds

    @cached_property
    def makers(self) -> list[Maker]:
        """What makes clipped means of given biases, of shape (d,), or None if it cannot."""
        magnitude = self.domain.magnitude
        makers: list[Maker] = []
        for kind in self.kinds if magnitude is not None else ():
            assert magnitude is not None
            sharing = Sharing(magnitude, self.weights, self.n, self.terms.protection, kind)
            means = PaddedMeans(sharing, self.moment)
            makers += [means.printed] if self.asked.faithful else [means.wide, means.located]
        return makers

    def clipped(self, biases: Floats) -> list[PaddedMean]:
        """Clipped means with these biases, of shape (d,)."""
        found = [make(biases) for make in self.makers]
        return [method for method in found if method is not None]

    def best_clipped(self, bias: Floats | None) -> list[PaddedMean]:
        """Of every kind of clipped mean with these biases at most the one with the least error.

        Less bias than is allowed may be better: columns of small scale need no large one.
        """
        limit = np.full(self.domain.dim, np.inf) if bias is None else bias
        scales = self.moment.scales
        # Parts that the limit makes alike are tried once.
        parts = np.unique(np.minimum(np.geomspace(*BIASES), (limit / scales).max()))
        largest = np.minimum(parts[-1] * scales, limit)
        if len(parts) == 1:
            return self.clipped(largest)

        def attempt(part: float, make: Maker) -> PaddedMean | None:
            # Where no float is wide enough a larger bias may do.
            with contextlib.suppress(InvalidInput):
                return make(np.minimum(part * scales, limit))
            return None

        found = [_least(parts, partial(attempt, make=make)) for make in self.makers]
        # If nothing will do the largest bias says why.
        return [method for method in found if method is not None] or self.clipped(largest)

    def symmetric(self, *, offset: bool) -> SymmetricMethod:
        """The mean without bias if the distribution is symmetric."""
        if not self.privacy.spends_delta:
            raise InvalidInput(
                "a symmetric mean needs approximate privacy, ",
                APPROXIMATE,
                ": where the records lie cannot be told otherwise without a bound.",
            )
        return SymmetricMethod.planned(
            self.n,
            self.privacy,
            self.moment.order,
            self.moment.scales,
            self.weights,
            offset=offset,
            contributions=self.terms.contributions,
            faithful=self.asked.faithful,
        )

    def reached(self, bias: float) -> Alternative | None:
        """The least error of a clipped mean with this very bias."""
        try:
            methods = self.clipped(np.full(self.domain.dim, bias))
        except InvalidInput:
            return None
        return min(map(Alternative.of, methods), key=lambda each: each.rmse, default=None)


def _least(parts: Floats, attempt: Callable[[float], PaddedMean | None]) -> PaddedMean | None:
    """The method with the least error; its bias is a part of the scale within these.

    Errors fall and rise again with the bias: find where, then narrow that down by golden sections.
    """

    def tried(part: float) -> tuple[float, PaddedMean | None]:
        method = attempt(part)
        return (math.inf if method is None else method.rmse), method

    places = np.log(parts).tolist()
    coarse = [tried(part) for part in parts.tolist()]
    best = min(range(len(places)), key=lambda index: coarse[index][0])
    error, chosen = coarse[best]
    if chosen is None:
        return None
    low, middle = places[max(best - 1, 0)], places[best]
    high = places[min(best + 1, len(places) - 1)]
    for _ in range(PROBES):
        upwards = high - middle > middle - low
        probe = middle + GOLDEN * ((high if upwards else low) - middle)
        less, method = tried(math.exp(probe))
        if less < NOTABLE * error:
            low, high = (middle, high) if upwards else (low, middle)
            middle, error, chosen = probe, less, method
        elif upwards:
            high = probe
        else:
            low = probe
    return chosen
