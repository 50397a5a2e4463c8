"""Every example of the README and of docs/ runs and gives what the page shows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from examples import agrees, blocks, differences

from muhat.demo import SALARIES

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "salaries.csv").write_bytes(SALARIES.read_bytes())
    (tmp_path / "wagepan.csv").write_text(like_wagepan())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def like_wagepan() -> str:
    """Drawn rows like those of the table that docs/publish.md is about, which is not shipped."""
    rng = np.random.default_rng(1980)
    lines = ["nr,year,union,wage"]
    for person in range(545):
        for year in range(1980, 1988):
            union = "yes" if rng.random() < 0.25 else "no"
            lines.append(f"{person},{year},{union},{rng.lognormal(1.7, 0.5):.2f}")
    return "\n".join(lines) + "\n"


LONG = {"protocols.md"}
TIMED = [pytest.param(page, marks=[pytest.mark.slow] * (page.name in LONG)) for page in PAGES]


@pytest.mark.parametrize("page", TIMED, ids=lambda page: page.name)
def test_the_examples_of_a_page_give_what_it_shows(page, folder):
    assert not list(differences(page.read_text(), folder))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_is_run_or_is_set_up(page):
    for language, text in blocks(page.read_text()):
        assert language in ("python", "console", "sh", "toml", "bibtex"), text


WRONG = {
    "a number": "```python\n1 / 3  # → 0.334\n```",
    "a word": "```python\nimport muhat as mh\nmh.ZCDP(rho=0.5)  # → ZCDP(rho=0.4)\n```",
    "an option": "```console\n$ muhat mean salaries.csv --bonds 0:1\n```",
    "an output": "```console\n$ muhat --version\nmuhat, version 77\n```",
    "a row": (
        "```console\n$ muhat quantile salaries.csv --columns age --lower 0 --upper 99 --rho 1\n"
        "column   quantile   value\nage   0.5   45 … 46\n```"
    ),
}


@pytest.mark.parametrize("page", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_example_is_noticed(page, folder):
    assert list(differences(page, folder))


def test_numbers_are_compared_up_to_the_digits_shown():
    assert agrees(1.05236, "1.052")
    assert agrees(12345.4, "12,345")
    assert not agrees(1.05236, "1.053")
