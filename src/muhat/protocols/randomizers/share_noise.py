"""Everybody's part of the noise of a sum in the shuffle model, and what it promises.

Nobody is trusted to add noise for all. Each of h honest people adds a share of it, so that their
shares add up to the noise of a trusted curator:

    laplace     negative binomial shares; their sum is discrete Laplace, exactly: e^{−rate·|k|}
    gaussian    discrete Gaussian shares; their sum is normal up to a factor of e^{±τ} at every
                point, τ far below 10^−12

More people than h only add noise. Numbers with noise are split into m shares that are mixed with
all others' (`share_count`), which costs a little of δ. docs/proofs/shuffle-sums.md has the proof,
also why discrete Laplace noise is never accounted for by its moments: Gaussian noise is better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from muhat import _check, privacy
from muhat.errors import InvalidInput
from muhat.noise.discrete import LEAST_RATE
from muhat.noise.discrete_gaussian import discrete_gaussian
from muhat.noise.entropy import Words, system_words
from muhat.noise.gaussian_shares import closeness
from muhat.noise.negative_binomial import laplace_share
from muhat.privacy import ApproxDP, as_typed, gaussian_delta, with_delta
from muhat.privacy.groups import group_delta
from muhat.privacy.rounding import float_at_least, float_at_most, root_at_least
from muhat.protocols.encodings.modulus import (
    MOST_BITS,
    gaussian_reach,
    laplace_reach,
    modulus_bits,
)
from muhat.protocols.encodings.share_count import MOST_HONEST, MOST_SHARES, distance, least_shares
from muhat.protocols.randomizers.allowance import Allowance

LAWS = ("gaussian", "laplace")

LEAST_VARIANCE = Fraction(5)
"""Of a Gaussian share: below it the sum of shares would not be as good as normal."""

SMOOTHING = Fraction(3)
"""Of the variance of discrete Gaussian noise, so much makes whole numbers of normal ones ..."""

SMOOTHED = Fraction(1, 1 << 80)
"""... up to this factor's logarithm at every point."""

_FINE = 1 << 16
_LONGEST = 200


@dataclass(frozen=True)
class Sensitivity:
    """How far one person's r whole numbers move if the record is replaced: upper bounds."""

    numbers: int
    l1: Fraction
    l2: Fraction

    def __post_init__(self) -> None:
        _check.count("numbers", self.numbers)
        if not (self.l1 > 0 and self.l2 > 0):
            raise InvalidInput("the sensitivity must be above 0: what never moves needs no noise.")


@dataclass(frozen=True)
class ShareNoise:
    """The noise of r sums, in shares, for at least `honest` people who follow the protocol.

    `parameter` is the rate of the discrete Laplace law of the whole sum, or the variance of one
    person's Gaussian share. Each number is split into `shares` modulo 2^modulus_bits. What does
    not keep the allowance cannot be made.
    """

    sensitivity: Sensitivity
    allowance: Allowance
    honest: int
    law: str
    parameter: Fraction
    modulus_bits: int
    shares: int

    def __post_init__(self) -> None:
        limits = {
            "honest": (1, MOST_HONEST),
            "modulus_bits": (1, MOST_BITS),
            "shares": (2, MOST_SHARES),
        }
        for name, (least, most) in limits.items():
            number = _check.count(name, getattr(self, name), least=least, most=most)
            object.__setattr__(self, name, number)
        _check.one_of("law", self.law, LAWS)
        if not (_keeps(self) and self.eta <= self.allowance.distance(self.law)):
            raise InvalidInput(
                "the description does not keep its promise: it has too little noise or too few "
                "shares for the honest people it counts on."
            )

    @property
    def modulus(self) -> int:
        """q."""
        return 1 << self.modulus_bits

    @property
    def tau(self) -> float:
        """How far the shares' sum is from normal noise: a factor of e^{±τ}; 0 for Laplace."""
        return float_at_least(_tau(self))

    @property
    def eta(self) -> float:
        """How much mixed shares tell beyond the sums, in total variation."""
        return distance(self.honest, self.shares, self.modulus, self.sensitivity.numbers)

    @property
    def kept(self) -> ApproxDP:
        """What this round promises by itself, at the ε of the whole promise."""
        epsilon = self.allowance.promise.epsilon
        delta = Fraction(0)
        if self.law == "gaussian":
            tau = _tau(self)
            mu = root_at_least(self.sensitivity.l2**2 / _normal_variance(self))
            less = float_at_most(as_typed(epsilon) - 2 * tau)
            # e^τ ≤ 1/(1 − τ)
            delta = as_typed(gaussian_delta(mu, less)) / (1 - tau)
        delta += as_typed(group_delta(epsilon, self.eta, 2))
        return ApproxDP(epsilon=epsilon, delta=float_at_least(delta))

    def variance(self, people: int) -> float:
        """The variance of the noise of each sum, if so many people add theirs; an upper bound."""
        if self.law == "gaussian":
            return people * float(self.parameter)
        return people / self.honest / (2 * math.sinh(float(self.parameter) / 2) ** 2)

    def reach(self, people: int) -> int:
        """What the noise of so many people stays within, but for a chance of `WRAP`."""
        numbers = self.sensitivity.numbers
        if self.law == "gaussian":
            return gaussian_reach(self.variance(people), numbers)
        return laplace_reach(float(self.parameter), people / self.honest, numbers)

    def sample(self, people: int, words: Words = system_words) -> NDArray[np.int64]:
        """The noise that these people add, of shape (people, r)."""
        size = people * self.sensitivity.numbers
        if self.law == "gaussian":
            drawn = discrete_gaussian(self.parameter, size, words)
        else:
            drawn = laplace_share(self.parameter, self.honest, size, words)
        return drawn.reshape(people, self.sensitivity.numbers)

    def to_dict(self) -> dict[str, Any]:
        """The description; the sensitivity belongs to that of the numbers."""
        return {
            "promise": privacy.to_dict(self.allowance.promise),
            "share": str(self.allowance.share),
            "honest": self.honest,
            "law": self.law,
            "parameter": str(self.parameter),
            "modulus_bits": self.modulus_bits,
            "shares": self.shares,
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any], sensitivity: Sensitivity) -> Self:
        """The noise described; InvalidInput if it does not keep its promise."""
        promise = with_delta(privacy.from_dict(fields["promise"]))
        if promise is None:
            raise InvalidInput("mixed shares keep a promise of kind 'approx' alone.")
        return cls(
            sensitivity,
            Allowance(promise, _fraction(fields["share"])),
            fields["honest"],
            fields["law"],
            _fraction(fields["parameter"]),
            fields["modulus_bits"],
            fields["shares"],
        )


