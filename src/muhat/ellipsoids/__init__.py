"""The smallest ellipsoid around a body, with a certified gap. Pure geometry."""

from __future__ import annotations

from muhat.ellipsoids.result import SmallestEllipsoid
from muhat.ellipsoids.smallest import gamma, smallest_ellipsoid

__all__ = ["SmallestEllipsoid", "gamma", "smallest_ellipsoid"]
