"""Everybody's part of the noise of a sum in the shuffle model, and what it promises.

Nobody is trusted to add noise for all. Each of h honest people adds a part of it, so that their
parts add up to the noise of a trusted curator:

    laplace     negative binomial parts; their sum is discrete Laplace, exactly: e^{−rate·|k|}
    gaussian    discrete Gaussian parts; their sum is normal up to a factor of e^{±τ} at every
                point, τ far below 10^−12

More people than h only add noise. Numbers with noise are split into m fragments that are mixed
with all others' (`fragment_count`), which costs a little of δ. docs/proofs/shuffle-sums.md has the
proof, also why discrete Laplace noise is never accounted for by its moments: Gaussian noise is
better.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from muhat import _check, privacy
from muhat._plain import Key, Plain
from muhat.errors import InvalidInput
from muhat.noise.discrete import LEAST_RATE
from muhat.noise.discrete_gaussian import closeness, discrete_gaussian
from muhat.noise.entropy import Words, system_words
from muhat.noise.negative_binomial import laplace_part
from muhat.privacy import as_typed, with_delta
from muhat.protocols.encodings.encoding import Sensitivity
from muhat.protocols.encodings.fragment_count import (
    MOST_FRAGMENTS,
    MOST_HONEST,
    distance,
    least_fragments,
)
from muhat.protocols.encodings.modulus import (
    MOST_BITS,
    gaussian_reach,
    laplace_reach,
    modulus_bits,
)
from muhat.protocols.randomizers.allowance import Allowance

LAWS = ("gaussian", "laplace")

LEAST_VARIANCE = Fraction(5)
"""Of a Gaussian part: below it the sum of parts would not be as good as normal."""

SMOOTHING = Fraction(3)
"""Of the variance of discrete Gaussian noise, so much makes whole numbers of normal ones ..."""

SMOOTHED = Fraction(1, 1 << 80)
"""... up to this factor's logarithm at every point."""

_FINE = 1 << 16
_LONGEST = 200


@dataclass(frozen=True)
class FragmentNoise(
    Plain,
    keys=(
        Key("promise", "allowance.promise"),
        Key("share", "allowance.share"),
        "honest",
        "law",
        "parameter",
        "modulus_bits",
        Key("shares", "fragments"),
    ),
):
    """The noise of r sums, in parts, for at least `honest` people who follow the protocol.

    `parameter` is the rate of the discrete Laplace law of the whole sum, or the variance of one
    person's Gaussian part. Each number is split into `fragments` modulo 2^modulus_bits. What does
    not keep the allowance cannot be made.
    """

    sensitivity: Sensitivity
    allowance: Allowance
    honest: int
    law: str
    parameter: Fraction
    modulus_bits: int
    fragments: int

    def __post_init__(self) -> None:
        limits = {
            "honest": (1, MOST_HONEST),
            "modulus_bits": (1, MOST_BITS),
            "fragments": (2, MOST_FRAGMENTS),
        }
        for name, (least, most) in limits.items():
            number = _check.count(name, getattr(self, name), least=least, most=most)
            object.__setattr__(self, name, number)
        _check.one_of("law", self.law, LAWS)
        if not (_keeps(self) and self.eta <= self.allowance.distance(self.law)):
            raise InvalidInput(
                "the description does not keep its promise: it has too little noise or too few "
                "fragments for the honest people it counts on."
            )

    @property
    def modulus(self) -> int:
        """q."""
        return 1 << self.modulus_bits

    @property
    def eta(self) -> float:
        """How much mixed fragments tell beyond the sums, in total variation."""
        return distance(self.honest, self.fragments, self.modulus, self.sensitivity.numbers)

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
            drawn = laplace_part(self.parameter, self.honest, size, words)
        return drawn.reshape(people, self.sensitivity.numbers)

    @classmethod
    def of_numbers(cls, fields: Mapping[str, Any], sensitivity: Sensitivity) -> Self:
        """The noise described; InvalidInput if it does not keep its promise for such numbers."""
        promise = with_delta(privacy.from_dict(fields["promise"]))
        if promise is None:
            raise InvalidInput("mixed fragments keep a promise of kind 'approx' alone.")
        return cls(
            sensitivity,
            Allowance(promise, _fraction(fields["share"])),
            fields["honest"],
            fields["law"],
            _fraction(fields["parameter"]),
            fields["modulus_bits"],
            fields["shares"],
        )


def fit(
    sensitivity: Sensitivity,
    allowance: Allowance,
    honest: int,
    users: int,
    ends: tuple[int, int],
    law: str,
) -> FragmentNoise | None:
    """The least noise of a law, the least modulus and fragments; None if no modulus is enough."""
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
    fragments = least_fragments(honest, 1 << bits, sensitivity.numbers, allowance.distance(law))
    return FragmentNoise(sensitivity, allowance, honest, law, parameter, bits, fragments)


def _keeps(noise: FragmentNoise) -> bool:
    """Whether the noise of the honest people's sum is enough."""
    moved, allowed = noise.sensitivity, noise.allowance
    if noise.law == "laplace":
        return LEAST_RATE <= noise.parameter <= allowed.pure / moved.l1
    return (
        noise.parameter >= LEAST_VARIANCE
        and moved.l2**2 <= allowed.mu_squared * _normal_variance(noise)
        and _tau(noise) <= allowed.closeness
    )


def _normal_variance(noise: FragmentNoise) -> Fraction:
    """The variance of the normal noise that the parts' sum is made from."""
    return noise.honest * noise.parameter - SMOOTHING


def _tau(noise: FragmentNoise) -> Fraction:
    if noise.law == "laplace":
        return Fraction(0)
    each = as_typed(_closeness(noise.parameter, noise.honest)) + SMOOTHED
    return noise.sensitivity.numbers * each


@lru_cache(maxsize=256)
def _closeness(part_variance: Fraction, parts: int) -> float:
    return closeness(part_variance, parts)


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
