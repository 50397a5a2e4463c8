"""Pictures of releases: a panel a statistic and unit, both intervals, labels that can be read."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from drawn_releases import MANY, MEAN, QUANTILES, RELEASES, SET, STRANGE, TABLES, statistic
from matplotlib.backends.backend_agg import FigureCanvasAgg

import muhat as mh
from muhat.release.panels import MOST_MARKS, AnswerPanel, Mark, panels_of, tick_words, ticks_between


def panels(release):
    return [panel for name, each in release.named() for panel in panels_of(name, each)]


@pytest.mark.parametrize("name", RELEASES)
def test_every_panel_is_drawn(name):
    release = RELEASES[name]
    figure = release.plot()
    FigureCanvasAgg(figure).draw()
    assert len(figure.axes) == len(panels(release))
    for axes, panel in zip(figure.axes, panels(release), strict=True):
        assert len(axes.get_yticks()) == len(panel.marks)


def test_a_statistic_has_a_panel_for_each_unit_of_its_numbers():
    assert [panel.title for panel in panels(SET)] == [
        *("count by region", "mean x by region", "variance x"),
        QUANTILES.answers[0].heading,
        *("regression y x: intercept", "regression y x: x"),
        "correlation x y w",
        *(f"covariance x y w: {pair}" for pair in ("x, y", "x, w", "y, w")),
        *(f"{TABLES.answers[0].heading}: {table}" for table in ("sex", "part", "sex by part")),
    ]
    assert [panel.facet for panel in panels(MEAN)] == ["age", "pay"]
    alike = mh.mean(np.full((50, 3), 0.5), domain=mh.Box([0] * 3, [1] * 3), privacy=mh.ZCDP(1))
    assert [len(panel.marks) for panel in panels(alike)] == [3]


def test_marks_are_the_numbers_and_intervals_of_the_table():
    for name, release in SET:
        marks = [mark for panel in panels(SET[name]) for mark in panel.marks]
        table = release.table()
        assert len(marks) == len(table["value"])
        values = sorted(mark.value for mark in marks if mark.told)
        np.testing.assert_array_equal(values, sorted(table["value"][~np.isnan(table["value"])]))
        lowers = sorted(mark.noise[0] for mark in marks if mark.told)
        np.testing.assert_array_equal(lowers, sorted(table["lower"][~np.isnan(table["value"])]))
        assert ("population_lower" in table) == any(
            panel.has_population for panel in panels(release)
        )


def test_sizes_are_bars_and_all_else_are_points():
    bars = {panel.statistic: panel.bars for panel in panels(SET)}
    assert [name for name in bars if bars[name]] == ["count by region", TABLES.answers[0].heading]
    assert panels(SET)[0].limits()[0] == 0


def test_a_group_of_too_few_records_has_words_instead_of_a_point():
    (panel,) = panels(SET["mean x by region"])
    assert [mark.told for mark in panel.marks] == [True, True, True, False]
    (axes,) = SET["mean x by region"].plot().axes
    assert [text.get_text() for text in axes.texts] == ["too few"]


def test_of_many_groups_the_first_are_drawn_and_that_is_said():
    (panel,) = panels(MANY)
    assert (len(panel.marks), panel.total) == (MOST_MARKS, 200)
    (axes,) = MANY.plot().axes
    assert "first 40 of 200" in axes.get_xlabel()


def test_names_are_escaped_and_long_ones_are_shortened():
    figure = STRANGE.plot()
    FigureCanvasAgg(figure).draw()
    texts = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert all(text.isprintable() for text in texts)
    assert r"\$\frac{1}{2}\$" in texts
    labels = [text.get_text() for text in SET.plot().axes[0].get_yticklabels()]
    assert 30 <= max(map(len, labels)) <= 32


def test_an_interval_without_an_end_is_cut_at_the_edge():
    marks = [Mark(str(place), float(place), (place - 0.1, place + 0.1)) for place in range(5)]
    wide = AnswerPanel("mean", "", (*marks, Mark("wide", 2.0, (-math.inf, 1e9))), False, 6)
    low, high = wide.limits()
    assert -30 < low < 0
    assert 4 < high < 30
    nothing = AnswerPanel("mean", "", (Mark("none", math.nan),), False, 1)
    assert nothing.limits() == (0.0, 1.0)
    assert not nothing.has_noise
    alone = AnswerPanel("mean", "", (Mark("alone", 7.0),), False, 1).limits()
    assert alone[0] < 7 < alone[1]


@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 3.5e3), (-1e-9, 2e-9), (5e15, 5.1e15), (-3, 17), (45.72, 46.2), (0, 1e-300)],
)
def test_ticks_are_few_round_and_told_apart(low, high):
    ticks = ticks_between(low, high)
    assert 2 <= len(ticks) <= 6
    assert all(low <= tick <= high for tick in ticks)
    words = tick_words(ticks)
    assert len(set(words)) == len(words)
    for word, tick in zip(words, ticks, strict=True):
        assert math.isclose(float(word.replace(",", "").replace("−", "-")), tick, rel_tol=1e-5)


def test_without_matplotlib_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(mh.InvalidInput, match=r"pip install 'muhat\[plot\]'"):
        MEAN.plot()


def test_one_statistic_of_one_number_is_a_picture_too():
    (panel,) = panels_of("variance x", statistic("variance", ("x",)))
    assert [mark.label for mark in panel.marks] == ["variance x"]
