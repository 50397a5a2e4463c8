"""Stairs in the radius on every device, for pure privacy in few dimensions and at a large ε.

A message of a few public directions has an error of the length of the record at least, however
large ε is; noise falls with it. docs/proofs/local.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from muhat.domains import Domain
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.radial import BOX_STAIRS, ELLIPSOID_STAIRS
from muhat.noise.entropy import Words
from muhat.noise.integers import Integers
from muhat.noise.protection import Protection
from muhat.noise.radial_stairs import RadialStairs, farthest
from muhat.planning.sums import NoisySums
from muhat.privacy import Neighbors, PureDP
from muhat.protocols.encodings.record_numbers import AIMS, sums_of_one
from muhat.protocols.randomizers.noise_randomizer import NoiseRandomizer

_SELDOM = 96
"""Noise of a chance of 2^-96 or so is cut off."""


@dataclass(frozen=True)
class StairsRandomizer(NoiseRandomizer, keys=(*AIMS, "epsilon", "shape", "axes")):
    """Stairs, whose unit is a step, in the norm of a box or of the smallest ellipsoid.

    `p` and `weights` say which error is made small; they do not touch the promise. `axes` follow
    from the others (`traced_axes`).

    >>> import muhat as mh
    >>> StairsRandomizer(mh.Ball(1.0, dim=2), 8.0, "ellipsoid-stairs").payload_bytes
    16
    """

    domain: Domain
    epsilon: float
    shape: str
    p: float = 2.0
    weights: tuple[float, ...] | None = None
    axes: tuple[float, ...] | None = None

    kind: ClassVar[str] = "stairs"
    number = "<i8"
    kept_bits = 44

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", PureDP(epsilon=self.epsilon).epsilon)
        if self.shape not in shapes(self.domain, self.privacy):
            raise InvalidInput("stairs on devices are for a few columns and a large epsilon.")
        super().__post_init__()

    @classmethod
    def every(
        cls, domain: Domain, epsilon: float, p: float, weights: tuple[float, ...] | None
    ) -> Iterator[StairsRandomizer]:
        """One of each shape."""
        for shape in shapes(domain, PureDP(epsilon=epsilon)):
            yield cls(domain, epsilon, shape, p, weights)

    @property
    def privacy(self) -> PureDP:
        """ε-differential privacy, exactly."""
        return PureDP(epsilon=self.epsilon)

    @cached_property
    def plan(self) -> NoisySums:
        """The plan for one record."""
        return sums_of_one(self.domain, self.privacy, self.p, self.weights, self.shape)

    @property
    def law(self) -> RadialStairs:
        """The noise of a record."""
        law = self.plan.recipe.law
        assert isinstance(law, RadialStairs)
        return law

    @property
    def farthest(self) -> int:
        return farthest(self.law.dim, self.law.ratio, _SELDOM)

    def noise(self, count: int, words: Words) -> Integers:
        drawn = [self.law.drawn(words) for _ in range(count)]
        return np.array(drawn, object).reshape(count, -1)


def shapes(domain: Domain, promise: PureDP) -> list[str]:
    """Those that a domain has, where stairs are worth it."""
    protection = Protection(promise, Neighbors.SUBSTITUTE, 1)
    # A box with a constant column is not one of noise that hides all of its columns.
    every = (BOX_STAIRS, ELLIPSOID_STAIRS)[len(domain.factors()) > 1 :]
    return [each.name for each in every if each.competes(domain, protection)]
