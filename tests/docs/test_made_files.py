"""Files under docs/ that scripts write are what the scripts write now."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_figure_of_the_readme_is_what_its_script_draws(theme):
    """Words exactly; numbers to a tenth of a pixel or a unit of their last digit."""
    drawn = runpy.run_path(str(ROOT / "scripts" / "make_readme_figure.py"))["picture"](theme)
    kept = (ROOT / "docs" / "images" / f"noise-{theme}.svg").read_text()
    assert NUMBER.sub("#", drawn) == NUMBER.sub("#", kept)
    pairs = zip(NUMBER.findall(drawn), NUMBER.findall(kept), strict=True)
    assert all(abs(float(ours) - float(theirs)) <= 0.11 for ours, theirs in pairs)
    assert words(drawn) == words(kept)


def words(picture: str) -> list[str]:
    """The texts of a picture, its errors among them."""
    return re.findall(r">([^<>\n]+)</text>", picture)


def test_the_errata_page_has_the_numbers_of_the_study():
    """If not: python scripts/make_errata_page.py."""
    page = runpy.run_path(str(ROOT / "scripts" / "make_errata_page.py"))["page"]()
    assert (ROOT / "docs" / "errata.md").read_text() == page


def test_the_table_of_certificates_has_the_numbers_of_its_plans():
    """If not: python scripts/make_bounds_table.py."""
    table = runpy.run_path(str(ROOT / "scripts" / "make_bounds_table.py"))["table"]()
    assert table in (ROOT / "docs" / "theory.md").read_text()


@pytest.mark.slow
def test_the_table_of_fewer_honest_people_is_what_its_script_computes():
    """If not: python scripts/make_honest_table.py."""
    table = runpy.run_path(str(ROOT / "scripts" / "make_honest_table.py"))["table"]()
    assert table in (ROOT / "docs" / "protocols.md").read_text()
