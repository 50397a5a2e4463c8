"""The nearest answers that some histogram has: post-processing, without any privacy cost.

x̂ ≥ 0 minimises Σ_j ((W·x − answers)_j/deviations_j)², with Σx = total where the number of records
is public; the answers W·x̂ are then not negative where W is not, and consistent with each other.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check
from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.workloads.base import Workload

LARGEST_HISTOGRAM = 1 << 24
ITERATIONS = 2000
TOLERANCE = 1e-6


def project_answers(
    workload: Workload,
    answers: ArrayLike,
    deviations: ArrayLike,
    total: float | None = None,
    *,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
) -> tuple[Floats, Floats]:
    """(W·x̂, x̂) for the histogram x̂ ≥ 0 whose answers are nearest, in units of the deviations.

    An accelerated projected gradient method, restarted whenever it overshoots. It ends when a
    step changes the answers by less than `tolerance` deviations in root mean square, or after
    `iterations` steps; x̂ ≥ 0 and Σx̂ = total hold in either case.

    >>> from muhat.workloads import prefix
    >>> answers, x = project_answers(prefix(3), [2.0, 1.0, 4.0], [1.0, 1.0, 1.0])
    >>> answers.round(3)
    array([1.5, 1.5, 4. ])
    """
    rows, cells = workload.shape
    if cells > LARGEST_HISTOGRAM:
        raise InvalidInput(
            f"a histogram of {cells:,} cells is not fitted; at most {LARGEST_HISTOGRAM:,} are."
        )
    noisy, weights = checked(rows, answers, deviations)
    if total is not None:
        total = max(0.0, _check.real("total", total))
    lipschitz = _largest_square(workload, weights)
    x = _feasible(np.zeros(cells) if total is None else np.full(cells, total / cells), total)
    fitted = workload.apply(x)
    error = weights * (fitted - noisy)
    ahead, ahead_fitted, momentum = x, fitted, 1.0
    for _ in range(_check.count("iterations", iterations)):
        gradient = workload.transposed(weights * (weights * (ahead_fitted - noisy)))
        following = _feasible(ahead - gradient / lipschitz, total)
        following_fitted = workload.apply(following)
        step = weights * (following_fitted - fitted)
        following_error = weights * (following_fitted - noisy)
        if following_error @ following_error > error @ error * (1 + 1e-14):
            if ahead is x:
                # Power iteration only estimates the Lipschitz constant from below.
                lipschitz *= 2
            ahead, ahead_fitted, momentum = x, fitted, 1.0
            continue
        coming = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        push = (momentum - 1) / coming
        ahead = following + push * (following - x)
        ahead_fitted = following_fitted + push * (following_fitted - fitted)
        x, fitted, error, momentum = following, following_fitted, following_error, coming
        if math.sqrt(step @ step / rows) <= tolerance:
            break
    return workload.apply(x), x


def checked(rows: int, answers: ArrayLike, deviations: ArrayLike) -> tuple[Floats, Floats]:
    """The answers, and 1/deviations; exact answers count as if 30 times surer than the surest."""
    noisy = np.asarray(answers, dtype=np.float64)
    spread = np.asarray(deviations, dtype=np.float64)
    for name, array in (("answers", noisy), ("deviations", spread)):
        if array.shape != (rows,):
            raise InvalidInput(f"{name} must have shape ({rows},); got {array.shape}.")
    if not (spread >= 0).all():
        raise InvalidInput("deviations must not be negative.")
    least = float(spread[spread > 0].min(initial=math.inf))
    exact = 1.0 if math.isinf(least) else least / 30
    return noisy, 1 / np.where(spread > 0, spread, exact)


def _feasible(x: Floats, total: float | None) -> Floats:
    """The nearest vector that is not negative, with the given sum if there is one."""
    if total is None:
        return np.maximum(x, 0.0)
    if total == 0:
        return np.zeros_like(x)
    # The simplex: subtract the level at which what is left above 0 adds up to the total.
    ordered = np.sort(x)[::-1]
    levels = (np.cumsum(ordered) - total) / np.arange(1, len(x) + 1)
    above = int(np.flatnonzero(ordered > levels)[-1])
    return np.maximum(x - float(levels[above]), 0.0)


def _largest_square(workload: Workload, weights: Floats) -> float:
    """An estimate of ‖diag(weights)·W‖², by power iteration from a vector with no structure."""
    vector = 1 + np.sin(np.arange(1.0, workload.shape[1] + 1))
    square = 0.0
    for _ in range(30):
        vector = vector / np.linalg.norm(vector)
        image = weights * workload.apply(vector)
        vector = workload.transposed(weights * image)
        following = float(image @ image)
        if following <= square * 1.01:
            break
        square = following
    return 1.05 * max(following, square, 1e-300)
