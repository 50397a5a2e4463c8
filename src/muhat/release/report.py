"""A release as one page to publish: what came out, what it cost, what it rests on, how to read it.

Self-contained: no script, no network, everything escaped. The style follows the reader's choice of
light or dark, and the width of the screen.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from muhat._files import put
from muhat._text import escaped_html
from muhat.errors import InvalidInput
from muhat.privacy import Neighbors, Privacy, cautions
from muhat.release.answer import Answer
from muhat.release.display import MOST_ROWS, certificate_lines
from muhat.release.panels import panels_of
from muhat.release.report_charts import charts
from muhat.release.report_style import STYLE

if TYPE_CHECKING:
    from muhat.release.outputs import Outputs

MOST_LINES = 500
"""The most lines of a table; those beyond the first ones are folded away."""

MOST_CHARTS = 12
"""The most pictures of one statistic."""

DELTA = 1e-6
"""At which a promise of another kind is written as (ε, δ), which most readers have heard of."""

GENERATOR = '<meta name="generator" content="muhat report">'
"""What tells a report from other files."""

LEAD = (
    "These numbers were made from people's records, with random noise added so that they give away "
    "little about any one person: how little is stated under “What it cost”. The noise is of a "
    "known size, and every number comes with an interval that says how far off it may be."
)

VALUE = {
    "Value": "The statistic of the records, plus noise. It is written to two digits of its error: "
    "what lies below is noise.",
    "95 % interval: records (noise)": "It holds the exact statistic of these records, clipped to "
    "their bounds, in 95 of 100 such releases. It allows for the noise alone.",
}
POPULATION = {
    "95 % interval: population (noise and sampling)": "It holds the statistic of the population "
    "that the records are independent draws of, in 95 of 100 samples. It allows for the noise and "
    "for the choice of the sample; not for people who were never asked, nor for wrong answers. Use "
    "it to speak of more people than those in the data.",
}
RANKS = {
    "Rank error": "How many records may lie between the quantile that is printed and the exact "
    "one, in 95 of 100 such releases.",
}
OTHERS = {
    "One interval in twenty misses": "Each interval holds by itself. Among many of them some miss, "
    "so a single group that stands out slightly is no finding.",
    "Too few": "The noisy number of a group's records cannot be told from a handful, so nothing "
    "about them is printed. It does not mean that there is nobody.",
    "Numbers that should add up": "Each has its own noise, so a total may differ from the sum of "
    "its parts by the errors that are shown, and a small count may be below zero. Rounding that "
    "away would bias what is made of them.",
}
"""How the page is to be read."""


def report_page(
    release: Outputs, *, title: str | None = None, specification: str | None = None
) -> str:
    """The page as text."""
    named = release.named()
    heading = release.title if title is None else title
    sections = [
        _statistic(number, name, answer) for number, (name, answer) in enumerate(named, start=1)
    ]
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
        _reading(release),
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
        "Who is protected": _unit(release),
        "Records": _people(release),
        "Released": "one statistic" if count == 1 else f"{count} statistics for one promise",
    }
    cells = "".join(
        f"<div><dt>{term}</dt><dd>{_text(said)}</dd></div>" for term, said in facts.items()
    )
    return f'<dl class="facts">{cells}</dl>'


def _statistic(number: int, name: str, answer: Answer) -> str:
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
    certified = certificate_lines(answer.certificate) if answer.certificate else []
    notes = [line for line in answer.notes() if line not in certified]
    if answer.certificate is not None:
        good = f"{answer.certificate.metric}: {answer.certificate.written_error}"
        notes.append(f"{_sentence(good)} {answer.certificate.verdict()}")
    return _section(f"s{number}", heading, f"{drawn}{_table(answer)}{_paragraphs(notes)}")


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
        "In plain words": _plain_words(promise, release.neighbors),
        "Who is protected": _protected(release),
        "Account": "The promise was charged to an account before the records were read; its head "
        "after that is below."
        if release.ledger_head is not None
        else "No account was kept: what else was released about these people adds to this.",
    }
    if (point := _point(promise)) is not None:
        terms["As (ε, δ)"] = point
    cautious = "".join(
        f'<p class="caution">Caution: {_text(line)}</p>'
        for line in cautions(promise, release.answers[0].n)
    )
    return _section("cost", "What it cost", _definitions(terms) + cautious)


def _plain_words(promise: Privacy, neighbors: Neighbors) -> str:
    """What somebody can find out who knows all but one person, as how often a guess is wrong."""
    secret = neighbors is Neighbors.ADD_REMOVE
    between = (
        "whether a certain person is in these data"
        if secret
        else "which of two possible records a certain person has"
    )
    wrong = promise.certain_error()
    # Rounded down, as a promise is.
    often = f"{math.floor(100 * wrong)} of 100" if wrong >= 0.01 else "less than one of 100"
    least = "at least " if wrong >= 0.01 else "perhaps "
    return (
        f"Suppose somebody knows everything about everybody else, and guesses {between}. Without "
        f"this page half of such guesses are wrong; after reading it, {least}{often} still are. "
        "All numbers of the page together give away no more."
    )


def _point(promise: Privacy) -> str | None:
    """The promise as (ε, δ), if it is of another kind and implies one."""
    if promise.point is not None:
        return None
    epsilon = promise.epsilon_at(DELTA)
    if not math.isfinite(epsilon):
        return None
    return f"It implies (ε, δ)-differential privacy with ε = {_up(epsilon)} and δ = {DELTA:g}."


def _up(epsilon: float) -> str:
    """Three digits, rounded up."""
    decimals = max(0, 2 - math.floor(math.log10(epsilon))) if epsilon > 0 else 2
    return f"{math.ceil(epsilon * 10**decimals) / 10**decimals:g}"


def _unit(release: Outputs) -> str:
    most = release.answers[0].contributions
    return f"each person, with {'one record' if most == 1 else f'up to {most:,} records'}"


def _protected(release: Outputs) -> str:
    most = release.answers[0].contributions
    records = "one record" if most == 1 else f"{most:,} records"
    if release.neighbors is Neighbors.ADD_REMOVE:
        other, number = "the data without them", "secret, too"
    else:
        other, number = "data in which they are replaced by any others", "public"
    return (
        f"Everybody, with all of their records: a person has at most {records} that count. The "
        f"promise compares the data with {other}. How many records there are is {number}."
    )


def _people(release: Outputs) -> str:
    n = release.answers[0].n
    return "number kept secret" if n is None else f"{n:,}"


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


def _reading(release: Outputs) -> str:
    """What the words of the page mean, as far as it uses them."""
    said = set().union(*(each.table() for each in release.answers))
    terms = VALUE | (POPULATION if "population_lower" in said else {})
    terms |= (RANKS if "rank_error" in said else {}) | OTHERS
    return _section("read", "How to read this page", _definitions(terms))


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
