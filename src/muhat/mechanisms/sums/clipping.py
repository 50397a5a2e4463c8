"""How records of a domain are moved into it before they are mapped: gauges and clips."""

from __future__ import annotations

from muhat.domains import (
    Ball,
    Box,
    Domain,
    Ellipsoid,
    LpBall,
    MomentTensor,
    Points,
    Product,
    SchattenBall,
    Simplex,
    Translate,
)
from muhat.domains.lattice import (
    BlockGauge,
    Clip,
    EllipsoidGauge,
    Gauge,
    GaugeClip,
    LiftClip,
    LpGauge,
    PointsLattice,
    SchattenGauge,
    SimplexLattice,
)
from muhat.domains.lattice_gauges import BlockPart
from muhat.errors import InvalidInput


def has_gauge(domain: Domain) -> bool:
    """Whether records move into the domain along rays from its centre."""
    if isinstance(domain, Product):
        return all(has_gauge(part) for part in domain.parts)
    return isinstance(domain, Box | Ball | Ellipsoid | LpBall | SchattenBall)


def gauge_of(domain: Domain) -> Gauge:
    """The gauge of a domain about its centre; a block for every part of a product."""
    if isinstance(domain, Product):
        parts: list[BlockPart] = []
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
        case Ellipsoid():
            rows = domain.inverse_factor.tolist()
            return EllipsoidGauge(tuple(tuple(row[: i + 1]) for i, row in enumerate(rows)))
        case LpBall():
            return LpGauge(domain.p, widths)
        case SchattenBall():
            return SchattenGauge(domain.p, domain.shape, domain.radius)
    raise InvalidInput(f"records of {type(domain).__name__} cannot be clipped along rays.")


def clips_of(domain: Domain) -> tuple[Clip, ...]:
    """How records of each part of a domain are moved into it."""
    if isinstance(domain, Product):
        return tuple(clip for part in domain.parts for clip in clips_of(part))
    inner, offset = domain, None
    if isinstance(domain, Translate):
        inner, offset = domain.inner, tuple(domain.offset.tolist())
    match inner:
        case Simplex():
            return (SimplexLattice(inner.dim, inner.origin, offset),)
        case MomentTensor():
            return (LiftClip(inner.order, inner.record_dim, offset),)
        case Points():
            return (PointsLattice.of(inner.points, nearest=True),)
    return (GaugeClip(tuple(domain.center.tolist()), gauge_of(domain)),)
