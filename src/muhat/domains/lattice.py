"""The integers a record becomes: a public grid inside a domain, shared by plan and kernel.

A lattice is made of public integers only. The plan computes the sensitivity on it, the kernel
puts every record on it, so no rounding direction in between can matter for privacy.
"""

from __future__ import annotations

from muhat.domains.ball_lattice import BallLattice
from muhat.domains.box_lattice import BoxLattice, round_half_even
from muhat.domains.lattice_gauges import BlockGauge, Gauge, LpGauge, SchattenGauge
from muhat.domains.points_lattice import PointsLattice
from muhat.domains.simplex_lattice import SimplexLattice
from muhat.domains.tensor_lattice import TensorLattice

__all__ = [
    "BallLattice",
    "BlockGauge",
    "BoxLattice",
    "Gauge",
    "Lattice",
    "LpGauge",
    "PointsLattice",
    "SchattenGauge",
    "SimplexLattice",
    "TensorLattice",
    "round_half_even",
]

Lattice = BoxLattice | BallLattice | SimplexLattice | PointsLattice | TensorLattice
