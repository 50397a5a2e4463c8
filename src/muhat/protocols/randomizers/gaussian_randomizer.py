"""Normal noise on every device, for ρ-zCDP, μ-GDP and (ε, δ).

It is shaped by the smallest ellipsoid around K − K, as that of a trusted curator is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from muhat import privacy
from muhat.domains import Domain
from muhat.errors import InvalidInput
from muhat.noise.density import NORMAL
from muhat.noise.entropy import Words
from muhat.noise.integers import Integers
from muhat.noise.scalars import rounded
from muhat.planning.sums import NoisySums
from muhat.privacy import Privacy
from muhat.protocols.encodings.record_numbers import AIMS, sums_of_one
from muhat.protocols.randomizers.noise_randomizer import NoiseRandomizer

LARGEST_MU = 256
"""A larger μ would promise nothing: e^32768 to one. Numbers of records stay small beside it."""


@dataclass(frozen=True)
class GaussianRandomizer(NoiseRandomizer, keys=(*AIMS, "privacy", "axes")):
    """Normal noise, whose unit is a standard deviation.

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
    number = "<i4"
    kept_bits = 20
    farthest = 10

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

    def noise(self, count: int, words: Words) -> Integers:
        return rounded(NORMAL, count * self.query.rows, words).reshape(count, -1)
