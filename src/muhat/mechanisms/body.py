"""What a record may add to the sums: the shape to hide, and the integers that hide in it.

Three ways from a record to integers, all of which the sensitivity can be proved for:

- a box: each coordinate on its own grid;
- anything symmetric about its centre c: the coordinates y = W(x − c) in which the smallest
  ellipsoid around K − c is the unit ball, with a check that ‖y‖ ≤ 1 for every record;
- a simplex: shares that add up to a public total; finitely many points: counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muhat.domains import (
    Ball,
    Box,
    Domain,
    Ellipsoid,
    LpBall,
    MomentTensor,
    Points,
    Preimage,
    Product,
    SchattenBall,
    Simplex,
)
from muhat.domains.base import Vector
from muhat.domains.lattice import (
    BallLattice,
    BlockGauge,
    BoxLattice,
    Gauge,
    Lattice,
    LpGauge,
    PointsLattice,
    SchattenGauge,
    SimplexLattice,
    TensorLattice,
)
from muhat.ellipsoids import smallest_ellipsoid
from muhat.errors import InvalidInput
from muhat.mechanisms.integer_query import fit
from muhat.mechanisms.recipe import Protection, Recipe
from muhat.mechanisms.table_query import fit_table
from muhat.noise.law import Law

Floats = NDArray[np.float64]

LARGEST_SIMPLEX = 5_000


@dataclass(frozen=True, eq=False)
class Body:
    """A domain, ready to be summed and hidden.

    `shape` is the set to hide, in whose coordinates `axes` are the half axes of its smallest
    ellipsoid; `lattice`, `transform` and `from_zero` say how records become integers and come
    back. `table`, of shape (N, r), holds whitened points where records are one of N points;
    `center` is where sums are measured from, if that is not the centre of the shape.
    """

    shape: Domain
    lattice: Lattice
    axes: Floats
    transform: Floats | None = None
    from_zero: bool = False
    table: Floats | None = None
    center: Floats | None = None

    @classmethod
    def of(cls, domain: Domain, p: float, weights: Vector, clip: Domain | None = None) -> Body:
        """Records of a domain, measured from its centre, for the error in question.

        With `clip`, a smaller domain about the same centre, records are clipped to that one.
        """
        if clip is not None and domain.is_symmetric:
            return cls._whitened(domain, p, weights, Preimage(clip, None, np.zeros(domain.dim)))
        if clip is not None:
            raise InvalidInput("clip is for domains that are symmetric about their centre.")
        match domain:
            case Box():
                lower, upper = zip(*domain.bounds, strict=True)
                axes = smallest_ellipsoid(domain, p, "shifted", weights=weights).scales
                return cls(domain, BoxLattice.around(lower, upper), axes)
            case Ball():
                lattice = BallLattice.around(domain.center.tolist(), domain.radius)
                return cls(domain, lattice, domain.half_widths)
            case Ellipsoid() if not domain.is_diagonal:
                lattice = BallLattice.whitened(
                    domain.center.tolist(), domain.inverse_factor.tolist()
                )
                return cls(domain, lattice, np.ones(domain.dim), domain.factor)
            case Ellipsoid():
                return cls._scaled(domain, domain.half_widths, None)
            case Simplex():
                return cls._simplex(domain)
            case Points():
                return cls._points(domain, p, weights)
            case MomentTensor():
                return cls._tensors(domain, p, weights)
        if not domain.is_symmetric or domain.lifts:
            raise InvalidInput(
                f"records of {type(domain).__name__} cannot be released yet: its ellipsoid and its "
                "bounds are known (mh.smallest_ellipsoid, mh.bounds.unbiased), its sums are not."
            )
        return cls._whitened(domain, p, weights, domain.preimage())

    @classmethod
    def from_origin(cls, box: Box, p: float, weights: Vector) -> Body:
        """Records of a box, measured from 0: the smallest box around K ∪ −K is to be hidden."""
        reach = np.maximum(np.abs(box.lower), np.abs(box.upper))
        whole = Box(-reach, reach)
        axes = smallest_ellipsoid(whole, p, "shifted", weights=weights).scales
        return cls(whole, cls.of(box, p, weights).lattice, axes, from_zero=True)

    @classmethod
    def _scaled(cls, domain: Domain, axes: Floats, gauge: Gauge | None) -> Body:
        """Whitened by a diagonal matrix."""
        lattice = BallLattice.scaled(domain.center.tolist(), (1 / axes).tolist(), gauge)
        return cls(domain, lattice, np.ones(domain.dim), axes)

    @classmethod
    def _whitened(cls, domain: Domain, p: float, weights: Vector, source: Preimage) -> Body:
        """Records of the domain it is an image of, in whitened coordinates."""
        gauge = gauge_of(source.domain)
        ellipsoid = smallest_ellipsoid(domain, p, "shifted", weights=weights)
        if ellipsoid.factor is None and source.matrix is None:
            return cls._scaled(domain, ellipsoid.scales, gauge)
        root = _thin(ellipsoid.root)
        inverse = np.linalg.pinv(root)
        whitening = inverse if source.matrix is None else inverse @ source.matrix
        lattice = BallLattice.mapped(source.domain.center.tolist(), whitening.tolist(), gauge)
        return cls(domain, lattice, np.ones(root.shape[1]), root)

    @classmethod
    def _simplex(cls, domain: Simplex) -> Body:
        """Equal noise on every corner's share, then onto the total, which is public."""
        corners = domain.dim + domain.origin
        if corners > LARGEST_SIMPLEX:
            raise InvalidInput(f"a simplex of more than {LARGEST_SIMPLEX} corners is not released.")
        onto_total = np.eye(corners) - 1 / corners
        lattice = SimplexLattice(domain.dim, domain.origin)
        return cls(domain, lattice, np.ones(corners), onto_total[: domain.dim])

    @classmethod
    def _points(cls, domain: Points, p: float, weights: Vector) -> Body:
        """Points in the coordinates of the smallest ellipsoid around their differences."""
        root = smallest_ellipsoid(domain, p, weights=weights).root
        table = (domain.points - domain.center) @ np.linalg.pinv(root).T
        lattice = PointsLattice.of(domain.points, nearest=True)
        return cls(domain, lattice, np.ones(root.shape[1]), root, table=table)

    @classmethod
    def _tensors(cls, domain: MomentTensor, p: float, weights: Vector) -> Body:
        """Lifted records in the coordinates of the ellipsoid around them, wherever it is centred.

        Of even order its diameter is up to √2 longer than what two records can differ by.
        """
        ellipsoid = smallest_ellipsoid(domain, p, "shifted", weights=weights)
        center = np.zeros(domain.dim) if ellipsoid.shift is None else ellipsoid.shift
        inverse = np.linalg.inv(ellipsoid.root)
        ball = BallLattice.mapped(center.tolist(), inverse.tolist())
        lattice = TensorLattice(domain.order, domain.record_dim, ball)
        axes = np.ones(domain.dim)
        return cls(domain, lattice, axes, np.asarray(ellipsoid.root), center=center)

    def proportions(self, scales: Floats) -> list[float]:
        """Multipliers, up to a common factor, that give noise of these scales on the sums.

        Where all coordinates share one multiplier it goes with the first scale.
        """
        exponents: Sequence[int] = (
            (self.lattice.exponent,)
            if not isinstance(self.lattice, BoxLattice)
            else self.lattice.exponents
        )
        return [2.0**e / float(s) for e, s in zip(exponents, scales, strict=False)]


