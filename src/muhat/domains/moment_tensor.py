"""Moments of order ℓ: the tensors x ⊗ … ⊗ x of records x in the unit ball."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muhat import _check
from muhat.domains.base import Domain
from muhat.domains.clips import Clip, LiftClip
from muhat.domains.norms import ball_order, p_norm, touching
from muhat.domains.vectors import LARGEST_ARRAY, Matrix, Vector, dimension, offsets, rows, vector
from muhat.errors import InvalidInput

LARGEST_ORDER = 100
LARGEST_DIM = 1_000_000


@dataclass(frozen=True, eq=False, repr=False, init=False)
class MomentTensor(Domain):
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
    order: int
    indices: NDArray[np.int64]
    multiplicities: Vector
    center: Vector
    half_widths: Vector
    origin: Vector

    def __init__(self, order: int, dim: int) -> None:
        degree = _check.count("order", order, most=LARGEST_ORDER)
        size = dimension(dim)
        count = math.comb(size + degree - 1, degree)
        if count > LARGEST_DIM:
            raise InvalidInput(
                f"the tensors of order {degree} have {count:.3g} coordinates, at most "
                f"{LARGEST_DIM:,} are possible; choose a smaller order or dim."
            )
        multisets = combinations_with_replacement(range(size), degree)
        indices = np.fromiter(chain.from_iterable(multisets), np.int64, count * degree)
        indices = indices.reshape(count, degree)
        multiplicities, largest, mean, is_even = _tables(indices, size)
        self._set(
            order=degree,
            indices=indices,
            multiplicities=multiplicities,
            center=mean * (count / (count + 1)),
            half_widths=np.where(is_even, largest / 2, largest),
            origin=np.zeros(size),
        )

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
        x = rows(points, self.record_dim)
        monomials = np.sqrt(self.multiplicities) * x[..., self.indices[:, 0]]
        for place in range(1, self.order):
            monomials *= x[..., self.indices[:, place]]
        return np.asarray(monomials)

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
        if not self._is_buildable:
            raise InvalidInput(
                f"the full tensor has {self.record_dim}^{self.order} entries and is not built."
            )
        entries = (z / np.sqrt(self.multiplicities))[self._places]
        return np.asarray(entries.reshape((self.record_dim,) * self.order))

    @property
    def _is_buildable(self) -> bool:
        return bool(self.record_dim**self.order <= LARGEST_ARRAY)

    @cached_property
    def _places(self) -> NDArray[np.int64]:
        """For every entry of the full tensor, its multiset's row in `indices`."""
        shape = (self.record_dim,) * self.order
        entries = np.sort(np.indices(shape).reshape(self.order, -1), axis=0)
        digits = self.record_dim ** np.arange(self.order - 1, -1, -1)
        # Multisets in lexicographic order are sorted by their number in base d.
        return np.searchsorted(self.indices @ digits, digits @ entries)

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
        if self.order == 1 or not self._is_buildable:
            return p_norm(thetas, 2)
        entries = self.record_dim**self.order
        step = max(1, LARGEST_ARRAY // entries)
        height = self.record_dim ** (self.order // 2)
        parts = []
        for start in range(0, len(thetas), step):
            some = (thetas[start : start + step] / np.sqrt(self.multiplicities))[:, self._places]
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
        elif self._is_buildable:
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
        share = self.dim / (self.dim + 1)
        square = float(self.center @ self.center)
        distance = math.sqrt(max(1 - 2 * square / share + square, square))
        lower, upper = self.bounding_box
        corner = np.maximum(self.center - lower, upper - self.center)
        return min(float(np.max(weights)) * distance, float(p_norm(weights * corner, 2)))

    def clips(self, offset: tuple[float, ...] | None = None) -> tuple[Clip, ...]:
        return (LiftClip(self.order, self.record_dim, offset),)

    def to_dict(self) -> dict[str, Any]:
        return {"domain": self.kind, "order": self.order, "dim": self.record_dim}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> MomentTensor:
        return cls(fields["order"], fields["dim"])

    def __repr__(self) -> str:
        return f"MomentTensor(order={self.order}, dim={self.record_dim})"


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


def _tables(
    indices: NDArray[np.int64], size: int
) -> tuple[Vector, Vector, Vector, NDArray[np.bool_]]:
    """For each multiset: m(α), the largest √m·x^α, its mean on the sphere, all exponents even?

    With r the running length of equal indices at place t, m = ∏ t/r_t, the mean of x^α is
    ∏ of the odd numbers r − 1 over d(d+2)…(d+ℓ−2), and x_i² = α_i/ℓ attains the largest value.
    """
    count, degree = indices.shape
    multiplicities, odd_products, is_even = (np.ones(count) for _ in range(3))
    run = np.zeros(count)
    log_powers = np.zeros(count)
    for place in range(degree):
        starts_anew = (
            np.ones(count, bool) if place == 0 else indices[:, place] != indices[:, place - 1]
        )
        is_even[starts_anew & (run % 2 == 1)] = 0
        log_powers += np.where(starts_anew, _power_log(run), 0.0)
        run = np.where(starts_anew, 1.0, run + 1)
        multiplicities = multiplicities * (place + 1) / run  # whole at every step
        odd_products *= np.where(run % 2 == 0, run - 1, 1.0)
    is_even[run % 2 == 1] = 0
    log_powers += _power_log(run)
    root = np.sqrt(multiplicities)
    largest = root * np.exp((log_powers - degree * math.log(degree)) / 2)
    spread = math.prod(size + 2 * i for i in range(degree // 2))
    mean = np.where(is_even > 0, root * odd_products / spread, 0.0)
    return multiplicities, np.minimum(largest, 1.0), mean, is_even > 0


def _power_log(run: Vector) -> Vector:
    """ln(r^r), with 0⁰ = 1."""
    return np.asarray(run * np.log(np.maximum(run, 1.0)))
