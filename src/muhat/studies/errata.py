"""Mistakes of the five papers, each shown by a number that is computed when the study runs.

The statements stand in `errata_*.py`, a file for each paper, with the corrected ones that muhat
uses instead. Statements that no number can show (a wrong letter in a proof) are not listed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from muhat.studies import (
    errata_blog,
    errata_huang,
    errata_kamath,
    errata_nikolov_tang,
    errata_zou_liu_upadhyay,
)
from muhat.studies.drawing import COLOURS, QUIET, legend_below
from muhat.studies.mistakes import KINDS, Mistake
from muhat.studies.study import Panel, Progress, Row, Rows, Settings, Study, Verdict, tracked, where

MISTAKES: tuple[Mistake, ...] = (
    *errata_nikolov_tang.MISTAKES,
    *errata_blog.MISTAKES,
    *errata_zou_liu_upadhyay.MISTAKES,
    *errata_kamath.MISTAKES,
    *errata_huang.MISTAKES,
)

PAPERS = {
    "NT24": "Nikolov and Tang 2024",
    "B24": "the blog post of 2024",
    "ZLU25": "Zou, Liu and Upadhyay 2025",
    "K24": "Kamath et al. 2024",
    "HLY21": "Huang, Liang and Yi 2021",
}
FARTHEST = 1e4
"""Quotients beyond it are drawn at the edge."""


def measure(settings: Settings, progress: Progress) -> list[Row]:
    """A row for each mistake."""
    return [mistake.row() for mistake in tracked(MISTAKES, progress)]


def panels(rows: Rows) -> list[Panel]:
    """A panel for each paper: how far the printed and the corrected number are from the truth."""
    found = []
    for paper, name in PAPERS.items():
        chosen = where(rows, paper=paper)
        if chosen:
            title = name[0].upper() + name[1:]
            found.append(Panel(title, lambda axes, rows=chosen: _draw(axes, rows)))  # type: ignore[misc]
    return found


def _draw(axes: Any, rows: Rows) -> None:
    places = list(range(len(rows)))[::-1]
    ring = {"marker": "o", "markersize": 10, "markerfacecolor": "none", "markeredgewidth": 1.8}
    for column, label, marks in (
        ("printed", "as printed", {"marker": "X", "markersize": 7, "color": COLOURS[1]}),
        ("corrected", "corrected", {**ring, "color": COLOURS[0]}),
    ):
        quotients = [_quotient(row, column) for row in rows]
        axes.semilogx(quotients, places, linestyle="none", label=label, **marks)
    axes.axvline(1, color=QUIET, linewidth=1)
    axes.set_yticks(places, [_name(row) for row in rows], fontsize="small")
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlim(0.5 / FARTHEST, 2 * FARTHEST)
    axes.set_xticks([1 / FARTHEST, 0.01, 1, 100, FARTHEST], ["≤ 10⁻⁴", "0.01", "1", "100", "≥ 10⁴"])
    axes.minorticks_off()
    axes.set_xlabel("stated ÷ exact number")
    axes.grid(alpha=0.25)
    legend_below(axes, 2)


def _name(row: Mapping[str, Any]) -> str:
    """The place of a statement, with † if a machine may have misread it."""
    unsaid = " (left unsaid)" if row["kind"] == "unsaid" else ""
    return f"{row['place']}{unsaid}{' †' if row['source'] else ''}"


def _quotient(row: Mapping[str, Any], column: str) -> float:
    """Between the edges of the plot; 0 and a wrong sign are at the left one."""
    quotient = float(row[column]) / float(row["exact"])
    return min(max(quotient, 1 / FARTHEST), FARTHEST)


def verdict(rows: Rows) -> Verdict:
    """How many of the printed statements failed."""
    false, unsaid, loose = (where(rows, kind=kind) for kind in KINDS)
    failed = [row for row in false if row["shown"]]
    lost = [row for row in loose if row["shown"]]
    worst = max(lost, key=_loss)
    doubtful = sum(row["source"] is not None for row in rows)
    listed = ", ".join(
        f"{len(where(rows, paper=paper))} of {name}" for paper, name in PAPERS.items()
    )
    return Verdict(
        "no" if len(failed) == len(false) else "in part",
        f"{len(rows)} statements were tested: {listed}. Of {len(false)} that were thought false, "
        f"{len(failed)} fail by a number computed here, and their corrected forms hold. "
        f"{len(unsaid)} more leave something out that has to be added, and are not contradicted. "
        f"{len(lost)} of {len(loose)} others are true and lose a factor, the most in "
        f"{worst['paper']}, {worst['place']}: {_loss(worst):.1f}. {doubtful} of all these may be "
        "slips of the machine that read the PDF and should be compared with it. muhat uses the "
        "corrected forms.",
    )


def _loss(row: Mapping[str, Any]) -> float:
    """By which factor the corrected number is nearer to the exact one than the printed."""
    away = abs(math.log(float(row["printed"]) / float(row["exact"])))
    return math.exp(away - abs(math.log(float(row["corrected"]) / float(row["exact"]))))


STUDY = Study(
    name="errata",
    title="Errata: statements that a number contradicts, completes or sharpens",
    paper="; ".join(f"{short}: {name}" for short, name in PAPERS.items()),
    claim="The statements listed below, as they are printed.",
    noise="none: every number is computed.",
    settings={"quick": {}, "full": {}},
    measure=measure,
    panels=panels,
    verdict=verdict,
    shown_rows=None,
    shown_columns=(
        "paper",
        "place",
        "kind",
        "printed",
        "exact",
        "corrected",
        "the paper says",
        "what holds",
        "example",
        "source",
        "code",
    ),
)
