"""A message that is purely private as it stands, and an estimate of its record.

Many of them show by their own spread how far off their mean is (docs/proofs/local.md).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Self

import numpy as np

from muhat._arrays import Bytes, Floats
from muhat.domains import Domain
from muhat.privacy import Privacy, PureDP
from muhat.privacy.amplification import amplified
from muhat.protocols.randomizers.randomizer import MeanRandomizer, PrivateAlone, Received

SURE = 1.645
"""Standard errors of S that are added to it: one in twenty samples has more."""


class PureRandomizer(PrivateAlone, MeanRandomizer):
    """A purely private message that estimates its record without bias."""

    if TYPE_CHECKING:  # fields

        @property
        def domain(self) -> Domain:
            """Where records lie."""

        @property
        def epsilon(self) -> float:
            """What every message promises."""

    @property
    def privacy(self) -> PureDP:
        """ε-differential privacy, exactly."""
        return PureDP(epsilon=self.epsilon)

    @abstractmethod
    def estimates(self, nonces: Bytes, payloads: Bytes) -> Iterator[Floats]:
        """What every message tells about its record, some thousand at a time, without bias.

        Of shape (rows, domain.dim): less the centre, and every coordinate in units of `longest`,
        so that none is beyond ±1 and powers of it are floats.
        """

    @property
    @abstractmethod
    def longest(self) -> Floats:
        """What no coordinate of an estimate, less the centre, exceeds, of shape (domain.dim,)."""

    @property
    @abstractmethod
    def least_variance(self) -> float | Floats:
        """What no coordinate of an estimate varies less than, in squares of `longest`."""

    def false_step(self, n: int) -> Floats:
        """From one end of what estimates can be to the other: see `MeanRandomizer`."""
        return np.asarray(2 * self.longest / n)

    def shown_error(self, received: Received) -> Floats | None:
        """√(S/n), S raised by 1.645 of its standard errors: see `MeanRandomizer`.

        With z the estimates, S = Σ(z − z̄)²/(n − 1); it is never below the least variance of one.
        docs/proofs/local.md.
        """
        n = received.users
        if n < 2:
            return None
        sums = np.zeros((4, self.domain.dim))
        for estimates in self.estimates(received.nonces, received.payloads):
            power = np.ones_like(estimates)
            for total in sums:
                power = power * estimates
                total += power.sum(axis=0)
        mean, second, third, fourth = sums / n
        spread = np.maximum(second - mean**2, 0.0) * n / (n - 1)
        tail = fourth - 4 * mean * third + 6 * mean**2 * second - 3 * mean**4
        error = np.sqrt(np.maximum(tail - spread**2, 0.0) / n)
        variances = np.maximum(spread + SURE * error, self.least_variance)
        return np.asarray(np.sqrt(variances / n) * self.longest)


class HidingRandomizer(PureRandomizer):
    """One whose messages make the same share of all that could be sent e^ε times likelier.

    Whatever the record is: the cap of a sphere, the sets that hold a corner. So it is known what
    hides in a crowd of them (docs/proofs/amplification.md).
    """

    @property
    @abstractmethod
    def favoured(self) -> Fraction:
        """The share of all outcomes that a record makes likelier than the others."""

    @abstractmethod
    def at(self, epsilon: float, weights: tuple[float, ...] | None = None) -> Self:
        """The best one for the same records at another ε."""

    def keeps_mixed(self, promise: Privacy, users: int) -> bool:
        """More than one message alone, by hiding in the crowd. docs/proofs/amplification.md."""
        if not promise.spends_delta:
            return self.keeps(promise)
        assert promise.point is not None
        epsilon, delta = promise.point
        return amplified(self.epsilon, users, delta, share=self.favoured).epsilon <= epsilon
