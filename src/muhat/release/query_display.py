"""Answers to linear queries as people read them, in a terminal and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muhat._text import joined
from muhat.release.display import (
    MOST_ROWS,
    caution_lines,
    certificate_lines,
    page,
    rounded,
    significant,
    table,
)
from muhat.release.fields import CONFIDENCE
from muhat.release.query_table import query_names

if TYPE_CHECKING:
    from muhat.release.query_release import QueryRelease

MISSING = {
    "drop": "A record whose {names} is missing or not declared is left out: the counts are of "
    "recorded values.",
    "other": 'A missing or undeclared {names} counts as "other".',
    "default": "A missing or undeclared {names} counts as the default that was declared.",
    "none": "No {names} is missing or undeclared, as was declared; one that is counts as the first "
    "category.",
}
"""What becomes of missing values, in words that follow every table."""


def release_text(release: QueryRelease) -> str:
    """Answers for the terminal."""
    lines = [release_title(release), "", *table(release_rows(release)), ""]
    return joined([*lines, *release_notes(release)])


def release_html(release: QueryRelease) -> str:
    """Answers for a notebook."""
    return page(release_title(release), release_rows(release), release_notes(release))


def release_notes(release: QueryRelease) -> list[str]:
    """What became of missing values, and how good the answers are."""
    said = [*caution_lines(release.privacy, release.n), *missing_lines(release)]
    return [*said, *certificate_lines(release.certificate)]


def missing_lines(release: QueryRelease) -> list[str]:
    """The rules for missing values that were used, and how many values are recorded."""
    lines = []
    for rule, words in MISSING.items():
        named = zip(release.attributes.names, release.missing, strict=False)
        names = [name for name, used in named if used == rule]
        if len(names) > MOST_ROWS:
            names = [*names[:MOST_ROWS], "…"]
        if names:
            lines.append(words.format(names=" or ".join(names)))
    if release.recorded is not None and release.recorded_noise is not None:
        (half,) = release.recorded_noise.half_widths(CONFIDENCE, joint=False)
        low, about, high = (
            f"{_possible(release, release.recorded + shift):,}" for shift in (-half, 0, half)
        )
        of_all = "" if release.n is None else f" of {release.n:,}"
        lines.append(f"Recorded: about {about} records (95 % interval {low} … {high}){of_all}.")
    return lines


def _possible(release: QueryRelease, number: float) -> int:
    """A noisy number of records as one that can be."""
    whole = max(round(number), 0)
    return whole if release.n is None else min(whole, release.n)


def release_title(release: QueryRelease) -> str:
    """One line: what it is and what it cost."""
    people = "n secret" if release.n is None else f"n = {release.n}"
    return (
        f"Private answers · {release.workload.describe()} · {release.privacy.describe()} · {people}"
    )


def release_rows(release: QueryRelease) -> list[list[str]]:
    """The table of a release: a header, then a line an answer, the first ones."""
    lower, upper = release.interval()
    errors = release.standard_error
    header, names = query_names(release.workload, release.attributes, MOST_ROWS)
    rows = [[header, "value", "standard error", "95 % interval"]]
    for i, name in enumerate(names):
        interval = f"{rounded(lower[i], errors[i])} … {rounded(upper[i], errors[i])}"
        rows.append([name, rounded(release.value[i], errors[i]), significant(errors[i]), interval])
    if len(errors) > MOST_ROWS:
        rows.append([f"… {len(errors) - MOST_ROWS:,} more", "", "", ""])
    return rows
