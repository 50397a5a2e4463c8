"""A statistician's first job beside other libraries: counts and mean incomes of groups of people.

Region × sex, people with up to three rows, all rows of one person hidden together, the number of
rows secret. Every library gets the same table, promise, unit, bounds and public groups.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import default_rng

import muhat as mh
from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.privacy import ZCDP, ApproxDP, Privacy, PureDP
from muhat.studies import peers_asked
from muhat.studies.drawing import COLOURS, MARKERS, legend_below
from muhat.studies.peers_asked import Answer, Job, Release
from muhat.studies.study import Panel, Progress, Row, Rows, Settings, Verdict, tracked, where

MINE = "muhat"
NAMES = {
    "muhat": "muhat",
    "opendp": "OpenDP",
    "diffprivlib": "diffprivlib",
    "pipeline-dp": "PipelineDP",
    "tmlt.analytics": "Tumult Analytics",
}
ELSEWHERE = "MUHAT_PEERS"
"""Names interpreters that have libraries which do not live beside the others, as PATH does."""

REGIONS, SEXES = ("north", "east", "south", "west"), ("female", "male")
GROUPS = tuple((region, sex) for region in REGIONS for sex in SEXES)
SHARES = (0.5, 0.27, 0.15, 0.08)
"""How likely people have rows in a region: the shares of first rows."""

BOUNDS = (0, 200_000)
ROWS = 3
"""The most rows of a person."""

FARTHEST = 5.0
"""Errors are told apart if they differ by so many standard errors."""

ERRORS = ("count", "mean")


def measure(settings: Settings, progress: Progress) -> list[Row]:
    """Errors of every library under every promise, and CPU times."""
    table = people(settings["people"], settings["seed"])
    promises: dict[str, Privacy] = {
        "pure": PureDP(epsilon=settings["epsilon"]),
        "approximate": ApproxDP(epsilon=settings["epsilon"], delta=settings["delta"]),
        "zCDP": ZCDP(rho=settings["rho"]),
    }
    tasks = [(name, False) for name in promises] + [("zCDP", True)]
    rows: list[Row] = []
    for name, apart in tracked(tasks, progress):
        job = _job(table, promises[name], settings, apart)
        common: Row = {"job": "set", "promise": name, "privacy": promises[name].describe()}
        common |= {"apart": apart, "n": len(table["person"]), "people": settings["people"]}
        for library, answers in _answers(job, promises[name], settings).items():
            rows.append({"library": library, **common} | _measured(answers, table))
    return rows


def people(number: int, seed: int) -> dict[str, list[Any]]:
    """People with one to three rows in different regions, incomes in whole numbers."""
    generator = default_rng([seed, number])
    each = generator.integers(1, ROWS + 1, number)
    person = np.repeat(np.arange(number), each)
    sex = np.repeat(generator.integers(0, 2, number), each)
    # The regions with the largest keys: weighted, without replacement.
    keys = generator.random((number, len(REGIONS))) ** (1 / np.array(SHARES))
    order = np.argsort(-keys, axis=1)
    region = order[person, np.arange(len(person)) - np.repeat(np.cumsum(each) - each, each)]
    income = np.exp(generator.normal(10.4 + 0.2 * sex + 0.1 * region, 0.6))
    return {
        "person": person.tolist(),
        "region": [REGIONS[place] for place in region],
        "sex": [SEXES[place] for place in sex],
        "income": np.clip(np.rint(income), *BOUNDS).astype(int).tolist(),
    }


def truth(table: Mapping[str, Sequence[Any]]) -> tuple[Floats, Floats]:
    """The exact counts and means of the groups."""
    found: dict[tuple[str, str], list[int]] = {group: [] for group in GROUPS}
    for region, sex, income in zip(table["region"], table["sex"], table["income"], strict=True):
        found[region, sex].append(income)
    counts = np.array([len(each) for each in found.values()], np.float64)
    return counts, np.array([np.mean(each) for each in found.values()])


def _job(table: dict[str, list[Any]], privacy: Privacy, settings: Settings, apart: bool) -> Job:
    amounts = {name: getattr(privacy, name) for name in privacy.numbers}
    return {
        "table": table,
        "groups": GROUPS,
        "bounds": BOUNDS,
        "promise": amounts,
        "rows": ROWS,
        "apart": apart,
        "trials": settings["trials"],
        "repeats": settings["repeats"],
    }


def _answers(job: Job, privacy: Privacy, settings: Settings) -> dict[str, dict[str, Any]]:
    """What every library says."""
    import pyarrow as pa

    table = pa.table(job["table"])
    own = peers_asked.timed(lambda asked: _muhat(asked, table, privacy), job)
    found = {MINE: own | {"version": version("muhat")}}
    for library in peers_asked.ASKED:
        slow = {"trials": settings["trials_on_spark"], "repeats": 1}
        wanted = job | (slow if library == "tmlt.analytics" else {})
        found[library] = _asked(library, wanted)
    return found


def _muhat(job: Job, table: Any, privacy: Privacy) -> Release:
    schema = mh.Schema(
        {"income": BOUNDS, "region": list(REGIONS), "sex": list(SEXES)},
        unit="person",
        max_rows=job["rows"],
        complete=True,
        one_row_per="region" if job["apart"] else None,
    )
    by = ["region", "sex"]
    asked = [mh.Count(by=by), mh.Mean("income", by=by)]
    plan = mh.plan(asked, schema=schema, privacy=privacy, n=None)

    def release() -> Answer:
        found = plan.release(table)
        counts, means = (np.asarray(found[each.name].value) for each in asked)
        return counts.tolist(), means.tolist()

    return release


def _asked(library: str, job: Job) -> dict[str, Any]:
    """The answers of a library of this interpreter, or of one that has it."""
    if peers_asked.installed(library):
        return peers_asked.answered(library, job)
    for python in os.environ.get(ELSEWHERE, "").split(os.pathsep):
        if python and library in _libraries(python):
            (answer,) = _elsewhere(python, [{"library": library, "job": job}])
            return answer
    return {"missing": "not installed"}


@cache
def _libraries(python: str) -> frozenset[str]:
    """Which libraries another interpreter has."""
    asked = [{"library": library, "job": None} for library in peers_asked.ASKED]
    found = _elsewhere(python, asked)
    return frozenset(
        library
        for library, answer in zip(peers_asked.ASKED, found, strict=True)
        if "missing" not in answer
    )


def _elsewhere(python: str, asked: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    script = [python, str(Path(peers_asked.__file__))]
    try:
        done = subprocess.run(
            script, input=json.dumps(list(asked)), stdout=subprocess.PIPE, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as failure:
        raise InvalidInput(
            f"{ELSEWHERE} names {python!r:.200}, which did not run {script[1]}: give a Python "
            "of an environment with pipeline-dp, tmlt.analytics or another peer."
        ) from failure
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


def _measured(answers: Mapping[str, Any], table: Mapping[str, Sequence[Any]]) -> Row:
    """Root mean square errors over groups and releases: as they are, and as parts of the truth."""
    row: Row = {"version": f"v{answers['version']}" if "version" in answers else None}
    if "missing" in answers:
        return row | {"missing": answers["missing"]}
    given = np.array(answers["releases"], np.float64)
    row |= {"trials": len(given), "seconds": answers["seconds"]}
    squares = []
    for place, (name, exact) in enumerate(zip(ERRORS, truth(table), strict=True)):
        off = given[:, place] - exact
        row[f"{name}_error"] = math.sqrt((off**2).mean())
        squares.append(((off / exact) ** 2).mean(axis=1))
        row |= _root(f"{name}_relative", squares[-1])
    return row | _root("relative", sum(squares) / len(squares))


def _root(name: str, squares: Floats) -> Row:
    """The root mean square with its standard error."""
    error = math.sqrt(squares.mean())
    spread = float(squares.std() / math.sqrt(len(squares)) / (2 * error))
    return {name: error, f"{name}_uncertainty": spread}


def panels(rows: Rows) -> list[Panel]:
    """Errors and times, one line a task."""
    first = _mine(rows)[0]
    return [
        Panel(
            "Error of counts and mean incomes by region and sex",
            lambda axes: _points(axes, rows, "relative", "RMS relative error of both"),
        ),
        Panel(
            f"CPU time of that release of {first['n']:,} rows",
            lambda axes: _points(axes, rows, "seconds", "CPU seconds, planning included"),
        ),
    ]


def _points(axes: Any, rows: Rows, column: str, label: str) -> None:
    tasks = _mine(rows)
    for look, (library, name) in enumerate(NAMES.items()):
        spots = [
            (row[column], place + 0.13 * (look - 2))
            for place, task in enumerate(tasks)
            for row in where(_same_task(rows, task), library=library)
            if row[column] is not None
        ]
        if spots:
            axes.plot(*zip(*spots, strict=True), MARKERS[look], color=COLOURS[look], label=name)
    names = [task_of(task).replace(", rows", "\nrows").replace(", one", "\none") for task in tasks]
    axes.set_yticks(range(len(tasks)), names, fontsize="small")
    axes.set_ylim(len(tasks) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.set_xlabel(label)
    axes.grid(alpha=0.25)
    legend_below(axes, 3)


def verdict(rows: Rows) -> Verdict:
    """Who errs less in each task, in both statistics and in either, times, and who is absent."""
    compared = list(_compared(rows))
    missing = _missing(rows)
    if not compared:
        own = "; ".join(f"{task_of(row)}: {_number(row, 'relative')}" for row in _mine(rows))
        alone = f"muhat's relative errors for counts and means by group alone: {own}."
        return Verdict("not tested", f"{alone} Nothing is compared.{missing}")
    lost = [pair for pair in compared if _worse(*pair, "relative")]
    single = [
        (mine, peer, name)
        for mine, peer in compared
        for name in ERRORS
        if _worse(mine, peer, f"{name}_relative")
    ]
    absent = {row["library"] for row in rows if row["missing"] == "not installed"}
    less = [pair for pair in compared if pair[1]["relative"] < pair[0]["relative"]]
    answer = "no" if lost else "in part" if absent or single or less else "yes"
    first = _mine(rows)[0]
    return Verdict(
        answer,
        f"Counts and mean incomes of {len(GROUPS)} groups of {first['people']:,} people with "
        f"{first['n']:,} rows, at most {ROWS} of each, all hidden together. Relative errors of "
        f"both (root mean square over groups and {first['trials']} releases): "
        f"{'; '.join(_line(mine, rows) for mine in _mine(rows))}. "
        f"{_told(lost, single)}{_less(less)} {_ratios(compared)} "
        f"{_times(compared)}{_fairly(compared)}{missing}",
    )


def _mine(rows: Rows) -> list[Mapping[str, Any]]:
    return where(rows, library=MINE)


def _same_task(rows: Rows, mine: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return where(rows, promise=mine["promise"], apart=mine["apart"])


def _compared(rows: Rows) -> Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    for mine in _mine(rows):
        for peer in _same_task(rows, mine):
            if peer["library"] != MINE and peer["relative"] is not None:
                yield mine, peer


def _worse(mine: Mapping[str, Any], peer: Mapping[str, Any], column: str) -> bool:
    """Whether muhat's error is visibly more."""
    noise = math.hypot(mine[f"{column}_uncertainty"], peer[f"{column}_uncertainty"])
    return bool(mine[column] - peer[column] > FARTHEST * noise)


