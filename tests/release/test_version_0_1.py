"""What version 0.1 wrote is still read: releases, ledgers, streams; open rounds are asked again.

The files are in tests/fixtures/version-0.1, in folders named by the commit that wrote them.
"""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import muhat as mh
from muhat import protocols
from muhat.cli import main
from muhat.protocols.roles.messages import HEADER_BYTES

FIXTURES = Path(__file__).parent.parent / "fixtures" / "version-0.1"
FOLDERS = sorted(path.name for path in FIXTURES.iterdir() if path.is_dir())

COMPUTED = {"schema", "interval", "rank_error"}
"""What is computed, not read: intervals of quantiles have become joint since, some names others."""


def entries(file):
    """(folder, name) of all that is in the files of this name."""
    return [(folder, name) for folder in FOLDERS for name in read(folder, file)]


def read(folder, file):
    return json.loads((FIXTURES / folder / file).read_text())


def released(folder, name):
    """The release as it is read today, its JSON, and what it said when it was made."""
    entry = read(folder, "releases.json")[name]
    release = mh.Release.from_json(json.dumps(entry["release"]))
    return release, entry["release"], entry["said"]


def kept(old, new):
    """Whether all that was stated is stated still, and the same."""
    if isinstance(old, dict):
        return all(kept(old[name], new.get(name)) for name in old.keys() - COMPUTED)
    if isinstance(old, list):
        return len(old) == len(new) and all(map(kept, old, new))
    return old == new


def test_both_ages_of_the_version_are_there():
    assert len(FOLDERS) == 2
    first, second = (read(folder, "releases.json").keys() for folder in FOLDERS)
    assert first == second
    assert len(first) == 33


