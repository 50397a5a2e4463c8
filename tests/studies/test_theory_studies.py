"""The studies of theory: numbers that are known otherwise, and verdicts that notice a change."""

from __future__ import annotations

import importlib
import itertools
import math
from pathlib import Path

import numpy as np
import pytest

import muhat as mh
from muhat.ellipsoids import smallest_ellipsoid
from muhat.studies import blog, errata, mistakes, nikolov_tang, zou_liu_upadhyay
from muhat.studies.drawing import figure_of
from muhat.studies.mistakes import Numbers, shows
from muhat.studies.study import Result, rows_from_csv, rows_to_csv, where
from muhat.studies.zou_liu_upadhyay import FLOOR, OPTIMUM, PAPER_TREE, ROOT, SCHATTEN, TREE

INF = math.inf
PAGE = Path(__file__).parents[2] / "docs" / "errata.md"
SMALL = {
    "nikolov-tang": {
        "seed": 0,
        "orders": (1, 2),
        "ps": (2.0, INF),
        "tensor_dims": (2, 3),
        "marginal_dims": (4, 100_000),
        "rhos": (0.001, 0.01, 0.1, 0.5, 1.0),
    },
    "zou-liu-upadhyay": {
        "lengths": (64, 128),
        "ps": (2.0, 4.0, INF),
        "parity_dims": (4, 6),
        "parity_width": 2,
        "moment_ps": (2.0, 100.0),
        "epsilon": 0.1,
        "delta": 1e-9,
    },
    "blog": {"n": 10**6, "epsilon": 1.0, "delta": 1e-6, "dims": (1, 100, 529, 530, 10**4, 10**5)},
    "errata": {},
}
MODULES = {m.STUDY.name: m for m in (nikolov_tang, zou_liu_upadhyay, blog, errata)}


@pytest.fixture(scope="module")
def measured():
    found = {}
    for name, module in MODULES.items():
        rows = module.STUDY.measure(SMALL[name], lambda part: None)
        found[name] = rows_from_csv(rows_to_csv(rows))
    return found


def changed(rows, **to):
    """The rows with some cells replaced where they have a number."""
    return [
        {name: to.get(name, value) if value is not None else None for name, value in row.items()}
        for row in rows
    ]


@pytest.mark.parametrize("name", SMALL)
def test_every_panel_has_lines_labels_and_nothing_empty(name, measured):
    result = Result(MODULES[name].STUDY, "quick", measured[name])
    panels = result.panels()
    figure = figure_of(panels)
    assert len(figure.axes) == len(panels)
    for axes in figure.axes:
        assert axes.get_xlabel()
        assert axes.get_title(loc="left")
        assert axes.get_ylabel() or len(axes.get_yticklabels()) > 2
        drawn = [line for line in axes.lines if np.isfinite(line.get_ydata()).any()]
        assert drawn
        assert axes.get_legend() is not None


@pytest.mark.parametrize(
    ("name", "reproduced"),
    [
        ("nikolov-tang", "yes"),
        ("zou-liu-upadhyay", "in part"),
        ("blog", "in part"),
        ("errata", "no"),
    ],
)
def test_verdicts(name, reproduced, measured):
    assert MODULES[name].STUDY.verdict(measured[name]).reproduced == reproduced


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("p", [2, 4, INF])
def test_the_closed_form_of_marginals_is_the_smallest_ellipsoid(order, p):
    columns = mh.workloads.marginals((2,) * 4, order=order).dense().T
    found = mh.smallest_ellipsoid(mh.Points(columns), p, body="shifted")
    assert nikolov_tang.shifted_marginals(4, order, p) == pytest.approx(found.value, rel=1e-5)


@pytest.mark.parametrize("p", [2.0, 4.0, math.inf])
def test_queries_whose_bits_repeat_have_the_smallest_ellipsoid(p):
    """All of the paper's queries of two bits of three, as points."""
    records = list(itertools.product((0, 1), repeat=3))
    queries = itertools.product(range(3), range(3), (0, 1), (0, 1))
    rows = [[abs(x[i] - a) * abs(x[j] - b) for x in records] for i, j, a, b in queries]
    found = smallest_ellipsoid(mh.Points(np.array(rows, float).T), p, "shifted", tol=1e-6)
    floor, value = nikolov_tang.shifted_sequences(3, 2, p)
    assert floor <= found.value * (1 + 1e-6)
    assert found.floor <= value * (1 + 1e-6)
    assert value == pytest.approx(floor, rel=2e-3)


