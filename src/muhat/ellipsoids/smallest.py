"""The smallest ellipsoid around a body: the best Gaussian noise, and what cannot be beaten.

For a symmetric body S and p in [2, ∞]:

    Γ_p(S)² = min tr_{p/2}(M)   over M with sᵀM⁻¹s ≤ 1 for all s in S,

where tr_q(M) is the ℓ_q norm of the diagonal of M. Three bodies belong to a domain K: K − K
(one record replaced), K ∪ −K (one record added or removed), and the papers' K with a free shift.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check
from muhat._arrays import Floats, vector
from muhat.ellipsoids.result import SmallestEllipsoid
from muhat.errors import InvalidInput

BODIES = ("difference", "symmetric", "shifted")
LEAST_TOLERANCE = 1e-12


class Enclosed(Protocol):
    """A set K that knows the ellipsoids around its bodies: every domain does."""

    @property
    def dim(self) -> int:
        """The number of coordinates."""

    @property
    def is_centered(self) -> bool:
        """Whether K = −K."""

    def ellipsoid(self, body: str, p: float, weights: Floats, tol: float) -> SmallestEllipsoid:
        """Around the "difference" K − K, or around the "shifted" K."""

    def two_sided_ellipsoid(self, p: float, weights: Floats, tol: float) -> SmallestEllipsoid:
        """Around K ∪ −K, for a K that is not −K."""


def smallest_ellipsoid(
    K: Enclosed,
    p: float = 2,
    body: str = "difference",
    tol: float = 1e-9,
    *,
    weights: ArrayLike | None = None,
) -> SmallestEllipsoid:
    """The smallest ellipsoid around K − K, K ∪ −K, or K with a free shift.

    Weights w measure the error as ‖diag(w)·z‖_p: the value is Γ_p of the weighted body, the
    ellipsoid returned is in the coordinates of K. `gap` says how far the value can be from the
    least; a solver that does not reach `tol` says so there.

    >>> from muhat.domains import Box
    >>> round(smallest_ellipsoid(Box([0, 0], [1, 2])).value, 12)
    3.0
    """
    _check_enclosed(K)
    p = _check.norm_order(p)
    _check.one_of("body", body, BODIES)
    if _check.positive("tol", tol) <= LEAST_TOLERANCE:
        raise InvalidInput(
            "must be greater than 1e-12, or floats cannot tell", parameter="tol", value=f"{tol:g}"
        )
    w = np.ones(K.dim) if weights is None else weight_vector(weights, K.dim)
    return _found(_Same(K), p, body, tol, w.tobytes())


def _check_enclosed(K: object) -> None:
    if isinstance(K, type) or not (hasattr(K, "ellipsoid") and hasattr(K, "two_sided_ellipsoid")):
        raise InvalidInput(
            "must be a muhat domain such as mh.Ball(radius=1, dim=3)",
            parameter="K",
            value=f"the class {K.__name__}" if isinstance(K, type) else type(K).__name__,
            hint="For the hull of points give mh.Points(array), one a row.",
        )


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
        return K.two_sided_ellipsoid(p, w, tol)
    return K.ellipsoid("difference" if body == "difference" else "shifted", p, w, tol)


def gamma(K: Enclosed, p: float = 2, body: str = "difference") -> float:
    """Γ_p of the body: √tr_{p/2} of its smallest ellipsoid."""
    return smallest_ellipsoid(K, p, body).value


def weight_vector(weights: ArrayLike, dim: int) -> Floats:
    """Weights above zero, one a coordinate, or InvalidInput."""
    w = vector("weights", weights, dim=dim)
    if not (w > 0).all():
        raise InvalidInput("must be greater than 0", parameter="weights")
    return w
