"""Errors and costs without a trusted curator, beside those with one.

Every protocol is run as it is: devices, shuffler and server exchange bytes, and the error is the
ℓ₂ distance to the empirical mean. Every trial has new noise, all trials the same records.

    python -m benchmarks.protocols [--quick] [--write]

The last writes benchmarks/results/protocols.md.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import muhat as mh
from benchmarks.pages import fenced, shown, versions
from muhat import protocols
from muhat.privacy import Privacy
from muhat.protocols import Protocol
from muhat.studies.samples import SHAPES

RESULTS = Path(__file__).parent / "results" / "protocols.md"
PURE = mh.PureDP(epsilon=1.0)
APPROX = mh.ApproxDP(epsilon=1.0, delta=1e-6)
CONCENTRATED = mh.ZCDP(rho=0.5)


@dataclass(frozen=True)
class Way:
    """One way to a mean: who is trusted, with which promise."""

    name: str
    privacy: Privacy
    protocol: Callable[..., Protocol]
    options: dict[str, Any]


WAYS = (
    Way("local, pure", PURE, protocols.local_mean, {}),
    Way("local, 0.5-zCDP", CONCENTRATED, protocols.local_mean, {}),
    Way("shuffle, one message", APPROX, protocols.shuffle_mean, {"most_bytes": 40}),
    Way("shuffle, shares", APPROX, protocols.shuffle_mean, {}),
)

KNOWN_HEADER = (
    f"{'d':>4} {'n':>7}  {'way':<21} {'promise':<18} {'bytes':>6} {'messages':>8} "
    f"{'stated':>9} {'measured':>9} {'±':>5} {'curator':>9} {'times':>6} {'µs a user':>9}"
)


def main(quick: bool = True, write: bool = False) -> None:
    """Print the tables, and write them if asked to."""
    curated = "means without a trusted curator: records in a ball of radius 1"
    lines = shown(curated, KNOWN_HEADER, known_domain(quick))
    anywhere = f"records of unknown location, magnitude {MAGNITUDE:g}"
    places = shown(anywhere, UNKNOWN_HEADER, unknown_location(quick))
    crowds = shown(f"a crowd: records of {CROWD_DIM} numbers", CROWD_HEADER, crowd(quick))
    if write:
        _write(lines, places, crowds)


QUICK = ((8, 2000, 10),)
FULL = ((1, 10_000, 200), (8, 10_000, 40), (32, 10_000, 20))
"""Dimension, number of people, trials."""


def known_domain(quick: bool) -> Iterator[str]:
    """Records in the unit ball: what is stated, measured, and what a curator would reach."""
    for dim, n, trials in QUICK if quick else FULL:
        ball = mh.Ball(1.0, dim=dim)
        people = np.random.default_rng(dim).normal(0.3, 0.3, (n, dim)) / math.sqrt(dim)
        people /= np.maximum(np.linalg.norm(people, axis=1), 1)[:, None]
        for way in WAYS:
            made = way.protocol(domain=ball, n=n, privacy=way.privacy, **way.options)
            curator = mh.plan_mean(domain=ball, n=n, privacy=way.privacy).expected_error
            seen = measure(made, people, trials)
            stated = made.randomizer.expected_error(n)
            yield (
                f"{dim:>4} {n:>7}  {way.name:<21} {way.privacy.describe():<18} "
                f"{made.bytes_per_user:>6} {made.messages_per_user:>8} {stated:>9.2g} "
                f"{seen.error:>9.2g} {seen.uncertainty:>5.0%} {curator:>9.2g} "
                f"{stated / curator:>6.3g} {seen.cost:>9.3g}"
            )


MAGNITUDE = 100.0
UNKNOWN_HEADER = (
    f"{'shape':<15} {'d':>4} {'n':>7}  {'way':<21} {'promise':<14} {'rounds':>6} {'bytes':>6} "
    f"{'measured':>9} {'±':>5} {'curator':>9} {'±':>5} {'times':>6} {'µs a user':>9}"
)
UNKNOWN_QUICK = (("normal + 10", 2, 20_000, 2),)
UNKNOWN_FULL = (
    ("normal + 10", 1, 20_000, 20),
    ("normal + 10", 8, 20_000, 15),
    ("lognormal", 8, 20_000, 15),
)
LOCAL_TIMES, CURATOR_TIMES = 5, 10
"""Devices of the local model are quick, and their errors vary more: so many more trials. A curator
is quicker still, and stands beside all."""

PLACES = (
    Way("local chain", PURE, protocols.local_mean, {}),
    Way("local, three rounds", PURE, protocols.local_mean, {"mechanism": "local-three-rounds"}),
    Way("shuffle chain", APPROX, protocols.shuffle_mean, {}),
)


def unknown_location(quick: bool) -> Iterator[str]:
    """Records in Reals: what is measured, beside a curator's chain with the same promise."""
    for name, dim, n, trials in UNKNOWN_QUICK if quick else UNKNOWN_FULL:
        reals = mh.Reals(dim, MAGNITUDE)
        people = SHAPES[name].draw(np.random.default_rng(dim), n, dim)
        curators: dict[Privacy, Seen] = {}
        for way in PLACES:
            made = way.protocol(domain=reals, n=n, privacy=way.privacy, **way.options)
            often = trials * (1 if made.model == "shuffle" else LOCAL_TIMES)
            if way.privacy not in curators:
                held = partial(mh.mean, people, domain=reals, privacy=way.privacy)
                curators[way.privacy] = repeated(held, people, CURATOR_TIMES * trials)
            curator = curators[way.privacy]
            rounds: list[Protocol] = []
            protocols.simulate(made, people, watch=rounds.append)
            seen = measure(made, people, often)
            bytes_sent = max(one.bytes_per_user for one in rounds)
            if made.model == "shuffle":
                bytes_sent = sum(one.bytes_per_user for one in rounds)
            yield (
                f"{name:<15} {dim:>4} {n:>7}  {way.name:<21} {way.privacy.describe():<14} "
                f"{len(rounds):>6} {bytes_sent:>6} {seen.error:>9.2g} {seen.uncertainty:>5.0%} "
                f"{curator.error:>9.2g} {curator.uncertainty:>5.0%} "
                f"{seen.error / curator.error:>6.3g} {seen.cost:>9.3g}"
            )


