"""Names that others chose, as text that is safe to print.

A column's name comes from a file, and may hold characters that steer a terminal, end a line, or
turn the text around them (escapes, line breaks, bidirectional and invisible ones). They are written
as Python writes them in a literal: "\\x1b", "\\n", "\\u202e".
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable


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


def _shown(letter: str) -> bool:
    """Spaces of other widths are Python's only unprintable characters that do no harm."""
    return letter.isprintable() or unicodedata.category(letter) == "Zs"


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
