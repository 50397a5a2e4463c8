"""muhat beside OpenDP and diffprivlib: the same records, the same promise.

The mean of n records in a box, n public, one record replaced. OpenDP composes one mean a column,
each with its part of the promise; diffprivlib divides ε among columns by itself.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from numpy.random import default_rng

import muhat as mh
from muhat._arrays import Floats
from muhat.privacy import ZCDP, Privacy, PureDP
from muhat.studies.peers_makers import MAKERS, REPORTED, Release
from muhat.studies.peers_shown import panels, verdict
from muhat.studies.study import Progress, Row, Settings, Study, tracked


def measure(settings: Settings, progress: Progress) -> list[Row]:
    """Errors of releases of the same records, and the time of releases of many records."""
    promises: dict[str, Privacy] = {
        "pure": PureDP(epsilon=settings["epsilon"]),
        "zCDP": ZCDP(rho=settings["rho"]),
    }
    jobs = [(name, dim) for name in promises for dim in settings["dims"]]
    rows: list[Row] = []
    for name, dim in tracked(jobs, progress):
        rows += _task(name, promises[name], dim, settings)
    return rows


def _task(name: str, privacy: Privacy, dim: int, settings: Settings) -> list[Row]:
    generator = default_rng([settings["seed"], dim])
    records = generator.beta(2, 5, (settings["n"], dim))
    many = generator.beta(2, 5, (settings["many"], dim))
    at_the_end = np.zeros((settings["n"], dim))
    plan = mh.plan_mean(domain=mh.Box([0.0] * dim, [1.0] * dim), n=settings["n"], privacy=privacy)
    certificate = plan.certificate
    assert certificate is not None
    ratio = certificate.ratio
    common: Row = {"promise": name, "privacy": privacy.describe(), "d": dim, "n": settings["n"]}
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
        rows.append(row | _errors(release, records, at_the_end, settings["trials"]))
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


def _errors(release: Release, records: Floats, at_the_end: Floats, trials: int) -> Row:
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


_COMMON = {"n": 1000, "dims": (1, 16), "epsilon": 1.0, "rho": 0.5, "seed": 2024}

STUDY = Study(
    name="peers",
    title="muhat beside OpenDP and diffprivlib",
    paper="no paper: the libraries as PyPI has them",
    claim="On the same records and promise muhat errs no more than its peers, for one column and "
    "for 16, in about the time of theirs, and says more about what it released.",
    noise="every library's own; muhat's is exact. Errors differ from run to run within their "
    "uncertainty, times with the machine.",
    settings={
        "quick": _COMMON | {"trials": 400, "many": 200_000, "repeats": 5},
        "full": _COMMON | {"trials": 10_000, "many": 1_000_000, "repeats": 15},
    },
    measure=measure,
    panels=panels,
    verdict=verdict,
    shown_columns=(
        "library",
        "privacy",
        "d",
        "error",
        "error_uncertainty",
        "edge_bias",
        "time_ratio",
        "reported",
        "missing",
    ),
)