CROWD_DIM = 8
CROWD_HEADER = f"{'people':>7}  {'way':<36} {'rounds':>6} {'CPU s':>7} {'wall s':>7}"


def crowd(quick: bool) -> Iterator[str]:
    """What it takes to simulate every way with many people, once."""
    n = 10_000 if quick else 100_000
    people = SHAPES["normal + 10"].draw(np.random.default_rng(0), n, CROWD_DIM)
    ball = mh.Ball(100.0, dim=CROWD_DIM)
    for place, ways in ((ball, WAYS), (mh.Reals(CROWD_DIM, MAGNITUDE), PLACES)):
        for way in ways:
            made = way.protocol(domain=place, n=n, privacy=way.privacy, **way.options)
            rounds: list[Protocol] = []
            wall, cpu = time.perf_counter(), time.process_time()
            protocols.simulate(made, people, watch=rounds.append)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            name = f"{way.name}, {way.privacy.describe()}"
            yield f"{n:>7}  {name:<36} {len(rounds):>6} {cpu:>7.1f} {wall:>7.1f}"


@dataclass(frozen=True)
class Seen:
    """Root mean square error, its relative standard error, and CPU µs a user."""

    error: float
    uncertainty: float
    cost: float


def measure(protocol: Protocol, people: NDArray[np.float64], trials: int) -> Seen:
    """Run a protocol some times over the same people."""
    return repeated(partial(protocols.simulate, protocol, people), people, trials)


def repeated(released: Callable[[], Any], people: NDArray[np.float64], trials: int) -> Seen:
    """Release the mean of the same people some times."""
    truth = people.mean(axis=0)
    start = time.process_time()
    squares = np.array([np.sum((released().value - truth) ** 2) for _ in range(trials)])
    cost = (time.process_time() - start) / trials / len(people) * 1e6
    relative = squares.std() / math.sqrt(trials) / squares.mean() / 2
    return Seen(math.sqrt(squares.mean()), float(relative), cost)


ABOUT = """\
Errors are ℓ₂ distances to the mean of the records, root mean square. `stated` is known before
anybody answers, for the worst records of the domain; `measured` is over trials with new noise and
the same records, with its relative standard error. `curator` is what muhat's own mean reaches with
the same promise if somebody may hold the records, and `times` is stated beside it. `bytes` and
`messages` are what a device sends; CPU time is of device, shuffler and server together.
"""


ABOUT_PLACES = f"""\
Only a magnitude of {MAGNITUDE:g} is public. `curator` is muhat's chain with all records in one
place, measured too, once for each promise. In the local model a person is asked in one of the
rounds, in the shuffle model in all of them; `bytes` are what a person sends at most.
"""


ABOUT_CROWD = """\
What it takes to simulate devices, shuffler and server once, on one core.
"""


def _write(known: list[str], places: list[str], crowds: list[str]) -> None:
    parts = [
        "# Means without a trusted curator\n",
        f"Made by `python -m benchmarks.protocols --write` with {versions()}.\n",
        ABOUT,
        "## Records in a ball of radius 1\n",
        fenced(known),
        "## Records of unknown location\n",
        ABOUT_PLACES,
        fenced(places),
        f"## A crowd: records of {CROWD_DIM} numbers\n",
        ABOUT_CROWD,
        fenced(crowds),
    ]
    RESULTS.write_text("\n".join(parts))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    main(chosen.quick, chosen.write)
