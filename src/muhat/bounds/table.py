"""Several lower bounds that belong together: a sequence that prints as a table."""

from __future__ import annotations

import decimal
import html
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from muhat.bounds.lower_bound import LowerBound


class BoundTable(ABC):
    """A sequence of lower bounds; subclasses add a title, rows and notes."""

    bounds: tuple[LowerBound, ...]

    def __iter__(self) -> Iterator[LowerBound]:
        return iter(self.bounds)

    def __len__(self) -> int:
        return len(self.bounds)

    def __getitem__(self, index: int) -> LowerBound:
        return self.bounds[index]

    @abstractmethod
    def _title(self) -> str:
        """One line: the promise and the problem."""

    @abstractmethod
    def _rows(self) -> list[list[str]]:
        """A header, then a line a bound; the second column holds the numbers."""

    @abstractmethod
    def _notes(self) -> list[str]:
        """Sentences under the table."""

    def describe(self) -> str:
        """The table for a terminal."""
        return "\n".join([self._title(), "", *aligned(self._rows()), "", *self._notes()]).rstrip()

    def __repr__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        head, *body = self._rows()
        lines = "".join(_line(row, "td") for row in body)
        small = "<br>".join(html.escape(note) for note in self._notes())
        return (
            f"<div><b>{html.escape(self._title())}</b><table><thead>{_line(head, 'th')}</thead>"
            f'<tbody>{lines}</tbody></table><p style="font-size:smaller">{small}</p></div>'
        )


def rounded_down(value: float) -> str:
    """Four digits, never more than the value.

    >>> rounded_down(0.011029)
    '0.01102'
    """
    four_digits = decimal.Context(prec=4, rounding=decimal.ROUND_DOWN)
    return f"{float(four_digits.create_decimal(repr(value))):.4g}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of text; the second column, the numbers, to the right."""
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    return [
        "   ".join(
            cell.rjust(width) if j == 1 else cell.ljust(width)
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _line(row: Sequence[str], tag: str) -> str:
    cells = (
        f'<{tag} style="padding:2px 12px 2px 0;text-align:{"right" if j == 1 else "left"}">'
        f"{html.escape(cell)}</{tag}>"
        for j, cell in enumerate(row)
    )
    return f"<tr>{''.join(cells)}</tr>"
