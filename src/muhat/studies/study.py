"""What a study is: a paper's claim, numbers that test it, panels that show them, and a verdict.

A module of this room makes one `Study` called STUDY and is listed in `muhat.studies.MODULES`:

    STUDY = Study(
        name="blog",                       # what is typed: `muhat study run blog`
        title="Pure against approximate privacy",
        paper="the paper, as one cites it",
        claim="what the paper says, in a sentence or two",
        noise="none: every number is a formula",      # or: the real noise path; or: idealised
        settings={"quick": {"dims": (1, 10)}, "full": {"dims": (1, 10, 100)}},
        measure=measure,                   # (settings, progress) -> rows
        panels=panels,                     # rows -> what to draw
        verdict=verdict,                   # rows -> Verdict
    )

* `measure(settings, progress)` returns tidy rows: a list of dicts with plain cells (text, whole
  numbers, floats, booleans, None). A row need not have every column. Seeds are settings, so that
  the same settings give the same rows, and they are written down with the results. `progress`
  takes the fraction that is done; `tracked(items, progress)` calls it for a loop.
* Rows go through the CSV before anything reads them, so that panels and verdict can be made again
  from the file alone. Hence a text cell must not look like a number: "p = 4" is text, 4.0 is not.
* `panels(rows)` returns `Panel`s of matplotlib axes with labels and units: side by side in the
  figure, one by one in the report.
* `verdict(rows)` computes "yes", "in part" or "no" from the rows ("not tested" if they cannot tell)
  and a paragraph: what was measured, whether it reproduced; its numbers are formatted from rows.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from muhat import _check
from muhat.ellipsoids.threads import one_thread
from muhat.errors import InvalidInput

Cell = str | int | float | bool | None
Row = dict[str, Cell]
Rows = Sequence[Mapping[str, Any]]
Settings = Mapping[str, Any]
Progress = Callable[[float], None]
Item = TypeVar("Item")

LEVELS = ("quick", "full")
REPRODUCED = ("yes", "in part", "no", "not tested")


@dataclass(frozen=True)
class Panel:
    """One plot: its title and what draws it on matplotlib's axes."""

    title: str
    draw: Callable[[Any], None]


@dataclass(frozen=True)
class Verdict:
    """Whether the claim was reproduced, one of `REPRODUCED`, and a paragraph that says why."""

    reproduced: str
    paragraph: str

    def __post_init__(self) -> None:
        _check.one_of("reproduced", self.reproduced, REPRODUCED)


@dataclass(frozen=True)
class Study:
    """A claim of a paper and how it is tested; the module's docstring is the contract.

    Attributes:
        name: what is typed on the command line.
        title: one line for tables and headings.
        paper: the paper, as one cites it.
        claim: what the paper says.
        noise: where the randomness comes from: nowhere, muhat's noise, or an idealised generator.
        settings: what `measure` is given, for "quick" and for "full".
        measure: (settings, progress) → rows.
        panels: rows → the plots.
        verdict: rows → the verdict.
        shown_rows, shown_columns: what of the table the report shows; None and () for all.
    """

    name: str
    title: str
    paper: str
    claim: str
    noise: str
    settings: Mapping[str, Settings]
    measure: Callable[[Settings, Progress], list[Row]]
    panels: Callable[[Rows], list[Panel]]
    verdict: Callable[[Rows], Verdict]
    shown_rows: int | None = 12
    shown_columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if set(self.settings) != set(LEVELS):
            raise InvalidInput(f"settings must be given for {' and '.join(LEVELS)}.")

    def run(self, level: str = "quick", progress: Progress | None = None) -> Result:
        """Measure; the rows are those that the CSV holds."""
        settings = self.settings[_check.one_of("level", level, LEVELS)]
        with one_thread():  # studies run side by side, and sums are the same on every machine
            rows = self.measure(settings, progress or (lambda fraction: None))
        if not rows:
            raise InvalidInput(f"the study {self.name} measured nothing.")
        return Result(self, level, rows_from_csv(rows_to_csv(rows)))


@dataclass(frozen=True)
class Result:
    """The rows of a study, and what follows from them."""

    study: Study
    level: str
    rows: list[Row]

    @property
    def verdict(self) -> Verdict:
        """Computed from the rows."""
        return self.study.verdict(self.rows)

    def panels(self) -> list[Panel]:
        """The plots of the rows."""
        return self.study.panels(self.rows)


def tracked(items: Iterable[Item], progress: Progress) -> Iterator[Item]:
    """The items one by one, telling how many of them are done.

    >>> done = []
    >>> list(tracked("ab", done.append)), done
    (['a', 'b'], [0.5, 1.0])
    """
    listed = list(items)
    for number, item in enumerate(listed, start=1):
        yield item
        progress(number / len(listed))


def rows_to_csv(rows: Rows) -> str:
    """The rows as text: a header of all columns, floats with all their digits, None as nothing.

    >>> rows_to_csv([{"d": 2, "error": 0.5}, {"d": 3, "exact": True}])
    'd,error,exact\\n2,0.5,\\n3,,True\\n'
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _text(value) for name, value in row.items()})
    return out.getvalue()


def rows_from_csv(text: str) -> list[Row]:
    """What `rows_to_csv` wrote; a missing cell is None.

    >>> rows_from_csv("d,error,name\\n2,0.5,ball\\n3,,\\n")
    [{'d': 2, 'error': 0.5, 'name': 'ball'}, {'d': 3, 'error': None, 'name': None}]
    """
    reader = csv.DictReader(io.StringIO(text))
    return [{str(name): _cell(value) for name, value in row.items()} for row in reader]


def where(rows: Rows, **wanted: Cell) -> list[Mapping[str, Any]]:
    """The rows whose cells are these.

    >>> where([{"d": 2, "p": 2}, {"d": 3, "p": 2}], d=3)
    [{'d': 3, 'p': 2}]
    """
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool | str | int):
        return str(value)
    return repr(float(value))  # type: ignore[arg-type]


def _cell(text: str | None) -> Cell:
    if not text:
        return None
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return None if isinstance(number, float) and math.isnan(number) else number
    return text
