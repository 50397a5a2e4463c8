"""What the documents name exists, and every example of the docstrings runs."""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import re
from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import click
import pytest

import muhat

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_the_make_targets_of_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make ([\w-]+)", README, flags=re.M):
        assert re.search(rf"^{target}:", makefile, flags=re.M)


PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
LINK = re.compile(r"\]\(([^)#]*)#?([^)]*)\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_links_of_a_page_lead_somewhere(page):
    text = page.read_text()
    links = LINK.findall(text) + [(link, "") for link in re.findall(r'src(?:set)?="(.*?)"', text)]
    for link, anchor in links:
        if not link.startswith("http"):
            target = page.parent / link if link else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), anchor


def anchors(page: Path) -> set[str]:
    """What GitHub makes of the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_names_on_a_page_exist(page):
    """`mh.bounds.ball` and the like."""
    for name in set(re.findall(r"\bmh((?:\.[A-Za-z_]+)+)", page.read_text())):
        reduce(getattr, name[1:].split("."), muhat)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_options_on_a_page_exist(page):
    from muhat.cli import main

    known = {"--help", "--version", *options(main)}
    for words in re.findall(r"`([^`\n]*--[^`\n]*)`|^\$ (muhat .*)$", page.read_text(), flags=re.M):
        command = "".join(words)
        if not command.startswith(("python", "make", "pip")):
            assert set(re.findall(r"--[a-z][a-z-]*", command)) <= known, command


def options(command: click.Command) -> Iterator[str]:
    """All long options of a command and of the commands below it."""
    for parameter in command.params:
        yield from (
            name for name in [*parameter.opts, *parameter.secondary_opts] if name[:2] == "--"
        )
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from options(below)


def test_the_version_is_the_same_everywhere():
    for page in ("CITATION.cff", "docs/citing.md", "pyproject.toml"):
        found = re.search(
            r"version\s*[:=]\s*[{\"]?([\d.]+)",
            re.sub("cff-version.*", "", (ROOT / page).read_text()),
        )
        assert found is not None
        assert found[1] == muhat.__version__, page


def modules() -> list[str]:
    return [module.name for module in pkgutil.walk_packages(muhat.__path__, "muhat.")]


@pytest.mark.parametrize("name", modules())
def test_the_examples_of_the_docstrings_run(name):
    os.environ.pop("COLUMNS", None)
    found = doctest.testmod(importlib.import_module(name))
    assert found.failed == 0
