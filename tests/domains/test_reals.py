"""Reals: what is public about records that nobody has bounded."""

from __future__ import annotations

import json

import pytest

import muhat as mh
from muhat.domains import Domain


def test_reals_remember_their_size_and_print_it() -> None:
    space = mh.Reals(3, 1e6)
    assert (space.dim, space.magnitude) == (3, 1e6)
    assert repr(space) == "Reals(dim=3, magnitude=1e+06)"
    assert space == mh.Reals(dim=3, magnitude=1_000_000)
    assert hash(space) == hash(mh.Reals(3, 1e6))
    assert mh.Reals(2).magnitude is None
    assert repr(mh.Reals(2)) == "Reals(dim=2, magnitude=None)"


@pytest.mark.parametrize("space", [mh.Reals(3, 0.1), mh.Reals(7)])
def test_reals_survive_json(space: mh.Reals) -> None:
    assert mh.Reals.from_dict(json.loads(json.dumps(space.to_dict()))) == space


@pytest.mark.parametrize("magnitude", [0, -1, float("nan"), float("inf"), 1e101, 1e-101, "many"])
def test_a_magnitude_must_be_an_ordinary_positive_number(magnitude: object) -> None:
    with pytest.raises(mh.InvalidInput, match="magnitude"):
        mh.Reals(2, magnitude)


@pytest.mark.parametrize("dim", [0, -1, 1.5, "two", None])
def test_a_dimension_must_be_a_whole_number(dim: object) -> None:
    with pytest.raises(mh.InvalidInput, match="dim"):
        mh.Reals(dim, 1.0)


def test_reals_are_not_a_domain_that_noise_is_calibrated_to() -> None:
    assert not isinstance(mh.Reals(2, 1.0), Domain)
    for call in (
        lambda: mh.plan_sum(domain=mh.Reals(2, 1.0), n=10, privacy=mh.ZCDP(rho=1)),
        lambda: mh.privacy_for(domain=mh.Reals(2, 1.0), n=10, error=0.1),
        lambda: mh.mean(
            {"a": [1.0], "g": ["x"]},
            columns=["a"],
            domain=mh.Reals(1, 1.0),
            privacy=mh.ZCDP(rho=1),
            by="g",
            groups=["x"],
        ),
    ):
        with pytest.raises(mh.InvalidInput, match="Reals"):
            call()
