"""What the pages of results have in common."""

from __future__ import annotations

import argparse
import platform
import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np

import muhat as mh


def versions() -> str:
    """What the numbers of a page were made with."""
    return f"muhat {mh.__version__}, numpy {np.__version__}, Python {platform.python_version()}"


def fenced(lines: Iterable[str]) -> str:
    """Lines whose spaces are kept."""
    return "\n".join(["```", *lines, "```\n"])


def shown(title: str, header: str, lines: Iterable[str]) -> list[str]:
    """The header and the lines, each printed as it comes."""
    print(f"\n{title}\n{header}", flush=True)
    kept = [header]
    for line in lines:
        print(line, flush=True)
        kept.append(line)
    return kept


def markdown(table: Sequence[Sequence[str]]) -> str:
    """A table, its first row the header."""
    header, *rows = ["| " + " | ".join(row) + " |" for row in table]
    return "\n".join([header, "|---" * len(table[0]) + "|", *rows]) + "\n"


def kept_place(module: str) -> re.Pattern[str]:
    """The place of a page for the table that a benchmark writes; its group is the table."""
    opened = re.escape(f"<!-- written by python -m {module} --write -->\n")
    return re.compile(f"(?<={opened})\n(.*?)\n(?=<!-- end -->\n)", flags=re.S)


def with_table(page: str, module: str, table: str) -> str:
    """The page with the table in the place that is kept for it."""
    return kept_place(module).sub(lambda _: f"\n{table}\n", page, count=1)


def from_shell(main: Callable[[int, bool], None], rows: int) -> None:
    """Run a benchmark of so many rows, whose page is written or not, as the shell says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=rows)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    main(given.rows, given.write)