def share_noise(
    sensitivity: Sensitivity,
    allowance: Allowance,
    *,
    honest: int,
    users: int,
    low: int,
    high: int,
    law: str | None = None,
) -> ShareNoise:
    """The noise of least variance that keeps the allowance.

    Args:
        sensitivity: how far one record moves a person's numbers.
        allowance: the promise, or a round's part of it.
        honest: h, how many people at least follow the protocol and are not spied upon.
        users: how many people take part at most.
        low: the least that a number can be.
        high: the largest.
        law: "gaussian" or "laplace", to leave no choice.

    >>> one = Sensitivity(1, Fraction(1), Fraction(1))
    >>> whole = Allowance(ApproxDP(epsilon=1.0, delta=1e-6))
    >>> noise = share_noise(one, whole, honest=900, users=1000, low=0, high=1)
    >>> noise.law, noise.parameter, noise.modulus_bits, noise.shares
    ('laplace', Fraction(1, 1), 11, 7)
    """
    laws = LAWS if law is None else (_check.one_of("law", law, LAWS),)
    found = [fit(sensitivity, allowance, honest, users, (low, high), each) for each in laws]
    fitting = [noise for noise in found if noise is not None]
    if not fitting:
        raise InvalidInput(
            f"a modulus of {MOST_BITS} bits is too small for sums of {users} people with their "
            "noise. Measure the numbers more coarsely, or choose a weaker promise."
        )
    return min(fitting, key=lambda noise: noise.variance(users))


def fit(
    sensitivity: Sensitivity,
    allowance: Allowance,
    honest: int,
    users: int,
    ends: tuple[int, int],
    law: str,
) -> ShareNoise | None:
    """The least noise of a law, and the least modulus and shares; None if no modulus is enough."""
    honest = _check.count("honest", honest, most=MOST_HONEST)
    users = _check.count("users", users, least=honest, most=MOST_HONEST)
    if law == "gaussian":
        least = sensitivity.l2**2 / allowance.mu_squared + SMOOTHING
        parameter = max(LEAST_VARIANCE, Fraction(math.ceil(least / honest * _FINE), _FINE))
        reach = gaussian_reach(users * float(parameter), sensitivity.numbers)
    else:
        parameter = _rounded_down(allowance.pure / sensitivity.l1)
        if parameter < LEAST_RATE:
            return None
        reach = laplace_reach(float(parameter), users / honest, sensitivity.numbers)
    bits = modulus_bits(users, *ends, reach)
    if bits > MOST_BITS:
        return None
    shares = least_shares(honest, 1 << bits, sensitivity.numbers, allowance.distance(law))
    return ShareNoise(sensitivity, allowance, honest, law, parameter, bits, shares)


def _keeps(noise: ShareNoise) -> bool:
    """Whether the noise of the honest people's sum is enough."""
    moved, allowed = noise.sensitivity, noise.allowance
    if noise.law == "laplace":
        return LEAST_RATE <= noise.parameter <= allowed.pure / moved.l1
    return (
        noise.parameter >= LEAST_VARIANCE
        and moved.l2**2 <= allowed.mu_squared * _normal_variance(noise)
        and _tau(noise) <= allowed.closeness
    )


def _normal_variance(noise: ShareNoise) -> Fraction:
    """The variance of the normal noise that the shares' sum is made from."""
    return noise.honest * noise.parameter - SMOOTHING


def _tau(noise: ShareNoise) -> Fraction:
    if noise.law == "laplace":
        return Fraction(0)
    each = as_typed(_closeness(noise.parameter, noise.honest)) + SMOOTHED
    return noise.sensitivity.numbers * each


@lru_cache(maxsize=256)
def _closeness(share_variance: Fraction, shares: int) -> float:
    return closeness(share_variance, shares)


def _rounded_down(value: Fraction) -> Fraction:
    """To 40 significant bits: descriptions stay short."""
    shift = 40 - value.numerator.bit_length() + value.denominator.bit_length()
    scaled = value * (1 << shift) if shift >= 0 else value / (1 << -shift)
    whole = Fraction(math.floor(scaled))
    return whole / (1 << shift) if shift >= 0 else whole * (1 << -shift)


def _fraction(text: object) -> Fraction:
    """What `str` made of a fraction, of a reasonable length."""
    if not isinstance(text, str) or len(text) > _LONGEST or not set(text) <= set("0123456789/"):
        raise InvalidInput("a fraction must be written as two whole numbers, such as '3/4'.")
    return Fraction(text)
