"""muhat beside other libraries: the same data, the same promise, in two jobs.

The mean of n records in a box, n public, one record replaced, beside OpenDP and diffprivlib: OpenDP
composes one mean a column, each with its part of the promise; diffprivlib divides ε among columns
by itself. And counts and means by groups of people with several rows: `peers_set`.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.random import default_rng

import muhat as mh
from muhat._arrays import Floats
from muhat.privacy import ZCDP, Privacy, PureDP
from muhat.studies import peers_set
from muhat.studies.drawing import COLOURS, INK, MARKERS, legend_below, plain_ticks
from muhat.studies.peers_makers import MAKERS, REPORTED, Release
from muhat.studies.study import Panel, Progress, Row, Rows, Settings, Study, Verdict, tracked, where

MINE, PEERS = "muhat", ("opendp", "diffprivlib")
NAMES = {"muhat": "muhat", "opendp": "OpenDP", "diffprivlib": "diffprivlib"}
FARTHEST = 5.0
"""Errors are told apart if they differ by so many standard errors."""


def measure(settings: Settings, progress: Progress) -> list[Row]:
    """Errors of releases of the same records, and the time of releases of many records."""
    promises: dict[str, Privacy] = {
        "pure": PureDP(epsilon=settings["epsilon"]),
        "zCDP": ZCDP(rho=settings["rho"]),
    }
    jobs = [(name, dim) for name in promises for dim in settings["dims"]]
    rows: list[Row] = []
    for name, dim in tracked(jobs, lambda done: progress(done / 2)):
        rows += _measured(name, promises[name], dim, settings)
    return rows + peers_set.measure(settings["set"], lambda done: progress((1 + done) / 2))


def _measured(name: str, privacy: Privacy, dim: int, settings: Settings) -> list[Row]:
    generator = default_rng([settings["seed"], dim])
    records = generator.beta(2, 5, (settings["n"], dim))
    many = generator.beta(2, 5, (settings["many"], dim))
    at_the_end = np.zeros((settings["n"], dim))
    plan = mh.plan_mean(domain=mh.Box([0.0] * dim, [1.0] * dim), n=settings["n"], privacy=privacy)
    certificate = plan.certificate
    assert certificate is not None
    ratio = certificate.ratio
    common: Row = {
        "job": "mean",
        "promise": name,
        "privacy": privacy.describe(),
        "d": dim,
        "n": settings["n"],
    }
    common["lower_bound"] = None if ratio is None else certificate.error / ratio
    rows: list[Row] = []
    timed: dict[str, Callable[[], object]] = {"numpy": lambda: many.mean(axis=0)}
    for library, make in MAKERS.items():
        row: Row = {"library": library, **common, "reported": REPORTED[library]}
        release = make(settings["n"], dim, privacy)
        if release is None:
            why = "not installed" if make(1, 1, PureDP(epsilon=1.0)) is None else "no such promise"
            rows.append(row | {"missing": why})
            continue
        if library == "muhat":
            row["mechanism"] = plan.mechanism
        row |= {"version": _version(library), "trials": settings["trials"], "records": len(many)}
        rows.append(row | _misses(release, records, at_the_end, settings["trials"]))
        large = make(settings["many"], dim, privacy)
        assert large is not None
        timed[library] = _once(large, many)
    seconds = _seconds(timed, settings["repeats"])
    for row in rows:
        taken = seconds.get(str(row["library"]))
        row["time_ratio"] = None if taken is None else taken / seconds["numpy"]
    return rows


def _version(library: str) -> str | None:
    try:
        return f"v{version(library)}"
    except PackageNotFoundError:
        return None


def _once(release: Release, records: Floats) -> Callable[[], object]:
    return lambda: release(records)


def _misses(release: Release, records: Floats, at_the_end: Floats, trials: int) -> Row:
    """The root mean square ℓ₂ error with its standard error, and the bias of means at an end."""
    off = np.array([release(records) - records.mean(axis=0) for _ in range(trials)])
    squares = (off**2).sum(axis=1)
    edge = np.array([release(at_the_end) for _ in range(trials)])
    error = math.sqrt(squares.mean())
    return {
        "error": error,
        "error_uncertainty": float(squares.std() / math.sqrt(trials) / (2 * error)),
        "edge_error": math.sqrt((edge**2).sum(axis=1).mean()),
        "edge_bias": float(edge.mean()),
        "edge_bias_uncertainty": float(edge.std() / math.sqrt(edge.size)),
    }


def _seconds(works: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The median CPU time of each, taken in turns."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            start = time.process_time()
            work()
            taken[name].append(time.process_time() - start)
    return {name: statistics.median(times) for name, times in taken.items()}


_SET = {"epsilon": 1.0, "delta": 1e-6, "rho": 0.1, "seed": 2024, "repeats": 3}
_COMMON = {"n": 1000, "dims": (1, 16), "epsilon": 1.0, "rho": 0.5, "seed": 2024}


def panels(rows: Rows) -> list[Panel]:
    """Errors and times of both jobs, one line a task."""
    means = where(rows, job="mean")
    many = _tasks(means)[0]["records"]
    return [
        Panel("Error of the same mean under the same promise", lambda a: _errors(a, means)),
        Panel(f"CPU time of a release of {many:,} records", lambda a: _times(a, means)),
        *peers_set.panels(where(rows, job="set")),
    ]


def _tasks(rows: Rows) -> list[Any]:
    return where(rows, library=MINE)


def _errors(axes: Any, rows: Rows) -> None:
    _points(axes, rows, "error")
    for place, task in enumerate(_tasks(rows)):
        if task["lower_bound"] is not None:
            label = "unbiased: proved least" if place == 0 else None
            mark = {"marker": "|", "markersize": 12, "markeredgewidth": 2, "color": INK}
            axes.plot(task["lower_bound"], place, linestyle="none", label=label, **mark)
    records = f"{_tasks(rows)[0]['n']:,} records in [0, 1]^d"
    axes.set_xlabel(f"RMS ℓ₂ error, {records}")
    legend_below(axes, 2)


def _times(axes: Any, rows: Rows) -> None:
    _points(axes, rows, "time_ratio")
    axes.axvline(1, color=INK, linewidth=1)
    plain_ticks(axes.xaxis)
    axes.set_xlabel("CPU time ÷ that of numpy's mean")
    legend_below(axes, 3)


def _points(axes: Any, rows: Rows, column: str) -> None:
    tasks = _tasks(rows)
    for look, library in enumerate(NAMES):
        spots = [
            (row[column], place)
            for place, task in enumerate(tasks)
            for row in where(rows, library=library, promise=task["promise"], d=task["d"])
            if row[column] is not None
        ]
        if spots:
            x, y = zip(*spots, strict=True)
            shifted = [place + 0.16 * (look - 1) for place in y]
            axes.plot(x, shifted, MARKERS[look], color=COLOURS[look], label=NAMES[library])
    names = [f"{t['privacy']}\n{t['d']} column{'s' * (t['d'] > 1)}" for t in tasks]
    axes.set_yticks(range(len(tasks)), names, fontsize="small")
    axes.set_ylim(len(tasks) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.grid(alpha=0.25)


def verdict(rows: Rows) -> Verdict:
    """The worse of both jobs' verdicts, and what both say."""
    both = [_of_means(where(rows, job="mean")), peers_set.verdict(where(rows, job="set"))]
    tested = [each.reproduced for each in both if each.reproduced != "not tested"]
    worst = max(tested, key=("yes", "in part", "no").index, default="not tested")
    if len(tested) == 1 and worst == "yes":
        worst = "in part"
    return Verdict(worst, " ".join(each.paragraph for each in both))


