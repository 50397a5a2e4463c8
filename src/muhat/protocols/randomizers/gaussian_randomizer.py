"""Normal noise on every device: the plan for a single record, carried out by its owner.

For ρ-zCDP, μ-GDP and (ε, δ). The noise is shaped by the smallest ellipsoid around K − K, as that
of a trusted curator is, and a hundred thousand people's noise averages out. docs/proofs/local.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from muhat import _check, privacy
from muhat._arrays import Floats
from muhat.domains import Domain
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.ball_query import BallQuery
from muhat.mechanisms.sums.block_query import BlockQuery, PartQuery
from muhat.mechanisms.sums.columns_query import ColumnsQuery
from muhat.noise import FRACTION_BITS
from muhat.noise.density import NORMAL
from muhat.noise.entropy import Words, system_words
from muhat.noise.scalars import rounded
from muhat.noise.spread import Spread
from muhat.planning import Plan, plan_mean
from muhat.planning.answers import answer
from muhat.privacy import Privacy
from muhat.protocols.encodings.record_numbers import (
    check_axes,
    exact_numbers,
    largest_number,
    traced_axes,
)
from muhat.protocols.randomizers.aims import aims_of, read_aims, read_numbers
from muhat.protocols.randomizers.randomizer import Bytes

KEPT_BITS = 20
"""Of a standard deviation, messages keep so many binary digits: rounding is post-processing."""

TAIL = 10
"""Noise beyond so many standard deviations, one number in 10^22, is cut off."""

LARGEST_MU = 256
"""A larger μ would promise nothing: e^32768 to one. Numbers of records stay small beside it."""

_DROPPED = FRACTION_BITS - KEPT_BITS


@dataclass(frozen=True)
class GaussianRandomizer:
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
    messages: ClassVar[int] = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", _check.norm_order(self.p))
        if not self.privacy.admits_normal:
            raise InvalidInput("normal noise keeps no pure promise; use ZCDP, GDP or ApproxDP.")
        if privacy.gaussian_mu_squared(self.privacy) > LARGEST_MU**2:
            raise InvalidInput(
                f"{self.privacy.describe()} promises nothing; choose a stronger promise."
            )
        if self.axes is None:
            object.__setattr__(self, "axes", traced_axes(self.plan))

    @cached_property
    def plan(self) -> Plan:
        """The plan for one record."""
        return plan_mean(
            domain=self.domain,
            n=1,
            privacy=self.privacy,
            p=self.p,
            weights=self.weights,
            mechanism="gaussian",
            population=False,
        )

    @property
    def record_dim(self) -> int:
        """The number of coordinates of a record."""
        lattice = self.plan.recipe.query.lattice
        assert lattice is not None
        return lattice.record_dim

    @property
    def _query(self) -> PartQuery | BlockQuery:
        query = self.plan.recipe.query
        # A message is a record's values, no more: no squares, no counts.
        assert not isinstance(query, ColumnsQuery | BallQuery)
        return query

    @property
    def payload_bytes(self) -> int:
        """Four for each noisy number."""
        return 4 * self.plan.recipe.query.rows

    @cached_property
    def reach(self) -> int:
        """The largest number of a message: no false one moves the mean farther than that."""
        return (largest_number(self._query) >> _DROPPED) + (TAIL << KEPT_BITS) + 1

    def randomize(self, records: Floats, nonces: Bytes, words: Words = system_words) -> Bytes:
        """Every record's integers, with noise, rounded: see `Randomizer`."""
        exact = np.array(exact_numbers(self._query, records), object)
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
        plan = replace(self.plan, n=len(payloads))
        totals = _numbers(payloads).sum(axis=0, dtype=np.int64).tolist()
        noisy = [
            Fraction(total << _DROPPED) * unit
            for total, unit in zip(totals, plan.recipe.query.units(), strict=True)
        ]
        return answer(plan, noisy).value

    def spread(self, n: int) -> Spread:
        """That of one record's noise, divided by √n; exact."""
        alone = self.plan.spread
        assert alone is not None
        return alone.shrunk(math.sqrt(n))

    def covariance(self, n: int) -> Floats:
        """That of `spread(n)`: see `MeanRandomizer`."""
        return self.spread(n).covariance

    def expected_error(self, n: int) -> float:
        """The root mean square ℓ₂ error of the mean of n messages."""
        return float(np.linalg.norm(self.spread(n).standard_error))

    def to_dict(self) -> dict[str, Any]:
        """The description: see `Randomizer`."""
        return {
            **aims_of(self),
            "privacy": privacy.to_dict(self.privacy),
            "axes": None if self.axes is None else list(self.axes),
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """The randomizer described."""
        promise, axes = privacy.from_dict(fields["privacy"]), read_numbers(fields["axes"])
        made = cls(privacy=promise, axes=axes, **read_aims(fields))
        check_axes(made.plan, axes)
        return made


def _numbers(payloads: Bytes) -> NDArray[np.int32]:
    return np.ascontiguousarray(payloads).view("<i4")
