"""Writes docs/errata.md: mistakes of the papers, with the numbers of `muhat study run errata`.

python scripts/make_errata_page.py
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muhat.studies.errata import MISTAKES, PAPERS, verdict

TARGET = Path(__file__).parent.parent / "docs" / "errata.md"

OPENING = """\
# Errata

muhat implements what five texts prove. Each statement it rests on was derived again and computed; \
some did not survive. This page lists those that a number shows, made by \
`python scripts/make_errata_page.py` from what `muhat study run errata` measures.

{verdict}

Each line has one example: what the printed statement gives, the exact number, and what the \
corrected statement gives. The papers reached us as text that a machine read from PDF files: \
lines marked † may be its slips, and should be compared with the PDF before the authors are told.
"""
KINDS = {
    "false": "A number contradicts",
    "unsaid": "Not contradicted: something is left unsaid, and the number shows what it changes",
    "loose": "True, and sharper in muhat",
}
NUMBERS = ("printed", "exact", "corrected")


def main() -> None:
    TARGET.write_text(page())


def page() -> str:
    """The whole page."""
    rows = [_as_written(mistake.row()) for mistake in MISTAKES]
    parts = [OPENING.format(verdict=verdict(rows).paragraph)]
    for paper, name in PAPERS.items():
        parts.append(f"## {name[0].upper()}{name[1:]} ({paper})\n")
        for kind, heading in KINDS.items():
            chosen = [row for row in rows if row["paper"] == paper and row["kind"] == kind]
            if chosen:
                parts.append(f"{heading}:\n")
                parts.append("\n".join(line(row) for row in chosen) + "\n")
    return "\n".join(parts)


def _as_written(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as the study's table has it: an empty cell is None."""
    return {name: None if value == "" else value for name, value in row.items()}


def line(row: Mapping[str, Any]) -> str:
    """A statement, its correction and its numbers."""
    numbers = ", ".join(f"{what} {float(row[what]):.4g}" for what in NUMBERS)
    mark = " †" if row["source"] else ""
    place = str(row["place"])
    return escaped(
        f"- **{place[0].upper()}{place[1:]}**{mark}: {row['the paper says']}. "
        f"What holds: {row['what holds']}. "
        f"Example ({row['example']}): {numbers}."
    )


def escaped(text: str) -> str:
    """Without the underscores and bars that Markdown would read as its own."""
    return text.replace("_", r"\_").replace("|", r"\|")


if __name__ == "__main__":
    main()
