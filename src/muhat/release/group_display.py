"""Means of groups as people read them, in a terminal and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muhat._text import joined
from muhat.release.display import (
    caution_lines,
    page,
    rounded,
    shortened,
    significant,
    table,
)

if TYPE_CHECKING:
    from muhat.release.group_release import GroupRelease

NOTE = "A noisy sum divided by a noisy count for every group: slightly biased, so no certificate."


def release_text(release: GroupRelease) -> str:
    """Means of groups for the terminal."""
    lines = [release_title(release), "", *table(release_rows(release)), ""]
    return joined([*lines, *release_notes(release)])


def release_html(release: GroupRelease) -> str:
    """Means of groups for a notebook."""
    return page(release_title(release), release_rows(release), release_notes(release))


def release_notes(release: GroupRelease) -> list[str]:
    """How the means were made."""
    return [*caution_lines(release.cost, None), NOTE]


def release_title(release: GroupRelease) -> str:
    """One line: what it is and what it cost."""
    return f"Private means by {release.by} · {release.cost.describe()} · n secret"


def release_rows(release: GroupRelease) -> list[list[str]]:
    """A header, then a line a group and column."""
    rows = [[release.by, "column", "value", "standard error", "95 % interval"]]
    for group, column, value, error, low, high in zip(*release.table().values(), strict=True):
        interval = f"{rounded(low, error)} … {rounded(high, error)}"
        rows.append([str(group), column, rounded(value, error), significant(error), interval])
    return shortened(rows)
