"""What a release costs that does not grow with the records: plan, noise, account, messages."""

from __future__ import annotations

import math
import pickle
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import muhat as mh
from muhat.data import exact_sums, open_source
from muhat.data.base import paced
from muhat.data.engine import Accumulator
from muhat.data.states import joined, packed, unpacked
from muhat.domains.lattice import Lattice

Floats = NDArray[np.float64]
PRIVACY = mh.ZCDP(rho=0.5)
REPEATS = 3

DOMAIN_HEADER = (
    f"{'domain':<22} {'d':>6} {'plan s':>8} {'release s':>10} {'lattice B':>11} {'message B':>10} "
    f"{'µs a record':>12}"
)


def domain_lines(quick: bool) -> Iterator[str]:
    """Plan, lattice and message of some domains, and what a record costs in memory, one thread."""
    sides = (16, 64) if quick else (64, 256, 1024)
    tensors = (8, 16) if quick else (16, 32, 64)
    wide = 256 if quick else 4096
    yield _domain("ball", wide, lambda dim: mh.Ball(1.0, dim))
    yield _domain("box", wide, lambda dim: mh.Box([0.0] * dim, [1.0] * dim))
    for side in sides:
        yield _domain("ellipsoid", side, lambda dim: mh.Ellipsoid(_matrix(dim)))
    for side in tensors:
        yield _domain("second moments", side, lambda dim: mh.MomentTensor(order=2, dim=dim))


def _domain(name: str, dim: int, make: Callable[[int], mh.Domain]) -> str:
    rows = max(1 << 10, (1 << 20) // dim**2)
    records = np.random.default_rng(dim).normal(0, 1 / math.sqrt(dim), (rows, dim))
    plans, releases, passes = [], [], []
    for _ in range(REPEATS):
        start = time.process_time()
        plan = mh.plan_mean(domain=make(dim), n=rows, privacy=PRIVACY)
        plans.append(time.process_time() - start)
        lattice = plan.recipe.query.lattice
        assert lattice is not None
        passes.append(_pass_seconds(lattice, records))
        start = time.process_time()
        plan.release(records)
        releases.append(time.process_time() - start - passes[-1])
    message = len(packed(Accumulator(lattice).state()))
    return (
        f"{name:<22} {dim:>6} {min(plans):>8.3f} {max(min(releases), 0):>10.3f} "
        f"{len(pickle.dumps(lattice)):>11,} {message:>10,} {min(passes) / rows * 1e6:>12.3g}"
    )


def _pass_seconds(lattice: Lattice, records: Floats) -> float:
    source = open_source(records)
    start = time.process_time()
    with paced(show_progress=False, threads=1):
        exact_sums(source, lattice)
    return time.process_time() - start


def _matrix(dim: int) -> Floats:
    """Positive definite, and not diagonal."""
    half = np.random.default_rng(dim).normal(size=(dim, 2 * dim))
    return np.asarray(half @ half.T / dim)


MESSAGE_HEADER = f"{'message of a partition':<34} {'bytes':>12} {'ms to add up':>13}"


def message_lines(quick: bool) -> Iterator[str]:
    """What packing a partition's sums, unpacking and adding them costs."""
    groups = 1_000 if quick else 100_000
    for name, numbers in (
        ("mean of 4 columns", 4 + 2),
        ("mean of 4,096 columns", 4096 + 2),
        (f"4 columns in {groups:,} groups", groups * 5 + 1),
    ):
        state = joined([1 << 60] * numbers)
        total, taken = state.copy(), []
        for _ in range(REPEATS):
            start = time.process_time()
            total += unpacked(packed(state))
            taken.append(time.process_time() - start)
        yield f"{name:<34} {len(packed(state)):>12,} {min(taken) * 1e3:>13.3g}"


CHARGE_HEADER = f"{'charges before':>14} {'ms of CPU a charge':>19} {'ms in all':>10}"


def charge_lines(quick: bool) -> Iterator[str]:
    """The account: what one more charge costs as it grows longer."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = mh.Ledger.create(
            Path(folder) / "budget.db", budget=mh.ZCDP(rho=1e9), neighbors="substitute"
        )
        for before in (0, 200) if quick else (0, 1_000):
            while ledger.head.count < before:
                _charge(ledger)
            walls, cpus = [], []
            for _ in range(50):
                wall, cpu = time.perf_counter(), time.process_time()
                _charge(ledger)
                walls.append(time.perf_counter() - wall)
                cpus.append(time.process_time() - cpu)
            yield f"{before:>14,} {np.median(cpus) * 1e3:>19.2f} {np.median(walls) * 1e3:>10.2f}"


def _charge(ledger: mh.Ledger) -> None:
    ledger.charge(PRIVACY, neighbors="substitute", plan_digest="0" * 64)
