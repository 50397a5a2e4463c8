"""benchmarks/scale.py measures, judges and writes what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _benchmarks_are_found(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))


def seen(cpu, *, driver=100.0, sums="a"):
    from benchmarks.scale_cells import Seen

    return Seen(
        cpu=cpu,
        wall=cpu,
        driver_cpu=cpu,
        empty_cpu=1.0,
        empty_wall=1.0,
        driver=driver,
        jvm=0.0,
        worker=0.0,
        sums=sums,
    )


@pytest.mark.parametrize(("power", "answer"), [(1.0, "yes"), (1.04, "yes"), (1.1, "NO")])
def test_a_pass_that_grows_too_fast_is_told(power, answer):
    from benchmarks.scale import Series, judged
    from benchmarks.scale_tables import Shape

    shapes = tuple(Shape(10**exponent, 4, 8) for exponent in (5, 6, 7, 8))
    found = {("embedded", each): seen(1 + (each.rows / 10**6) ** power) for each in shapes}
    slope, memory = judged(Series("against n", shapes), found)
    assert slope.endswith(answer)
    # What costs less than starting a pass is not part of the slope.
    assert f"slope of log CPU time against log n {power:.3f}, over n from 1,000,000" in slope
    assert "is 1.00 of that at 100,000" in memory


def test_runs_of_a_cell_keep_the_least_time_and_the_most_memory():
    best = seen(2.0, driver=90.0).best(seen(3.0, driver=110.0))
    assert (best.cpu, best.driver) == (2.0, 110.0)
    with pytest.raises(AssertionError, match="different sums"):
        seen(2.0).best(seen(2.0, sums="b"))


def test_a_cell_is_measured_in_a_process_of_its_own(tmp_path):
    from benchmarks.scale import cell
    from benchmarks.scale_cells import measured
    from benchmarks.scale_tables import Shape

    columns, lists = (
        measured(cell(Shape(1000, 3, 4, kind), tmp_path, None)) for kind in (False, True)
    )
    assert columns.sums == lists.sums
    assert columns.empty_cpu > 0
    assert 10 < columns.driver < 1000


def test_the_table_of_the_page_is_that_of_the_results():
    """If not: python -m benchmarks.scale --write."""
    from benchmarks.pages import kept_place
    from benchmarks.scale_written import PAGE, RESULTS

    found = kept_place("benchmarks.scale").search(PAGE.read_text())
    assert found
    assert found[1].strip()
    assert RESULTS.read_text().endswith(found[1])
