"""A promise that is worth little says so in every model: plans, releases, pages, JSON, commands."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import muhat as mh
from muhat.cli import main

LOUD = "promises next to nothing"
PURE, FAIR = mh.PureDP(epsilon=50), mh.PureDP(epsilon=1)
APPROX = mh.ApproxDP(epsilon=50, delta=1e-9)
MILD = mh.ApproxDP(epsilon=1, delta=1e-9)
X = np.linspace(0, 1, 400)[:, None]
UNIT = mh.Box([0], [1])
WIDE = mh.Reals(1, 100.0)


def plans(privacy):
    """One of every kind of plan."""
    moment = {"moment": (2, 1.0), "max_bias": 0.1}
    return {
        "mean": mh.plan_mean(domain=UNIT, n=400, privacy=privacy),
        "secret": mh.plan_mean(domain=UNIT, n=None, privacy=privacy),
        "sum": mh.plan_sum(domain=UNIT, n=400, privacy=privacy),
        "count": mh.plan_count(privacy=privacy),
        "smooth": mh.plan_mean(domain=UNIT, n=None, privacy=privacy, unbiased=True),
        "reals": mh.plan_mean(domain=WIDE, n=400, privacy=privacy, insist=True),
        "low bias": mh.plan_mean(domain=WIDE, n=400, privacy=privacy, **moment),
        "queries": mh.plan_queries(mh.workloads.prefix(4), privacy=privacy),
    }


def protocols(privacy, approximate):
    """One of every kind of protocol."""
    ball, places = mh.Ball(1.0, dim=1), {"lower": 0, "upper": 1, "n": 400}
    return {
        "local mean": mh.protocols.local_mean(domain=ball, n=400, privacy=privacy),
        "local quantile": mh.protocols.local_quantile(
            0.5, resolution=0.1, privacy=privacy, **places
        ),
        "local ranges": mh.protocols.local_ranges(cells=4, privacy=privacy, **places),
        "shuffle mean": mh.protocols.shuffle_mean(domain=ball, n=400, privacy=approximate),
    }


def releases(privacy, approximate):
    """One of every kind of release, from a curator and from people's own devices."""
    frame = pd.DataFrame({"x": X[:, 0], "group": ["a", "b"] * 200})
    grouped = {"domain": {"x": (0, 1)}, "by": "group", "groups": ["a", "b"]}
    found = {
        "mean": mh.mean(X, domain=UNIT, privacy=privacy),
        "secret": mh.mean(X, domain=UNIT, n=None, privacy=privacy),
        "groups": mh.mean(frame, privacy=privacy, n=None, **grouped),
        "quantile": mh.quantile(X[:, 0], 0.5, lower=0, upper=1, privacy=privacy),
        "queries": mh.plan_queries(mh.workloads.prefix(4), privacy=privacy).release(
            np.full(4, 100)
        ),
    }
    for name, protocol in protocols(privacy, approximate).items():
        found[name] = mh.protocols.simulate(protocol, X)
    return found


@pytest.mark.parametrize(("privacy", "loud"), [(PURE, True), (FAIR, False)])
def test_every_plan_says_what_its_promise_is_worth(privacy, loud):
    for name, plan in plans(privacy).items():
        for text in (plan.describe(), plan._repr_html_()):
            assert (LOUD in text) == loud, name
        assert bool(plan.to_dict()["cautions"]) == loud, name


@pytest.mark.parametrize(("promises", "loud"), [((PURE, APPROX), True), ((FAIR, MILD), False)])
def test_every_release_says_what_its_promise_is_worth(promises, loud):
    for name, release in releases(*promises).items():
        assert (LOUD in repr(release)) == loud, name
        if hasattr(release, "_repr_html_"):
            assert (LOUD in release._repr_html_()) == loud, name
        fields = json.loads(release.to_json())
        for each in fields.get("releases", [fields]):
            assert bool(each["cautions"]) == loud, name
        again = type(release).from_json(release.to_json())
        assert (LOUD in repr(again)) == loud, name


@pytest.mark.parametrize(("promises", "loud"), [((PURE, APPROX), True), ((FAIR, MILD), False)])
def test_every_protocol_says_what_its_promise_is_worth(promises, loud):
    for name, protocol in protocols(*promises).items():
        assert (LOUD in protocol.describe()) == loud, name


def test_counters_and_accounts_say_what_their_promise_is_worth(tmp_path):
    assert LOUD in mh.stream.prefix_counter(8, privacy=APPROX).describe()
    path = str(tmp_path / "budget.db")
    arguments = ["ledger", "create", path, "--epsilon", "50", "--neighbors", "substitute"]
    assert LOUD in CliRunner().invoke(main, arguments).output
    shown = CliRunner().invoke(main, ["ledger", "show", path]).output
    assert LOUD in " ".join(shown.replace("│", " ").split())
    fields = json.loads(CliRunner().invoke(main, ["ledger", "show", path, "--json"]).stdout)
    assert LOUD in fields["cautions"][0]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("x,group\n" + "".join(f"{x},a\n" for x in X[:, 0]))
    return str(path)


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "--bounds", "x=0:1", "--n", "400"],
        ["mean", "TABLE", "--bounds", "x=0:1"],
        ["mean", "TABLE", "--bounds", "x=0:1", "--secret-n"],
        ["quantile", "TABLE", "--columns", "x", "--lower", "0", "--upper", "1"],
        ["queries", "TABLE", "--histogram", "--columns", "group", "--categories", "group=a,b"],
    ],
    ids=" ".join,
)
def test_every_command_says_what_its_promise_is_worth(arguments, table):
    filled = [table if word == "TABLE" else word for word in arguments]
    loud = CliRunner().invoke(main, [*filled, "--epsilon", "50"])
    assert loud.exit_code == 0, loud.output
    assert LOUD in loud.stdout
    fair = CliRunner().invoke(main, [*filled, "--epsilon", "1"])
    assert fair.exit_code == 0, fair.output
    assert LOUD not in fair.output


def test_a_secret_number_of_records_is_compared_with_nothing():
    """δ is above 1/n for these records, and nobody is told."""
    promise = mh.ApproxDP(epsilon=1, delta=9e-4)
    rows = np.linspace(0, 1, 5000)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        release = mh.mean(rows, domain=UNIT, n=None, privacy=promise)
    assert "Caution" not in repr(release)
    assert json.loads(release.to_json())["cautions"] == []
    with pytest.warns(UserWarning, match="not below 1/n"):
        public = mh.mean(rows, domain=UNIT, privacy=promise)
    assert "Caution: delta = 0.0009 is not below 1/n" in repr(public)