@pytest.mark.parametrize(("folder", "name"), entries("releases.json"))
def test_a_release_says_what_it_said(folder, name):
    release, _, said = released(folder, name)
    np.testing.assert_array_equal(release.value, said["value"])
    if "interval" not in said:
        return
    lower, upper = release.interval(0.9)
    was_lower, was_upper = map(np.asarray, said["interval"])
    if name == "quantiles":  # several of one column hold together now
        assert (lower <= was_lower).all()
        assert (upper >= was_upper).all()
    else:
        np.testing.assert_allclose(lower, was_lower, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(upper, was_upper, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("folder", "name"), entries("releases.json"))
def test_a_release_is_printed_and_written_again_as_it_was(folder, name):
    release, fields, _ = released(folder, name)
    assert "Private" in str(release)
    again = release.to_json()
    assert kept(fields, json.loads(again))
    assert mh.Release.from_json(again).to_json() == again


def test_what_was_not_stated_is_not_made_up():
    table, _, _ = released("3b53fdc", "tables")
    groups, fields, _ = released("3b53fdc", "mean of groups")
    quantile, _, _ = released("3b53fdc", "quantiles")
    assert table.missing == ()
    assert table.recorded is None
    assert groups.missing is None
    assert "privacy" not in fields
    assert groups.cost == mh.ApproxDP(epsilon=1, delta=1e-6)  # as the release of every group says
    assert groups.recorded[0] == fields["releases"][0]["noise"]["count"]
    assert quantile.missing == "center"  # as its assumptions say
    assert quantile.recorded is None
    assert "counts as the middle of the bounds" in str(quantile)


@pytest.fixture(params=[(folder, name) for folder in FOLDERS for name in ("fixed", "secret")])
def ledger(request, tmp_path):
    """A copy of a ledger, and the releases that were charged to it."""
    folder, name = request.param
    path = tmp_path / "budget.db"
    shutil.copy(FIXTURES / folder / f"{name}.ledger", path)
    charged = {"fixed": 5, "secret": 4}[name]
    last = {"fixed": "quantiles", "secret": "queries, pure"}[name]
    return path, charged, released(folder, last)[0]


def test_a_ledger_is_intact_and_shows_its_entries(ledger, tmp_path):
    path, charged, last = ledger
    (tmp_path / "last.json").write_text(last.to_json())
    result = CliRunner().invoke(
        main, ["ledger", "verify", str(path), "--release", str(tmp_path / "last.json")]
    )
    assert result.exit_code == 0, result.output
    assert f"{charged} entries" in result.output
    shown = CliRunner().invoke(main, ["ledger", "show", str(path), "--json"])
    assert shown.exit_code == 0, shown.output
    assert len(json.loads(shown.stdout)["entries"]) == charged


def test_a_ledger_is_charged_further_about_one_record(ledger):
    path, charged, last = ledger
    with mh.Ledger.open(path, expect_head=last.ledger_head) as account:
        assert account.contributions == 1
        assert [entry.id for entry in account.entries()] == list(range(1, charged + 1))
        before = account.spent
        promise = {"neighbors": account.neighbors, "plan_digest": "0" * 64}
        entry = account.charge(mh.PureDP(epsilon=0.5), **promise)
        assert entry.contributions == 1
        assert account.spent - before == entry.charged
        with pytest.raises(mh.InvalidInput, match="counts the loss of 1 record"):
            account.charge(mh.PureDP(epsilon=0.5), contributions=2, **promise)
        assert account.verify().count == charged + 1


def test_a_ledger_is_shared_between_teams_from_now_on(ledger):
    path, charged, last = ledger
    account = mh.Ledger.open(path)
    hashes = [entry.hash for entry in account.entries()]
    grant = account.grant("health", mh.PureDP(epsilon=0.5))
    account.charge(
        mh.PureDP(epsilon=0.5), neighbors=account.neighbors, plan_digest="0" * 64, team="health"
    )
    assert account.remaining_of("health") == 0
    again = mh.Ledger.open(path, expect_head=last.ledger_head)
    assert again.history()[charged] == grant
    assert [entry.hash for entry in again.entries()][:charged] == hashes
    assert {entry.team for entry in again.entries()[:charged]} == {None}


def test_the_first_entries_say_that_no_unit_was_stated():
    with mh.Ledger.open(FIXTURES / "3b53fdc" / "fixed.ledger") as account:
        assert {entry.contributions for entry in account.entries()} == {None}
        assert [str(entry.charged) for entry in account.entries()][:2] == ["0.1-zCDP", "0.5-zCDP"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_stream_goes_on_with_its_own_noise(folder, tmp_path):
    path = tmp_path / "stream.state"
    shutil.copy(FIXTURES / folder / "stream.state", path)
    path.chmod(0o600)
    counter = mh.stream.restore(path, claims=tmp_path)
    said = read(folder, "streams.json")["running sum"]
    assert [float(counter.push(0.5)) for _ in said] == said


WITHOUT_OUTSIDE = ("3b53fdc", "shuffled chain")
"""Whose last round did not count the people outside yet, which no server goes on from."""


@pytest.mark.parametrize(("folder", "name"), entries("protocols.json"))
def test_an_open_round_is_named_as_one_of_another_schema_whose_fields_meant_the_same(folder, name):
    entry = read(folder, "protocols.json")[name]
    for one in entry["rounds"]:
        with pytest.raises(mh.InvalidInput, match=r"schema 'muhat\.protocol/1'"):
            protocols.Protocol.from_json(json.dumps(one))
    asked_again = [{**one, "schema": "muhat.protocol/2"} for one in entry["rounds"]]
    if (folder, name) == WITHOUT_OUTSIDE:
        with pytest.raises(mh.InvalidInput, match="asks for something else"):
            protocols.Protocol.from_json(json.dumps(asked_again.pop()))
    described = [protocols.Protocol.from_json(json.dumps(one)) for one in asked_again]
    assert [json.loads(one.to_json()) for one in described] == asked_again
    # The label is another one, as the digest is; payloads are what they were.
    message = base64.b64decode(entry["messages"])
    payload = np.frombuffer(message[HEADER_BYTES:], np.uint8)[None, :]
    assert described[0].server().take(message).rejected == {"another protocol": 1}
    assert described[0].randomizer.valid(payload).all()
