"""Is it the least noise? muhat's errors beside the best known mechanisms' and what is possible.

    python -m benchmarks.least [--write | --only ranks]

`--write` writes benchmarks/results/least.md, `--only` shows tasks of one kind. Everything is
computed from plans and formulas: no release is drawn, and nothing is asserted.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import muhat as mh
from benchmarks.least_known import (
    Known,
    of_balls,
    of_bodies,
    of_boxes,
    of_categories,
    of_cells,
    of_devices,
    of_diamonds,
    of_gaps,
    of_prefixes,
    of_quantiles,
    of_replaced,
    of_secret,
    of_streams,
    of_tables,
)
from benchmarks.pages import fenced, shown, versions
from muhat.domains import Domain
from muhat.planning.plan import Plan
from muhat.privacy import Privacy
from muhat.protocols import local_mean
from muhat.release.certificate import Certificate

RESULTS = Path(__file__).parent / "results" / "least.md"
N = 1000
CELLS = 1 << 20
"""Values that a quantile may have."""
MANY = 100_000
"""Records where values may be missing."""

STREAMS: dict[str, Any] = {"stream": {}, "window": {"window": 7}, "decay": {"decay": 0.9}}
"""Sums of all events so far, of the last 7, and of events that fade."""

ROOT2 = math.sqrt(2.0)
BODIES: dict[str, tuple[Domain, tuple[float, float], list[float]]] = {
    "x⊗x 2": (mh.MomentTensor(2, 2), (math.inf, ROOT2), [10.0, 1.0, 1.0]),
    "x⊗x 3": (mh.MomentTensor(2, 3), (math.inf, ROOT2), [10.0] + [1.0] * 5),
    "x⊗x⊗x 2": (mh.MomentTensor(3, 2), (math.inf, 2.0), [10.0] + [1.0] * 3),
    "shares 4": (mh.Simplex(4), (2.0, ROOT2), [1.0] * 4),
    "shares 20": (mh.Simplex(20), (2.0, ROOT2), [10.0] + [1.0] * 19),
    "shares 60": (mh.Simplex(60), (2.0, ROOT2), [10.0] * 2 + [1.0] * 58),
    "hexagon 2": (mh.Zonotope([[1.0, 0.5, -0.5], [0.0, 0.8, 0.8]]), (5.2, 4.0), [1.0, 1.0]),
}
"""Bodies with their ℓ₁ diameter, where it is told, and ℓ₂ diameter, and the weights of errors."""

LOCAL: dict[str, Callable[[int], Domain]] = {
    "categories": lambda size: mh.Points(np.eye(size)),
    "devices": lambda d: mh.Ball(1, d),
}
"""What is collected without a curator: parts of so many categories, means of vectors."""

BEHIND = 1.01
"""A known mechanism has less error from here on."""

HEADER = (
    f"  {'task':<16}{'promise':<34}{'muhat':>12}{'known':>12}  {'of':<20}{'muhat/known':>11}"
    f"{'bound':>12}{'ratio':>10}  class"
)

ABOUT = """\
Root mean square ℓ₂ errors, known before data are read: means of {n} complete records with a public
n (records are replaced), counts and tables of counts with n secret (records are added or removed).
`gaps` are means of {many} records of which values may be missing, `secret n` is one of a secret
number of records, {n}, both at the worst mean.
`stream`, `window` and `decay` are sums of events released one by one: of all so far, of the last 7,
of events that count 0.9 times as much with every step.
`table` is a table of so many counts of records that are replaced, `points` the mean of records that
are one of so many unit vectors each.
`replaced` are prefixes, and products of them, of records that are replaced, their number public:
the noise is in proportion to 1/μ, and one promise stands for all.
`ranks` are rank errors, in records: of the quantile in the middle of 1, 3 or 9 of {n} records that
lie evenly on 2^20 values, without intervals, n public or `secret`; the bound is that of one.
`x⊗x` and `x⊗x⊗x` are moments of 2 and 3 columns in the unit ball, `shares` parts of so many; one
of their numbers, of 60 shares two, weighs ten times as much as the others, of 4 none. `hexagon` is
a zonotope.
`known` is the least error of the mechanisms named in benchmarks/least_known.py, by their formulas:
what OpenDP and diffprivlib offer for a number (Laplace, geometric, normal noise), the staircase
(Geng and Viswanath), Laplace noise cut at δ (Geng et al.), K-norm noise (Hardt and Talwar; of the
ℓ₁ ball, `diamond`, it is Laplace noise), the tree of partial sums and, as measured, HDMM's
strategies; for categories without a curator (parts of m of them, each of n devices telling about
its own) randomised response, subset selection (Wang et al., Ye and Barg) and unary encoding (Wang
et al.), where muhat is compared for pure and approximate promises; for `devices`, {n} people with a
vector of so many numbers in the unit ball each, a random half space (Duchi et al.) and noise on the
vector; for quantiles the exponential mechanism and noisy searches, each with its share of the
promise, recursion into halves (Kaplan et al., of records that are all different) and the joint
exponential mechanism (Gillenwater et al.). `bound` is the largest that the plan's certificate has,
`ratio` muhat's error beside it, and `class` of which mechanisms, on which datasets, it speaks.
"""


@dataclass(frozen=True)
class Task:
    """What is asked for, and what else is known to answer it."""

    name: str
    known: tuple[Known, ...]
    asked: tuple[Privacy, ...] = ()
    """The promises that are tried, all where it is empty."""

    def error(self, privacy: Privacy) -> tuple[float, Certificate | None]:
        """muhat's, and what it says of it."""
        kind, _, size = self.name.partition(" ")
        if kind == "secret":
            one = mh.Box([-1.0], [1.0])
            plan = mh.plan_mean(domain=one, n=None, privacy=privacy)
            found = plan.certificate_at(N)
            return found.error, found
        if kind == "ranks":
            return self.ranks(privacy)
        if kind not in LOCAL:
            plan = self.plan(privacy)
            return plan.expected_error or plan.certificate.error, plan.certificate
        protocol = local_mean(domain=LOCAL[kind](int(size)), n=N, privacy=privacy)
        randomizer = protocol.randomizer
        return randomizer.expected_error(N), protocol.estimator.certificate(randomizer, N)

    def ranks(self, privacy: Privacy) -> tuple[float, Certificate]:
        """The typical rank error of quantiles that have no interval, beside a bound for one."""
        _, many, *secret = self.name.split()
        n = None if secret else N
        q = [j / (int(many) + 1) for j in range(1, int(many) + 1)]
        plan = mh.plan_quantile(
            q, lower=1, upper=CELLS, privacy=privacy, n=n, missing="none", interval=False
        )
        error = float(plan.to_dict()["typical_rank_error"])
        relation = "add-remove" if secret else "substitute"
        bound = mh.bounds.rank_error(
            CELLS, privacy=privacy, n=n, confidence=None, neighbors=relation
        )
        return error, Certificate("typical rank error", math.inf, error, "bound", (bound,))

    def plan(self, privacy: Privacy) -> Plan:
        """muhat's plan."""
        kind, _, size = self.name.partition(" ")
        if kind == "count":
            return mh.plan_count(privacy=privacy)
        if kind == "histogram":
            return mh.plan_queries(mh.workloads.identity(int(size)), privacy=privacy)
        if kind == "table":
            return mh.plan_queries(
                mh.workloads.identity(int(size)), privacy=privacy, neighbors="substitute"
            )
        if kind == "prefix":
            return mh.plan_queries(mh.workloads.prefix(int(size)), privacy=privacy)
        if kind in STREAMS:
            return mh.stream.plan_prefix_counter(int(size), privacy, **STREAMS[kind])
        if kind == "replaced":
            axes = [mh.workloads.prefix(int(axis)) for axis in size.split("x")]
            workload = mh.workloads.kron(*axes)
            return mh.plan_queries(workload, privacy=privacy, neighbors="substitute")
        if self.name in BODIES:
            domain, _, weights = BODIES[self.name]
            return mh.plan_mean(
                domain=domain, n=N, privacy=privacy, weights=weights, population=False
            )
        d = int(size)
        if kind == "points":
            return mh.plan_mean(domain=mh.Points(np.eye(d)), n=N, privacy=privacy)
        if kind == "gaps":
            box = mh.Box([-1.0] * d, [1.0] * d)
            return mh.plan_mean(domain=box, n=MANY, privacy=privacy, missing="drop")
        if kind == "box":
            domain, missing = mh.Box([-1.0] * d, [1.0] * d), "none"
        else:
            domain, missing = (mh.Ball(1, d) if kind == "ball" else mh.LpBall(p=1, dim=d)), None
        return mh.plan_mean(domain=domain, n=N, privacy=privacy, missing=missing, population=False)


