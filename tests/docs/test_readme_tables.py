"""The tables of the README beside other systems are those of the study."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.pages import kept_place

from muhat.studies import peers_set, peers_table
from muhat.studies.study import rows_from_csv

ROOT = Path(__file__).parents[2]
ROWS = rows_from_csv((ROOT / "benchmarks" / "results" / "peers.csv").read_text())


def section():
    text = (ROOT / "README.md").read_text()
    return text.partition("## Beside other systems\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("table", [peers_table.abilities(), peers_table.measured(ROWS)])
def test_a_table_is_that_of_the_study(table):
    assert f"\n{table}\n" in section()


def test_every_system_is_told_what_it_does_and_muhat_what_it_does_not():
    assert all(len(how) == len(peers_table.SYSTEMS) for how in peers_table.ABLE.values())
    lacking = [what for what, how in peers_table.ABLE.items() if how[0].startswith("no")]
    assert len(lacking) >= 4
    versions = {row["library"]: str(row["version"] or "") for row in ROWS if row["version"]}
    for named in peers_table.SYSTEMS[1:]:
        name, _, version = named.rpartition(" ")
        (library,) = [each for each, shown in peers_set.NAMES.items() if shown == name]
        assert versions[library].startswith(f"v{version}")


def test_the_page_says_who_errs_less_in_the_rows_it_shows():
    own = [row for row in ROWS if row["job"] == "set"]
    verdict = peers_set.verdict(own)
    assert verdict.reproduced == "yes"
    assert "Measured errors of both are smaller" not in verdict.paragraph
    assert "No peer has a smaller error of both" in section()


def test_what_a_release_costs_is_what_was_measured():
    """If not: python -m benchmarks.engines --write."""
    found = kept_place("benchmarks.engines").search((ROOT / "README.md").read_text())
    assert found
    assert found[1].strip()
    assert found[1] in (ROOT / "benchmarks" / "results" / "engines.md").read_text()
