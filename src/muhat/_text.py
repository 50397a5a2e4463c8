"""Text, tables and pages that are safe to print, whatever names others chose.

A column's name comes from a file, and may hold characters that steer a terminal, end a line, or
turn the text around them (escapes, line breaks, bidirectional and invisible ones). They are written
as Python writes them in a literal: "\\x1b", "\\n", "\\u202e".
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Collection, Iterable, Sequence

Rows = Sequence[Sequence[str]]


def printable(text: str) -> str:
    """The text with everything escaped that is no visible character or plain space.

    >>> print(printable("in\\x1b[2Jcome"), printable("a\\nb"), printable("\\u202etxt"))
    in\\x1b[2Jcome a\\nb \\u202etxt
    >>> printable("Größe in €, 年収")
    'Größe in €, 年収'
    """
    if text.isprintable():
        return text
    return "".join(letter if _shown(letter) else _escaped(letter) for letter in text)


def joined(lines: Iterable[str]) -> str:
    """A text of lines, none of which can begin another one."""
    return "\n".join(map(printable, lines))


def table(rows: Rows, right: Collection[int] | None = None) -> list[str]:
    """Lines of text with aligned columns: those that are listed to the right.

    Left out, these are all but the first; of two columns the second only if it has numbers.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    if right is None:
        words = len(rows[0]) == 2 and not _is_number(rows[min(1, len(rows) - 1)][1])
        right = () if words else range(1, len(rows[0]))
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    return [
        "   ".join(
            cell.rjust(width) if j in right else cell.ljust(width)
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def page(title: str, rows: Rows, notes: Iterable[str], right: Collection[int] | None = None) -> str:
    """A title, a table and notes as HTML; columns to the right are those listed, or all but one."""

    def line(row: Sequence[str], tag: str) -> str:
        sides = (
            "right" if (j if right is None else j in right) else "left" for j in range(len(row))
        )
        cells = (
            f'<{tag} style="padding:2px 12px 2px 0;text-align:{side}">{escaped_html(cell)}</{tag}>'
            for side, cell in zip(sides, row, strict=True)
        )
        return f"<tr>{''.join(cells)}</tr>"

    body = "".join(line(row, "td") for row in rows[1:])
    return (
        f"<div><b>{escaped_html(title)}</b><table><thead>{line(rows[0], 'th')}</thead>"
        f"<tbody>{body}</tbody></table>"
        f'<p style="font-size:smaller">{"<br>".join(map(escaped_html, notes))}</p></div>'
    )


def escaped_html(text: str) -> str:
    """The text for a page, in which it can neither steer nor mark up anything."""
    return html.escape(printable(text))


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "").isdigit()


def _shown(letter: str) -> bool:
    """Spaces of other widths are Python's only unprintable characters that do no harm."""
    return letter.isprintable() or unicodedata.category(letter) == "Zs"


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
