"""Every file that a page names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/**/*.md")],
    key=str,
)
NAMED = re.compile(r"`([\w./-]+\.(?:py|md|toml|svg))`")
LINKED = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
PLACES = ("", "src/muhat", "src", "tests", "docs", "docs/proofs")
ROOMS = ("src", "tests", "docs", "benchmarks", "scripts")
PATTERN = re.compile(r"NAME|PAPER|MODULE|ROOM")
"""Words that stand for a name."""


def kept() -> set[str]:
    """The files of the project, without what tools leave beside them."""
    found = [ROOT.glob("*.*"), *((ROOT / room).rglob("*.*") for room in ROOMS)]
    return {str(path.relative_to(ROOT)) for paths in found for path in paths}


def missing(text: str, folder: str, files: set[str]) -> list[str]:
    """What a page in this folder names or links to, and is nowhere.

    A name with a folder stands in one of `PLACES`, one without anywhere: a page about a room does
    not repeat it.
    """
    bare = {file.rpartition("/")[2] for file in files}
    named = [name for name in NAMED.findall(text) if not PATTERN.search(name)]
    lost = [
        name
        for name in named
        if not any(f"{place}/{name}".lstrip("/") in files for place in (*PLACES, folder))
        and not ("/" not in name and name in bare)
    ]
    linked = [name for name in LINKED.findall(text) if not (ROOT / folder / name).exists()]
    return lost + linked


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_that_a_page_names_exists(page):
    folder = str(page.parent.relative_to(ROOT))
    assert missing(page.read_text(), "" if folder == "." else folder, kept()) == []


def test_a_file_that_is_gone_is_noticed():
    text = "Code: `src/muhat/privacy.py`, `data/csv.py`; tests in `nowhere.py`; [page](none.md)."
    files = {"src/muhat/data/csv.py"}
    assert missing(text, "docs", files) == ["src/muhat/privacy.py", "nowhere.py", "none.md"]
