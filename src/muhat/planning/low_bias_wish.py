"""What is asked of a mean of bounded bias, checked, and the mechanisms that could do it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from muhat import _check
from muhat._arrays import Floats
from muhat._words import APPROXIMATE, Parameter
from muhat.domains.reals import Reals
from muhat.ellipsoids.smallest import weight_vector
from muhat.errors import InvalidInput
from muhat.mechanisms.learning.moment import Moment
from muhat.mechanisms.learning.padded import PaddedMean
from muhat.mechanisms.learning.padded_means import PaddedMeans
from muhat.mechanisms.learning.sharing import Sharing
from muhat.mechanisms.learning.symmetric_method import SymmetricMethod
from muhat.mechanisms.sums.recipe import Protection
from muhat.planning.caution import warn_of_large_delta
from muhat.planning.low_bias_method import Alternative
from muhat.planning.noise_kinds import kinds_of_noise
from muhat.privacy import Neighbors, Privacy

BIASES = (1e-5, 0.5, 7)
"""Biases that are tried first, in scales: the least, the largest, and how many."""

PROBES = 10
"""How often it is looked closer around the best of them: to about 1 % of the bias."""

NOTABLE = 1 - 1e-4
"""Less gain than this is none, so that a plan made again for its own bias is the same plan."""

GOLDEN = (3 - math.sqrt(5)) / 2
"""The part of a segment at which it is probed, so that every probe serves twice."""

Maker = Callable[[Floats], PaddedMean | None]


@dataclass(frozen=True, eq=False, kw_only=True)
class Wish:
    """What was asked for, checked."""

    domain: Reals
    n: int
    privacy: Privacy
    weights: Floats
    contributions: int
    moment: Moment

    @property
    def kinds(self) -> tuple[bool, ...]:
        """The kinds of noise that compete: True is pure, False is normal."""
        return kinds_of_noise(self.privacy, self.domain.dim)

    @cached_property
    def makers(self) -> list[Maker]:
        """What makes clipped means of given biases, of shape (d,), or None if it cannot."""
        magnitude = self.domain.magnitude
        makers: list[Maker] = []
        for pure in self.kinds if magnitude is not None else ():
            protection = Protection.of(
                self.privacy, Neighbors.SUBSTITUTE, self.contributions, pure=pure
            )
            assert magnitude is not None
            sharing = Sharing(magnitude, self.weights, self.n, protection)
            means = PaddedMeans(sharing, self.moment)
            makers += [means.wide, means.located]
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
            contributions=self.contributions,
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


def checked_wish(
    domain: Reals, n: int, privacy: Privacy, weights: Any, contributions: int, moment: Any
) -> Wish:
    """The wish that the arguments stand for, or InvalidInput."""
    n = _check.count("n", n)
    warn_of_large_delta(privacy, n, stacklevel=5)
    if isinstance(weights, Mapping):
        raise InvalidInput(
            "must be numbers in Reals, one a column, not a dict of names", parameter="weights"
        )
    return Wish(
        domain=domain,
        n=n,
        privacy=privacy,
        weights=np.ones(domain.dim) if weights is None else weight_vector(weights, domain.dim),
        contributions=_check.count("contributions", contributions),
        moment=_moment(moment, domain.dim),
    )


def largest_biases(max_bias: Any, dim: int) -> Floats:
    """The most bias of every column, of shape (d,): one number, or one a column; or all are 0."""
    if isinstance(max_bias, Mapping):
        raise InvalidInput(Parameter("max_bias"), _UNNAMED)
    listed = isinstance(max_bias, list | tuple) or getattr(max_bias, "ndim", 0) == 1
    sizes = list(max_bias) if listed else [max_bias] * dim
    if len(sizes) != dim:
        rule = f"must be a number, or one for each of the {dim} columns"
        raise InvalidInput(rule, parameter="max_bias")
    limits = np.array([_check.real("max_bias", size) for size in sizes])
    if (limits < 0).any():
        least = f"{limits.min():g}"
        raise InvalidInput("must not be negative", parameter="max_bias", value=least)
    if limits.any() and not limits.all():
        raise InvalidInput("must be above 0 in every column, or 0 in all", parameter="max_bias")
    return limits


_UNNAMED = (
    " has column names, and a plan in Reals has none: give a list, one a column, or name the "
    "columns of the data, mh.mean(data, columns=[...], ...)."
)


def _moment(moment: Any, dim: int) -> Moment:
    """(λ, ψ) with one ψ, or one a column."""
    if isinstance(moment, tuple | list) and any(isinstance(each, Mapping) for each in moment):
        raise InvalidInput(Parameter("moment"), _UNNAMED)
    try:
        order, scales = moment
        wide = np.broadcast_to(np.asarray(scales, np.float64), (dim,)).copy()
    except (TypeError, ValueError):
        raise InvalidInput(
            "must say what is assumed of the records' distribution: (λ, ψ) with "
            "E|X − μ|^λ ≤ ψ^λ, for instance ",
            Parameter("moment", "moment=(2, 1.0)", "--moment 2,1"),
            " for a standard deviation of at most 1",
            Parameter("moment", "; ψ may be a list, one a column", ""),
            parameter="moment",
        ) from None
    order = _check.real("moment order λ", order)
    if not 1 < order <= 1000:
        raise InvalidInput(f"the moment order λ must be above 1 and at most 1000; got {order:g}.")
    for scale in wide:
        _check.positive("moment scale ψ", scale)
    return Moment(order, wide)
