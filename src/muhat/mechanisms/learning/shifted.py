"""The shifted clipped mean of Huang, Liang and Yi (2021), Theorem 3: a centre, a radius, the mean.

    rotate the records by public random signs and a Hadamard matrix
    c ← the private median of every rotated coordinate, rotated back  (1/4, evenly shared)
    r ← the radius about c that leaves about m records outside        (3/16)
    release the noisy mean of the records clipped to the ball (c, r)  (9/16)

The rotation spreads a direction in which records differ over all coordinates, so that medians of
coordinates make a good centre. Lengths do not change under it, and neither does noise in a ball:
radius and mean are found in the coordinates of the records, about the centre rotated back, with
the coordinates that padding added left out. That is the paper's estimator if d is a power of
two, and one with less to search and less noise else.

Corrected: as `Clipped`, and medians are searched in the domain that rotated records really have.
`faithful` keeps the paper's text as `Clipped` does, and radius and mean in the padded rotated
coordinates. With too few records for Theorem 2 the public default 0 is released, at full cost.
Proof: docs/proofs/papers-estimators.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from muhat._arrays import Floats
from muhat._plain import Key, Plain
from muhat.data.grids import UniformGrid
from muhat.data.rotation import Preparation, PreparedSource, Rotation, padded, prepared_counts
from muhat.errors import DataChanged, InvalidInput
from muhat.mechanisms.learning.clipping_stage import (
    ClippingStage,
    PrintedRank,
    in_units,
    public_default,
    rounded,
)
from muhat.mechanisms.learning.learning import Learnt
from muhat.mechanisms.learning.names import AS_PRINTED
from muhat.mechanisms.learning.radius_grids import Radii, SquaredLengths, geometric_radii
from muhat.mechanisms.learning.sharing import Sharing, least_number
from muhat.mechanisms.learning.steps import SourceReader, Step, Steps
from muhat.mechanisms.quantiles.noisy_search import NoisySearch
from muhat.mechanisms.quantiles.quantile import QuantileRecipe
from muhat.noise.spread import Spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muhat.data import Source
    from muhat.data.grid_counts import Window, WindowCounts

CENTER_SHARE = Fraction(1, 4)
STAGE_SHARE = Fraction(3, 4)

ROTATED = "the centre comes from medians after a public random rotation"

MEDIAN_FAILURE = 1e-3
"""How often some median may lie outside the records, if there are just enough of them."""

LARGEST_ROTATED = 1 << 14
"""Columns up to which records are rotated: there is a search for each."""

CELLS = 1 << 29
"""Cells of the grid of medians: 29 rounds, and steps of a billionth of the range."""


@dataclass(frozen=True, eq=False)
class ShiftedClipped(
    Plain, keys=("sharing", "grid", Key("coordinates", "padded"), "median", "median_rank", "stage")
):
    """Theorem 3 as a method; `levels` is the paper's u, which only `faithful` uses."""

    sharing: Sharing
    faithful: bool = False
    levels: int | None = None

    name = "shifted-clipped"

    @property
    def summary(self) -> str:
        """What it does, in a few words."""
        printed = AS_PRINTED if self.faithful else ""
        return f"a centre and a radius are learnt privately, after a random rotation{printed}"

    @property
    def padded(self) -> int:
        """d̄, the coordinates of a rotated record."""
        return padded(self.sharing.dim)

    @property
    def bound(self) -> float:
        """What coordinates are clipped to."""
        return self.sharing.magnitude

    @property
    def ball(self) -> float | None:
        """What the length of records is clipped to, if it is."""
        return None

    @property
    def whole_numbers(self) -> tuple[int, float]:
        """The paper's u and the unit: coordinates become whole numbers from −u to u."""
        u = self.levels or CELLS // (2 * self.padded)
        return u, self.bound / u

    @cached_property
    def grid(self) -> UniformGrid:
        """Where the medians of rotated coordinates are searched.

        A rotated coordinate is at most d times the largest coordinate.
        """
        if self.faithful:
            reach = float(self.sharing.dim * self.whole_numbers[0])
            return UniformGrid(-reach, reach, 1.0)
        return self._grid(self.sharing.dim * self.bound)

    def _grid(self, reach: float, step: float = 0.0) -> UniformGrid:
        """Steps as given, or as small as there are cells for."""
        return UniformGrid(-reach, reach, max(2 * reach / (CELLS - 2), step))

    @cached_property
    def median(self) -> NoisySearch:
        """The search for one median, with an even part of the share of all."""
        return self.sharing.search(self.grid.cells, CENTER_SHARE / self.padded)

    @property
    def median_rank(self) -> int:
        """⌈n/2⌉; the paper's `≤` finds the record after it."""
        n = self.sharing.n
        return min(-(-n // 2) + (1 if self.faithful else 0), n)

    @property
    def medians(self) -> QuantileRecipe:
        """The searches for all medians."""
        n = self.sharing.n
        fraction = Fraction(2 * self.median_rank - 1, 2 * n)
        law = self.sharing.search_law
        protection = self.sharing.protect(CENTER_SHARE)
        return QuantileRecipe.of([self.grid] * self.padded, [fraction], n, law, protection)

    @cached_property
    def stage(self) -> ClippingStage:
        """The radius and the mean."""
        if not self.faithful:
            sharing = replace(self.sharing, magnitude=self.bound)
            return ClippingStage(sharing, STAGE_SHARE, self.radii)
        u = self.whole_numbers[0]
        reach = self.sharing.dim * u
        rotated = replace(self.sharing, magnitude=float(reach), weights=np.ones(self.padded))
        squares = SquaredLengths(4 * self.padded * reach**2)
        return ClippingStage(rotated, STAGE_SHARE, squares, PrintedRank(self.padded, u))

    @property
    def radii(self) -> Radii:
        """Where the radius is searched."""
        return geometric_radii(self.sharing.largest_radius, pure=self.sharing.pure)

    @property
    def shares(self) -> dict[str, float]:
        """The share of the promise that each step takes."""
        return {
            "centre, all coordinates": float(CENTER_SHARE),
            "radius": float(self.stage.radius_share),
            "the mean": self.final_share,
        }

    @property
    def final_share(self) -> float:
        """The share that the mean itself has."""
        return float(self.stage.mean_share)

    @property
    def is_enough(self) -> bool:
        """Whether the condition of Theorem 2 holds, and every median lies among the records."""
        rank_error = self.median.rank_error(1 - MEDIAN_FAILURE / self.padded)
        return self.stage.is_enough and 2 * rank_error < self.sharing.n

    @cached_property
    def least_n(self) -> int:
        """The least number of records that is enough."""
        return least_number(lambda n: replace(self, sharing=replace(self.sharing, n=n)).is_enough)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a reader of the release should know beyond what every plan says."""
        if self.faithful:
            values = rounded(self.bound, self.whole_numbers[1])
            return (values, ROTATED, *self.stage.assumptions)
        return (f"{ROTATED}, for which a missing value counts as 0", *self.stage.assumptions)

    def check(self) -> None:
        """Make every kind of step once; refuse more coordinates than there is memory for."""
        if self.sharing.dim > LARGEST_ROTATED:
            raise InvalidInput(f"{self.name} is for at most {LARGEST_ROTATED} columns.")
        self.sharing.search(self.grid.cells, CENTER_SHARE / self.padded)
        self.stage.check()

    def admit(self, source: Source) -> None:
        """Every source will do."""

    def run(self, source: Source) -> Learnt:
        """Find the centre, then the radius, then average."""
        if not self.stage.is_enough:
            return public_default(self.sharing)
        rotation = Rotation.drawn(self.sharing.dim)
        run = self._run_printed if self.faithful else self._run
        return run(source, rotation)

    def _run(self, source: Source, rotation: Rotation) -> Learnt:
        units = self.stage.sharing
        steps = Steps(units, SourceReader(source, units))
        preparation = Preparation(units.dim, self.bound, self.ball, rotation=rotation)
        center = rotation.back(self._medians(steps, source, preparation))
        np.clip(center, -self.sharing.magnitude, self.sharing.magnitude, out=center)
        value, noise, ball = self.stage.run(steps, center)
        return Learnt(value, noise, ball, tuple(steps.transcript.steps))

    def _run_printed(self, source: Source, rotation: Rotation) -> Learnt:
        """Everything in rotated whole numbers, turned back at the end."""
        units, step, dim = self.stage.sharing, self.whole_numbers[1], self.sharing.dim
        preparation = Preparation(dim, self.bound, self.ball, step, rotation)
        steps = Steps(units, SourceReader(PreparedSource(source, preparation), units))
        medians = self._medians(steps, source, preparation)
        rotated, noise, ball = self.stage.run(steps, medians)
        # (H·D)⁻¹ shrinks lengths by √d̄ and turns noise in a ball into noise in a ball.
        unit = step / math.sqrt(self.padded)
        return Learnt(
            rotation.back(rotated) * step + 0.0,
            Spread(noise.law, dim, noise.scales[:dim] * unit),
            in_units(ball, unit, rotation.back(medians) * step),
            tuple(steps.transcript.steps),
        )

    def _medians(self, steps: Steps, source: Source, preparation: Preparation) -> Floats:
        """The private medians of the rotated coordinates, of shape (d̄,)."""
        steps.transcript.charge(CENTER_SHARE)

        def count(windows: Sequence[Window]) -> list[WindowCounts]:
            found = prepared_counts(source, preparation, self.grid, windows)
            if any(each.total != self.sharing.n for each in found):
                raise DataChanged("the number of rows changed between two passes.")
            return found

        (row,) = self.medians.run(count).found
        steps.transcript.steps.append(Step("center", CENTER_SHARE, self.grid.upper))
        return np.array([self.grid.value(found.cell) for found in row])