def tasks() -> Iterator[Task]:
    """Numbers, tables, means of boxes and balls, prefixes; categories without a curator."""
    yield Task("count", of_cells(1))
    for size in (10, 1000):
        yield Task(f"histogram {size}", of_cells(size))
    for size in (2, 10, 100):
        yield Task(f"table {size}", of_tables(size, 1))
    for size in (3, 10):
        yield Task(f"points {size}", of_tables(size, N))
    for d in (1, 2, 10, 100):
        yield Task(f"box {d}", of_boxes(d, N))
    for d in (1, 3):
        yield Task(f"gaps {d}", of_gaps(d, MANY))
    yield Task("secret n", of_secret(N))
    for d in (2, 4, 16, 64):
        yield Task(f"ball {d}", of_balls(d, N))
    for d in (2, 4, 16, 64):
        yield Task(f"diamond {d}", of_diamonds(d, N))
    for name, (_, diameters, weights) in BODIES.items():
        yield Task(name, of_bodies(*diameters, weights, N))
    for size in (64, 256, 1024):
        yield Task(f"prefix {size}", of_prefixes(size))
    for size in (64, 256, 1024):
        yield Task(f"stream {size}", of_streams(size, [1.0] * size))
    yield Task("window 256", of_streams(256, [1.0] * 7))
    yield Task("decay 256", of_streams(256, [0.9**k for k in range(256)]))
    for axes in ((256,), (1025,), (2048,), (4096,), (32, 32), (64, 64)):
        name = "x".join(map(str, axes))
        yield Task(f"replaced {name}", of_replaced(axes), asked=(mh.GDP(mu=1.0),))
    for many in (1, 3, 9):
        yield Task(f"ranks {many}", of_quantiles(many, secret=False))
        yield Task(f"ranks {many} secret", of_quantiles(many, secret=True))
    for size in (2, 5, 20, 100):
        yield Task(f"categories {size}", of_categories(size, N))
    for d in (1, 2, 8, 64):
        yield Task(f"devices {d}", of_devices(d, N))