def task_of(row: Mapping[str, Any]) -> str:
    """The promise, and where a person's rows may be."""
    return f"{row['privacy']}, {'one row a region' if row['apart'] else 'rows anywhere'}"


def _number(row: Mapping[str, Any], column: str) -> str:
    return f"{row[column]:.3g} ± {row[f'{column}_uncertainty']:.1g}"


def _line(mine: Mapping[str, Any], rows: Rows) -> str:
    told = [row for row in _same_task(rows, mine) if row["relative"] is not None]
    return f"{task_of(mine)}: " + ", ".join(
        f"{NAMES[row['library']]} {_number(row, 'relative')}" for row in told
    )


def _told(
    lost: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    single: Sequence[tuple[Mapping[str, Any], Mapping[str, Any], str]],
) -> str:
    """Where a peer errs visibly less, in both together or in one of them."""
    if lost:
        where_lost = "; ".join(f"{NAMES[peer['library']]} ({task_of(mine)})" for mine, peer in lost)
        return f"Both together a peer has with less error: {where_lost}."
    if not single:
        return "No peer has visibly less error, in both together or in either."
    details = "; ".join(
        f"{NAMES[peer['library']]}'s {name}s ({task_of(mine)}) "
        f"{_number(peer, f'{name}_relative')} to {_number(mine, f'{name}_relative')}"
        for mine, peer, name in single
    )
    return (
        f"No peer has visibly less error in both together; in one of them alone: {details}. There "
        "the same promise is divided otherwise, at the expense of the other statistic: muhat's "
        "`weight=` does that."
    )


