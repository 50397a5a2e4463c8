"""All lattices, clips and gauges by their names."""

from __future__ import annotations

from muhat.domains.ball_lattice import BallLattice, SquaredBallLattice
from muhat.domains.box_lattice import BoxLattice, ColumnsLattice
from muhat.domains.diamond_lattice import DiamondLattice
from muhat.domains.gauges import (
    BlockGauge,
    EllipsoidGauge,
    FacetGauge,
    Gauge,
    GaugeClip,
    LpGauge,
    SchattenGauge,
)
from muhat.domains.image_lattice import ImageLattice
from muhat.domains.integers import Clip, Lattice
from muhat.domains.moment_lattice import LiftClip, MomentLattice
from muhat.domains.points_lattice import PointsLattice
from muhat.domains.product_lattice import ProductLattice
from muhat.domains.simplex_lattice import SimplexLattice

__all__ = [
    "BallLattice",
    "BlockGauge",
    "BoxLattice",
    "Clip",
    "ColumnsLattice",
    "DiamondLattice",
    "EllipsoidGauge",
    "FacetGauge",
    "Gauge",
    "GaugeClip",
    "ImageLattice",
    "Lattice",
    "LiftClip",
    "LpGauge",
    "MomentLattice",
    "PointsLattice",
    "ProductLattice",
    "SchattenGauge",
    "SimplexLattice",
    "SquaredBallLattice",
]