def _of_means(rows: Rows) -> Verdict:
    """Errors told apart or not, times, biases at the end of the box, and which rows are missing."""
    compared = [
        (mine, peer)
        for mine in _tasks(rows)
        for library in PEERS
        for peer in where(rows, library=library, promise=mine["promise"], d=mine["d"])
        if peer["error"] is not None
    ]
    absent = [
        name
        for name in PEERS
        if all(row["missing"] == "not installed" for row in where(rows, library=name))
    ]
    missing = _missing(absent)
    if not compared:
        own = "; ".join(f"{_task(row)}: {row['error']:.3g}" for row in _tasks(rows))
        return Verdict(
            "not tested",
            f"muhat's root mean square errors alone: {own}. Nothing is compared.{missing}",
        )
    never = all(not _apart(mine, peer) or mine["error"] < peer["error"] for mine, peer in compared)
    best = max(compared, key=lambda pair: float(pair[1]["error"] / pair[0]["error"]))
    slower = [mine["time_ratio"] / peer["time_ratio"] for mine, peer in compared]
    fast = max(slower) < 2
    answer = "no" if not never else "yes" if fast and not absent else "in part"
    refused = [row for row in rows if row["missing"] == "no such promise"]
    lacks = dict.fromkeys((NAMES[row["library"]], row["promise"]) for row in refused)
    without = "".join(f" {name} has no mean under {promise}." for name, promise in lacks)
    single = [pair for pair in compared if pair[0]["d"] == 1]
    same = not any(_apart(mine, peer) for mine, peer in single)
    return Verdict(
        answer,
        f"Root mean square errors over {best[0]['trials']} releases of {best[0]['n']} records: "
        f"{'; '.join(_line(mine, compared) for mine in _tasks(rows))}. "
        f"muhat errs {'in no task' if never else 'in some task'} visibly more than a peer, and at "
        f"best {best[1]['error'] / best[0]['error']:.2f} times less than "
        f"{NAMES[best[1]['library']]} ({_task(best[0])}, by {best[0]['mechanism']} noise, which "
        f"is made for all columns at once); for one column the errors are "
        f"{'not told apart' if same else 'different too'}. A release of {best[0]['records']:,} "
        f"records takes between {min(slower):.2f} and {max(slower):.2f} times the CPU time of a "
        f"peer's. {_edge(compared)}{without} muhat reports {best[0]['reported']}; "
        + "; ".join(
            f"{NAMES[name]}: {where(rows, library=name)[0]['reported']}"
            for name in PEERS
            if name not in absent
        )
        + f".{missing}",
    )


