"""The clipped mean of Huang, Liang and Yi (2021), Theorem 2: a private radius, then the mean.

    r ← the radius that leaves about m records outside, by noisy binary search  (1/4)
    release the noisy mean of the records clipped to the ball (0, r)            (3/4)

m = ⌈max{κ·2/μ', τ}⌉, with μ' the strength of the mean, κ = E‖z‖ of its noise at unit scale, and τ
the rank error of the search. With n ≤ max{…} the public default 0 is released, and the whole
promise is charged all the same. For records around 0: the error grows with their length.

Corrected: all rounds of the search are charged, `<` instead of `≤`, a τ that holds, the strength
that the mean really has in place of the whole, and κ in place of √d. Radii form a geometric grid.
`faithful` keeps the paper's `≤`, τ, √(2d/ρ) and its grid of squared lengths of whole vectors.
Proof: docs/proofs/papers-estimators.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from muhat._plain import Plain
from muhat.mechanisms.learning.clipping_stage import (
    ClippingStage,
    PrintedRank,
    in_units,
    public_default,
    rounded,
)
from muhat.mechanisms.learning.learning import Learnt
from muhat.mechanisms.learning.names import AS_PRINTED
from muhat.mechanisms.learning.radius_grids import RadiusGrid, SquaredLengths, geometric_radii
from muhat.mechanisms.learning.sharing import Sharing, least_number
from muhat.mechanisms.learning.steps import SourceReader, Steps

if TYPE_CHECKING:
    from muhat.data import Source

LEVELS = 1 << 26
"""u of the faithful version: coordinates become whole numbers from −u to u."""


@dataclass(frozen=True, eq=False)
class Clipped(Plain, keys=("sharing", "stage")):
    """Theorem 2 as a method; `levels` is the paper's u, which only `faithful` uses."""

    sharing: Sharing
    faithful: bool = False
    levels: int = LEVELS

    name = "clipped"

    @property
    def summary(self) -> str:
        """What it does, in a few words."""
        return "a radius around 0 is learnt privately" + (AS_PRINTED if self.faithful else "")

    @property
    def _step(self) -> float:
        """The unit of whole numbers."""
        return self.sharing.magnitude / self.levels

    @cached_property
    def _units(self) -> Sharing:
        """The sharing in the units that records are read in: whole numbers if faithful."""
        if not self.faithful:
            return self.sharing
        return replace(self.sharing, magnitude=float(self.levels))

    @cached_property
    def stage(self) -> ClippingStage:
        """The radius and the mean."""
        grid: RadiusGrid
        if not self.faithful:
            grid = geometric_radii(self.sharing.largest_radius / 2, pure=self.sharing.pure)
            return ClippingStage(self.sharing, Fraction(1), grid)
        dim = self.sharing.dim
        printed = PrintedRank(dim, self.levels)
        return ClippingStage(
            self._units, Fraction(1), SquaredLengths(dim * self.levels**2), printed
        )

    @property
    def shares(self) -> dict[str, float]:
        """The share of the promise that each step takes."""
        return {"radius": float(self.stage.radius_share), "the mean": self.final_share}

    @property
    def final_share(self) -> float:
        """The share that the mean itself has."""
        return float(self.stage.mean_share)

    @property
    def is_enough(self) -> bool:
        """Whether n > max{κ·2/μ', τ}, the condition of Theorem 2."""
        return self.stage.is_enough

    @cached_property
    def least_n(self) -> int:
        """The least number of records that is enough."""
        return least_number(lambda n: replace(self, sharing=replace(self.sharing, n=n)).is_enough)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a reader of the release should know beyond what every plan says."""
        if not self.faithful:
            return self.stage.assumptions
        return (rounded(self.sharing.magnitude, self._step), *self.stage.assumptions)

    def check(self) -> None:
        """Make every kind of step once."""
        self.stage.check()

    def admit(self, source: Source) -> None:
        """Every source will do."""

    def run(self, source: Source) -> Learnt:
        """Find the radius, then average."""
        if not self.is_enough:
            return public_default(self.sharing)
        steps = Steps(self._units, SourceReader(self._read(source), self._units))
        value, noise, ball = self.stage.run(steps, np.zeros(self.sharing.dim))
        if self.faithful:
            value, noise = value * self._step, noise.shrunk(1 / self._step)
            ball = in_units(ball, self._step, np.zeros(self.sharing.dim))
        return Learnt(value, noise, ball, tuple(steps.transcript.steps))

    def _read(self, source: Source) -> Source:
        if not self.faithful:
            return source
        from muhat.data.rotation import Preparation, PreparedSource

        sharing = self.sharing
        preparation = Preparation(sharing.dim, sharing.magnitude, step=self._step)
        return PreparedSource(source, preparation)
