"""The product of domains: the coordinates of one after those of the other."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from muhat._arrays import LARGEST_ARRAY, LARGEST_LIST, vector
from muhat.domains.base import Domain, Preimage
from muhat.domains.gauges import BlockGauge, BlockPart, Gauge
from muhat.domains.integers import Clip
from muhat.domains.vectors import Matrix, Vector, rows
from muhat.ellipsoids.combined import around_product, shifts_of
from muhat.ellipsoids.floors import LARGEST_DENSE
from muhat.ellipsoids.result import SmallestEllipsoid
from muhat.errors import InvalidInput


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Product(Domain):
    """K_1 × … × K_m = {(x_1, …, x_m) : x_i in K_i}, made by `K * L`.

    `blocks` are the slices of the coordinates of each part. Records are clipped part by part.
    """

    kind = "product"
    parts: tuple[Domain, ...]
    center: Vector
    half_widths: Vector
    blocks: tuple[slice, ...]

    def __init__(self, parts: Sequence[Domain]) -> None:
        if not parts:
            raise InvalidInput("a product needs at least one domain.")
        self._set(
            parts=tuple(parts),
            center=np.concatenate([part.center for part in parts]),
            half_widths=np.concatenate([part.half_widths for part in parts]),
            blocks=_blocks([part.dim for part in parts]),
        )

    @property
    def is_symmetric(self) -> bool:
        return all(part.is_symmetric for part in self.parts)

    def log_half_volume(self) -> float | None:
        parts = [part.log_half_volume() for part in self.parts]
        known = [part for part in parts if part is not None]
        return math.fsum(known) if len(known) == len(parts) else None

    def half_volume(self, weights: Vector) -> tuple[int, float] | None:
        found = [
            part.half_volume(weights[at]) for part, at in zip(self.parts, self.blocks, strict=True)
        ]
        known = [each for each in found if each is not None]
        if len(known) < len(found):
            return None
        return sum(rank for rank, _ in known), math.fsum(volume for _, volume in known)

    @property
    def most_nonzero(self) -> int:
        return sum(part.most_nonzero for part in self.parts)

    @property
    def has_l1(self) -> bool:
        return all(part.has_l1 for part in self.parts)

    @property
    def is_listed(self) -> bool:
        return any(part.is_listed for part in self.parts)

    @property
    def lifts(self) -> bool:
        return any(part.lifts for part in self.parts)

    @property
    def record_center(self) -> Vector:
        return np.concatenate([part.record_center for part in self.parts])

    @property
    def bounding_box(self) -> tuple[Vector, Vector]:
        lower, upper = zip(*(part.bounding_box for part in self.parts), strict=True)
        return np.concatenate(lower), np.concatenate(upper)

    def preimage(self) -> Preimage:
        sources = [part.preimage() for part in self.parts]
        if all(source.matrix is None for source in sources):
            return Preimage(self, None, np.zeros(self.dim))
        columns = _blocks([source.domain.dim for source in sources])
        if self.dim * columns[-1].stop > LARGEST_ARRAY:
            raise InvalidInput(f"a matrix of {self.dim} × {columns[-1].stop} is not built.")
        matrix = np.zeros((self.dim, columns[-1].stop))
        for row, column, source in zip(self.blocks, columns, sources, strict=True):
            matrix[row, column] = source.dense()
        domain = reduce(operator.mul, [source.domain for source in sources])
        return Preimage(domain, matrix, np.concatenate([source.offset for source in sources]))

    def reach(self, directions: Matrix) -> Vector:
        parts = [part.reach(directions[..., block]) for part, block in self._pairs]
        return np.asarray(np.sum(parts, axis=0))

    def extreme_point(self, direction: ArrayLike) -> Vector:
        theta = vector("direction", direction, dim=self.dim)
        return np.concatenate([p.extreme_point(theta[b]) for p, b in self._pairs])

    def clip(self, points: ArrayLike) -> Matrix:
        x = rows(points, self.record_dim)
        blocks = _blocks([part.record_dim for part in self.parts])
        clipped = [part.clip(x[..., b]) for part, b in zip(self.parts, blocks, strict=True)]
        return np.concatenate(clipped, axis=-1)

    def farthest(self, weights: Vector) -> float:
        return math.hypot(*(p.farthest(weights[b]) for p, b in self._pairs))

    def vertices(self) -> Matrix | None:
        total = np.zeros((1, 0))
        for part in self.parts:
            corners = part.vertices()
            count = 0 if corners is None else len(total) * len(corners)
            if corners is None or count > LARGEST_LIST or count * self.dim > LARGEST_ARRAY:
                return None
            left = np.repeat(total, len(corners), axis=0)
            total = np.hstack([left, np.tile(corners, (len(total), 1))])
        return total

    def ellipsoid(self, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
        found = [part.ellipsoid(body, p, weights[block], tol) for part, block in self._pairs]
        shifts = shifts_of([part.center for part in self.parts], found)
        shift = None if shifts is None else np.concatenate(shifts)
        return replace(around_product(found, p, weights), shift=shift)

    def moment(self, body: str, tol: float) -> Matrix | None:
        # Independent signs (or points, with a free shift) make it a measure on the product.
        if self.dim > LARGEST_DENSE:
            return None
        known = [m for part in self.parts if (m := part.moment(body, tol)) is not None]
        if len(known) < len(self.parts):
            return None
        from scipy.linalg import block_diag

        return np.asarray(block_diag(*known))

    def point_sizes(self) -> Vector:
        return np.concatenate([part.point_sizes() for part in self.parts])

    def nearest_in_hull(self, point: ArrayLike) -> Vector:
        x = vector("point", point, dim=self.dim)
        return np.concatenate([part.nearest_in_hull(x[block]) for part, block in self._pairs])

    @property
    def _pairs(self) -> list[tuple[Domain, slice]]:
        return list(zip(self.parts, self.blocks, strict=True))

    def factors(self) -> list[tuple[Domain, slice]]:
        # Parts may be flat in some of their coordinates, and have factors of their own.
        return [
            (factor, slice(block.start + at.start, block.start + at.stop))
            for part, block in self._pairs
            for factor, at in part.factors()
        ]

    def exact_gauge(self) -> Gauge | None:
        parts: list[BlockPart] = []
        for part in self.parts:
            gauge = part.exact_gauge()
            if gauge is None:
                return None
            parts += gauge.parts
        return BlockGauge(tuple(parts))

    def clips(self, offset: tuple[float, ...] | None = None) -> tuple[Clip, ...]:
        if offset is not None:
            return super().clips(offset)
        return tuple(clip for part in self.parts for clip in part.clips())

    def __repr__(self) -> str:
        return " * ".join(
            f"({part!r})" if part.kind in ("sum", "translate") else repr(part)
            for part in self.parts
        )


def _blocks(sizes: Sequence[int]) -> tuple[slice, ...]:
    """Consecutive slices of these lengths."""
    ends = np.cumsum(sizes).tolist()
    return tuple(slice(end - size, end) for size, end in zip(sizes, ends, strict=True))
