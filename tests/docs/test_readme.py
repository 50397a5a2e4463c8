"""Every example of the README and of the docstrings runs."""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import muhat
from muhat.demo import SALARIES

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
MUHAT = [sys.executable, "-c", "from muhat.cli import main; main()"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "salaries.csv").write_bytes(SALARIES.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.S)


def test_the_python_of_the_readme_runs_and_says_what_it_says(folder):
    space: dict[str, object] = {}
    for block in blocks("python"):
        exec(block, space)
    assert space["release"].certificate.ratio == pytest.approx(1.052, abs=1e-3)
    assert str(space["ledger"].remaining) == "0.9-zCDP"
    assert muhat.privacy_for(domain=space["ball"], n=1000, error=0.01) == muhat.ZCDP(rho=0.2)


def test_the_commands_of_the_readme_print_what_it_shows(folder):
    """Up to the noise: the digits of values and intervals are masked."""
    for block in blocks("console"):
        command, shown = block.split("\n", 1)
        arguments = shlex.split(command.removeprefix("$ muhat "))
        done = subprocess.run([*MUHAT, *arguments], capture_output=True, text=True, check=True)
        ours, theirs = (masked(text) for text in (shown, done.stdout))
        assert ours == theirs


def masked(text: str) -> list[str]:
    lines = [re.sub(r"\s+", " ", line).strip() for line in text.strip().splitlines()]
    return [re.sub(r"[\d,.]+", "#", line) if "…" in line else line for line in lines]


def test_the_make_targets_of_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make ([\w-]+)", "\n".join(blocks("sh")), flags=re.M):
        assert re.search(rf"^{target}:", makefile, flags=re.M)


def test_the_links_of_the_documents_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            if not link.startswith("http"):
                assert (page.parent / link).exists(), f"{page.name}: {link}"


def modules() -> list[str]:
    return [module.name for module in pkgutil.walk_packages(muhat.__path__, "muhat.")]


@pytest.mark.parametrize("name", modules())
def test_the_examples_of_the_docstrings_run(name):
    os.environ.pop("COLUMNS", None)
    found = doctest.testmod(importlib.import_module(name))
    assert found.failed == 0
