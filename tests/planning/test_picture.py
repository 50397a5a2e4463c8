"""Pictures of plans can be read: unlike units, small numbers, long names."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import muhat as mh

RHO = mh.ZCDP(rho=0.1)
UNLIKE = {"salary": (0, 200_000), "age": (16, 90)}


def drawn(plan, *chosen):
    figure = plan.plot(*chosen)
    FigureCanvasAgg(figure).draw()
    return figure


def shapes(axes):
    return {patch.get_label(): patch.get_path().vertices for patch in axes.patches}


def test_columns_of_unlike_units_are_drawn_in_widths_of_their_bounds():
    plan = mh.plan_mean(domain=UNLIKE, n=10_000, privacy=RHO, missing="none")
    axes = drawn(plan).axes[0]
    assert axes.get_xlabel() == "change of salary,\nin widths of its bounds"
    assert axes.get_ylabel() == "change of age,\nin widths of its bounds"
    assert axes.get_aspect() == 1
    found = shapes(axes)
    np.testing.assert_allclose(np.abs(found["what one record can move"]).max(axis=0), [1, 1])
    # A sphere in the units of the error is a circle, and around the body.
    radii = np.linalg.norm(found["the sphere around it"], axis=1)
    np.testing.assert_allclose(radii, np.sqrt(2))
    (low, high), (left, right) = axes.get_ylim(), axes.get_xlim()
    assert min(-low, high, -left, right) > np.sqrt(2)


def test_like_units_are_drawn_as_they_are():
    turned = np.array([[1.0, 0.0], [1.0, 1.0]]) @ mh.Box([0, -1000], [50_000, 3000])
    axes = drawn(mh.plan_mean(domain=turned, n=1000, privacy=RHO)).axes[0]
    assert axes.get_xlabel() == "change of coordinate 0"
    body = shapes(axes)["what one record can move"]
    np.testing.assert_allclose(np.abs(body).max(axis=0), [50_000, 54_000])
    assert "the sphere around it" in shapes(axes)


def test_a_sphere_of_which_two_lines_would_be_seen_is_left_out():
    plan = mh.plan_mean(domain=mh.Box([0, 0], [1e9, 1e-6]), n=1000, privacy=RHO)
    assert set(shapes(drawn(plan).axes[0])) == {"our ellipse", "what one record can move"}


@pytest.mark.parametrize(
    "domain", [mh.Ball(radius=1e-6, dim=2), mh.Box([0], [1e9]), mh.Box([0, 0], [1e9, 1e9])]
)
def test_no_power_of_ten_stands_in_a_corner(domain):
    figure = drawn(mh.plan_mean(domain=domain, n=100_000, privacy=RHO))
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            assert axis.get_offset_text().get_text() == ""


def test_the_words_below_an_axis_stay_within_the_picture():
    plan = mh.plan_mean(domain=UNLIKE, n=10_000, privacy=RHO, missing="none")
    figure = drawn(plan)
    width, _ = figure.canvas.get_width_height()
    for axes in figure.axes:
        for text in (axes.xaxis.label, axes.yaxis.label, *axes.texts):
            box = text.get_window_extent()
            assert box.x0 >= 0
            assert box.x1 <= width
