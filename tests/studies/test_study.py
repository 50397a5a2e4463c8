"""What a study is: rows that survive their CSV, verdicts and figures that come from rows."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg

from muhat.errors import InvalidInput
from muhat.studies import MODULES, find, studies
from muhat.studies.drawing import Line, figure_of, lines, png_of, svg_of
from muhat.studies.study import (
    LEVELS,
    Result,
    Study,
    Verdict,
    rows_from_csv,
    rows_to_csv,
    tracked,
    where,
)

TEXT = st.text(min_size=1).filter(lambda t: t.strip() and not any(c in t for c in "\r\0"))
CELLS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXT.map(lambda t: "~" + t)
)


def toy(measure=lambda settings, progress: [{"d": settings["d"], "error": 0.1}], **more):
    fields = {
        "name": "toy",
        "title": "A toy",
        "paper": "nobody",
        "claim": "nothing",
        "noise": "none.",
        "settings": {"quick": {"d": 1}, "full": {"d": 2}},
        "measure": measure,
        "panels": lambda rows: [lines("toy", [Line("a", [1, 2], [3, 4])], x="x", y="y")],
        "verdict": lambda rows: Verdict("yes", f"{rows[0]['error']}"),
        **more,
    }
    return Study(**fields)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), CELLS, min_size=1), min_size=1))
def test_rows_are_the_same_after_their_csv(rows):
    columns = {name for row in rows for name in row}
    back = rows_from_csv(rows_to_csv(rows))
    assert back == [{name: row.get(name) for name in columns} for row in rows]
    assert rows_to_csv(back) == rows_to_csv(rows_from_csv(rows_to_csv(back)))


def test_a_number_that_is_none_is_missing():
    assert rows_from_csv(rows_to_csv([{"a": math.nan, "b": math.inf}])) == [
        {"a": None, "b": math.inf}
    ]


def test_rows_are_found_by_their_cells():
    rows = [{"d": 2, "p": 2.0}, {"d": 3, "p": math.inf}]
    assert where(rows, d=3, p=math.inf) == rows[1:]
    assert where(rows, p=2) == rows[:1]
    assert where(rows, q=1) == []


def test_a_run_measures_its_level_and_tells_how_far_it_is():
    heard = []

    def measure(settings, progress):
        return [{"d": settings["d"], "error": x} for x in tracked((0.1, 0.2), progress)]

    result = toy(measure).run("full", heard.append)
    assert [row["d"] for row in result.rows] == [2, 2]
    assert heard == [0.5, 1.0]
    assert result.verdict == Verdict("yes", "0.1")
    assert toy().run().level == "quick"


def test_what_reads_the_rows_sees_them_as_the_csv_has_them():
    result = toy(lambda settings, progress: [{"error": 1}, {"d": "three"}]).run()
    assert result.rows == [{"error": 1, "d": None}, {"error": None, "d": "three"}]


def test_a_study_that_measures_nothing_or_has_no_level_is_refused():
    with pytest.raises(InvalidInput, match="measured nothing"):
        toy(lambda settings, progress: []).run()
    with pytest.raises(InvalidInput, match="Did you mean 'quick'"):
        toy().run("quik")
    with pytest.raises(InvalidInput, match="quick and full"):
        toy(settings={"quick": {}})
    with pytest.raises(InvalidInput, match="in part"):
        Verdict("perhaps", "")


def test_every_study_is_found_by_its_name_and_says_what_it_is():
    for name, study in zip(MODULES, studies(), strict=True):
        assert study.name == name
        assert study is find(name)
        assert set(study.settings) == set(LEVELS)
        for text in (study.title, study.paper, study.claim, study.noise):
            assert len(text) > 10


def test_a_name_that_is_none_gets_the_nearest_one():
    with pytest.raises(InvalidInput, match="Did you mean 'blog'"):
        find("blogg")


def test_a_figure_is_the_same_every_time_and_has_a_place_for_every_panel():
    panels = toy().panels([]) * 3
    assert len(figure_of(panels).axes) == 3
    assert svg_of(figure_of(panels[:1])) == svg_of(figure_of(panels[:1]))
    assert png_of(figure_of(panels[:1])) == png_of(figure_of(panels[:1]))


def test_no_text_of_a_panel_lies_on_another_or_is_cut_off():
    many = [Line(f"a longish label, no {k}", [1, 50], [k + 1, 9], k) for k in range(8)]
    title = "A title of far more words than a panel is wide, so that it takes two lines, d = 1000"
    panel = lines(title, many, x="what is on this axis, records", y="error, dollars")
    for figure in (figure_of([panel] * 3), figure_of([panel])):
        FigureCanvasAgg(figure).draw()
        for axes in figure.axes:
            texts = [axes._left_title, axes.xaxis.label, axes.yaxis.label, axes.get_legend()]
            texts += [tick for tick in axes.get_xticklabels() if tick.get_text()]
            boxes = [text.get_window_extent() for text in texts]
            assert all(figure.bbox.count_contains(box.corners()) == 4 for box in boxes)
            assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))


def test_what_the_legend_names_first_lies_on_top():
    many = [Line(str(k), [1, 2], [3, 4], k) for k in range(3)]
    drawn = figure_of([lines("t", many, x="x", y="y")]).axes[0].lines
    heights = [line.get_zorder() for line in drawn]
    assert heights == sorted(heights, reverse=True)


def test_short_logarithmic_axes_have_plain_numbers():
    line = Line("a", [2, 4, 30], [1.1, None, 2.5])
    axes = figure_of([lines("t", [line], x="x", y="y", level=1)]).axes[0]
    axes.figure.canvas.draw()
    assert [t.get_text() for t in axes.get_xticklabels()] == ["2", "5", "10", "20"]
    assert "1.5" in [t.get_text() for t in axes.get_yticklabels()]


def test_a_result_can_be_made_from_its_rows_alone():
    study = toy()
    rows = study.run().rows
    assert Result(study, "quick", rows).verdict == study.run().verdict
