"""A name is a number everywhere or a method everywhere, on releases and on plans."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import pkgutil
from collections import defaultdict

import pytest

import muhat as mh
from muhat._delegation import Delegated
from muhat.planning.mechanism import Mechanism
from muhat.release.answer import Answer

ROOMS = ("muhat.release", "muhat.planning", "muhat.stream", "muhat.protocols")


def every(kind: type) -> list[type]:
    return [kind, *(each for child in kind.__subclasses__() for each in every(child))]


def is_method(kind: type, name: str) -> bool | None:
    """Whether a class has the name as a method, or as an attribute; None if it has not."""
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    if name in {field.name for field in fields}:
        return False
    for parent in kind.__mro__:
        if name in vars(parent):
            found = vars(parent)[name]
            return callable(found) and not isinstance(found, property | functools.cached_property)
    return None


def kinds_of_names() -> dict[str, set[bool]]:
    """Of every name that releases and plans take from their parts: whether it is a method."""
    for room in ROOMS:
        package = importlib.import_module(room)
        for module in pkgutil.walk_packages(package.__path__, f"{room}."):
            importlib.import_module(module.name)
    told: defaultdict[str, set[bool]] = defaultdict(set)
    for owner, parts in ((mh.Release, every(Answer)), (mh.Plan, every(Mechanism))):
        names = {name for name, value in vars(owner).items() if isinstance(value, Delegated)}
        for kind in parts:
            for name in names:
                if (method := is_method(kind, name)) is not None:
                    told[name].add(method)
    return told


def test_every_name_is_of_one_kind_wherever_it_is():
    told = kinds_of_names()
    assert len(told) > 50
    assert [name for name, kinds in told.items() if len(kinds) > 1] == []
    assert told["rank_error"] == told["interval"] == told["variances"] == {True}
    assert told["value"] == told["standard_error"] == {False}


@pytest.mark.parametrize("q", [0.5, [0.25, 0.75]])
def test_rank_errors_are_asked_for_in_the_same_way_before_and_after(q):
    plan = mh.plan_quantile(q, lower=0, upper=100, n=1000, privacy=mh.ZCDP(rho=0.1))
    release = plan.release([50] * 1000)
    for confidence in (0.5, 0.95):
        for simultaneous in (False, True):
            before = plan.rank_error(confidence, simultaneous=simultaneous)
            after = release.rank_error(confidence, simultaneous=simultaneous)
            assert before.max() == after.max()
