"""How each kind of domain becomes a block.

Ways from a record to integers, all of which the sensitivity can be proved for:

- a box: each coordinate on its own grid;
- anything that is known with an ellipsoid around it: the coordinates y = W(x − c) in which that
  is the unit ball, with a check that ‖y‖ ≤ 1 for every record. One record replaced by another
  moves y by at most 2, tight if K is symmetric about c;
- a simplex: shares that add up to a public total; finitely many points: counts. In both a record
  is a mean of corners, so the corners alone decide the sensitivity;
- even moments: two records' tensors never point apart.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from muhat._arrays import Floats
from muhat.domains import (
    Ball,
    Box,
    Domain,
    Ellipsoid,
    MomentTensor,
    Points,
    Preimage,
    Product,
    Simplex,
    Translate,
)
from muhat.domains.lattice import (
    BallLattice,
    BoxLattice,
    Gauge,
    ImageLattice,
    MomentLattice,
    PointsLattice,
    SimplexLattice,
)
from muhat.domains.vectors import Vector
from muhat.ellipsoids import smallest_ellipsoid
from muhat.ellipsoids.moment_tensors import length_form
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.block import Block
from muhat.privacy import Neighbors

LARGEST_SIMPLEX = 5_000
"""Corners up to which a simplex is released: its noise is moved onto the total by a matrix."""

LARGEST_TABLE = 40
"""Corners up to which shares have the noise of their own smallest ellipsoid."""


def parts_of(domain: Domain) -> list[tuple[Domain, slice]]:
    """The parts of a product and their coordinates; any other domain is one part."""
    if isinstance(domain, Product):
        return list(zip(domain.parts, domain.blocks, strict=True))
    return [(domain, slice(0, domain.dim))]


def block_of(domain: Domain, p: float, weights: Vector, neighbors: Neighbors) -> Block:
    """One block for a domain that is not a product."""
    match domain:
        case Box():
            lower, upper = zip(*domain.bounds, strict=True)
            axes = smallest_ellipsoid(domain, p, "shifted", weights=weights).scales
            lattice = BoxLattice.around(lower, upper)
            return Block(lattice, axes, np.array(lattice.center))
        case Ball():
            ball = BallLattice.around(domain.center.tolist(), domain.radius)
            return Block(ball, domain.half_widths, domain.center)
        case Ellipsoid() if not domain.is_diagonal:
            ball = BallLattice.whitened(domain.center.tolist(), domain.inverse_factor.tolist())
            return Block(ball, np.ones(domain.dim), domain.center, domain.factor)
        case Ellipsoid():
            return _diagonal(domain, domain.half_widths, None)
        case Points():
            return _listed(
                domain, PointsLattice.of(domain.points, nearest=True), p, weights, neighbors
            )
    simplex, offset = _simplex_of(domain)
    if simplex is not None:
        shares = SimplexLattice(simplex.dim, simplex.origin, offset)
        if domain.preimage().matrix is None:
            return _shares(domain, shares, p, weights, neighbors)
        if domain.vertices() is not None:
            return _listed(domain, shares, p, weights, neighbors)
    inner = domain.inner if isinstance(domain, Translate) else domain
    replaced = neighbors is Neighbors.SUBSTITUTE
    if isinstance(inner, MomentTensor) and not inner.is_symmetric and replaced and inner.dim > 1:
        return _moments(inner, domain)
    return mapped_block(domain, p, weights, domain.preimage())


def _simplex_of(domain: Domain) -> tuple[Simplex | None, tuple[float, ...] | None]:
    """The simplex that a domain is an image of, and the offset that its records are moved by."""
    source = domain.preimage().domain
    if isinstance(source, Simplex):
        return source, None
    if isinstance(source, Translate) and isinstance(source.inner, Simplex):
        return source.inner, tuple(source.offset.tolist())
    return None, None


def _diagonal(domain: Domain, axes: Floats, gauge: Gauge | None) -> Block:
    """Whitened by a diagonal matrix."""
    lattice = BallLattice.scaled(domain.center.tolist(), (1 / axes).tolist(), gauge)
    return Block(lattice, np.ones(domain.dim), domain.center, axes)


def mapped_block(
    domain: Domain, p: float, weights: Vector, source: Preimage, body: str = "shifted"
) -> Block:
    """Records of the domain that K is an image of, in the coordinates of K's ellipsoid.

    With the body "symmetric" the ellipsoid is centred at 0.
    """
    ellipsoid = smallest_ellipsoid(domain, p, body, weights=weights)
    center = domain.center if ellipsoid.shift is None else ellipsoid.shift
    if body == "symmetric":
        center = np.zeros(domain.dim)
    gauge = source.domain.exact_gauge() if center is domain.center else None
    if gauge is not None and ellipsoid.factor is None and source.matrix is None:
        return _diagonal(domain, ellipsoid.scales, gauge)
    root = _thin(ellipsoid.root)
    if root.shape[1] == 0:
        raise InvalidInput("the domain is a single point: its mean is known without any data.")
    inverse = np.linalg.pinv(root)
    if gauge is not None:
        whitening = inverse if source.matrix is None else inverse @ source.matrix
        start = source.domain.center.tolist()
        ball = BallLattice.mapped(start, whitening.tolist(), gauge)
        return Block(ball, np.ones(root.shape[1]), domain.center, root)
    start, whitening = center - source.offset, inverse
    if source.matrix is not None:
        # The point that is mapped to the centre, as near as possible to the middle of the parts.
        middle = source.domain.center
        missed = center - source.offset - source.matrix @ middle
        start = middle + np.linalg.pinv(source.matrix) @ missed
        center = source.matrix @ start + source.offset
        whitening = inverse @ source.matrix
    ball = BallLattice.mapped(start.tolist(), whitening.tolist())
    lattice = ImageLattice(source.domain.clips(), ball)
    return Block(lattice, np.ones(root.shape[1]), center, root)


def _listed(
    domain: Domain,
    lattice: PointsLattice | SimplexLattice,
    p: float,
    weights: Vector,
    neighbors: Neighbors,
) -> Block:
    """Corners in the coordinates of their smallest ellipsoid: of differences, or about its centre.

    Sums of differences are measured from the domain's own centre, which is as good as any.
    """
    replaced = neighbors is Neighbors.SUBSTITUTE
    body = "difference" if replaced else "shifted"
    ellipsoid = smallest_ellipsoid(domain, p, body, weights=weights)
    center = domain.center if ellipsoid.shift is None else ellipsoid.shift
    return _table(domain, lattice, ellipsoid.root, center)


def _table(
    domain: Domain, lattice: PointsLattice | SimplexLattice, root: Floats, center: Floats
) -> Block:
    corners = domain.vertices()
    assert corners is not None
    root = _thin(root)
    table = (corners - center) @ np.linalg.pinv(root).T
    return Block(lattice, np.ones(root.shape[1]), center, root, table=table)


def _shares(
    domain: Domain, lattice: SimplexLattice, p: float, weights: Vector, neighbors: Neighbors
) -> Block:
    """Shares of a simplex, moved by an offset or not.

    With many corners equal noise on every corner's share, then onto the total: the best there is
    at equal weights, but for pure privacy (one row more) and a secret number with the corner 0.
    """
    corners = lattice.corners
    if corners > LARGEST_SIMPLEX:
        raise InvalidInput(f"a simplex of more than {LARGEST_SIMPLEX} corners is not released.")
    if corners <= LARGEST_TABLE:
        return _listed(domain, lattice, p, weights, neighbors)
    onto_total = np.eye(corners) - 1 / corners
    return Block(lattice, np.ones(corners), domain.center, onto_total[: lattice.dim])


def _moments(tensors: MomentTensor, domain: Domain) -> Block:
    """Even moments: equal noise on x^{⊗ℓ} and on |x|^ℓ = ⟨t, x^{⊗ℓ}⟩, which two records share.

    The best unbiased combination of both is (I − ttᵀ/(1 + |t|²))·(first + t·second).
    """
    t = length_form(tensors)
    combined = np.eye(tensors.dim) - np.outer(t, t) / (1 + t @ t)
    transform = np.column_stack([combined, combined @ t])
    lattice = MomentLattice(tensors.order, tensors.record_dim)
    start = domain.offset if isinstance(domain, Translate) else np.zeros(tensors.dim)
    return Block(lattice, np.ones(lattice.dim), np.asarray(start), transform)


def block_from_origin(domain: Domain, p: float, weights: Vector) -> Block | None:
    """Records of one part measured from 0."""
    if domain.is_symmetric and not domain.center.any():
        return block_of(domain, p, weights, Neighbors.ADD_REMOVE)
    if isinstance(domain, Box):
        reach = np.maximum(np.abs(domain.lower), np.abs(domain.upper))
        axes = smallest_ellipsoid(Box(-reach, reach), p, "shifted", weights=weights).scales
        block = block_of(domain, p, weights, Neighbors.ADD_REMOVE)
        return replace(block, axes=axes, from_zero=True)
    nowhere = np.zeros(domain.dim)
    if isinstance(domain, Simplex):
        lattice = SimplexLattice(domain.dim, domain.origin)
        return Block(lattice, np.ones(domain.dim), nowhere, from_zero=True)
    source: PointsLattice | SimplexLattice | None = None
    if isinstance(domain, Points):
        source = PointsLattice.of(domain.points, nearest=True)
    else:
        simplex, offset = _simplex_of(domain)
        if simplex is not None and domain.vertices() is not None:
            source = SimplexLattice(simplex.dim, simplex.origin, offset)
    if source is not None:
        root = smallest_ellipsoid(domain, p, "symmetric", weights=weights).root
        return _table(domain, source, root, nowhere)
    if isinstance(domain, MomentTensor):
        return mapped_block(domain, p, weights, domain.preimage(), "symmetric")
    return None


def _thin(root: Floats) -> Floats:
    """F with F·Fᵀ unchanged and as many columns as its rank: a sum of ellipsoids has more."""
    if root.shape[1] <= np.linalg.matrix_rank(root):
        return root
    left, sizes, _ = np.linalg.svd(root, full_matrices=False)
    kept = sizes > 1e-12 * sizes.max(initial=0.0)
    return np.asarray(left[:, kept] * sizes[kept])
