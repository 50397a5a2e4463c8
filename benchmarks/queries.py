"""Factorisations of linear queries: errors, proved gaps and CPU seconds beside their targets.

Errors are squared norms of the standard deviations at unit sensitivity, so exact numbers; the
references are the best known values. Where jax_privacy is installed (`pip install jax-privacy`)
its dense optimiser runs on the same workloads. Nothing is asserted.
Run with `python -m benchmarks.queries`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

import muhat as mh
from muhat.workloads import Workload, kron, marginals, matrix, parity, prefix, ranges

INF = float("inf")
ADULT = (100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2)
"""The sizes that ResidualPlanner's figures belong to."""


@dataclass(frozen=True)
class Row:
    """A workload, the norm, the best known squared error, and what is aimed at."""

    name: str
    workload: Workload
    reference: float | None
    target: str
    p: float = 2
    neighbors: str = "add-remove"
    tol: float = 1e-4
    peer: bool = False


def rows() -> Iterator[Row]:
    """The table of targets."""
    gaussian = np.random.default_rng(0).standard_normal((200, 500))
    yield Row("prefix 256", prefix(256), 1631.40304, "gap ≤ 1e-4, 0.2 s", peer=True)
    yield Row("prefix 1024", prefix(1024), 8944.329, "gap ≤ 1e-4, 6 s")
    yield Row("prefix 4096", prefix(4096), None, "1.037 of the optimum")
    yield Row("prefix 1,000,000", prefix(10**6), None, "1.022 of the optimum, FFT")
    yield Row("prefix 256", prefix(256), 6.4146510, "≤ 6.42, 1.5 s", p=INF, peer=True)
    yield Row("prefix 256", prefix(256), 102.0755107, "gap ≤ 1e-6, 1 s", p=4, tol=1e-6)
    yield Row("all ranges 256", ranges(256), 276929.308, "gap ≤ 1e-4, 0.06 s")
    yield Row("all ranges 1024", ranges(1024), 6484329.0, "gap ≤ 1e-4, 2.5 s")
    yield Row("prefix 64×64", kron(prefix(64), prefix(64)), 79637.6, "equal, 0.02 s")
    yield Row("ranges 64×64", kron(ranges(64), ranges(64)), 121.537e6, "equal, 0.02 s")
    yield Row("Gaussian 200×500", matrix(gaussian), None, "gap ≤ 1e-3, 0.7 s", tol=1e-3)
    yield Row("parity 8, 2", parity(8, 2), 784.0, "exactly m², ms", peer=True)
    yield Row(
        "prefix 256", prefix(256), None, "gap ≤ 1e-4 (hand-made 2546)", neighbors="substitute"
    )
    yield Row("prefix 256, tol 1e-6", prefix(256), 1631.40304, "", tol=1e-6)
    yield Row("all ranges 256", ranges(256), None, "", p=INF)
    yield Row("all ranges 128", ranges(128), None, "", neighbors="substitute")
    yield Row("prefix 64×64", kron(prefix(64), prefix(64)), None, "", neighbors="substitute")


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What the work returns, and its CPU time."""
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def table() -> None:
    """Every row: squared value, how far above the best known, proved gap, seconds."""
    print("\nLinear queries (squared error at unit sensitivity; CPU seconds, one BLAS thread)")
    print(f"  {'workload':<22}{'p':>4} {'squared error':>15}{'/ known':>11}{'gap':>9}{'s':>8}")
    mh.factorize(prefix(4))
    for row in rows():
        f, seconds = timed(
            lambda r=row: mh.factorize(r.workload, r.p, r.neighbors, r.tol)  # type: ignore[misc]
        )
        square = f.value**2
        known = "" if row.reference is None else f"{square / row.reference:11.6f}"
        relation = "  substitution" if row.neighbors == "substitute" else ""
        line = f"  {row.name:<22}{row.p:>4g} {square:>15.6g}{known:>11}{f.gap:>9.0e}{seconds:>8.3f}"
        print(line + f"   {row.target}{relation}", flush=True)
        if row.peer and find_spec("jax_privacy"):
            peer(row, square, seconds)


def peer(row: Row, square: float, seconds: float) -> None:
    """jax_privacy's dense optimiser on the same workload, as multiples of ours."""
    import jax
    import jax.numpy as jnp
    from jax_privacy.matrix_factorization import dense

    jax.config.update("jax_enable_x64", True)
    A = row.workload.dense()
    reduction = jnp.max if np.isinf(row.p) else jnp.mean
    work = lambda: np.asarray(  # noqa: E731
        dense.optimize(A.shape[1], A=jnp.asarray(A), reduction_fn=reduction)
    )
    C, taken = timed(work)
    C = C / np.linalg.norm(C, axis=0).max()
    variances = np.sum(np.linalg.solve(C.T, A.T) ** 2, axis=0)
    theirs = float(variances.max() if np.isinf(row.p) else variances.sum())
    print(f"    jax_privacy: {theirs / square:.4f}× the error, {taken / seconds:.0f}× the time")


def tables_of_marginals() -> None:
    """Errors of marginals, against ResidualPlanner's."""
    print("\nMarginals, 3-way (ResidualPlanner's value in brackets)")
    for name, shape, p, known in (
        ("Adult, RMSE", ADULT, 2.0, "10.5153 in 0.42 s"),
        ("Adult, max variance", ADULT, INF, "236.8"),
        ("Adult, p = 4", ADULT, 4.0, "not offered"),
        ("10^30 cells, RMSE", (10,) * 30, 2.0, "49.463 in 4.0 s"),
    ):
        W, build = timed(lambda s=shape: marginals(s, order=3))  # type: ignore[misc]
        f, seconds = timed(lambda w=W, p=p: mh.factorize(w, p))  # type: ignore[misc]
        error = f.value**2 if p == INF else f.value / W.shape[0] ** (1 / p)
        print(
            f"  {name:<22}{error:>10.4f} ({known}){f.gap:>9.0e}{seconds + build:>8.3f} s",
            flush=True,
        )


def main() -> None:
    table()
    tables_of_marginals()


if __name__ == "__main__":
    main()