def promises() -> Iterator[Privacy]:
    """From very private to hardly."""
    for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0, 8.0):
        yield mh.PureDP(epsilon=epsilon)
    for epsilon in (0.1, 1.0, 4.0, 8.0):
        for delta in (1e-2, 1e-6):
            yield mh.ApproxDP(epsilon=epsilon, delta=delta)
    for rho in (0.1, 0.5, 1.0):
        yield mh.ZCDP(rho=rho)
    for mu in (0.5, 1.0, 2.0):
        yield mh.GDP(mu=mu)


def main(write: bool = False, only: str = "") -> None:
    """The table, or what a kind of tasks has of it, and how many cells are behind."""
    kept = shown("the least noise", HEADER, lines(only))
    if write:
        made = f"Made by `python -m benchmarks.least --write` with {versions()}.\n"
        page = ["# The least noise\n", made, ABOUT.format(n=N, many=MANY), fenced(kept)]
        RESULTS.write_text("\n".join(page))


def lines(only: str = "") -> Iterator[str]:
    """One line a task and promise."""
    tally: Counter[str] = Counter()
    for task in (task for task in tasks() if task.name.startswith(only)):
        for privacy in task.asked or promises():
            best, name = min((each.error(privacy), each.name) for each in task.known)
            if math.isinf(best):
                continue
            error, certificate = task.error(privacy)
            behind = error / best
            tally["cells"] += 1
            tally["behind"] += behind > BEHIND
            text = f"  {task.name:<16}{privacy!s:<34}{error:12.5g}{best:12.5g}  {name:<20}"
            text += f"{behind:11.3f}"
            if certificate is not None and certificate.ratio is not None:
                bound = max(certificate.strongest(), key=lambda each: each.value or 0.0)
                tally["certified"] += 1
                tally["within 5 %"] += certificate.ratio <= 1.05
                text += f"{bound.value:12.5g}{certificate.ratio:10.3f}"
                text += f"  {bound.mechanisms}, {bound.datasets}"
            yield text + ("  behind" if behind > BEHIND else "")
    yield ""
    yield (
        f"  {tally['cells']} cells: a known mechanism has less error by more than 1 % in "
        f"{tally['behind']}; {tally['certified']} have a certificate, {tally['within 5 %']} of "
        "them within 5 %"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The least noise.")
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--write", action="store_true", help="write benchmarks/results")
    either.add_argument("--only", default="", help="the kind of tasks, as they are called")
    options = parser.parse_args()
    main(options.write, options.only)
