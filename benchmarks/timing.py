"""Whether the time that a device takes tells which record it has.

Devices are given the same few records over and over, in random order, and CPU time is compared
with that of one of them by Welch's t. The slowest tenth of the calls is left out: what interrupts
a device knows nothing of its record, and would drown what is looked for.

    python -m benchmarks.timing [--quick] [--write]

The last writes benchmarks/results/timing.md.
"""

from __future__ import annotations

import argparse
import gc
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import muhat as mh
from benchmarks.pages import fenced, versions
from muhat import protocols
from muhat.protocols import Protocol

RESULTS = Path(__file__).parent / "results" / "timing.md"

CALLS, QUICK_CALLS = 5000, 300
"""With each record."""

WARM_CALLS = 50
KEPT = 0.9
DIM = 3

Floats = NDArray[np.float64]

RECORDS = {
    "inside": [0.3, 0.2, 0.1],
    "again": [0.3, 0.2, 0.1],
    "edge": [1.0, 0.0, 0.0],
    "outside": [1e300, 5.0, -7.0],
    "missing": [math.nan] * DIM,
}
"""The first is what the others are compared with; the second is the same one."""

HEADER = f"{'device':<34} {'µs a call':>9} " + " ".join(f"{name:>9}" for name in list(RECORDS)[1:])


def devices() -> dict[str, Protocol]:
    """Every kind of randomizer, with records around the origin of R³ or on a line."""
    pure, mixed = mh.PureDP(epsilon=1.0), mh.ApproxDP(epsilon=1.0, delta=1e-6)
    ball, box = mh.Ball(1.0, dim=DIM), mh.Box([-1.0] * DIM, [1.0] * DIM)
    reals = mh.Reals(dim=DIM, magnitude=100.0)
    normal, n = mh.ZCDP(rho=0.5), 10_000
    local, shuffle = protocols.local_mean, protocols.shuffle_mean
    return {
        "cap, a ball": local(domain=ball, n=n, privacy=pure),
        "cap, a box": local(domain=box, n=n, privacy=pure),
        "gaussian, a ball": local(domain=ball, n=n, privacy=normal),
        "gaussian, a box": local(domain=box, n=n, privacy=normal),
        "ranges of a number": protocols.local_quantile(lower=-1, upper=1, n=n, privacy=pure),
        "ranges of a distance": local(domain=reals, n=n, privacy=pure),
        "ranges of a rotated coordinate": local(
            domain=reals, n=n, privacy=pure, mechanism="local-three-rounds"
        ),
        "shares, a ball": shuffle(domain=ball, n=n, privacy=mixed),
        "shares, cuts of a number": protocols.shuffle_quantile(
            lower=-1, upper=1, n=n, privacy=mixed
        ),
        "joint, a ball and cuts of a radius": shuffle(domain=reals, n=n, privacy=mixed),
    }


def main(quick: bool = True, write: bool = False) -> None:
    """Print the table, and write it if asked to."""
    calls = QUICK_CALLS if quick else CALLS
    print(f"\ndoes the time of a device tell its record? Welch's t, {calls} calls each")
    print(HEADER)
    lines, found = [HEADER], []
    for line, scores in rows(calls):
        lines.append(line)
        found.append(scores)
        print(line, flush=True)
    if write:
        _write(lines, calls, found)


def rows(calls: int) -> Iterator[tuple[str, list[float]]]:
    """A line for every device, and one more whose device is slower for some records."""
    made = devices()
    runs: dict[str, tuple[Callable[[Floats], object], int]] = {
        name: (_device(protocol), protocol.randomizer.record_dim) for name, protocol in made.items()
    }
    first = next(iter(made))
    runs[f"{first}, and a short loop"] = (_with_loop(made[first]), DIM)
    for name, (run, dim) in runs.items():
        times = measured(run, dim, calls)
        reference, *others = times
        scores = [welch(reference, other) for other in others]
        shown = " ".join(f"{score:>9.2f}" for score in scores)
        yield f"{name:<34} {np.median(reference) / 1e3:>9.1f} {shown}", scores


def measured(run: Callable[[Floats], object], dim: int, calls: int) -> list[Floats]:
    """Nanoseconds of CPU time of every call, an array for each record."""
    records = [np.array(record)[:dim] for record in RECORDS.values()]
    order = np.random.default_rng(1).permutation(np.repeat(np.arange(len(records)), calls))
    for record in records * WARM_CALLS:
        run(record)
    times: list[list[int]] = [[] for _ in records]
    gc.disable()
    for which in order.tolist():
        record = records[which]
        start = time.thread_time_ns()
        run(record)
        times[which].append(time.thread_time_ns() - start)
    gc.enable()
    return [np.array(each, np.float64) for each in times]


def welch(first: Floats, second: Floats) -> float:
    """Welch's t of two samples, both without what is slower than most of them together."""
    most = np.quantile(np.concatenate([first, second]), KEPT)
    kept = [times[times <= most] for times in (first, second)]
    variance = sum(times.var(ddof=1) / len(times) for times in kept)
    return float((kept[1].mean() - kept[0].mean()) / math.sqrt(variance))


def _device(protocol: Protocol) -> Callable[[Floats], object]:
    """A new device for every record: one answers once."""
    return lambda record: protocol.client(account=False).randomize(record)


def _with_loop(protocol: Protocol) -> Callable[[Floats], object]:
    """A device that does a little more, about one part in a hundred, if a number is missing."""
    device = _device(protocol)

    def run(record: Floats) -> object:
        if math.isnan(record[0]):
            sum(range(300))
        return device(record)

    return run


ABOUT = """A device makes a message of one of five records of R³ (one number where the device asks
for one): `inside` the domain, the same one `again`, on the `edge`, far `outside`, or all of it
`missing`. {calls} calls with each, in random order; CPU time of the thread, without the slowest
tenth. The columns are Welch's t against `inside`: without a difference, |t| is below 3 in 997 of
1000 cases, and above 4.5 in one of 150000. In the last row a loop was planted that runs if a
number is missing.
"""


def _write(lines: list[str], calls: int, found: list[list[float]]) -> None:
    *honest, planted = found
    scores = [abs(score) for row in honest for score in row]
    parts = [
        "# The time that a device takes\n",
        f"Made by `python -m benchmarks.timing --write` with {versions()}.\n",
        ABOUT.format(calls=calls),
        fenced(lines),
        f"The largest of the {len(scores)} values of |t| is {max(scores):.1f}; "
        f"what was planted has {abs(planted[-1]):.0f}.\n",
    ]
    RESULTS.write_text("\n".join(parts))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    main(chosen.quick, chosen.write)