def test_the_difference_body_lies_between_its_limits(measured):
    for row in where(measured["nikolov-tang"], kind="marginals", d=4):
        alone = row["distinct"]
        assert math.sqrt(2) * alone <= row["difference"] <= 2 * alone * (1 + 1e-6)
        assert alone <= row["value"] * (1 + 1e-9)
    for row in where(measured["nikolov-tang"], kind="gain"):
        assert 1 - 1e-9 <= row["gain"] <= row["jung"] * (1 + 1e-6)


def test_certified_ratios_are_those_of_the_table():
    table = {0.001: (1.0002, 1.024, 4.002), 0.1: (1.017, 1.283, 4.209), 1.0: (1.203, 2.585, 7.149)}
    for rho, (some, every, paper) in table.items():
        row = nikolov_tang._ratio(rho)
        assert row["worst_dataset"] == pytest.approx(some, abs=2e-3)
        assert row["every_dataset"] == pytest.approx(every, abs=2e-3)
        assert row["paper_argument"] == pytest.approx(paper, abs=2e-3)


def test_theorem_6_has_the_full_tensors_norm():
    """Every entry counts, so that p = 2 and ℓ = 1 are the ball's √d."""
    row = nikolov_tang._tensor(1, 9, 2.0)
    assert row["floor"] == pytest.approx(3, rel=1e-9)
    assert row["constant"] == pytest.approx(1, rel=1e-9)


def test_a_constant_that_falls_away_is_noticed(measured):
    rows = measured["nikolov-tang"]
    assert nikolov_tang.verdict(changed(rows, constant=0.01)).reproduced == "in part"
    assert nikolov_tang.verdict(changed(rows, constant=0.01, gain=3.0)).reproduced == "no"


@pytest.mark.parametrize(("make", "squared"), [("tree", 2464), ("root", 1823)])
def test_known_mechanisms_have_their_known_errors(make, squared):
    assert getattr(zou_liu_upadhyay, make)(256, 2) ** 2 == pytest.approx(squared, rel=5e-4)


def test_the_papers_tree_is_what_its_matrices_say():
    n = 8
    nodes = [(k, j) for k in range(4) for j in range(n >> k)]
    strategy = np.array([[(i >> k) == j for i in range(n)] for k, j in nodes], float)
    decoder = np.zeros((n, len(nodes)))
    for end in range(1, n + 1):
        start = 0
        for k in reversed(range(4)):
            if (end >> k) & 1:
                decoder[end - 1, nodes.index((k, start >> k))] = 1
                start += 1 << k
    assert np.array_equal(decoder @ strategy, np.tril(np.ones((n, n))))
    longest = np.linalg.norm(strategy, axis=0).max()
    for p in (2, 4, INF):
        lengths = np.linalg.norm(decoder, axis=1)
        expected = longest * np.linalg.norm(lengths, p)
        assert zou_liu_upadhyay.paper_tree(n, p) == pytest.approx(expected)


def test_no_mechanism_beats_the_proved_floor(measured):
    for row in where(measured["zou-liu-upadhyay"], kind="prefix"):
        assert row[SCHATTEN] <= row[FLOOR] * (1 + 1e-9)
        assert row[FLOOR] <= row[OPTIMUM]
        assert row[OPTIMUM] <= min(row[ROOT], row[TREE], row[PAPER_TREE])
        if row["error"] is not None:
            assert row["lower_paper"] < row["lower_additive"] < row["error"]


def test_the_direction_that_refutes_lemma_2_14_is_as_narrow_as_its_width(measured):
    for row in where(measured["zou-liu-upadhyay"], kind="width"):
        n = row["size"]
        assert row["kappa_low"] <= row["counterexample"] <= row["kappa_high"] * (1 + 1e-9)
        A = np.tril(np.ones((n, n)))
        theta = np.array([(-1) ** i * (2 if i < n - 1 else 1) for i in range(n)])
        direct = 2 * np.abs(A.T @ theta).max() / np.linalg.norm(theta)
        assert row["counterexample"] == pytest.approx(direct)


def test_true_lemmas_and_wrong_rates_change_the_verdict_on_queries(measured):
    rows = measured["zou-liu-upadhyay"]
    kept = [{**row, "counterexample": row["paper"]} if row["paper"] else row for row in rows]
    assert zou_liu_upadhyay.verdict(kept).reproduced == "yes"
    assert zou_liu_upadhyay.verdict(changed(rows, formula=1.0)).reproduced == "no"


