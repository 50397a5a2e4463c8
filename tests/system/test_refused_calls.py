"""A call that the account refuses has the same answer whatever the data are, their number too."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import muhat as mh
from muhat.cli import main
from muhat.errors import MuhatError
from muhat.ledger import Ledger

BOX = mh.Box([0], [1])
REALS = mh.Reals(dim=1, magnitude=1e6)
RHO = mh.ZCDP(rho=0.1)
LOOSE = mh.ApproxDP(epsilon=1, delta=1e-3)


class Untouchable:
    """Data that nobody may so much as look at."""

    def __getattribute__(self, name):
        raise AssertionError("the data were looked at")


def means(ledger, data, **options):
    return mh.mean(data, columns=["a"], domain=BOX, ledger=ledger, **options)


PATHS = {
    "mean, n given": lambda data, k, **o: means(o.pop("ledger"), data, n=k, **o),
    "mean, n secret": lambda data, k, **o: means(o.pop("ledger"), data, n=None, **o),
    "mean, n left out": lambda data, k, **o: means(o.pop("ledger"), data, **o),
    "mean, counted": lambda data, k, **o: means(o.pop("ledger"), data, neighbors="substitute", **o),
    "mean of one point": lambda data, k, **o: mh.mean(data, domain=mh.Points([[0.5]]), n=k, **o),
    "sum": lambda data, k, **o: mh.sum(data, columns=["a"], domain=BOX, n=k, **o),
    "count": lambda data, k, **o: mh.count(data, **o),
    "by groups": lambda data, k, **o: means(o.pop("ledger"), data, by="b", groups=["x"], **o),
    "quantile, n given": lambda data, k, **o: mh.quantile(
        data, columns=["a"], lower=0, upper=1, n=k, **o
    ),
    "quantile": lambda data, k, **o: mh.quantile(data, columns=["a"], lower=0, upper=1, **o),
    "queries": lambda data, k, ledger, **o: mh.plan_queries(
        mh.workloads.identity(2), neighbors="substitute", n=k, **o
    ).release(data, columns=["a"], ledger=ledger),
    "queries, n secret": lambda data, k, ledger, **o: mh.plan_queries(
        mh.workloads.identity(2), **o
    ).release(data, columns=["a"], ledger=ledger),
    "reals": lambda data, k, **o: mh.mean(data, domain=REALS, n=k + 9999, **o),
    "reals, n left out": lambda data, k, **o: mh.mean(
        data, domain=REALS, neighbors="substitute", **o
    ),
    "low bias": lambda data, k, **o: mh.mean(
        data, domain=REALS, n=k + 9999, moment=(2, 1.0), max_bias=0.1, **o
    ),
    "smooth": lambda data, k, **o: mh.mean(data, domain=BOX, n=None, unbiased=True, **o),
    "stream": lambda data, k, **o: mh.stream.prefix_counter(100, **o),
}


def outcome(call):
    """What a caller sees: the error and its words, and every warning."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with pytest.raises(MuhatError) as refusal:
            call()
    assert refusal.value.__cause__ is None
    return type(refusal.value), str(refusal.value), [str(one.message) for one in seen]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("neighbors", ["substitute", "add-remove"])
def test_no_path_looks_at_the_data_when_the_account_is_empty_or_of_another_kind_or_unit(
    tmp_path, path, neighbors
):
    empty = Ledger.create(tmp_path / "empty.db", budget=RHO, neighbors=neighbors)
    empty.charge(RHO, neighbors=neighbors, plan_digest="")
    other = Ledger.create(tmp_path / "kind.db", budget=mh.GDP(mu=1), neighbors=neighbors)
    several = Ledger.create(tmp_path / "unit.db", budget=RHO, neighbors=neighbors, contributions=3)
    for ledger, words in (
        (empty, "neighbors must be|is left"),
        (other, "neighbors must be|cannot be charged"),
        (several, "neighbors must be|contributions must be 3"),
    ):
        before = ledger.path.read_bytes()
        _, message, warned = outcome(
            lambda account=ledger: PATHS[path](Untouchable(), 5, privacy=RHO, ledger=account)
        )
        assert re.search(words, message)
        assert warned == []
        assert ledger.path.read_bytes() == before


