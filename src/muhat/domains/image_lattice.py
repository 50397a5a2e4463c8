"""The integers of images: records are clipped part by part, mapped, and then they are a ball's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from muhat.domains.ball_lattice import BallLattice
from muhat.domains.integers import Clip, SumLattice
from muhat.errors import InvalidInput
from muhat.records.columns import Column, Floats, whole_records
from muhat.records.exact import Steps


@dataclass(frozen=True)
class ImageLattice(SumLattice):
    """Records that `clips` move into a product of domains, as the integers of `ball`.

    The columns of a record go to the clips in order; `ball` is a lattice of the coordinates that
    the clips give, one after the other, mapped by its whitening.

    >>> from muhat.domains.moment_lattice import LiftClip
    >>> squares = ImageLattice((LiftClip(2, 2),), BallLattice.around([0.5, 0.0, 0.5], 1.0))
    >>> squares.record_dim, squares.dim
    (2, 3)
    """

    kind = "image"
    clips: tuple[Clip, ...]
    ball: BallLattice

    def __post_init__(self) -> None:
        if sum(clip.clipped_dim for clip in self.clips) != self.ball.record_dim:
            raise InvalidInput("the clips must give as many coordinates as the ball takes.")
        if self.ball.gauge is not None:
            raise InvalidInput("the ball of an image has no gauge: its clips come before.")

    @property
    def record_dim(self) -> int:
        return sum(clip.record_dim for clip in self.clips)

    @property
    def dim(self) -> int:
        return self.ball.dim

    @property
    def exponent(self) -> int:
        """The grid is 2^exponent."""
        return self.ball.exponent

    @property
    def grid(self) -> Fraction:
        """The step 2^exponent."""
        return self.ball.grid

    @property
    def radius(self) -> int:
        """Σ q² ≤ radius² for the integers of every record."""
        return self.ball.radius

    @property
    def steps(self) -> tuple[Fraction, ...]:
        return self.ball.steps

    def largest(self, multipliers: Sequence[int]) -> int:
        return self.ball.largest(multipliers)

    def sensitivity(
        self, multipliers: Sequence[int], norm: float, replaced: bool, from_zero: bool
    ) -> int:
        return self.ball.sensitivity(multipliers, norm, replaced, from_zero)

    def kernel(self) -> ImageKernel:
        return ImageKernel(self)


class ImageKernel:
    """Puts blocks of records on an image lattice; holds buffers, so one a thread."""

    def __init__(self, lattice: ImageLattice) -> None:
        self._functions, start = [], 0
        for clip in lattice.clips:
            stop = start + clip.record_dim
            self._functions.append((slice(start, stop), clip.clip_function()))
            start = stop
        self._ball = lattice.ball.kernel()
        nothing = [Floats(np.full(1, np.nan))] * lattice.record_dim
        with np.errstate(all="ignore"):
            self.absent: Steps | None = self.integers(nothing, drop=False)[0]

    def sums(self, columns: Sequence[Column], *, drop: bool) -> tuple[list[int], int]:
        """Σ q of every coordinate over a block of at most 2^17 records, and records counted."""
        return self._ball.sums(self._clipped(columns, drop), drop=drop)

    def integers(self, columns: Sequence[Column], *, drop: bool) -> Steps:
        """q of every record of a block, shape (rows, r); dropped records are rows of zeros."""
        return self._ball.integers(self._clipped(columns, drop), drop=drop)

    def _clipped(self, columns: Sequence[Column], drop: bool) -> list[Floats]:
        clipped = []
        for block, function in self._functions:
            clipped += function(columns[block])
        if drop:
            # Not-a-number all over where a record is not complete: it is to be dropped.
            whole = whole_records(columns)
            clipped = [np.where(whole, values, np.nan) for values in clipped]
        return [Floats(values) for values in clipped]