def _task(row: Any) -> str:
    return f"{row['privacy']}, {row['d']} column{'s' * (row['d'] > 1)}"


def _apart(mine: Any, peer: Any) -> bool:
    noise = (mine["error_uncertainty"] ** 2 + peer["error_uncertainty"] ** 2) ** 0.5
    return bool(abs(mine["error"] - peer["error"]) > FARTHEST * noise)


def _line(mine: Any, compared: list[tuple[Any, Any]]) -> str:
    peers = [peer for own, peer in compared if own is mine]
    others = ", ".join(f"{NAMES[peer['library']]} {_number(peer)}" for peer in peers)
    return f"{_task(mine)}: muhat {_number(mine)}{', ' * bool(others)}{others}"


def _number(row: Any) -> str:
    return f"{row['error']:.3g} ± {row['error_uncertainty']:.1g}"


def _edge(compared: list[tuple[Any, Any]]) -> str:
    """Who is biased when all records lie at an end of the box."""
    seen: dict[str, Any] = {}
    for mine, peer in compared:
        for row in (mine, peer):
            z = abs(row["edge_bias"]) / row["edge_bias_uncertainty"]
            if z > FARTHEST and row["library"] not in seen:
                seen[row["library"]] = row
    if not seen:
        return "No library is seen to be biased at the end of the box."
    told = ", ".join(
        f"{NAMES[name]} by {row['edge_bias']:.2g} ({_task(row)}; its error there is "
        f"{row['edge_error']:.2g})"
        for name, row in seen.items()
    )
    return f"With all records at 0 these are biased, for they cut values to the box: {told}."


def _missing(absent: list[str]) -> str:
    if not absent:
        return ""
    named = " and ".join(NAMES[name] for name in absent)
    return f" Rows of {named} are missing: not installed (pip install {' '.join(absent)})."


STUDY = Study(
    name="peers",
    title="muhat beside OpenDP, PipelineDP, Tumult Analytics and diffprivlib",
    paper="no paper: the libraries as PyPI has them",
    claim="On the same data and promise muhat errs no more than its peers: for means of one column "
    "and of 16 in about the time of theirs, for counts and means by groups of people with several "
    "rows in less; and it says more about what it released.",
    noise="every library's own; muhat's is exact. Errors differ from run to run within their "
    "uncertainty, times with the machine.",
    settings={
        "quick": _COMMON
        | {"trials": 400, "many": 200_000, "repeats": 5}
        | {"set": _SET | {"people": 3_000, "trials": 400, "trials_on_spark": 4}},
        "full": _COMMON
        | {"trials": 10_000, "many": 1_000_000, "repeats": 15}
        | {"set": _SET | {"people": 20_000, "trials": 400, "trials_on_spark": 50}},
    },
    measure=measure,
    panels=panels,
    verdict=verdict,
    shown_rows=None,
    shown_columns=(
        "job",
        "library",
        "version",
        "privacy",
        "d",
        "error",
        "time_ratio",
        "apart",
        "count_error",
        "mean_error",
        "relative",
        "relative_uncertainty",
        "seconds",
        "missing",
    ),
)
