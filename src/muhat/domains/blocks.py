"""A domain as integers that are summed, and the noise that hides them.

Ways from a record to integers, all of which the sensitivity can be proved for:

- a box: each coordinate on its own grid;
- anything that is known with an ellipsoid around it: the coordinates y = W(x − c) in which that
  is the unit ball, with a check that ‖y‖ ≤ 1 for every record. One record replaced by another
  moves y by at most 2, tight if K is symmetric about c;
- records that are means of corners, a simplex and finitely many points: the corners alone decide
  the sensitivity;
- a lattice of the domain's own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muhat._arrays import Floats
from muhat.domains.ball_lattice import BallLattice
from muhat.domains.gauges import Gauge
from muhat.domains.image_lattice import ImageLattice
from muhat.domains.integers import Clip, Lattice, TableLattice
from muhat.ellipsoids.result import SmallestEllipsoid
from muhat.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class Block:
    """Some coordinates of a domain, ready to be summed and hidden.

    `axes` are the scales of the noise, up to a factor, one a multiplier of the lattice's sums;
    `center`, of shape (d,), is the point that sums are measured from, `transform` maps the
    lattice's coordinates to the domain's: a matrix, its diagonal, or None for the identity.
    `table`, of shape (N, r), holds whitened corners where records are means of those.
    """

    lattice: Lattice
    axes: Floats
    center: Floats
    transform: Floats | None = None
    from_zero: bool = False
    table: Floats | None = None

    @property
    def is_plain(self) -> bool:
        """Whether sums are those of the domain's own coordinates."""
        return self.transform is None and self.table is None


def scaled_block(axes: Floats, center: Floats, gauge: Gauge | None = None) -> Block:
    """Records about a centre, whitened by a diagonal matrix: half-axes of an ellipsoid around K."""
    lattice = BallLattice.scaled(center.tolist(), (1 / axes).tolist(), gauge)
    return Block(lattice, np.ones(len(axes)), center, axes)


def gauged_block(
    ellipsoid: SmallestEllipsoid,
    center: Floats,
    gauge: Gauge,
    start: Floats,
    matrix: Floats | None,
) -> Block:
    """Records of a body about `start`, mapped by a matrix, in the ellipsoid's coordinates."""
    if ellipsoid.factor is None and matrix is None:
        return scaled_block(ellipsoid.scales, center, gauge)
    root, inverse = _inverse(ellipsoid)
    whitening = inverse if matrix is None else inverse @ matrix
    ball = BallLattice.mapped(start.tolist(), whitening.tolist(), gauge)
    return Block(ball, np.ones(root.shape[1]), center, root)


def clipped_block(
    ellipsoid: SmallestEllipsoid,
    center: Floats,
    clips: tuple[Clip, ...],
    middle: Floats,
    matrix: Floats | None,
    offset: Floats,
) -> Block:
    """Records that clips move into domains with this middle, in the ellipsoid's coordinates.

    K = offset + matrix·(what the clips give); the ellipsoid around it is centred at `center`.
    """
    root, inverse = _inverse(ellipsoid)
    start, whitening = center - offset, inverse
    if matrix is not None:
        # The point that is mapped to the centre, as near as possible to the middle of the parts.
        missed = center - offset - matrix @ middle
        start = middle + np.linalg.pinv(matrix) @ missed
        center = matrix @ start + offset
        whitening = inverse @ matrix
    ball = BallLattice.mapped(start.tolist(), whitening.tolist())
    return Block(ImageLattice(clips, ball), np.ones(root.shape[1]), center, root)


def table_block(
    lattice: TableLattice, corners: Floats, ellipsoid: SmallestEllipsoid, center: Floats
) -> Block:
    """Corners, of shape (N, d), in the coordinates of an ellipsoid, seen from a centre."""
    root = _thin(ellipsoid.root)
    table = (corners - center) @ np.linalg.pinv(root).T
    return Block(lattice, np.ones(root.shape[1]), center, root, table=table)


def _inverse(ellipsoid: SmallestEllipsoid) -> tuple[Floats, Floats]:
    """F with M = F·Fᵀ, and the map to the coordinates in which the ellipsoid is the unit ball."""
    root = _thin(ellipsoid.root)
    if root.shape[1] == 0:
        raise InvalidInput("the domain is a single point: its mean is known without any data.")
    return root, np.asarray(np.linalg.pinv(root), np.float64)


def _thin(root: Floats) -> Floats:
    """F with F·Fᵀ unchanged and as many columns as its rank: a sum of ellipsoids has more."""
    if root.shape[1] <= np.linalg.matrix_rank(root):
        return root
    left, sizes, _ = np.linalg.svd(root, full_matrices=False)
    kept = sizes > 1e-12 * sizes.max(initial=0.0)
    return np.asarray(left[:, kept] * sizes[kept])