def frame(rows):
    return pd.DataFrame({"a": np.resize([0.0, 1.0], rows), "b": np.resize(["x", "y"], rows)})


def attack(ledger, data):
    """The outcomes of calls that once gave the number of records away, bit by bit."""
    told = []
    for k in range(17):
        given, loose = 59_411 >> k, mh.ApproxDP(epsilon=0.1, delta=2.0 ** -(k + 1))
        for call in (
            # Is n this number? Is δ at least 1/n?
            lambda n=given: means(ledger, data, n=n, privacy=LOOSE),
            lambda p=loose: means(ledger, data, neighbors="substitute", privacy=p),
            lambda p=loose: means(ledger, data, privacy=p),
            lambda n=given: mh.quantile(
                data, columns=["a"], lower=0, upper=1, n=n, privacy=LOOSE, ledger=ledger
            ),
            lambda n=given: mh.plan_queries(
                mh.workloads.identity(2), neighbors="substitute", n=n, privacy=LOOSE
            ).release(data, columns=["a"], ledger=ledger),
        ):
            told.append(outcome(call))
    return told


def test_32_refused_calls_say_nothing_of_a_secret_number_of_records(tmp_path):
    budget = mh.ApproxDP(epsilon=0.01, delta=1e-9)
    ledger = Ledger.create(tmp_path / "secret.db", budget=budget, neighbors="add-remove")
    first = attack(ledger, frame(0))
    assert len(first) >= 32
    assert attack(ledger, frame(1)) == attack(ledger, frame(59_411)) == first
    assert ledger.spent == 0
    # A planted leak: without an account n is public, and compared.
    with pytest.raises(mh.InvalidInput, match="another number of rows"):
        means(None, frame(3), n=2, privacy=RHO)


def test_n_left_out_is_secret_with_an_account_that_keeps_it_secret(tmp_path):
    secret = Ledger.create(tmp_path / "secret.db", budget=LOOSE, neighbors="add-remove")
    public = Ledger.create(tmp_path / "public.db", budget=LOOSE, neighbors="substitute")
    tiny = mh.ApproxDP(epsilon=0.1, delta=1e-6)
    data = frame(400)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        release = means(secret, data, privacy=tiny)
    assert release.n is None
    assert release.neighbors is mh.Neighbors.ADD_REMOVE
    assert mh.quantile(data, columns=["a"], lower=0, upper=1, privacy=tiny, ledger=secret).n is None
    assert means(public, data, privacy=tiny).n == 400
    assert means(None, data, privacy=tiny).n == 400
    assert means(None, data, privacy=tiny, neighbors="add-remove").n is None
    with pytest.raises(mh.InvalidInput, match="n must be public for records in Reals"):
        mh.mean(data, columns=["a"], domain=REALS, privacy=tiny, ledger=secret.path)


def test_public_categories_are_not_read_off_the_data_of_a_refused_call(tmp_path):
    path = tmp_path / "d.csv"
    ledger = Ledger.create(tmp_path / "secret.db", budget=RHO, neighbors="add-remove")
    asked = ["queries", path, "--columns", "b", "--public-categories", "--histogram", "--rho", "1"]
    answers = []
    for rows in (0, 5000):
        frame(rows).assign(b=range(rows)).to_csv(path)
        result = CliRunner().invoke(main, [str(part) for part in (*asked, "--ledger", ledger.path)])
        assert result.exit_code != 0
        answers.append(result.output)
    assert answers[0] == answers[1]
    assert "0.1-zCDP of 0.1-zCDP is left" in answers[0]
