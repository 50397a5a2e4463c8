"""A release as one page to publish: what came out, what it cost, what it rests on, how to read it.

Self-contained: no script, no network, everything escaped. The style follows the reader's choice of
light or dark, and the width of the screen.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from muhat._files import put
from muhat._text import escaped_html
from muhat.errors import InvalidInput
from muhat.privacy import cautions
from muhat.release.answer import Answer
from muhat.release.display import MOST_ROWS, certificate_lines
from muhat.release.panels import panels_of
from muhat.release.report_charts import charts
from muhat.release.report_style import STYLE
from muhat.release.report_words import (
    LEAD,
    as_point,
    in_plain_words,
    people,
    protected,
    reading,
    unit,
)

if TYPE_CHECKING:
    from muhat.release.outputs import Outputs

MOST_LINES = 500
"""The most lines of a table; those beyond the first ones are folded away."""

MOST_CHARTS = 12
"""The most pictures of one statistic."""

GENERATOR = '<meta name="generator" content="muhat report">'
"""What tells a report from other files."""


def report_page(
    release: Outputs, *, title: str | None = None, specification: str | None = None
) -> str:
    """The page as text."""
    named = release.named()
    heading = release.title if title is None else title
    sections, said = [], dict[str, None]()
    for number, (name, answer) in enumerate(named, start=1):
        # What holds for several statistics is said once, below the first of them.
        notes = [line for line in _notes(answer) if line not in said]
        sections.append(_statistic(number, name, answer, notes))
        said |= dict.fromkeys(notes)
    contents = ""
    if len(named) > 2:
        links = "".join(
            f'<li><a href="#s{number}">{_text(name)}</a></li>'
            for number, (name, _) in enumerate(named, start=1)
        )
        contents = f'<nav aria-label="Statistics"><ol>{links}</ol></nav>'
    body = [
        f"<header><h1>{_text(heading)}</h1><p>{LEAD}</p>{_facts(release)}{contents}</header>",
        "<main>",
        *sections,
        _cost(release),
        _assumed(release),
        _section("read", "How to read this page", _definitions(reading(release.answers))),
        _specification(specification),
        _digests(release),
        "</main>",
        f"<footer>Made by muhat. {_text(_number(release))}</footer>",
    ]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
{GENERATOR}
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{_text(heading)}</title>
<style>{STYLE}</style>
</head>
<body>
{"".join(body)}
</body>
</html>
"""


def write_report(path: str | os.PathLike[str], page: str) -> Path:
    """Write the page whole, in place of an earlier report and of no other file."""
    target = Path(path)
    named = f"{str(target)!r:.200}"
    if target.is_symlink():
        raise InvalidInput(f"{named} is a link, which is not followed; name a file.")
    if target.is_dir():
        raise InvalidInput(f"{named} is a folder; name a file in it, such as report.html.")
    if target.exists() and not _is_report(target):
        raise InvalidInput(
            f"{named} is there already, and is no report of a release: it is not written over."
        )
    put(target, page)
    return target


