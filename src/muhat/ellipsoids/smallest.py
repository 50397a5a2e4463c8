"""The smallest ellipsoid around a body: the best Gaussian noise, and what cannot be beaten.

For a symmetric body S and p in [2, ∞]:

    Γ_p(S)² = min tr_{p/2}(M)   over M with sᵀM⁻¹s ≤ 1 for all s in S,

where tr_q(M) is the ℓ_q norm of the diagonal of M. Three bodies belong to a domain K: K − K
(one record replaced), K ∪ −K (one record added or removed), and the papers' K with a free shift.
A body that is no domain may be known by an oracle alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol, overload

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check
from muhat._arrays import Floats, vector
from muhat.ellipsoids.floors import POINT_ERROR
from muhat.ellipsoids.oracles import Oracle, around_oracle
from muhat.ellipsoids.result import SmallestEllipsoid, from_finite
from muhat.ellipsoids.verification import UNIT
from muhat.errors import InvalidInput

BODIES = ("difference", "symmetric", "shifted")
TOLERANCE, ORACLE_TOLERANCE, LEAST_TOLERANCE = 1e-9, 1e-6, 1e-12


class Enclosed(Protocol):
    """A set K that knows the ellipsoids around its bodies: every domain does."""

    @property
    def dim(self) -> int:
        """The number of coordinates."""

    @property
    def is_centered(self) -> bool:
        """Whether K = −K."""

    @property
    def bounding_box(self) -> tuple[Floats, Floats]:
        """The least and the largest value of every coordinate, each of shape (d,)."""

    def point_sizes(self) -> Floats:
        """How large the numbers are that a coordinate is computed from, of shape (d,)."""

    def ellipsoid(self, body: str, p: float, weights: Floats, tol: float) -> SmallestEllipsoid:
        """Around the "difference" K − K, or around the "shifted" K."""

    def two_sided_ellipsoid(self, p: float, weights: Floats, tol: float) -> SmallestEllipsoid:
        """Around K ∪ −K, for a K that is not −K."""


@overload
def smallest_ellipsoid(
    K: Enclosed,
    p: float = 2,
    body: str = "difference",
    tol: float = TOLERANCE,
    *,
    weights: ArrayLike | None = None,
) -> SmallestEllipsoid: ...


@overload
def smallest_ellipsoid(
    *,
    oracle: Oracle,
    dim: int,
    p: float = 2,
    tol: float = ORACLE_TOLERANCE,
    weights: ArrayLike | None = None,
    approximation: float = 1.0,
) -> SmallestEllipsoid: ...


def smallest_ellipsoid(
    K: Enclosed | None = None,
    p: float = 2,
    body: str | None = None,
    tol: float | None = None,
    *,
    weights: ArrayLike | None = None,
    oracle: Oracle | None = None,
    dim: int | None = None,
    approximation: float | None = None,
) -> SmallestEllipsoid:
    """The smallest ellipsoid around K − K, K ∪ −K, or K with a free shift; or an oracle's body.

    Weights w measure the error as ‖diag(w)·z‖_p: the value is Γ_p of the weighted body, the
    ellipsoid returned is in the coordinates of K. `gap` says how far the value can be from the
    least; a solver that does not reach `tol` (1e-9, 1e-6 with an oracle) says so there.

    >>> from muhat.domains import Box
    >>> round(smallest_ellipsoid(Box([0, 0], [1, 2])).value, 12)
    3.0

    In place of K, `oracle` describes a set in R^dim, and the ellipsoid is the smallest about 0
    around it and its opposite. For a matrix A ⪰ 0 of shape (dim, dim) the oracle returns a point
    x of the set where xᵀAx is large, or several as rows, or (points, bound) with a bound on xᵀAx
    over the set. Without a bound xᵀAx has to be at least the part `approximation` of the largest
    (1: exact up to rounding). Given that, value ≥ Γ_p ≥ floor; the floor rests on the points
    alone. With a part α the gap comes down to about 1/√α − 1.

    >>> ellipses = np.array([np.diag([3.0, 1.0]), np.diag([1.0, 2.0])])
    >>> def farthest(A):
    ...     sizes, vectors = np.linalg.eigh(ellipses @ A @ ellipses)
    ...     best = sizes[:, -1].argmax()
    ...     return ellipses[best] @ vectors[best, :, -1]
    >>> round(smallest_ellipsoid(oracle=farthest, dim=2).value, 4)
    3.6056
    """
    if oracle is not None:
        if K is not None or body is not None:
            raise InvalidInput(
                "describes the set to be hidden by itself: leave K and body out",
                parameter="oracle",
            )
        if dim is None:
            raise InvalidInput("must be given with an oracle", parameter="dim")
        tol = ORACLE_TOLERANCE if tol is None else tol
        part = 1.0 if approximation is None else approximation
        return from_finite(around_oracle(oracle, dim, p, tol, weights, part))
    if dim is not None or approximation is not None:
        name = "dim" if dim is not None else "approximation"
        raise InvalidInput("is for an oracle alone", parameter=name)
    K, p = _enclosed(K), _check.norm_order(p)
    body = _check.one_of("body", "difference" if body is None else body, BODIES)
    tol = TOLERANCE if tol is None else _check.positive("tol", tol)
    if tol <= LEAST_TOLERANCE:
        raise InvalidInput(
            "must be greater than 1e-12, or floats cannot tell", parameter="tol", value=f"{tol:g}"
        )
    w = np.ones(K.dim) if weights is None else weight_vector(weights, K.dim)
    return _found(_Same(K), p, body, tol, w.tobytes())


def _enclosed(K: Enclosed | None) -> Enclosed:
    if (
        K is None
        or isinstance(K, type)
        or not (hasattr(K, "ellipsoid") and hasattr(K, "two_sided_ellipsoid"))
    ):
        raise InvalidInput(
            "must be a muhat domain such as mh.Ball(radius=1, dim=3)",
            parameter="K",
            value=f"the class {K.__name__}" if isinstance(K, type) else type(K).__name__,
            hint="For the hull of points give mh.Points(array), one a row; for a set that can be "
            "searched an oracle=.",
        )
    return K


@dataclass(frozen=True, eq=False)
class _Same:
    """A domain as a key: equal to itself alone, which costs nothing to find out."""

    domain: Enclosed

    def __hash__(self) -> int:
        return id(self.domain)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.domain is self.domain


@lru_cache(maxsize=16)
def _found(same: _Same, p: float, body: str, tol: float, weights: bytes) -> SmallestEllipsoid:
    """Solved once: a plan, its certificate and its bounds all ask for the same ellipsoid."""
    K, w = same.domain, np.frombuffer(weights)
    if body == "symmetric" and not K.is_centered:
        found = K.two_sided_ellipsoid(p, w, tol)
    else:
        found = K.ellipsoid("difference" if body == "difference" else "shifted", p, w, tol)
    # An ellipsoid around a body reaches as far along every axis; one pair of points shows it.
    along = _along_axes(K, body, w)
    if not found.floor < along <= found.value:
        return found
    return replace(found, floor=along, contacts=1)


def _along_axes(K: Enclosed, body: str, weights: Floats) -> float:
    """max_j w_j·(how far the body reaches along axis j), rounded down: at most Γ_p."""
    lower, upper = K.bounding_box
    far = {
        "difference": upper - lower,
        "symmetric": np.maximum(-lower, upper),
        "shifted": (upper - lower) / 2,
    }[body]
    return float(np.max(weights * (far - POINT_ERROR * UNIT * K.point_sizes())))


def gamma(K: Enclosed, p: float = 2, body: str = "difference") -> float:
    """Γ_p of the body: √tr_{p/2} of its smallest ellipsoid."""
    return smallest_ellipsoid(K, p, body).value


def weight_vector(weights: ArrayLike, dim: int) -> Floats:
    """Weights above zero, one a coordinate, or InvalidInput."""
    w = vector("weights", weights, dim=dim)
    if not (w > 0).all():
        raise InvalidInput("must be greater than 0", parameter="weights")
    return w
