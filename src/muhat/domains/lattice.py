"""The integers a record becomes: a public grid inside a domain, shared by plan and kernel.

A lattice is made of public integers only. The plan computes the sensitivity on it, the kernel
puts every record on it, so no rounding direction in between can matter for privacy.
"""

from __future__ import annotations

from muhat.domains.ball_lattice import BallLattice
from muhat.domains.box_lattice import BoxLattice, round_half_even
from muhat.domains.clips import Clip, GaugeClip, LiftClip
from muhat.domains.columns_lattice import ColumnsLattice
from muhat.domains.image_lattice import ImageLattice
from muhat.domains.lattice_gauges import (
    BlockGauge,
    EllipsoidGauge,
    Gauge,
    LpGauge,
    SchattenGauge,
)
from muhat.domains.moment_lattice import MomentLattice
from muhat.domains.points_lattice import PointsLattice
from muhat.domains.product_lattice import PartLattice, ProductLattice
from muhat.domains.simplex_lattice import SimplexLattice
from muhat.domains.squared_ball_lattice import SquaredBallLattice

__all__ = [
    "BallLattice",
    "BlockGauge",
    "BoxLattice",
    "Clip",
    "ColumnsLattice",
    "EllipsoidGauge",
    "Gauge",
    "GaugeClip",
    "ImageLattice",
    "Lattice",
    "LiftClip",
    "LpGauge",
    "MomentLattice",
    "PartLattice",
    "PointsLattice",
    "ProductLattice",
    "SchattenGauge",
    "SimplexLattice",
    "SquaredBallLattice",
    "round_half_even",
]

Lattice = PartLattice | ProductLattice | ColumnsLattice | SquaredBallLattice
