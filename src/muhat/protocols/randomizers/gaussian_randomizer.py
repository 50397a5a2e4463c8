"""Normal noise on every device: the plan for a single record, carried out by its owner.

For ρ-zCDP, μ-GDP and (ε, δ). The noise is shaped by the smallest ellipsoid around K − K, as that
of a trusted curator is, and a hundred thousand people's noise averages out. docs/proofs/local.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from muhat import privacy
from muhat._arrays import Bytes, Floats
from muhat.domains import Domain
from muhat.errors import InvalidInput
from muhat.noise import FRACTION_BITS
from muhat.noise.density import NORMAL
from muhat.noise.entropy import Words, system_words
from muhat.noise.scalars import rounded
from muhat.noise.spread import Spread
from muhat.planning.sums import NoisySums
from muhat.privacy import Privacy
from muhat.protocols.encodings.record_numbers import (
    AIMS,
    OneRecord,
    exact_numbers,
    largest_number,
    sums_of_one,
)
from muhat.protocols.randomizers.randomizer import MeanRandomizer, PrivateAlone

KEPT_BITS = 20
"""Of a standard deviation, messages keep so many binary digits: rounding is post-processing."""

TAIL = 10
"""Noise beyond so many standard deviations, one number in 10^22, is cut off."""

LARGEST_MU = 256
"""A larger μ would promise nothing: e^32768 to one. Numbers of records stay small beside it."""

_DROPPED = FRACTION_BITS - KEPT_BITS


@dataclass(frozen=True)
class GaussianRandomizer(OneRecord, PrivateAlone, MeanRandomizer, keys=(*AIMS, "privacy", "axes")):
    """The records of a domain, each with normal noise of its own.

    `p` and `weights` say which error is made small; they do not touch the promise. `axes` follow
    from the others (`traced_axes`).

    >>> import muhat as mh
    >>> GaussianRandomizer(mh.Ball(1.0, dim=2), mh.ZCDP(rho=0.5)).payload_bytes
    8
    """

    domain: Domain
    privacy: Privacy
    p: float = 2.0
    weights: tuple[float, ...] | None = None
    axes: tuple[float, ...] | None = None

    kind: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        if not self.privacy.admits_normal:
            raise InvalidInput("normal noise keeps no pure promise; use ZCDP, GDP or ApproxDP.")
        if privacy.gaussian_mu_squared(self.privacy) > LARGEST_MU**2:
            raise InvalidInput(
                f"{self.privacy.describe()} promises nothing; choose a stronger promise."
            )
        super().__post_init__()

    @cached_property
    def plan(self) -> NoisySums:
        """The plan for one record."""
        return sums_of_one(self.domain, self.privacy, self.p, self.weights)

    @property
    def payload_bytes(self) -> int:
        """Four for each noisy number."""
        return 4 * self.query.rows

    @cached_property
    def reach(self) -> int:
        """The largest number of a message: no false one moves the mean farther than that."""
        return (largest_number(self.query) >> _DROPPED) + (TAIL << KEPT_BITS) + 1

    def randomize(self, records: Floats, nonces: Bytes, words: Words = system_words) -> Bytes:
        """Every record's integers, with noise, rounded: see `Randomizer`."""
        exact = np.array(exact_numbers(self.query, records), object)
        noise = rounded(NORMAL, exact.size, words).reshape(exact.shape)
        kept = (exact + noise + (1 << _DROPPED - 1)) >> _DROPPED
        numbers: NDArray[np.int32] = np.clip(kept, -self.reach, self.reach).astype("<i4")
        return numbers.view(np.uint8).reshape(len(records), self.payload_bytes)

    def valid(self, payloads: Bytes) -> NDArray[np.bool_]:
        """Numbers within reach of the domain and of noise: see `Randomizer`."""
        sizes = np.abs(_numbers(payloads).astype(np.int64))
        return np.asarray((sizes <= self.reach).all(axis=1))

    def mean(self, nonces: Bytes, payloads: Bytes) -> Floats:
        """The mean of the noisy records: see `MeanRandomizer`."""
        totals = _numbers(payloads).sum(axis=0, dtype=np.int64).tolist()
        return self.mean_from(totals, len(payloads), _DROPPED)

    def false_step(self, n: int) -> Floats:
        """From one end of what messages can be to the other: see `MeanRandomizer`.

        Each of r numbers lies within ±reach, of which 2^20 are a standard deviation of its noise,
        and a coordinate is Σ_j F_ij·number_j with Σ_j F_ij² known: at most √r times that.
        """
        deviations = self.reach / (1 << KEPT_BITS)
        several = 1.0 if self.alone.factor is None else math.sqrt(self.alone.rows)
        return np.asarray(2 * deviations * several * self.alone.standard_error / n)

    def spread(self, n: int) -> Spread:
        """That of one record's noise, divided by √n; exact."""
        return self.alone.shrunk(math.sqrt(n))


def _numbers(payloads: Bytes) -> NDArray[np.int32]:
    return np.ascontiguousarray(payloads).view("<i4")
