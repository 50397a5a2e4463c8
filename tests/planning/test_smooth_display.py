"""What a plan without bias for a secret number of records says of its errors."""

from __future__ import annotations

import re
from typing import Any

import pytest

import muhat as mh


def described(**options: Any) -> str:
    asked: dict[str, Any] = {"domain": mh.Box([0], [10]), "n": None, "unbiased": True, **options}
    return mh.plan_mean(privacy=mh.PureDP(epsilon=1), **asked).describe()


def counts(text: str) -> list[int]:
    lines = text.partition("number of records")[2].splitlines()[1:]
    return [int(line.split()[0]) for line in lines if re.match(r"\d+ ", line)]


@pytest.mark.parametrize("n_min", [7, 100, 250, 1000, 50_000, 10**6, 10**7])
def test_no_error_is_shown_for_fewer_records_than_assumed(n_min: int) -> None:
    text = described(n_min=n_min)
    shown = counts(text)
    assert shown[0] == n_min
    assert shown == sorted(set(shown))
    assert shown[-1] == max(n_min, 10**6)
    assert "unless" not in text
    assert f"the standard error for n_min = {n_min} records" in text


def test_without_a_least_number_it_is_said_how_to_learn_the_error() -> None:
    text = described()
    assert counts(text)[0] == 100
    assert "unless a public n_min is given" in text


@pytest.mark.parametrize("unbiased", [True, False])
def test_an_error_that_is_bounded_says_so(unbiased: bool) -> None:
    domain = mh.Box([0, 0], [10, 1])
    plain = described(domain=domain, unbiased=unbiased)
    bounded = described(domain=domain, unbiased=unbiased, p=4)
    heading = re.compile(r"number of records +error.* at most")
    assert heading.search(bounded)
    assert not heading.search(plain)
