"""Queries that are tables of counts are planned with the counts of a set, where that is better."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import muhat as mh
from muhat.noise.kinds import NoiseKind
from muhat.planning.moments import CellMoments
from muhat.planning.statistic_set import SetOfStatistics, _shown_merit
from muhat.planning.terms import Terms

CELLS = {"region": ["n", "s", "w"], "sex": ["f", "m"], "year": [1, 2, 3, 4]}
COMPLETE = mh.Schema({"pay": (0, 100), **CELLS}, complete=[*CELLS])
TWO_WAY = mh.Queries(
    mh.workloads.marginals((4, 2, 3), order=2), columns=["year", "sex", "region"], name="two-way"
)
ASKED = [mh.Count(by=["region", "sex"]), mh.Mean("pay", by="region"), TWO_WAY]


def table(n: int = 600) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    drawn = {name: rng.choice(cells, n) for name, cells in CELLS.items()}
    return {"pay": rng.uniform(0, 100, n), **drawn}


def histogram(data: dict[str, Any], *names: str) -> np.ndarray:
    codes = [np.searchsorted(CELLS[name], data[name]) for name in names]
    found = np.zeros([len(CELLS[name]) for name in names])
    np.add.at(found, tuple(codes), 1)
    return found


@pytest.mark.parametrize("n", [None, 600])
def test_marginal_queries_share_the_noise_of_counts_and_err_less(n: int | None) -> None:
    plan = mh.plan(ASKED, schema=COMPLETE, privacy=mh.ZCDP(0.5), n=n)
    (part,) = plan.parts
    assert isinstance(part.mechanism, CellMoments)
    assert [each.name for each in plan.statistics] == [each.name for each in ASKED]
    terms = Terms.checked(mh.ZCDP(0.5), n)
    apart = SetOfStatistics._sorted(NoiseKind.NORMAL, ASKED, COMPLETE, terms, (), {})
    together = SetOfStatistics.of(ASKED, COMPLETE, terms)
    assert _shown_merit(together) < _shown_merit(apart)
    assert "Planned together, they have" in plan.describe()
    release = mh.plan(ASKED, schema=COMPLETE, privacy=mh.ZCDP(1e9), n=n).release(table())
    exact = TWO_WAY.workload @ histogram(table(), "year", "sex", "region").ravel()
    assert release["two-way"].value == pytest.approx(exact, abs=0.01)


def test_their_noise_is_what_is_said_of_it() -> None:
    """A mean square over 26 answers and 200 releases: 5.5 deviations, √(2/5,200) each at most."""
    plan = mh.plan(ASKED, schema=COMPLETE, privacy=mh.ZCDP(0.5), n=None)
    data = table()
    exact = TWO_WAY.workload @ histogram(data, "year", "sex", "region").ravel()
    (part,) = plan.parts
    source = part.mechanism.open(data, None)
    answers = [part.mechanism.answers(source)[-1] for _ in range(200)]
    first = answers[0]
    assert np.sqrt(np.diag(first.covariance)) == pytest.approx(first.standard_error)
    whitened = np.array([(each.value - exact) / each.standard_error for each in answers])
    # Answers are correlated: the eigenvalues of their correlations say how much a mean varies.
    scales = first.standard_error
    values = np.linalg.eigvalsh(first.covariance / np.outer(scales, scales))
    deviation = np.sqrt(2 * (values**2).sum() / len(answers)) / len(scales)
    assert abs((whitened**2).mean() - 1) <= 5.5 * deviation
    assert abs((whitened**2).mean() - 1.5) > 5.5 * deviation


def test_a_histogram_in_groups_comes_in_the_order_of_its_workload() -> None:
    schema = mh.Schema({"pay": (0, 100), **CELLS})
    queries = mh.Queries(mh.workloads.identity((4, 3)), columns=["year", "region"], by="sex")
    asked = [mh.Count(by=["region", "sex"]), queries]
    plan = mh.plan(asked, schema=schema, privacy=mh.ZCDP(1e9), n=None)
    assert len(plan.parts) == 1
    release = plan.release(table())
    exact = histogram(table(), "sex", "year", "region").ravel()
    found = release[queries.name]
    assert found.value == pytest.approx(exact, abs=0.01)
    # Records of other values are left out, and how many are not follows from the answers.
    assert found.recorded == pytest.approx(600, abs=0.1)
    again = mh.Release.from_json(release.to_json())
    assert again[queries.name].value.tolist() == found.value.tolist()


def test_queries_that_are_no_counts_of_the_set_stay_apart() -> None:
    drops = mh.Schema({"pay": (0, 100), **CELLS})
    running = mh.Queries(mh.workloads.prefix(4), columns="year")
    for schema, asked, promise in (
        (drops, [ASKED[0], TWO_WAY], mh.ZCDP(0.5)),
        (COMPLETE, [ASKED[0], running], mh.ZCDP(0.5)),
        (COMPLETE, [TWO_WAY], mh.ZCDP(0.5)),
        (COMPLETE, [ASKED[0], TWO_WAY], mh.PureDP(1.0)),
    ):
        names = [part.name for part in mh.plan(asked, schema=schema, privacy=promise, n=None).parts]
        assert asked[-1].name in names


def test_a_target_of_queries_is_met_beside_counts() -> None:
    wished = mh.Queries(
        TWO_WAY.workload, columns=TWO_WAY.columns, name="two-way", target={"standard_error": 2.0}
    )
    plan = mh.plan([*ASKED[:2], wished], schema=COMPLETE, privacy=mh.ZCDP(2.0), n=None)
    assert plan["two-way"].standard_error <= 2.0
    with pytest.raises(mh.Impossible, match="two-way"):
        mh.plan([*ASKED[:2], wished], schema=COMPLETE, privacy=mh.ZCDP(0.1), n=None)
    least = mh.privacy_for(statistics=[*ASKED[:2], wished], schema=COMPLETE, n=None, kind="zcdp")
    assert 0.1 < least.amounts[0] < 2


def test_a_table_by_years_costs_a_root_where_a_person_has_one_row_a_year() -> None:
    asked = [mh.Queries(mh.workloads.identity((4, 2)), columns=["year", "sex"])]

    def error(rows: int, each: str | None) -> Any:
        known = {"pay": (0, 100), **CELLS}
        schema = mh.Schema(known, unit="person", max_rows=rows, one_row_per=each, complete=True)
        plan = mh.plan(asked, schema=schema, privacy=mh.GDP(1.0), n=None)
        return plan.statistics[0].standard_error if plan.statistics else plan.standard_error.max()

    assert error(4, None) == pytest.approx(4 * error(1, None), rel=1e-6)
    assert error(4, "year") == pytest.approx(2 * error(1, None), rel=1e-6)
    data = {**table(), "person": np.arange(600) // 4}
    given = mh.Schema({"pay": (0, 100), **CELLS}, unit="person", max_rows=4, one_row_per="year")
    release = mh.plan(asked, schema=given, privacy=mh.ZCDP(1e9), n=None).release(data)
    pairs = {(person, year) for person, year in zip(data["person"], data["year"], strict=True)}
    assert release.value.sum() == pytest.approx(len(pairs), abs=0.1)


def test_two_queries_of_the_same_cells_are_planned_together() -> None:
    columns = ["year", "sex", "region"]
    full = mh.Queries(mh.workloads.identity((4, 2, 3)), columns=columns, name="all")
    plan = mh.plan([full, TWO_WAY], schema=COMPLETE, privacy=mh.ZCDP(0.5), n=None)
    assert len(plan.parts) == 1
    assert "Planned together" in plan.describe()
    release = mh.plan([full, TWO_WAY], schema=COMPLETE, privacy=mh.ZCDP(1e9), n=None).release(
        table()
    )
    exact = histogram(table(), *columns).ravel()
    assert release["all"].value == pytest.approx(exact, abs=0.01)
    assert release["two-way"].value == pytest.approx(TWO_WAY.workload @ exact, abs=0.01)
