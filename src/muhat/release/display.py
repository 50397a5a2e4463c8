"""Releases as people read them, in a terminal and in a notebook; tables for plans too."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from muhat._text import joined, printable
from muhat.domains import Ball, Box
from muhat.privacy import Privacy, cautions
from muhat.release.certificate import Certificate
from muhat.release.population import shows_population

if TYPE_CHECKING:
    from muhat.release.release import Release

MOST_ROWS = 20

NOTHING = "no recorded values"

MISSING = {
    "drop": "Missing values are left out: the {0} of a column is that of its recorded values.",
    "records": "Records with a missing value are left out.",
    "center": "A missing value counts as the centre of the domain.",
    "none": "Nothing is missing, as was declared: every record counts in every column.",
}
"""What is printed of the rule for missing values."""

_BIASED = "if many are, the value is biased."


def release_text(release: Release) -> str:
    """A release for the terminal."""
    lines = [release_title(release), "", *table(release_rows(release)), ""]
    return joined([*lines, *release_notes(release)])


def release_html(release: Release) -> str:
    """A release for a notebook."""
    return page(release_title(release), release_rows(release), release_notes(release))


def release_title(release: Release) -> str:
    """One line: what it is and what it cost."""
    people = "n secret" if release.n is None else f"n = {release.n}"
    if release.averaged is not None:
        people += f", {release.averaged} averaged"
    return f"Private {release.statistic} · {release.privacy.describe()} · {people}"


def release_rows(release: Release) -> list[list[str]]:
    """The table of a release: a header, then a line a column."""
    if release.tells_population:
        from muhat.release.assumed_display import population_rows

        return population_rows(release)
    interval = "95 % interval" + (" (clipped)" if _is_about_a_learnt_set(release) else "")
    counts, wider = recorded_cells(release), population_cells(release)
    interval += ": records" * bool(wider)
    rows = [["column", "value", "standard error", interval, *wider[:1], *counts[:1]]]
    if release.noise is None:
        for column, value in zip(release.columns, release.value, strict=True):
            shown = "none" if release.failed else f"{value:.6g}"
            rows.append([column, shown, "unknown", "unknown"])
        return shortened(rows)
    lower, upper = release.interval()
    errors = release.noise.standard_error
    for place, column in enumerate(release.columns):
        value, error = release.value[place], errors[place]
        cells = [NOTHING, "", ""]
        if not release.empty[place]:
            ends = f"{rounded(lower[place], error)} … {rounded(upper[place], error)}"
            cells = [rounded(value, error), significant(error), ends]
        beside = (wider[place + 1 : place + 2], counts[place + 1 : place + 2])
        rows.append([column, *cells, *beside[0], *beside[1]])
    return shortened(rows)


def population_cells(release: Release) -> list[str]:
    """A header and the interval of every column for its population; [] if there is none."""
    if not shows_population(release):
        return []
    lower, upper = release.interval(target="population")
    cells = []
    for low, high, empty in zip(lower, upper, release.empty, strict=True):
        error = (high - low) / 4
        cells.append("" if empty else f"{rounded(low, error)} … {rounded(high, error)}")
    return ["95 % interval: population", *cells]


def recorded_cells(release: Release) -> list[str]:
    """A header and the noisy number of recorded values of every column; [] if none is known."""
    if not _counts_columns(release):
        return []
    recorded = release.recorded
    assert recorded is not None
    pairs = zip(recorded.value, recorded.standard_error, strict=True)
    cells = [
        f"{rounded(max(value, 0.0), 10 * error)} ± {significant(error)}" for value, error in pairs
    ]
    return ["recorded ± s.e.", *cells]


def _counts_columns(release: Release) -> bool:
    """Whether every column is of its own recorded values."""
    recorded = release.recorded
    of_columns = recorded is not None and len(recorded.value) == len(release.columns)
    return of_columns and release.missing == "drop"


def release_notes(release: Release) -> list[str]:
    """How good the release is, or why that cannot be said."""
    said = caution_lines(release.privacy, release.n)
    if release.failure is not None:
        return [*said, f"No value came out; the promise is spent. The reason: {release.failure}."]
    lines = [*missing_lines(release), *population_lines(release), *_learnt_lines(release)]
    return [*said, *lines, *_goodness(release)]


def population_lines(release: Release) -> list[str]:
    """What the two intervals are about, if there are two."""
    if not shows_population(release):
        return []
    values = "recorded values" if _counts_columns(release) else "records"
    other = "the mean of the population that they are independent draws of"
    if release.statistic == "sum":
        other = f"{release.n} times {other}"
    lines = [
        f"The first interval is for the {release.statistic} of these {values}, clipped to their "
        f"bounds: noise alone. The second is for {other}, clipped too."
    ]
    more = "population=True (--population) releases {}, at a little more noise."
    if release.squares is None:
        lines.append("No squares were released, so it allows for the largest sampling error.")
        if isinstance(release.domain, Box | Ball):
            lines[-1] += f" {more.format('them')}"
    elif release.squares.together:
        lines.append(
            "Squares were released of all columns together, so each is allowed the variance of "
            f"all. {more.format('those of each')}"
        )
    return lines


def caution_lines(privacy: Privacy, n: int | None) -> list[str]:
    """That the promise is worth little, if it is."""
    return [f"Caution: {sentence}" for sentence in cautions(privacy, n)]


def missing_lines(release: Release) -> list[str]:
    """What became of missing values, and how many records there were if that was secret."""
    recorded, by_column = release.recorded, _counts_columns(release)
    rule = "records" if release.missing == "drop" and not by_column else release.missing
    # Of a set that was found, `_learnt_lines` and `assumed_lines` say it in their own words.
    rule = None if rule == "center" and release.domain_is_learnt else rule
    lines = [MISSING[rule].format(release.statistic)] if rule else []
    if recorded is not None and not by_column:
        count, error = recorded.value[0], recorded.standard_error[0]
        which = "Complete records" if release.missing == "drop" else "Records"
        number = rounded(count, 10 * error)
        lines.append(f"{which}: about {number} (standard error {significant(error)}).")
    if release.empty.any():
        lines.append(
            f"{NOTHING.capitalize()}: their noisy number cannot be told from 0. Are these columns "
            "numbers, and are they the columns that were meant?"
        )
    return lines


def _is_about_a_learnt_set(release: Release) -> bool:
    """Whether errors are about records clipped to what was learnt from them, and nothing more."""
    return release.domain_is_learnt and release.bias is None


def _learnt_lines(release: Release) -> list[str]:
    if not _is_about_a_learnt_set(release):
        return []
    lines = [
        f"Clipped to {_learnt_set(release)} that was found privately; errors are about the clipped "
        "mean.",
        "How many records lie outside is not known; what they add is not in the interval."
        if release.outside is None
        else release.outside.describe(),
        *_whole_lines(release),
    ]
    if release.missing in (None, "center"):
        asked = release.mechanism.startswith(("local-", "shuffle-"))
        lines.append(
            "A missing value counts as the centre that was found: "
            + ("only people who have one should answer." if asked else _BIASED)
        )
    if release.unshrunk is not None:
        lines.append(
            "The value is drawn towards the mean of a smaller ball, which helps where noise is all "
            "that is left out; errors and intervals are those of the mean before that."
        )
    return lines


def _whole_lines(release: Release) -> list[str]:
    """Where the mean of all records lies, if that is known."""
    whole = release.record_mean
    if whole is None:
        return []
    ends = [rounded(end, whole.upper - whole.lower) for end in (whole.lower, whole.upper)]
    return [
        f"If no record lies beyond {whole.least:.6g} … {whole.most:.6g}, the mean of all records "
        f"is in {ends[0]} … {ends[1]} (95 %)."
    ]


def _learnt_set(release: Release) -> str:
    domain = release.domain
    radius = getattr(domain, "radius", None)
    if domain is None or radius is None:
        return "a set"
    if domain.dim > 1:
        return f"a ball of radius {significant(radius)}"
    middle = float(domain.center[0])
    return f"the interval {middle - radius:.6g} … {middle + radius:.6g}"


def _goodness(release: Release) -> list[str]:
    if release.unprojected is not None:
        return [
            "Projected onto a set where the exact value lies: free, and slightly biased, so no "
            "certificate. Errors and intervals are those before the projection."
        ]
    if release.mechanism == "ratio" and release.certificate is None:
        return ["A noisy sum divided by a noisy count: slightly biased, so no certificate."]
    if release.bias is not None:
        from muhat.release.assumed_display import assumed_lines

        return assumed_lines(release, release.bias)
    return certificate_lines(release.certificate)


def certificate_lines(certificate: Certificate | None) -> list[str]:
    """How good it is, in a few sentences."""
    if certificate is None:
        return ["No certificate: the value may be biased, and the bounds speak of unbiased ones."]
    return certificate.describe().splitlines()


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of text with aligned columns: the first to the left, numbers to the right."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    if len(rows[0]) == 2 and not _is_number(rows[min(1, len(rows) - 1)][1]):
        return [f"{row[0]:<{widths[0]}}   {row[1]}".rstrip() for row in rows]
    return [
        "   ".join(
            cell.ljust(width) if j == 0 else cell.rjust(width)
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def rounded(value: float, error: float) -> str:
    """A value to two digits of its error: what lies below is noise."""
    if not math.isfinite(error) or error <= 0:
        return f"{value:.6g}"
    decimals = 1 - math.floor(math.log10(error))
    if decimals > 12 or abs(value) >= 1e15:
        return f"{value:.6g}"
    return f"{value:,.{max(decimals, 0)}f}"


def significant(error: float) -> str:
    """An error to three digits."""
    if not math.isfinite(error):
        return "unknown"
    decimals = 2 - math.floor(math.log10(error)) if error > 0 else 0
    if decimals > 9 or error >= 1e15:
        return f"{error:.3g}"
    return f"{error:,.{max(decimals, 0)}f}"


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "").isdigit()


def shortened(rows: list[list[str]]) -> list[list[str]]:
    """At most MOST_ROWS lines: the first ones, and how many are left out."""
    if len(rows) <= MOST_ROWS + 1:
        return rows
    more = f"… {len(rows) - MOST_ROWS} more"
    return [*rows[:MOST_ROWS], [more, *[""] * (len(rows[0]) - 1)]]


def page(title: str, rows: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    """A title, a table and notes as HTML."""

    def line(row: Sequence[str], tag: str) -> str:
        cells = (
            f'<{tag} style="padding:2px 12px 2px 0;text-align:{"left" if j == 0 else "right"}">'
            f"{html.escape(printable(cell))}</{tag}>"
            for j, cell in enumerate(row)
        )
        return f"<tr>{''.join(cells)}</tr>"

    body = "".join(line(row, "td") for row in rows[1:])
    small = "<br>".join(html.escape(printable(note)) for note in notes)
    return (
        f"<div><b>{html.escape(printable(title))}</b><table><thead>{line(rows[0], 'th')}</thead>"
        f'<tbody>{body}</tbody></table><p style="font-size:smaller">{small}</p></div>'
    )
