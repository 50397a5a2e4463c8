"""The smallest-ellipsoid solver: CPU time and proved gap, beside a semidefinite solver.

Where cvxpy is installed (`pip install cvxpy`), Clarabel and SCS solve the dual

    max tr X   over   [[Σ w_i s_i s_iᵀ, X], [Xᵀ, diag(δ)]] ⪰ 0,  w ≥ 0,  Σw ≤ 1,  ‖δ‖_q ≤ 1,

one matrix inequality of size 2d, which is the smallest form of the problem. Ratios are printed,
nothing is asserted. Run with `python -m benchmarks.ellipsoids`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat.ellipsoids.finite import around_columns, around_differences, around_shifted

INF = float("inf")
SECONDS_FOR_A_PEER = 60.0
LARGEST_FOR_A_PEER = 64


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What the work returns, and its CPU time."""
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def column_sets() -> Iterator[tuple[str, NDArray[np.float64], float, float]]:
    """Name, columns, p and tolerance."""
    rng = np.random.default_rng(0)
    for p in (2, 4, INF):
        for n in (16, 64, 256):
            yield f"prefix sums, n = {n}", np.tril(np.ones((n, n))), p, 1e-9
        yield "random 10×25", rng.standard_normal((10, 25)), p, 1e-9
        yield "random 50×200", rng.standard_normal((50, 200)), p, 1e-9
        yield "random 5×20,000", rng.standard_normal((5, 20_000)), p, 1e-9
        yield "random 200×2000", rng.standard_normal((200, 2000)), p, 1e-6


def semidefinite(columns: NDArray[np.float64], p: float, solver: str) -> float:
    """Γ_p by cvxpy, or NaN where the solver gives up within its time."""
    import cvxpy as cp

    d, N = columns.shape
    w, X, delta = cp.Variable(N, nonneg=True), cp.Variable((d, d)), cp.Variable(d, nonneg=True)
    second_moment = columns @ cp.diag(w) @ columns.T
    order = INF if p == 2 else 1.0 if np.isinf(p) else p / (p - 2)
    size = cp.max(delta) if np.isinf(order) else cp.norm(delta, order)
    constraints = [
        cp.bmat([[second_moment, X], [X.T, cp.diag(delta)]]) >> 0,
        cp.sum(w) <= 1,
        size <= 1,
    ]
    options = {
        "CLARABEL": {
            "time_limit": SECONDS_FOR_A_PEER,
            "tol_gap_abs": 1e-10,
            "tol_gap_rel": 1e-10,
            "tol_feas": 1e-10,
        },
        "SCS": {"time_limit_secs": SECONDS_FOR_A_PEER, "eps_abs": 1e-9, "eps_rel": 1e-9},
    }[solver]
    problem = cp.Problem(cp.Maximize(cp.trace(X)), constraints)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            problem.solve(solver=solver, **options)
    except cp.error.SolverError:
        return float("nan")
    return float("nan") if problem.value is None else float(problem.value)


def columns() -> None:
    """± columns, beside the semidefinite solvers where they can be expected to finish."""
    peers = ["CLARABEL", "SCS"] if find_spec("cvxpy") else []
    print("\nSmallest ellipsoid around ± columns (CPU seconds; peers as multiples of ours)")
    around_columns(np.eye(2))
    for name, matrix, p, tol in column_sets():
        result, seconds = timed(lambda m=matrix, p=p, tol=tol: around_columns(m, p, tol))
        line = f"  {name:<22}p = {p:<5g}{seconds:8.3f} s   gap {result.gap:.0e}"
        if max(matrix.shape) <= LARGEST_FOR_A_PEER:
            for peer in peers:
                value, taken = timed(lambda m=matrix, p=p, s=peer: semidefinite(m, p, s))
                error = abs(value / result.value - 1)
                line += f"   {peer.lower()} {taken / seconds:7.0f}× (off by {error:.0e})"
        print(line, flush=True)


def other_bodies() -> None:
    """Bodies that a semidefinite program does not take as they are."""
    rng = np.random.default_rng(1)
    points, far = rng.standard_normal((10, 10_000)), rng.standard_normal((10, 100_000))
    works: dict[str, Callable[[], Any]] = {
        "free shift, 5×20,000": lambda: around_shifted(points[:5].repeat(2, axis=1)),
        "differences of 10,000 points in R^10": lambda: around_differences(points),
        "differences of 100,000 points in R^10": lambda: around_differences(far),
    }
    print("\nOther bodies, p = 2")
    for name, work in works.items():
        result, seconds = timed(work)
        print(f"  {name:<40}{seconds:8.3f} s   gap {result.gap:.0e}", flush=True)


def main() -> None:
    columns()
    other_bodies()


if __name__ == "__main__":
    main()
