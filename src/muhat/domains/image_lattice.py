"""The integers of images: records are clipped part by part, mapped, and then they are a ball's."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from muhat.domains.ball_lattice import BallLattice
from muhat.domains.clips import Clip, coordinates
from muhat.errors import InvalidInput


@dataclass(frozen=True)
class ImageLattice:
    """Records that `clips` move into a product of domains, as the integers of `ball`.

    The columns of a record go to the clips in order; `ball` is a lattice of the coordinates that
    the clips give, one after the other, mapped by its whitening.

    >>> from muhat.domains.clips import LiftClip
    >>> squares = ImageLattice((LiftClip(2, 2),), BallLattice.around([0.5, 0.0, 0.5], 1.0))
    >>> squares.record_dim, squares.dim
    (2, 3)
    """

    clips: tuple[Clip, ...]
    ball: BallLattice

    def __post_init__(self) -> None:
        if sum(coordinates(clip) for clip in self.clips) != self.ball.record_dim:
            raise InvalidInput("the clips must give as many coordinates as the ball takes.")
        if self.ball.gauge is not None:
            raise InvalidInput("the ball of an image has no gauge: its clips come before.")

    @property
    def record_dim(self) -> int:
        """The number of coordinates of a record."""
        return sum(clip.record_dim for clip in self.clips)

    @property
    def dim(self) -> int:
        """The number of sums."""
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

    def to_dict(self) -> dict[str, Any]:
        """Stable, for a digest."""
        clips = [clip.to_dict() for clip in self.clips]
        return {"kind": "image", "clips": clips, "ball": self.ball.to_dict()}
