"""Public descriptions of how a record is moved into a domain, in floats, before it is mapped.

Each clip takes some columns of a record and gives the coordinates of a point of its domain. It
acts on the record alone; privacy does not rest on it: an integer check comes after.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from muhat.domains.lattice_gauges import Gauge
from muhat.domains.points_lattice import PointsLattice
from muhat.domains.simplex_lattice import SimplexLattice


@dataclass(frozen=True)
class GaugeClip:
    """Along the ray from the centre: c + z/max(gauge(z), 1) with z = x − c, block by block."""

    center: tuple[float, ...]
    gauge: Gauge

    @property
    def record_dim(self) -> int:
        """The number of columns it reads."""
        return len(self.center)

    @property
    def dim(self) -> int:
        """The number of coordinates it gives."""
        return len(self.center)

    def to_dict(self) -> dict[str, Any]:
        """Stable, for a digest."""
        center = [value.hex() for value in self.center]
        return {"kind": "gauge", "center": center, "gauge": self.gauge.to_dict()}


@dataclass(frozen=True)
class LiftClip:
    """To the unit ball, and then lifted: √m(α)·x^α for every multiset α of `order` indices.

    The lifted tensor is moved by `offset`, if there is one.
    """

    order: int
    record_dim: int
    offset: tuple[float, ...] | None = None

    @property
    def dim(self) -> int:
        """The number of coordinates it gives."""
        return math.comb(self.record_dim + self.order - 1, self.order)

    def to_dict(self) -> dict[str, Any]:
        """Stable, for a digest."""
        offset = self.offset and [value.hex() for value in self.offset]
        return {
            "kind": "lift",
            "order": self.order,
            "record_dim": self.record_dim,
            "offset": offset,
        }


Clip = GaugeClip | LiftClip | SimplexLattice | PointsLattice
"""Shares move to the nearest point of the simplex, other records to the nearest listed point."""


def coordinates(clip: Clip) -> int:
    """How many coordinates a clip gives: of listed points as many as it reads."""
    return clip.record_dim if isinstance(clip, PointsLattice) else clip.dim
