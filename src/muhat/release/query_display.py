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
from muhat.release.query_table import query_names

if TYPE_CHECKING:
    from muhat.release.query_release import QueryRelease


def release_text(release: QueryRelease) -> str:
    """Answers for the terminal."""
    lines = [release_title(release), "", *table(release_rows(release)), ""]
    return joined([*lines, *release_notes(release)])


def release_html(release: QueryRelease) -> str:
    """Answers for a notebook."""
    return page(release_title(release), release_rows(release), release_notes(release))


def release_notes(release: QueryRelease) -> list[str]:
    """How good the answers are."""
    said = caution_lines(release.privacy, release.n)
    return [*said, *certificate_lines(release.certificate)]


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
