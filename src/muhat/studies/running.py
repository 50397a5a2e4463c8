"""Running studies: one or all of them, and what is written down of each.

NAME.csv has the rows, NAME.svg and NAME.png the figure, NAME.md the claim, the verdict and its
paragraph for people, NAME.json the same for programs, with settings and versions.
"""

from __future__ import annotations

import json
import math
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from muhat._files import put
from muhat.errors import InvalidInput, MuhatError
from muhat.studies import find
from muhat.studies.drawing import figure_of, png_of, require_matplotlib, svg_of
from muhat.studies.side_by_side import side_by_side
from muhat.studies.study import Progress, Result, rows_to_csv

SCHEMA = 1
PACKAGES = ("muhat", "numpy", "scipy", "pyarrow", "matplotlib")


@dataclass(frozen=True)
class Outcome:
    """What became of a study: its record, or why there is none."""

    name: str
    record: dict[str, Any] | None
    refusal: str | None = None


def run_study(
    name: str, level: str, folder: Path, progress: Progress | None = None
) -> dict[str, Any]:
    """Run a study, write its files into the folder, and return its record."""
    study = find(name)
    _check_before(folder)
    started = time.perf_counter()
    result = study.run(level, progress)
    return write(result, folder, time.perf_counter() - started)


def run_all(
    names: Sequence[str],
    level: str,
    folder: Path,
    *,
    jobs: int = 1,
    finished: Callable[[Outcome], None] = lambda outcome: None,
    progress: Callable[[str, float], None] = lambda name, fraction: None,
) -> list[Outcome]:
    """Run studies, so many at a time; one that is refused or dies does not stop the others.

    `finished` hears of every outcome, `progress` how far each study is.
    """
    _check_before(folder)
    work = partial(_outcome, level=level, folder=folder)
    outcomes = {}
    for outcome in _one_by_one(names, work, jobs, progress):
        outcomes[outcome.name] = outcome
        finished(outcome)
    return [outcomes[name] for name in names]


def _one_by_one(
    names: Sequence[str],
    work: Callable[[str, Progress], Outcome],
    jobs: int,
    progress: Callable[[str, float], None],
) -> Iterator[Outcome]:
    """The outcomes as they come."""
    if jobs == 1:
        yield from (work(name, partial(progress, name)) for name in names)
        return
    for name, outcome in side_by_side(names, work, jobs, progress):
        died = f"its process died; `muhat study run {name}` shows why."
        yield outcome or Outcome(name, None, died)


def _check_before(folder: Path) -> None:
    """Refuse before hours of work what would be refused after them."""
    prepare(folder)
    require_matplotlib()


def write(result: Result, folder: Path, seconds: float) -> dict[str, Any]:
    """Write the files of a result and return the record that is in NAME.json."""
    study, verdict = result.study, result.verdict
    prepare(folder)
    figure = figure_of(result.panels())
    files = {kind: f"{study.name}.{kind}" for kind in ("csv", "svg", "png", "md", "json")}
    record = {
        "schema": SCHEMA,
        "name": study.name,
        "title": study.title,
        "paper": study.paper,
        "claim": study.claim,
        "reproduced": verdict.reproduced,
        "paragraph": verdict.paragraph,
        "noise": study.noise,
        "level": result.level,
        "settings": _plain(study.settings[result.level]),
        "rows": len(result.rows),
        "seconds": round(seconds, 3),
        "versions": versions(),
        "files": files,
    }
    contents: dict[str, str | bytes] = {
        "csv": rows_to_csv(result.rows),
        "svg": svg_of(figure),
        "png": png_of(figure),
        "md": _markdown(record),
        "json": json.dumps(record, indent=2, ensure_ascii=False) + "\n",
    }
    for kind, content in contents.items():
        put(folder / files[kind], content)
    return record


def versions() -> dict[str, str]:
    """Of Python and the packages that the numbers rest on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _outcome(name: str, progress: Progress, *, level: str, folder: Path) -> Outcome:
    try:
        return Outcome(name, run_study(name, level, folder, progress))
    except MuhatError as error:
        return Outcome(name, None, str(error))


def _plain(value: Any) -> Any:
    """Settings as JSON has them: lists, and ∞ as a word."""
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def _markdown(record: dict[str, Any]) -> str:
    settings = json.dumps(record["settings"], ensure_ascii=False)
    used = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    table = record["files"]["csv"]
    return "\n".join(
        [
            f"# {record['title']}",
            "",
            f"*{record['paper']}*",
            "",
            f"**The claim:** {record['claim']}",
            "",
            f"**Reproduced: {record['reproduced']}.** {record['paragraph']}",
            "",
            f"![{record['title']}]({record['files']['svg']})",
            "",
            f"Numbers: [{table}]({table}), {record['rows']} rows.",
            f"Noise: {record['noise']}",
            f"Settings ({record['level']}): `{settings}`",
            f"Versions: {used}",
            "",
        ]
    )


def prepare(folder: Path) -> None:
    """Make the folder, or refuse one that cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK | os.X_OK)
    except OSError:
        writable = False
    if not writable:
        raise InvalidInput(f"--out must be a folder that can be written; got {str(folder)!r:.200}.")
