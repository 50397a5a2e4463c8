"""How much privacy loss an error costs: targets that are mistakes about their unit."""

from __future__ import annotations

from typing import Any

import pytest

import muhat as mh


def test_an_error_beyond_the_domain_is_refused_with_a_hint_about_weights() -> None:
    asked: dict[str, Any] = {"domain": {"salary": (0, 2e5)}, "n": 10_000, "error": 100}
    with pytest.raises(mh.InvalidInput, match=r"whole width.*weights=\{\"salary\": 1\}"):
        mh.privacy_for(**asked)
    promise = mh.privacy_for(**asked, weights={"salary": 1})
    assert isinstance(promise, mh.ZCDP)
    # A third more than for complete records: at the worst mean the count's noise adds to it.
    assert promise.rho == pytest.approx(0.02 * 4 / 3)
    assert mh.privacy_for(**asked, weights={"salary": 1}, missing="none").rho == pytest.approx(0.02)
    assert mh.privacy_for(**{**asked, "error": 100 / 2e5}) == promise


@pytest.mark.parametrize("p", [2, float("inf")])
def test_errors_up_to_the_diameter_have_a_price(p: float) -> None:
    box = mh.Box([0, 0], [3, 4])
    diameter = 5.0 if p == 2 else 4.0
    assert mh.privacy_for(domain=box, n=100, error=diameter, p=p)
    with pytest.raises(mh.InvalidInput, match="more than records can be apart") as failure:
        mh.privacy_for(domain=box, n=100, error=1.001 * diameter, p=p)
    assert "weights" not in str(failure.value)
    with pytest.raises(mh.InvalidInput, match="apart"):
        mh.privacy_for(domain=mh.Ball(1, 1), n=100, error=3.0, p=p)


def test_many_columns_are_not_all_named() -> None:
    many = {f"column {number}": (0, 10) for number in range(50)}
    with pytest.raises(mh.InvalidInput, match=r'"column 2": 1, …') as failure:
        mh.privacy_for(domain=many, n=100, error=1000)
    assert len(str(failure.value)) < 400
