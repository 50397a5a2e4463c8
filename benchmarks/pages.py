"""What the pages of results have in common."""

from __future__ import annotations

import platform
from collections.abc import Iterable

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