def test_pure_privacy_is_proved_worse_from_530_dimensions_on(measured):
    assert blog.crossing(measured["blog"]) == 530
    assert "from d = 530" in blog.verdict(measured["blog"]).paragraph


def test_the_verdict_on_the_blog_follows_the_rows(measured):
    rows = measured["blog"]
    assert blog.verdict(changed(rows, lower_any=1e-9)).reproduced == "no"
    filled = [
        {**row, "lower_any": row["lower_unbiased"]} if row["promise"] == blog.APPROX else row
        for row in rows
    ]
    assert blog.verdict(filled).reproduced == "yes"


@pytest.mark.parametrize("mistake", errata.MISTAKES, ids=lambda m: f"{m.paper} {m.place}")
def test_every_mistake_is_shown_by_its_number(mistake):
    row = mistake.row()
    assert row["shown"] is True
    module, name = row["code"].rsplit(".", 1)
    assert getattr(importlib.import_module(module), name) is mistake


@pytest.mark.parametrize("sign", mistakes.SIGNS)
def test_a_statement_that_holds_is_not_shown_false(sign):
    assert not shows(Numbers(1.0, 1.0, 1.0, ""), sign, "false")
    assert not shows(Numbers(1.0, 1.0, 1.0, ""), sign, "loose")


def test_a_correction_that_fails_shows_nothing():
    assert not shows(Numbers(4.0, 1.0, 3.9, ""), "≤", "false")
    assert not shows(Numbers(1.0, 2.0, 1.1, ""), "≥", "false")
    assert not shows(Numbers(1.0, 1.1, 1.2, ""), "≤", "loose")


def test_a_printed_statement_that_turns_out_true_is_counted(measured):
    rows = [dict(row) for row in measured["errata"]]
    rows[0]["shown"] = False
    verdict = errata.verdict(rows)
    assert verdict.reproduced == "in part"
    false = where(rows, kind="false")
    assert f"Of {len(false)} that were thought false, {len(false) - 1} fail" in verdict.paragraph


def test_an_omission_is_not_counted_as_false(measured):
    rows = measured["errata"]
    unsaid = {(row["paper"], row["place"].split(",")[0]) for row in where(rows, kind="unsaid")}
    assert unsaid == {
        ("NT24", "Definition 20"),
        ("ZLU25", "Theorem 1.2"),
        ("HLY21", "Section 3.3: rotated records"),
    }
    paragraph = errata.verdict(rows).paragraph
    assert f"Of {len(where(rows, kind='false'))} that were thought false" in paragraph
    assert "3 more leave something out" in paragraph


@pytest.mark.parametrize(
    "place", ["Remark after Proposition A.1", "Theorem 31, proof: c < 2", "Section 2.4: W₂·B₂"]
)
def test_what_a_machine_may_have_misread_is_marked(place, measured):
    (row,) = where(measured["errata"], place=place)
    assert row["source"] == mistakes.READ_AGAIN
    assert f"**{place}** †" in PAGE.read_text()


def test_theorem_1_of_huang_is_read_with_every_base(measured):
    """τ ÷ σ is √log(T/β); failures by the normal tail, in its own words."""
    (row,) = where(measured["errata"], place="Theorem 1: τ")
    for rounds in (10, math.log(1024)):
        share = 1 - (1 - 0.5 * math.erfc(math.sqrt(math.log(rounds / 0.05) / 2))) ** 10
        assert f"{share:.1%}" in row["example"]
        assert share > 0.05
    mild = 1 - (1 - 0.5 * math.erfc(math.sqrt(math.log2(10 / 0.05) / 2))) ** 10
    assert mild < 0.05
    assert f"base 2 throughout {mild:.1%}, no violation" in row["example"]


def test_mistakes_are_many_and_of_all_papers(measured):
    rows = measured["errata"]
    assert len(rows) >= 46
    assert {row["paper"] for row in rows} == set(errata.PAPERS)
    assert len({row["place"] for row in rows}) == len(rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nikolov-tang", "zou-liu-upadhyay"])
def test_the_quick_studies_reach_their_verdicts(name, measured):
    study = MODULES[name].STUDY
    assert study.run().verdict.reproduced == study.verdict(measured[name]).reproduced
