"""One page of all studies in a folder: self-contained HTML, made again from the CSV files.

No script, no network: tables and plots are inside the page. Each panel is a plot of its own, so
that they stand side by side on a screen and below each other on a telephone.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from muhat._files import put
from muhat.errors import InvalidInput
from muhat.studies import MODULES, find
from muhat.studies.drawing import figure_of, require_matplotlib, svg_of
from muhat.studies.study import Panel, Result, Rows, rows_from_csv, rows_to_csv

STYLE = """
:root { color-scheme: light dark; --ink: #1f2933; --quiet: #5b6773; --page: #ffffff;
  --card: #f4f6f8; --line: #d9dfe5; --link: #0b5cad;
  --yes: #00664a; --part: #8a5a00; --no: #a33000; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ee; --quiet: #a3afba; --page: #14181d;
  --card: #1d232a; --line: #36404a; --link: #7ab8f5;
  --yes: #4cc9a0; --part: #f0b849; --no: #ff8f66; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 68rem; padding: 1rem; background: var(--page); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  overflow-wrap: break-word; }
h1 { font-size: 1.6rem; line-height: 1.25; } h2 { font-size: 1.3rem; line-height: 1.3; }
a { color: var(--link); }
p { max-width: 46rem; }
.paper, .small { color: var(--quiet); font-size: .9rem; }
nav ul { list-style: none; padding: 0; }
nav li { border-top: 1px solid var(--line); padding: .5rem 0; display: flex; gap: .7rem;
  align-items: baseline; justify-content: space-between; flex-wrap: wrap; }
.badge { border: 1px solid currentColor; border-radius: 1rem; padding: .05rem .6rem;
  font-size: .8rem; font-weight: 600; white-space: nowrap; }
.yes { color: var(--yes); } .in-part { color: var(--part); } .no { color: var(--no); }
.not-tested { color: var(--quiet); }
section { border-top: 2px solid var(--line); margin-top: 2.2rem; padding-top: .4rem; }
.panels { display: grid; gap: .8rem; grid-template-columns: repeat(2, minmax(0, 1fr));
  margin: 1rem 0; }
.panels.one { grid-template-columns: minmax(0, 46rem); }
@media (max-width: 46rem) { .panels { grid-template-columns: minmax(0, 1fr); } }
.panels img { display: block; width: 100%; height: auto; background: #fff; border-radius: .4rem;
  border: 1px solid var(--line); }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: .4rem;
  max-height: 34rem; }
