"""Fewer points under the same dual value: Carathéodory's theorem.

Weights w on points s_i enter the dual only through Σ w_i s_i s_iᵀ and Σ w_i (with a shift, also
Σ w_i s_i). These are r(r+1)/2 + 1 numbers (+ r), so as many points suffice; their number is N*, the
size of the smallest dataset to which a worst-case bound applies.
"""

from __future__ import annotations

import numpy as np

from muhat.ellipsoids.spans import Array, Indices

LARGEST = 1500  # points and moments beyond which the elimination is not worth its time


def few_points(
    points: Array, weights: Array, rank: int, *, negligible: float, shifted: bool = False
) -> Array:
    """Weights (N,) of smaller support with nearly the same moments of the points (r, N).

    Weights below `negligible` of the largest are dropped first. What the result is worth must be
    evaluated again.
    """
    kept = np.flatnonzero(weights > negligible * weights.max())
    moments = rank * (rank + 1) // 2 + 1 + (rank if shifted else 0)
    slim = np.zeros(len(weights))
    if len(kept) <= moments or len(kept) > LARGEST or moments > LARGEST:
        slim[kept] = weights[kept]
        return np.asarray(slim / slim.sum())
    features = _moments(points[:, kept], shifted)
    slim[kept] = _eliminate(features, weights[kept])
    return np.asarray(slim / slim.sum())


def _moments(points: Array, shifted: bool) -> Array:
    """The moments of each point as a column, in whitened coordinates so that scales are alike."""
    if shifted:
        points = points - points.mean(axis=1)[:, None]
    squares, V = np.linalg.eigh(points @ points.T)
    X = (V / np.sqrt(np.maximum(squares, 1e-24 * squares[-1]))).T @ points
    i, j = np.triu_indices(len(X))
    parts = [X[i] * X[j], np.ones((1, X.shape[1]))]
    return np.vstack([*parts, X] if shifted else parts)


def _eliminate(features: Array, weights: Array) -> Array:
    """Walk along null vectors of the features, each time until a weight is 0."""
    w = weights / weights.sum()
    # Columns √w-scaled: null vectors then move heavy points, not rounding errors.
    _, sizes, Vt = np.linalg.svd(features * np.sqrt(w), full_matrices=True)
    rank = int(np.sum(sizes > 1e-12 * sizes[0]))
    null = (Vt[rank:] * np.sqrt(w)).T
    alive: Indices = np.arange(len(w))
    while null.shape[1]:
        direction = null[:, 0] / np.abs(null[:, 0]).max()
        ratios = np.full(len(alive), np.inf)
        falls = direction[alive] < 0
        if not falls.any():
            direction, falls = -direction, direction[alive] > 0
        ratios[falls] = w[alive][falls] / -direction[alive][falls]
        first = int(np.argmin(ratios))
        gone = alive[first]
        w = np.maximum(w + ratios[first] * direction, 0)
        w[gone] = 0
        alive = np.delete(alive, first)
        pivot = int(np.argmax(np.abs(null[gone])))
        if null[gone, pivot] == 0:
            break
        null = null - np.outer(null[:, pivot], null[gone] / null[gone, pivot])
        null = np.delete(null, pivot, axis=1)
        null[gone] = 0
    return np.asarray(w)
