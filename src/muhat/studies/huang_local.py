"""Huang, Liang and Yi, Figures 10 to 12: means in the local model, error over d, ε and R.

The paper has the places on its axes and the mean in pictures only; those here are ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.random import Generator, default_rng

from muhat._arrays import Floats
from muhat.domains import Ball, Reals
from muhat.privacy import ZCDP, Privacy, PureDP
from muhat.privacy.conversions import zcdp_epsilon
from muhat.protocols import Protocol, local_mean, simulate
from muhat.release.release import Release
from muhat.studies.gaboardi import composed, divided, known_var, unk_var
from muhat.studies.huang_local_shown import (
    BALL,
    CHAIN,
    CLAIM,
    DIVIDED,
    KNOWN,
    MENDED,
    NAMES,
    NOISE,
    PLAIN,
    PRINTED,
    UNKNOWN,
    panels,
    verdict,
)
from muhat.studies.huang_trials import PAPER, TRIALS, rms, trimmed
from muhat.studies.study import Progress, Row, Settings, Study, tracked

Run = Callable[[Floats, Generator], Floats]

DELTA = 1e-9
"""Of the paper, everywhere."""

FAILURE = 0.05
"""The probability with which a record may be longer than everybody is told."""


@dataclass(frozen=True)
class Cell:
    """A place of the figures. `bound` is R/√d, within which every coordinate of μ is known."""

    n: int
    dim: int
    epsilon: float
    bound: float

    @property
    def magnitude(self) -> float:
        """No coordinate of a record is larger, but for bad luck."""
        return self.bound + math.sqrt(2 * math.log(2 * self.n * self.dim / FAILURE))

    @property
    def radius(self) -> float:
        """No record is longer, but for bad luck."""
        tail = math.sqrt(self.dim) + math.sqrt(2 * math.log(self.n / FAILURE))
        return self.bound * math.sqrt(self.dim) + tail


def cells(settings: Settings) -> Iterator[Cell]:
    """Figure 10 over d, Figure 11 over ε, Figure 12 over R: where they meet there is one cell."""
    n, dim = settings["n"], settings["dim"]
    epsilon, bound = settings["epsilon"], settings["bound"]
    places = [(d, epsilon, bound) for d in settings["dims"]]
    places += [(dim, each, bound) for each in settings["epsilons"]]
    places += [(dim, epsilon, each) for each in settings["bounds"]]
    return (Cell(n, *place) for place in dict.fromkeys(places))


def measure(settings: Settings, progress: Progress) -> list[Row]:
    """Every estimator in every cell, on the same records in the same trial."""
    found: dict[tuple[Cell, str], list[Floats]] = {}
    runs = settings["trials"]
    turns = [(cell, trial) for cell in cells(settings) for trial in range(max(runs.values()))]
    for cell, trial in tracked(turns, progress):
        key = [settings["seed"], cell.n, cell.dim, trial]
        mean = np.full(cell.dim, settings["mean"])
        rows = default_rng(key).standard_normal((cell.n, cell.dim)) + mean
        for number, name in enumerate(NAMES):
            if trial < runs[name]:
                value = estimator(name, cell)(rows, default_rng([*key, 1, number]))
                misses = np.linalg.norm([value - mean, value - rows.mean(axis=0)], axis=1)
                found.setdefault((cell, name), []).append(misses)
    return [_row(cell, name, np.array(misses)) for (cell, name), misses in found.items()]


def _row(cell: Cell, name: str, misses: Floats) -> Row:
    whole, private = misses.T
    return {
        "cell": f"d {cell.dim}, ε {cell.epsilon:g}, R/√d {cell.bound:g}",
        "n": cell.n,
        "d": cell.dim,
        "epsilon": cell.epsilon,
        "bound": cell.bound,
        "estimator": name,
        "trials": len(misses),
        "error": trimmed(whole),
        "rms": rms(whole),
        "private_rms": rms(private),
    }


def estimator(name: str, cell: Cell) -> Run:
    """The estimator of this name, with the public inputs of the cell."""
    epsilon, bound = cell.epsilon, cell.bound
    if name == PLAIN:
        return lambda rows, generator: np.asarray(rows.mean(axis=0))
    if name == DIVIDED:
        return lambda rows, generator: divided(rows, epsilon, bound, known_var, generator)
    if name in (KNOWN, UNKNOWN):
        column = known_var if name == KNOWN else unk_var
        return lambda rows, generator: composed(rows, epsilon, DELTA, bound, column, generator)

    def run(rows: Floats, generator: Generator) -> Floats:
        released = simulate(protocol(name, cell), rows)
        assert isinstance(released, Release)
        return np.asarray(released.value)

    return run


def protocol(name: str, cell: Cell) -> Protocol:
    """The first round of a protocol of muhat's, whose messages have its exact noise."""
    promise = promise_of(name, cell.epsilon)
    if name == BALL:
        return local_mean(domain=Ball(cell.radius, dim=cell.dim), n=cell.n, privacy=promise)
    everywhere = Reals(cell.dim, cell.magnitude)
    kind = None if name == CHAIN else "local-three-rounds"
    return local_mean(
        domain=everywhere, n=cell.n, privacy=promise, mechanism=kind, faithful=name == PRINTED
    )


def promise_of(name: str, epsilon: float) -> Privacy:
    """Pure ε, which is more than (ε, δ); the paper's rounds have the ρ that implies (ε, δ)."""
    if name in (CHAIN, BALL, MENDED):
        return PureDP(epsilon=epsilon)
    return ZCDP(rho=largest_rho(epsilon))


@lru_cache(maxsize=64)
def largest_rho(epsilon: float) -> float:
    """The largest ρ for which ρ-zCDP is known to imply (ε, δ) with the paper's δ.

    >>> f"{largest_rho(1.0):.4f}"
    '0.0150'
    """
    low, high = 0.0, epsilon
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if zcdp_epsilon(middle, DELTA) <= epsilon else (low, middle)
    return low


COMMON = {"seed": 0, "n": 100_000, "dim": 8, "epsilon": 1.0, "bound": 20.0, "mean": 4.0}
STUDY = Study(
    name="huang-local",
    title="Means in the local model, over d, ε and R",
    paper=PAPER,
    claim=CLAIM,
    noise=NOISE,
    settings={
        "quick": {
            **COMMON,
            "trials": {**dict.fromkeys(NAMES, 20), CHAIN: 1, MENDED: 1, BALL: 1, PRINTED: 2},
            "dims": (4, 8, 16),
            "epsilons": (0.5, 1.0, 2.0),
            "bounds": (20.0, 1000.0),
        },
        "full": {
            **COMMON,
            "trials": dict.fromkeys(NAMES, TRIALS),
            "dims": (1, 2, 4, 8, 16, 32),
            "epsilons": (0.25, 0.5, 1.0, 2.0, 4.0),
            "bounds": (5.0, 10.0, 20.0, 50.0, 200.0, 1000.0),
        },
    },
    measure=measure,
    panels=panels,
    verdict=verdict,
)