table { border-collapse: collapse; font-size: .82rem; line-height: 1.4; }
th, td { padding: .3rem .6rem; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { position: sticky; top: 0; background: var(--card); white-space: nowrap; }
td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td.long { min-width: 15rem; }
summary { cursor: pointer; color: var(--link); margin: .6rem 0; }
code { font-size: .85em; }
"""


FILE = "report.html"
TITLE = "muhat: the papers, rerun"
DAMAGE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    StopIteration,
    TypeError,
    ValueError,
)
"""What verdicts and panels raise if cells or rows are not what they were made for."""


def report(folder: Path) -> Path:
    """Write report.html into a folder of results, and return its path."""
    require_matplotlib()
    path = folder / FILE
    put(path, page_of(read(folder)))
    return path


def read(folder: Path) -> list[tuple[Result, dict[str, Any]]]:
    """Every study of the folder, as its CSV has it, and its record."""
    found = []
    for name in MODULES:
        table, record = folder / f"{name}.csv", folder / f"{name}.json"
        if not (table.is_file() and record.is_file()):
            continue
        try:
            about = json.loads(record.read_text(encoding="utf-8"))
            rows = rows_from_csv(table.read_text(encoding="utf-8"))
            result = Result(find(name), str(about["level"]), rows)
            _ = result.verdict, result.panels()
        except DAMAGE:
            raise InvalidInput(
                f"the results of {name} are damaged or of another version; run the study again."
            ) from None
        found.append((result, about))
    if not found:
        raise InvalidInput(
            f"{str(folder)!r:.200} has no results of studies; `muhat study all --out` makes them."
        )
    return found


def page_of(results: Sequence[tuple[Result, Mapping[str, Any]]]) -> str:
    """The page as text."""
    contents = "".join(
        f'<li><a href="#{r.study.name}">{_escaped(r.study.title)}</a>'
        f"{_badge(r.verdict.reproduced)}</li>"
        for r, _ in results
    )
    sections = "\n".join(_section(result, about) for result, about in results)
    levels = sorted({result.level for result, _ in results})
    used = results[0][1].get("versions", {})
    made = ", ".join(f"{name} {number}" for name, number in used.items())
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{TITLE}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{TITLE}</h1>
<p>What the papers behind muhat claim, what was measured, and whether it reproduced. Every number
in the paragraphs is computed from the tables. Settings: {_escaped(" and ".join(levels))}.</p>
<nav><ul>{contents}</ul></nav>
{sections}
<p class="small">Made with {_escaped(made)}. Rerun: <code>muhat study all</code>, then
<code>muhat study report</code>.</p>
</body>
</html>
"""


def _section(result: Result, about: Mapping[str, Any]) -> str:
    study, verdict = result.study, result.verdict
    panels = result.panels()
    pictures = "".join(map(_picture, panels))
    one = " one" if len(panels) == 1 else ""
    settings = json.dumps(about.get("settings", {}), ensure_ascii=False)
    opened = " open" if study.shown_rows is None else ""
    return f"""<section id="{study.name}">
<h2>{_escaped(study.title)} {_badge(verdict.reproduced)}</h2>
<p class="paper">{_escaped(study.paper)}</p>
<p><b>The claim:</b> {_escaped(study.claim)}</p>
<p><b>Measured:</b> {_escaped(verdict.paragraph)}</p>
<div class="panels{one}">{pictures}</div>
<details{opened}><summary>{_caption(result)}</summary>
{_table(result.rows, study.shown_rows, study.shown_columns)}</details>
<p class="small">Noise: {_escaped(study.noise)} Settings ({_escaped(result.level)}):
<code>{_escaped(settings)}</code> Numbers: {_download(result)}</p>
</section>"""


def _caption(result: Result) -> str:
    shown, total = result.study.shown_rows, len(result.rows)
    if shown is None or shown >= total:
        return f"All {total} rows"
    name = f"{result.study.name}.csv"
    return f"The first {shown} of {total} rows of {name}"


def _download(result: Result) -> str:
    name = f"{result.study.name}.csv"
    data = _data("text/csv;charset=utf-8", rows_to_csv(result.rows))
    return f'<a download="{name}" href="{data}">{name}</a>'


def _picture(panel: Panel) -> str:
    data = _data("image/svg+xml", svg_of(figure_of([panel])))
    return f'<img alt="{_escaped(panel.title)}" src="{data}">'


def _data(kind: str, text: str) -> str:
    """An address that holds the text itself."""
    return f"data:{kind};base64,{base64.b64encode(text.encode()).decode('ascii')}"


def _table(rows: Rows, most: int | None, columns: Sequence[str]) -> str:
    names = list(columns) or list(rows[0])
    head = "".join(f"<th>{_escaped(name)}</th>" for name in names)
    shown = rows if most is None else rows[:most]
    body = "".join(f"<tr>{''.join(_td(row.get(name)) for name in names)}</tr>" for row in shown)
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _td(value: object) -> str:
    if value is None:
        return "<td></td>"
    if isinstance(value, bool | str):
        text = str(value)
        return f"<td{' class=long' if len(text) > 40 else ''}>{_escaped(text)}</td>"
    text = str(value) if isinstance(value, int) else f"{value:.6g}"
    return f'<td class="number">{text}</td>'


def _badge(reproduced: str) -> str:
    words = {"yes": "reproduced", "in part": "reproduced in part", "no": "not reproduced"}
    shown = words.get(reproduced, reproduced)
    return f'<span class="badge {reproduced.replace(" ", "-")}">{shown}</span>'


def _escaped(text: object) -> str:
    return html.escape(str(text))