def _less(less: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> str:
    """Where a peer's measured error is smaller, told apart or not."""
    if not less:
        return ""
    named = "; ".join(f"{NAMES[peer['library']]} ({task_of(mine)})" for mine, peer in less)
    return f" Measured errors of both are smaller, told apart or not, for {named}."


def _ratios(compared: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> str:
    """How many times muhat's errors the peers' are, told apart or not."""
    told = []
    for name in ERRORS:
        ratios = [peer[f"{name}_error"] / mine[f"{name}_error"] for mine, peer in compared]
        told.append(f"{name}s between {min(ratios):.2f} and {max(ratios):.2f}")
    return f"Peers' errors are so many times muhat's: of {', of '.join(told)}."


def _times(compared: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> str:
    ratios: dict[str, list[float]] = {}
    for mine, peer in compared:
        ratios.setdefault(peer["library"], []).append(peer["seconds"] / mine["seconds"])
    told = ", ".join(
        f"{NAMES[library]} {min(each):.3g} to {max(each):.3g}" for library, each in ratios.items()
    )
    return f"The CPU time of a release, planning included, is of muhat's, in times: {told}."


def _fairly(compared: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> str:
    """What stands in OpenDP's way where rows lie apart."""
    if not any(peer["library"] == "opendp" and peer["apart"] for _, peer in compared):
        return ""
    return (
        f" For one row a region OpenDP is asked for {ROWS + 1} groups of a person and pays for "
        f"them, since 0.16.0 keeps one fewer than it is asked for: its noise is "
        f"{math.sqrt((ROWS + 1) / ROWS):.2f} times what {ROWS} groups need."
    )


def _missing(rows: Rows) -> str:
    refused = [row for row in rows if row["missing"] == "no such promise"]
    lacks = dict.fromkeys((NAMES[row["library"]], row["promise"]) for row in refused)
    said = "".join(f" {name} cannot be given a promise of {promise}." for name, promise in lacks)
    absent = [row["library"] for row in rows if row["missing"] == "not installed"]
    if not absent:
        return said
    names = " and ".join(NAMES[library] for library in dict.fromkeys(absent))
    return (
        f"{said} {names} are left out: not installed here (pip install "
        f"{' '.join(dict.fromkeys(absent))}), nor in an interpreter that {ELSEWHERE} names."
    )