def gauge_of(domain: Domain) -> Gauge:
    """How records are moved into a domain before they are rounded."""
    if isinstance(domain, Product):
        parts: list[LpGauge | SchattenGauge] = []
        for part in domain.parts:
            gauge = gauge_of(part)
            parts += gauge.parts if isinstance(gauge, BlockGauge) else [gauge]
        return BlockGauge(tuple(parts))
    widths = tuple(domain.half_widths.tolist())
    match domain:
        case Box():
            return BlockGauge(tuple(LpGauge(1, (width,)) for width in widths))
        case Ball():
            return LpGauge(2, widths)
        case Ellipsoid() if domain.is_diagonal:
            return LpGauge(2, widths)
        case LpBall():
            return LpGauge(domain.p, widths)
        case SchattenBall():
            return SchattenGauge(domain.p, domain.shape, domain.radius)
    raise InvalidInput(
        f"records of {type(domain).__name__} cannot be clipped inside a sum or image."
    )


def _thin(root: Floats) -> Floats:
    """F with F·Fᵀ unchanged and as many columns as its rank: a sum of ellipsoids has more."""
    if root.shape[1] <= np.linalg.matrix_rank(root):
        return root
    left, sizes, _ = np.linalg.svd(root, full_matrices=False)
    kept = sizes > 1e-12 * sizes.max(initial=0.0)
    return np.asarray(left[:, kept] * sizes[kept])


def calibrated(
    name: str,
    law: Law,
    body: Body | None,
    scales: Floats | None,
    protection: Protection,
    *,
    count_scale: float | None = None,
) -> Recipe:
    """The recipe whose noise has these scales, up to the factor that just keeps the promise.

    With a `count_scale` the number of records is released too; without a body, it alone.
    """
    lattice = None if body is None else body.lattice
    lopsided = SimplexLattice | PointsLattice | TensorLattice
    if count_scale is not None and isinstance(lattice, lopsided):
        raise InvalidInput("records of a simplex, of listed points or tensors need a public n.")
    if isinstance(lattice, PointsLattice):
        assert body is not None
        assert body.table is not None
        strength, contributions = protection.strength_squared, protection.contributions
        table = fit_table(lattice, body.table, strength, contributions)
        return Recipe(name, law, table, protection, body.transform)
    proportions = [] if body is None or scales is None else body.proportions(scales)
    if count_scale is not None:
        proportions.append(1 / count_scale)
    query = fit(
        lattice,
        proportions,
        with_count=count_scale is not None,
        from_zero=body is not None and body.from_zero,
        norm=law.sensitivity_norm,
        neighbors=protection.neighbors,
        strength_squared=protection.strength_squared,
        contributions=protection.contributions,
    )
    if body is None:
        return Recipe(name, law, query, protection)
    return Recipe(name, law, query, protection, body.transform, body.center)