def _is_report(path: Path) -> bool:
    """Whether a file begins as a report does; a pipe or a device is not read."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return GENERATOR.encode() in file.read(500)
    except OSError:
        return False


def _facts(release: Outputs) -> str:
    """What a reader looks for first."""
    count = len(release.answers)
    facts = {
        "Promise": release.privacy.describe(),
        "Who is protected": unit(release.answers[0], release.unit),
        "Records": people(release.answers[0]),
        "Released": "one statistic" if count == 1 else f"{count} statistics for one promise",
    }
    cells = "".join(
        f"<div><dt>{term}</dt><dd>{_text(said)}</dd></div>" for term, said in facts.items()
    )
    return f'<dl class="facts">{cells}</dl>'


def _statistic(number: int, name: str, answer: Answer, notes: list[str]) -> str:
    """The pictures, the table and what to know about one statistic."""
    heading = name[:1].upper() + name[1:]
    if answer.failure is not None:
        said = (
            f"<p>No value came out; the promise is spent. The reason: {_text(answer.failure)}.</p>"
        )
        return _section(f"s{number}", heading, said)
    panels = panels_of(name, answer)
    drawn = charts(panels[:MOST_CHARTS])
    if len(panels) > MOST_CHARTS:
        drawn += f'<p class="quiet">The first {MOST_CHARTS} of {len(panels):,} pictures.</p>'
    return _section(f"s{number}", heading, f"{drawn}{_table(answer)}{_paragraphs(notes)}")


def _notes(answer: Answer) -> list[str]:
    """What to know about a statistic; its certificate in one line."""
    certified = certificate_lines(answer.certificate) if answer.certificate else []
    notes = [line for line in (*answer.notes(), *answer.remarks) if line not in certified]
    if answer.certificate is not None:
        good = f"{answer.certificate.metric}: {answer.certificate.written_error}"
        notes.append(f"{_sentence(good)} {answer.certificate.verdict()}")
    return notes


def _table(answer: Answer) -> str:
    """The first lines, and the others folded away."""
    header, *rows = answer.rows(MOST_LINES)
    first = header.index("value") if "value" in header else 1
    head = _line(header, "th", first)

    def table(lines: list[list[str]]) -> str:
        body = "".join(_line(row, "td", first) for row in lines)
        return (
            f'<div class="scroll" tabindex="0"><table><thead>{head}</thead>'
            f"<tbody>{body}</tbody></table></div>"
        )

    if len(rows) <= MOST_ROWS * 3 // 2:
        return table(rows)
    folded = rows[MOST_ROWS:]
    # The last line may say that there are more.
    words = f"{len(folded):,} more lines"
    return f"{table(rows[:MOST_ROWS])}<details><summary>{words}</summary>{table(folded)}</details>"


def _line(cells: list[str], tag: str, first: int) -> str:
    made = "".join(
        f"<{tag}{' class=n' if place >= first else ''}>{_text(cell)}</{tag}>"
        for place, cell in enumerate(cells)
    )
    return f"<tr>{made}</tr>"


def _cost(release: Outputs) -> str:
    """What was promised, and to whom, in words."""
    promise = release.privacy
    terms = {
        "Promise": promise.describe(),
        "In plain words": in_plain_words(promise, release.neighbors),
        "Who is protected": protected(release.answers[0], release.neighbors, release.unit),
        "Account": "The promise was charged to an account before the records were read; its head "
        "after that is below."
        if release.ledger_head is not None
        else "No account was kept: what else was released about these people adds to this.",
    }
    if (point := as_point(promise)) is not None:
        terms["As (ε, δ)"] = point
    if len(release.shares) > 1:
        terms["Shares"] = _sentence("; ".join(map(str, release.shares)))
    cautious = "".join(
        f'<p class="caution">Caution: {_text(line)}</p>'
        for line in cautions(promise, release.answers[0].n)
    )
    return _section("cost", "What it cost", _definitions(terms) + cautious)


def _number(release: Outputs) -> str:
    return f"Plan {release.plan_digest[:12]}."


def _assumed(release: Outputs) -> str:
    lines = dict.fromkeys(line for each in release.answers for line in each.assumptions)
    listed = "".join(f"<li>{_text(_sentence(line))}</li>" for line in lines)
    return _section("assumed", "What is assumed", f"<ul>{listed}</ul>") if lines else ""


def _sentence(line: str) -> str:
    """A line with a capital, unless it begins with a symbol such as n."""
    word = line.split(" ", 1)[0]
    return f"{line if len(word) == 1 and word != 'a' else line[:1].upper() + line[1:]}."


def _specification(text: str | None) -> str:
    if text is None:
        return ""
    lines = "\n".join(map(_text, text.expandtabs(4).splitlines()))
    return _section("specification", "The specification", f'<pre tabindex="0">{lines}</pre>')


def _digests(release: Outputs) -> str:
    """What ties the page to a plan and to an account."""
    told = {"Plan (SHA-256)": release.plan_digest}
    if release.ledger_head is not None:
        told |= {f"Account: {key}": str(value) for key, value in release.ledger_head.items()}
    rows = "".join(
        f"<div><dt>{_text(term)}</dt><dd><code>{_text(said)}</code></dd></div>"
        for term, said in told.items()
    )
    return _section("digests", "Digests", f'<dl class="terms">{rows}</dl>')


def _section(name: str, heading: str, content: str) -> str:
    return f'<section id="{name}"><h2>{_text(heading)}</h2>{content}</section>'


def _definitions(terms: dict[str, str]) -> str:
    rows = "".join(
        f"<div><dt>{_text(term)}</dt><dd>{_text(said)}</dd></div>" for term, said in terms.items()
    )
    return f'<dl class="terms">{rows}</dl>'


def _paragraphs(lines: Iterable[str]) -> str:
    listed = "".join(f"<li>{_text(line)}</li>" for line in lines)
    return f'<ul class="notes">{listed}</ul>' if listed else ""


def _text(text: object) -> str:
    return escaped_html(str(text))
