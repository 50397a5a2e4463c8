"""Domains without width in some coordinates: their geometry, their parts, and what clips do."""

from __future__ import annotations

import json

import numpy as np
import pytest

import muhat as mh
from muhat.domains import Domain, from_dict

SLANTED = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 4.0]])

FLAT: dict[str, Domain] = {
    "box": mh.Box([0, 2, -1], [1, 2, 3]),
    "two constants": mh.Box([5, 0, 2], [5, 1, 2]),
    "all constants": mh.Box([5, 0, 2], [5, 0, 2]),
    "ellipsoid along the axes": mh.Ellipsoid([4.0, 0.0, 9.0], center=[1, 2, 3]),
    "slanted ellipsoid": mh.Ellipsoid(SLANTED, center=[1, 2, 3]),
    "point ellipsoid": mh.Ellipsoid(np.zeros((3, 3)), center=[1, 2, 3]),
    "ball": mh.Ball(radius=0, dim=3, center=[1, 2, 3]),
    "diamond": mh.LpBall(p=1, radius=0, dim=3, center=[1, 2, 3]),
    "other ball": mh.LpBall(p=3, radius=0, dim=3),
}


@pytest.fixture(params=FLAT)
def domain(request: pytest.FixtureRequest) -> Domain:
    return FLAT[request.param]


def test_records_move_into_the_flat_and_stay_there(domain: Domain) -> None:
    rng = np.random.default_rng(3)
    records = rng.normal(size=(200, 3)) * 4
    inside = domain.clip(records)
    assert np.isfinite(inside).all()
    assert np.allclose(domain.clip(inside), inside, atol=1e-12)
    lower, upper = domain.bounding_box
    assert ((lower - 1e-12 <= inside) & (inside <= upper + 1e-12)).all()
    for theta in rng.normal(size=(30, 3)):
        assert (inside @ theta).max() <= domain.support(theta) + 1e-9
        assert domain.extreme_point(theta) @ theta == pytest.approx(domain.support(theta))
    still = domain.half_widths == 0
    assert (inside[:, still] == domain.center[still]).all()
    assert np.isfinite(domain.clip([np.nan, np.inf, 0.0])).all()


def test_the_parts_of_a_flat_have_all_of_its_width(domain: Domain) -> None:
    parts = domain.factors()
    assert [at.start for _, at in parts] == [0, *(at.stop for _, at in parts[:-1])]
    assert np.array_equal(
        np.concatenate([part.half_widths for part, _ in parts]), domain.half_widths
    )
    assert np.array_equal(np.concatenate([part.center for part, _ in parts]), domain.center)
    points = [part for part, _ in parts if not part.half_widths.any()]
    assert all(isinstance(part, mh.Points) for part in points)
    assert from_dict(json.loads(json.dumps(domain.to_dict()))) == domain


@pytest.mark.parametrize("p", [2, 3, np.inf])
def test_the_ellipsoid_is_that_of_the_parts_with_a_width(domain: Domain, p: float) -> None:
    found = mh.smallest_ellipsoid(domain, p)
    assert ((found.scales == 0) == (domain.half_widths == 0)).all()
    assert found.floor <= found.value <= found.floor * (1 + 1e-9) + 1e-300
    if isinstance(domain, mh.Box) and domain.half_widths.any():
        wide = domain.only(domain.half_widths > 0)
        assert found.value == pytest.approx(mh.smallest_ellipsoid(wide, p).value)


def test_a_slanted_ellipsoid_is_a_segment_and_an_axis() -> None:
    flat = FLAT["slanted ellipsoid"]
    assert isinstance(flat, mh.Ellipsoid)
    assert flat.rank == 2
    assert np.allclose(flat.factor @ flat.factor.T, SLANTED)
    # (x − y)/2 is projected away, the rest is clipped.
    assert np.allclose(flat.clip([1.2, 2.0, 3.0]), [1.1, 2.1, 3.0])
    assert np.allclose(flat.clip([6.0, 7.0, 3.0]), [2.0, 3.0, 3.0])
    image = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]) @ flat
    assert isinstance(image, mh.Ellipsoid)
    assert image.rank == 2


def test_sums_products_and_images_of_flats_are_flat() -> None:
    box = FLAT["box"]
    assert repr(box + box) == "Box(lower=[0, 4, -2], upper=[2, 4, 6])"
    assert repr(box + np.ones(3)) == "Box(lower=[1, 3, 0], upper=[2, 3, 4])"
    both = box * mh.Ball(radius=0, dim=2)
    assert [part.kind for part, _ in both.factors()] == ["box", "points", "box", "points"]
    assert np.diag([1.0, 3.0, 1.0]) @ box == mh.Box([0, 6, -1], [1, 6, 3])
    assert np.eye(3)[:2] @ FLAT["ball"] == mh.Points([[1.0, 2.0]])


def test_what_is_no_domain_is_still_refused() -> None:
    for matrix in ([[1, 2], [2, 1]], [1.0, -1.0], np.diag([0.0, -1.0])):
        with pytest.raises(mh.InvalidInput, match="not be negative in any direction"):
            mh.Ellipsoid(matrix)
    with pytest.raises(mh.InvalidInput, match="lower must not be above upper"):
        mh.Box([0, 3], [1, 2])
    for radius in (-1.0, np.nan):
        with pytest.raises(mh.InvalidInput, match="radius must be"):
            mh.Ball(radius=radius, dim=2)
        with pytest.raises(mh.InvalidInput, match="radius must be"):
            mh.LpBall(p=1, radius=radius, dim=2)
    with pytest.raises(mh.InvalidInput, match="between 1e-140 and 1e140"):
        mh.Box([0], [1e-200])
