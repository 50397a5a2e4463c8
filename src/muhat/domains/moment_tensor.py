"""Moments of order ℓ: the tensors x ⊗ … ⊗ x of records x in the unit ball."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muhat._arrays import LARGEST_ARRAY, Integers, vector
from muhat._plain import Key
from muhat.domains.base import Domain
from muhat.domains.blocks import Block
from muhat.domains.integers import Clip
from muhat.domains.moment_basis import TensorBasis
from muhat.domains.moment_climbing import climbed_floor
from muhat.domains.moment_differences import weighted_sets
from muhat.domains.moment_ellipsoid import around_tensors, check_size
from muhat.domains.moment_lattice import LiftClip, MomentLattice
from muhat.domains.moment_weights import (
    TOLERANCE,
    around_moved_powers,
    around_weighted_powers,
    has_weighted_powers,
)
from muhat.domains.norms import ball_order, p_norm, touching
from muhat.domains.vectors import Matrix, Vector, offsets
from muhat.ellipsoids.result import SmallestEllipsoid
from muhat.errors import InvalidInput
from muhat.privacy import Neighbors


@dataclass(frozen=True, eq=False, repr=False, init=False)
class MomentTensor(Domain, keys=("order", Key("dim", "record_dim"))):
    """{x^{⊗ℓ} : ‖x‖₂ ≤ 1, x in R^d}, as symmetric tensors in an orthonormal basis.

    A record is x, with `record_dim` = d coordinates; K has `dim` = C(d+ℓ−1, ℓ), one for each
    multiset α of ℓ indices (row of `indices`, in lexicographic order): √m(α)·x^α, where
    m(α) = ℓ!/∏α_i! (`multiplicities`) counts the entries of the full tensor that equal x^α. So
    lengths are those of the full tensor, and ⟨lift(x), lift(y)⟩ = ⟨x, y⟩^ℓ.

    The centre is the centroid of the convex hull: 0 for odd ℓ. For even ℓ the hull is a cone
    with apex 0 over the x^{⊗ℓ} with ‖x‖ = 1, and the centroid is dim/(dim+1)·E[x^{⊗ℓ}], x
    uniform on the sphere. A record outside the unit ball moves to its nearest point.

    >>> K = MomentTensor(order=2, dim=2)
    >>> K.dim, K.indices.tolist(), K.lift([3.0, 2.0]).round(3).tolist()
    (3, [[0, 0], [0, 1], [1, 1]], [9.0, 8.485, 4.0])
    """

    kind = "moment-tensor"
    basis: TensorBasis
    center: Vector
    half_widths: Vector
    origin: Vector

    def __init__(self, order: int, dim: int) -> None:
        basis = TensorBasis(order, dim)
        _, largest, mean, is_even = basis.tables
        self._set(
            basis=basis,
            center=mean * (basis.dim / (basis.dim + 1)),
            half_widths=np.where(is_even, largest / 2, largest),
            origin=np.zeros(basis.record_dim),
        )

    @property
    def order(self) -> int:
        """ℓ."""
        return self.basis.order

    @property
    def indices(self) -> Integers:
        """The multisets of indices, one a row, in lexicographic order."""
        return self.basis.indices

    @property
    def multiplicities(self) -> Vector:
        """m(α): how many entries of the full tensor equal x^α."""
        return self.basis.multiplicities

    @property
    def is_symmetric(self) -> bool:
        return self.order % 2 == 1

    @property
    def lifts(self) -> bool:
        return True

    @property
    def record_center(self) -> Vector:
        return self.origin

    @property
    def bounding_box(self) -> tuple[Vector, Vector]:
        # x^α is never negative where every exponent is even; those coordinates have a mean.
        if self.order % 2:
            return -self.half_widths, self.half_widths
        return np.where(self.center > 0, 0.0, -self.half_widths), np.where(
            self.center > 0, 2 * self.half_widths, self.half_widths
        )

    def lift(self, points: ArrayLike) -> Matrix:
        """√m(α)·x^α for each point x, of shape (d,) or (n, d): shape (dim,) or (n, dim)."""
        return self.basis.lift(points)

    def clip(self, points: ArrayLike) -> Matrix:
        x = offsets(points, self.origin)
        return self.lift(x / np.maximum(p_norm(x, 2), 1.0)[..., None])

    def tensor_weights(self, p: float) -> Vector:
        """w with ‖w∘z‖_p over the basis = ‖Z‖_p over the d^ℓ entries of the full tensor Z.

        An entry z_α/√m occurs m times, so w = m^{1/p − 1/2}.
        """
        order = ball_order(p)
        return np.asarray(self.multiplicities ** (1 / order - 0.5))

    def tensor(self, coordinates: ArrayLike) -> NDArray[np.float64]:
        """The full tensor of shape (d, …, d), ℓ axes, that these coordinates stand for."""
        z = vector("coordinates", coordinates, dim=self.dim)
        if not self.basis.is_buildable:
            raise InvalidInput(
                f"the full tensor has {self.record_dim}^{self.order} entries and is not built."
            )
        entries = (z / np.sqrt(self.multiplicities))[self.basis.places]
        return np.asarray(entries.reshape((self.record_dim,) * self.order))

    def support(self, direction: ArrayLike) -> float:
        """h_K(θ), the largest value of a polynomial on the ball: exact for ℓ ≤ 2.

        Beyond, finding it is NP-hard: the value is an upper bound, the largest eigenvalue or
        singular value of θ unfolded to a matrix. `extreme_point` gives a lower bound.
        """
        return float(self._supports(vector("direction", direction, dim=self.dim)[None])[0])

    def reach(self, directions: Matrix) -> Vector:
        """h_{K−c} of each direction; an upper bound for ℓ ≥ 3, as in `support`."""
        thetas = directions.reshape(-1, self.dim)
        values = self._supports(thetas) - thetas @ self.center
        return np.asarray(values.reshape(directions.shape[:-1]))

    def _supports(self, thetas: Matrix) -> Vector:
        if self.order == 1 or not self.basis.is_buildable:
            return p_norm(thetas, 2)
        entries = self.record_dim**self.order
        step = max(1, LARGEST_ARRAY // entries)
        height = self.record_dim ** (self.order // 2)
        parts = []
        for start in range(0, len(thetas), step):
            some = (thetas[start : start + step] / np.sqrt(self.multiplicities))[
                :, self.basis.places
            ]
            unfolded = some.reshape(-1, height, entries // height)
            if self.order % 2 == 0:
                parts.append(np.maximum(np.linalg.eigvalsh(unfolded)[:, -1], 0.0))
            else:
                parts.append(np.linalg.norm(unfolded, 2, axis=(1, 2)))
        return np.concatenate(parts)

    def extreme_point(self, direction: ArrayLike) -> Vector:
        """The best x^{⊗ℓ} found for ⟨θ, ·⟩: the maximum for ℓ ≤ 2, a local one beyond."""
        theta = vector("direction", direction, dim=self.dim)
        d = self.record_dim
        x = np.concatenate([np.eye(d), -np.eye(d)])
        if self.order == 1:
            x = touching(theta, 2)[None]
        elif self.basis.is_buildable:
            unfolded = self.tensor(theta).reshape(d, -1)
            # Singular vectors would mix the eigenvalues λ and −λ of a symmetric matrix.
            vectors = np.linalg.eigh(unfolded if self.order == 2 else unfolded @ unfolded.T)[1].T
            x = np.concatenate([x, vectors, -vectors])
            if self.order > 2:
                x = _ascend(unfolded, x, self.order)
        candidates = np.concatenate([np.zeros((1, self.dim)), self.lift(x)])
        return np.asarray(candidates[int(np.argmax(candidates @ theta))])

    def farthest(self, weights: Vector) -> float:
        # Extreme points of the hull are 0 and ‖x‖ = 1, where ⟨x^{⊗ℓ}, E⟩ = ‖E‖² for the mean E.
        part = self.dim / (self.dim + 1)
        square = float(self.center @ self.center)
        distance = math.sqrt(max(1 - 2 * square / part + square, square))
        lower, upper = self.bounding_box
        corner = np.maximum(self.center - lower, upper - self.center)
        return min(float(np.max(weights)) * distance, float(p_norm(weights * corner, 2)))

    def ellipsoid(self, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
        if self.is_symmetric:
            return self._two_sided(p, weights).scaled(2.0 if body == "difference" else 1.0)
        plain = around_tensors(self.basis, body, p, weights)
        if body != "difference":
            if plain.gap < TOLERANCE or not has_weighted_powers(self.basis):
                return plain
            moved = around_moved_powers(self.basis, p, weights)
            return _smaller(plain, moved, 0.0 if moved is None else moved.floor)
        found = weighted_sets(self.basis, p, weights).ellipsoid(plain.floor, p, weights)
        best = _smaller(plain, found, plain.floor)
        if best.gap < TOLERANCE:
            return best
        return _smaller(best, None, climbed_floor(self.basis, body, p, weights))

    def two_sided_ellipsoid(self, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
        return self._two_sided(p, weights)

    def _two_sided(self, p: float, weights: Vector) -> SmallestEllipsoid:
        """Around ±x^{⊗ℓ}."""
        plain = around_tensors(self.basis, "symmetric", p, weights)
        if plain.gap < TOLERANCE:
            return plain
        if not has_weighted_powers(self.basis):
            return _smaller(plain, None, climbed_floor(self.basis, "symmetric", p, weights))
        found = around_weighted_powers(self.basis, p, weights)
        return _smaller(plain, found, found.floor)

    def moved_block(
        self, K: Domain, offset: Vector, p: float, weights: Vector, neighbors: Neighbors
    ) -> Block:
        # Even moments have rows of their own, in which no two records are far apart.
        if self.is_symmetric or neighbors is not Neighbors.SUBSTITUTE or self.dim == 1:
            return super().moved_block(K, offset, p, weights, neighbors)
        check_size(self.basis)
        lattice = MomentLattice.of(weighted_sets(self.basis, p, weights))
        return Block(lattice, np.ones(1), offset, lattice.transform)

    def block_from_zero(self, p: float, weights: Vector) -> Block:
        if self.is_centered:
            return self.block(p, weights, Neighbors.ADD_REMOVE)
        return self.mapped_block(p, weights, self.preimage(), "symmetric")

    def clips(self, offset: tuple[float, ...] | None = None) -> tuple[Clip, ...]:
        return (LiftClip(self.order, self.record_dim, offset),)

    @classmethod
    def built(cls, order: int, record_dim: int) -> Self:
        return cls(order, record_dim)

    def __repr__(self) -> str:
        return f"MomentTensor(order={self.order}, dim={self.record_dim})"


def _smaller(
    plain: SmallestEllipsoid, found: SmallestEllipsoid | None, floor: float
) -> SmallestEllipsoid:
    """Whichever is smaller of two ellipsoids around a body, with the larger floor."""
    best = plain if found is None or plain.value <= found.value else found
    return replace(best, floor=min(best.value, max(plain.floor, floor)))


def _ascend(unfolded: Matrix, x: Matrix, order: int) -> Matrix:
    """Power iteration from each row of x, shifted so that ⟨θ, x^{⊗ℓ}⟩ never falls on the sphere."""
    shift = (order - 1) * float(p_norm(unfolded.ravel(), 2))
    for _ in range(300):
        gradient = x @ unfolded
        for _ in range(order - 2):
            gradient = np.sum(gradient.reshape(len(x), x.shape[1], -1) * x[..., None], axis=1)
        moved = gradient + shift * x
        x = moved / np.maximum(p_norm(moved, 2), 1e-300)[:, None]
    return x
