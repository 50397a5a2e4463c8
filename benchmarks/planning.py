"""What planning, a small release and running sums cost, in one run.

    python -m benchmarks.planning [--write]

CPU time, the median of five runs in turns; nothing is asserted here. `--write` writes
benchmarks/results/planning.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import muhat as mh
from benchmarks.data import REPEATS, cpu_seconds
from benchmarks.pages import fenced, shown, versions

NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
PAGE = Path(__file__).parent / "results" / "planning.md"
PUSHES, RELEASES = 50_000, 100

PREFIXES, RELEASE = "1024 prefix sums", "release of 12 prefix sums, p = ∞, substitution"
FEW, MANY = "differences of 101 points in R^100", "differences of 400 points in R^200"
MOST = {FEW: 0.5, MANY: 5.0, PREFIXES: 2.0, f"{PREFIXES}, substitution": 4.0, RELEASE: 0.001}
"""CPU seconds that these may take."""

MOST_PUSH = 2.0
"""Microseconds of a push with few buffers."""


def main(written: bool = False) -> None:
    """Importing, planning in many dimensions, releasing, and the errors of pure mechanisms."""
    header = f"{'':<52}{'times':>10}{'at most':>9}"
    first = shown("importing and a first plan, CPU time ÷ that of import numpy", header, imports())
    header = f"{'columns':>8}{'np.mean':>10}{'plan':>10}{'release':>10}"
    small = shown("plan and release of 1,000 rows, CPU ms", header, plans())
    header = f"{'':<52}{'CPU s':>10}{'at most':>9}{'÷ eigh of 512':>15}"
    solved = shown("what takes longest", header, solving())
    header = f"{'a push, zCDP, 2^20 events':<52}{'µs':>10}{'at most':>9}{'one of many':>15}"
    pushed = shown("running sums", header, pushes())
    pure_errors()
    if written:
        PAGE.write_text(
            "# What planning, a small release and running sums cost\n\n"
            f"Made by `python -m benchmarks.planning --write` with {versions()}, one thread; the "
            f"median of {REPEATS} in turns.\n\n## Importing and a first plan\n\nAs multiples of "
            f"the CPU time of `import numpy`, each in an interpreter of its own; the plan after "
            f"numpy.\n\n{fenced(first)}\n## 1,000 rows in a ball\n\nCPU milliseconds.\n\n"
            f"{fenced(small)}\n## What takes longest\n\nCPU seconds, and multiples of an "
            "eigendecomposition of size 512 in the same run.\n\n"
            f"{fenced(solved)}\n## Running sums\n\nMicroseconds of CPU time of a `push`, and of "
            f"an event in `push_many`, {PUSHES:,} at a time.\n\n{fenced(pushed)}"
        )


def imports() -> Iterator[str]:
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
    yield f"{'import muhat':<52}{muhat_cost / numpy_cost:>10.2f}{2:>9}"
    yield f"{'a first plan of a mean':<52}{first_plan / numpy_cost:>10.2f}{3:>9}"


def plans() -> Iterator[str]:
    """A plan and a release of a small table, against the mean of the same table."""
    for dim in (1, 10, 100, 1000, 5000):
        rows = np.random.default_rng(0).standard_normal((1000, dim))
        ball = mh.Ball(radius=float(np.sqrt(dim)), dim=dim)
        plan = mh.plan_mean(domain=ball, n=1000, privacy=mh.ZCDP(rho=0.1))

        def planning(ball: mh.Ball = ball) -> object:
            return mh.plan_mean(domain=ball, n=1000, privacy=mh.ZCDP(rho=0.1)).certificate

        works = (lambda r=rows: r.mean(axis=0), planning, lambda p=plan, r=rows: p.release(r))
        times = cpu_seconds(*works)
        yield f"{dim:>8}" + "".join(f"{1e3 * taken:>10.2f}" for taken in times)


def solving() -> Iterator[str]:
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
        FEW: lambda: around(few),
        MANY: lambda: around(many),
        PREFIXES: lambda: mh.factorize(prefix(1024)),
        f"{PREFIXES}, substitution": lambda: mh.factorize(prefix(1024), 2, "substitute"),
        RELEASE: lambda: [sums.release(counts) for _ in range(RELEASES)],
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

    for name, work in works.items():
        reference, taken = cpu_seconds(unit, work)
        if name == RELEASE:
            taken /= RELEASES
        most = MOST.get(name, "–")
        yield f"{name:<52}{taken:>10.4f}{most:>9}{taken / reference:>15.2f}"


def pushes() -> Iterator[str]:
    """A push to running sums, and one of many at a time."""
    for memory, most in (("few-buffers", MOST_PUSH), ("full", "–")):
        counter = mh.stream.prefix_counter(horizon=1 << 20, privacy=mh.ZCDP(rho=0.1), memory=memory)

        def one_by_one(counter: mh.stream.PrefixCounter[float] = counter) -> None:
            for _ in range(PUSHES):
                counter.push(0.7)

        def together(counter: mh.stream.PrefixCounter[float] = counter) -> object:
            return counter.push_many([0.7] * PUSHES)

        one, many = (1e6 * taken / PUSHES for taken in cpu_seconds(one_by_one, together))
        yield f"{memory:<52}{one:>10.2f}{most:>9}{many:>15.2f}"


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
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    main(parser.parse_args().write)
