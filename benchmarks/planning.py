"""What planning and a whole release cost beside numpy, in one run.

CPU time, the median of five interleaved runs; nothing is asserted here.
Run with `python -m benchmarks.planning`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable

import numpy as np

import muhat as mh
from benchmarks.data import cpu_seconds

NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"


def main() -> None:
    """Importing, planning in many dimensions, releasing, and the errors of pure mechanisms."""
    imports()
    plans()
    solving()
    pure_errors()


def imports() -> None:
    """Interpreters that import numpy, and muhat, and plan a first mean."""
    planning = (
        "import muhat as mh; "
        "mh.plan_mean(domain=mh.Box([0, 0], [1, 1]), n=1000, privacy=mh.ZCDP(rho=0.1))"
    )

    def seconds(before: str, work: str, folder: str) -> float:
        script = f"{before}import time; t = time.process_time(); {work}"
        script += "; print(time.process_time() - t)"
        # Compiled modules are kept, as after an installation.
        kept = {name: value for name, value in os.environ.items() if name != NO_BYTECODE}
        kept["PYTHONPYCACHEPREFIX"] = folder
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, env=kept, check=True
        )
        return float(done.stdout)

    works = (("", "import numpy"), ("", "import muhat"), ("import numpy; ", planning))
    with tempfile.TemporaryDirectory() as folder:
        runs = [[seconds(*work, folder) for work in works] for _ in range(6)][1:]
    numpy_cost, muhat_cost, first_plan = np.median(np.array(runs), axis=0)
    print(f"\nimport muhat: {muhat_cost / numpy_cost:.2f}× import numpy (target ≤ 2×)")
    print(
        f"and a first plan, after numpy: {first_plan / numpy_cost:.2f}× import numpy (target ≤ 3×)"
    )


def plans() -> None:
    """A plan and a release of a small table, against the mean of the same table."""
    print("\nplan and release of 1,000 rows (CPU ms)")
    print(f"  {'columns':>8}{'np.mean':>10}{'plan':>10}{'release':>10}")
    for dim in (1, 10, 100, 1000, 5000):
        rows = np.random.default_rng(0).standard_normal((1000, dim))
        ball = mh.Ball(radius=float(np.sqrt(dim)), dim=dim)
        plan = mh.plan_mean(domain=ball, n=1000, privacy=mh.ZCDP(rho=0.1))

        def planning(ball: mh.Ball = ball) -> object:
            return mh.plan_mean(domain=ball, n=1000, privacy=mh.ZCDP(rho=0.1)).certificate

        works = (lambda r=rows: r.mean(axis=0), planning, lambda p=plan, r=rows: p.release(r))
        times = cpu_seconds(*works)
        print(f"  {dim:>8}" + "".join(f"{1e3 * taken:>10.2f}" for taken in times))


def solving() -> None:
    """What takes longest, as multiples of an eigendecomposition of size 512 in the same run."""
    rng = np.random.default_rng(1)
    square = rng.standard_normal((512, 512))
    few, many = (mh.Points(rng.standard_normal(shape)) for shape in ((101, 100), (400, 200)))
    prefix, promise = mh.workloads.prefix, mh.ZCDP(rho=0.1)
    sums = mh.plan_queries(
        prefix(12), p=float("inf"), n=1000, neighbors="substitute", privacy=promise
    )
    counts = rng.multinomial(1000, np.ones(12) / 12)
    wide = 100_000
    box = mh.Box([0] * wide, [1] * wide)
    plan = mh.plan_mean(domain=box, n=100, privacy=promise)
    rows = rng.random((100, wide))
    release = plan.release(rows)
    works: dict[str, Callable[[], object]] = {
        "differences of 101 points in R^100": lambda: around(few),
        "differences of 400 points in R^200": lambda: around(many),
        "1024 prefix sums": lambda: mh.factorize(prefix(1024)),
        "1024 prefix sums, substitution": lambda: mh.factorize(prefix(1024), 2, "substitute"),
        "release of 12 prefix sums, p = inf, substitution": lambda: sums.release(counts),
        "plan of the mean of 100,000 columns": lambda: mh.plan_mean(
            domain=box, n=100, privacy=promise
        ),
        "release of it, 100 rows": lambda: plan.release(rows),
        "printing that": lambda: str(release),
    }

    def around(points: mh.Points) -> object:
        # A domain is solved for once: another one of the same points is asked.
        return mh.smallest_ellipsoid(mh.Points(points.points), body="difference")

    def unit() -> object:
        return np.linalg.eigh(square + square.T)

    print("\nplanning (CPU seconds; multiples of an eigendecomposition of size 512)")
    for name, work in works.items():
        reference, taken = cpu_seconds(unit, work)
        print(f"  {name:<50}{taken:>9.4f} s{taken / reference:>9.2f}×", flush=True)


def pure_errors() -> None:
    """The expected errors of the pure mechanisms on boxes: which one wins depends on the sides."""
    print("\npure privacy, error of the sum at ε = 1 (ratio to the lower bound for some dataset)")
    for name, box in {
        "16 equal sides": mh.Box(np.zeros(16), np.ones(16)),
        "sides 200000, 74": mh.Box([0, 0], [200_000, 74]),
        "sides 1 … 1000": mh.Box(np.zeros(8), np.logspace(0, 3, 8)),
    }.items():
        plan = mh.plan_sum(domain=box, n=1000, privacy=mh.PureDP(epsilon=1))
        errors = {plan.mechanism: plan.expected_error, **dict(plan.alternatives)}
        bound = plan.expected_error / plan.certificate.ratio
        shown = ", ".join(
            f"{key} {error:.4g} ({error / bound:.2f})" for key, error in errors.items()
        )
        print(f"  {name:<18}{shown}")


if __name__ == "__main__":
    main()
