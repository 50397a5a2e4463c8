"""ℓ_p norms, their duals, and the points where a norm ball touches a half-space."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from muhat.errors import InvalidInput

Array = NDArray[np.float64]

LARGEST_DENSE = 2_000
"""Rows and columns up to which singular values are worked out."""


def ball_order(value: object) -> float:
    """p in [1, ∞], or InvalidInput."""
    try:
        p = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput("must be a number", parameter="p", value=type(value).__name__) from None
    if isinstance(value, bool) or not p >= 1:
        raise InvalidInput(
            "must be at least 1 (1, 2, ... or inf)",
            parameter="p",
            value=f"{p:g}",
            hint="Below 1 the ball is not convex.",
        )
    return p


def dual_order(p: float) -> float:
    """q with 1/p + 1/q = 1.

    >>> dual_order(3.0), dual_order(1.0), dual_order(math.inf)
    (1.5, inf, 1.0)
    """
    if p == 1:
        return math.inf
    return 1.0 if math.isinf(p) else p / (p - 1)


def p_norm(values: Array, p: float) -> Array:
    """‖·‖_p along the last axis, without overflow or underflow on the way."""
    sizes = np.abs(values)
    largest = sizes.max(axis=-1)
    if math.isinf(p):
        return np.asarray(largest)
    relative = sizes / np.where(largest > 0, largest, 1.0)[..., None]
    if p == 1:
        return np.asarray(largest * relative.sum(axis=-1))
    if p == 2:
        return np.asarray(largest * np.sqrt((relative * relative).sum(axis=-1)))
    return np.asarray(largest * (relative**p).sum(axis=-1) ** (1 / p))


def log_ball_volume(dim: int, p: float) -> float:
    """ln of the volume of {x : ‖x‖_p ≤ 1}: (2Γ(1 + 1/p))^d/Γ(1 + d/p).

    >>> round(math.exp(log_ball_volume(3, 2)) / math.pi, 12)  # 4/3
    1.333333333333
    """
    inverse = 0.0 if math.isinf(p) else 1 / p
    return dim * (math.log(2) + math.lgamma(1 + inverse)) - math.lgamma(1 + dim * inverse)


def singular_values_down(factor: Array) -> Array | None:
    """The singular values from below: floats err by a small multiple of the largest.

    None if the matrix is too large.
    """
    if max(factor.shape) > LARGEST_DENSE:
        return None
    values = np.linalg.svd(factor, compute_uv=False)
    slack = 1e-14 * max(factor.shape) * float(np.linalg.norm(factor))
    return np.asarray(np.maximum(values - slack, 0.0))


def touching(direction: Array, p: float) -> Array:
    """u with ‖u‖_p ≤ 1 and ⟨u, direction⟩ = ‖direction‖_q, of shape (d,)."""
    sizes = np.abs(direction)
    largest = float(sizes.max())
    if largest == 0:
        return np.zeros_like(direction)
    if p == 1:
        powers = np.zeros_like(direction)
        powers[int(np.argmax(sizes))] = 1.0
    else:
        # Equality in Hölder's inequality: |u|^p is proportional to |direction|^q.
        powers = (sizes / largest) ** (dual_order(p) - 1)
    return np.asarray(np.sign(direction) * powers / p_norm(powers, p))
