"""A device answers a round once, and no more rounds than its own budget allows."""

from __future__ import annotations

import json
import multiprocessing
import os
import sqlite3
import stat
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import muhat as mh
from muhat import protocols
from muhat.protocols import DeviceAccount, Protocol
from muhat.protocols.encodings.range_cells import Distance
from muhat.protocols.roles import device_account

BALL = mh.Ball(1.0, dim=2)
PURE = mh.PureDP(epsilon=1.0)
MIXED = mh.ApproxDP(epsilon=1.0, delta=1e-6)
RECORD = [0.1, 0.2]
NUMBER = 3.0


def mean(n=100, promise=PURE) -> Protocol:
    return protocols.local_mean(domain=BALL, n=n, privacy=promise)


@pytest.fixture
def account(tmp_path):
    return DeviceAccount.create(tmp_path / "device.db", budget=mh.PureDP(epsilon=2.0), days=7)


@pytest.fixture
def clock(monkeypatch):
    """The time, in days, that tests may set."""

    class Clock:
        days = 20_000.0

        def time(self):
            return self.days * 86_400

    made = Clock()
    monkeypatch.setattr(device_account, "time", made)
    return made


def test_a_client_has_one_message_and_no_other():
    client = mean().client(account=False)
    assert (
        len({client.randomize(RECORD), client.randomize([0.9, 0.0]), client.randomize(RECORD)}) == 1
    )
    assert mean().client(account=False).randomize(RECORD) != client.randomize(RECORD)


def test_any_number_of_requests_for_one_round_gets_the_same_bytes(account):
    protocol = mean()
    first = protocol.client(account=account).randomize(RECORD)
    again = {protocol.client(account=account).randomize(RECORD) for _ in range(50)}
    # What the requests are like does not matter: another file name, another record.
    other = Protocol.from_json(protocol.to_json()).client(account=account.path)
    assert again | {other.randomize([0.9, -0.3])} == {first}
    assert account.spent == mh.PureDP(epsilon=1.0)


def test_the_users_own_account_is_asked_unless_another_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    protocol = mean()
    first = protocol.client().randomize(RECORD)
    assert protocol.client().randomize(RECORD) == first
    own = DeviceAccount.of_user()
    assert own.path == tmp_path / "muhat" / "device" / "account.db"
    assert (own.budget, own.days) == (device_account.BUDGET, device_account.DAYS)
    assert [each.round for each in own.answered] == [protocol.digest]
    assert stat.S_IMODE(own.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(own.path.parent.stat().st_mode) == 0o700


def test_sixty_descriptions_that_differ_in_n_alone_are_not_sixty_promises(account):
    for n in (100, 101):
        mean(n).client(account=account).randomize(RECORD)
    for n in range(102, 160):
        with pytest.raises(mh.BudgetExceeded, match="nothing was answered"):
            mean(n).client(account=account).randomize(RECORD)
    assert account.remaining == 0


def test_a_refused_round_is_not_remembered_as_answered(account):
    for n in (100, 101):
        mean(n).client(account=account).randomize(RECORD)
    with pytest.raises(mh.BudgetExceeded):
        mean(102).client(account=account).randomize(RECORD)
    assert len(account.answered) == 2


def test_the_budget_is_for_any_period_of_its_length(account, clock):
    mean(100).client(account=account).randomize(RECORD)
    clock.days += 3
    mean(101).client(account=account).randomize(RECORD)
    clock.days += 3.9
    with pytest.raises(mh.BudgetExceeded):
        mean(102).client(account=account).randomize(RECORD)
    clock.days += 0.2
    mean(102).client(account=account).randomize(RECORD)
    with pytest.raises(mh.BudgetExceeded):
        mean(103).client(account=account).randomize(RECORD)


def test_a_clock_that_is_set_back_frees_nothing(account, clock):
    for n in (100, 101):
        mean(n).client(account=account).randomize(RECORD)
    for days in (-1_000, 6.9):
        clock.days = 20_000 + days
        with pytest.raises(mh.BudgetExceeded):
            mean(102).client(account=account).randomize(RECORD)
        assert account.remaining == 0


def test_another_round_of_the_local_model_is_refused_whatever_the_server_says(account):
    first = protocols.local_mean(
        domain=mh.Reals(2, 9.0), n=64, privacy=PURE, mechanism="local-three-rounds"
    )
    first.client(account=account).randomize(RECORD)
    second = radius_after(first)
    assert second.task == first.task
    for other in (second, replace(first, users=99), replace(first, minimum=1)):
        with pytest.raises(mh.InvalidInput, match="one round and no other"):
            other.client(account=account).randomize(RECORD)


def radius_after(medians: Protocol) -> Protocol:
    """The second of three rounds, if the first has found the centre at 0."""
    estimator, center = medians.estimator, (0.0, 0.0)
    asks = estimator.counting(Distance(center), estimator.radius_grid)
    return medians.following(asks, 12, {"step": "medians", "people": 16, "center": [*center]})


def rounds_of(shares):
    """Rounds of one task in the shuffle model with these shares of its promise."""
    whole = protocols.shuffle_quantile(lower=0, upper=10, resolution=1, n=200, privacy=MIXED)
    learnt = ()
    for number, share in enumerate(shares, 1):
        allowance = whole.randomizer.noise.allowance.part(Fraction(share))
        randomizer = type(whole.randomizer).of(
            whole.randomizer.encoding, allowance, honest=180, users=200
        )
        yield replace(whole, randomizer=randomizer, round=number, learnt=learnt)
        # A server that lies: every round before took nothing to speak of.
        learnt = (*learnt, {"share": "1/1000000", "windows": [[0, 10]]})


def test_rounds_of_one_task_are_charged_once_and_share_its_promise(tmp_path, clock):
    account = DeviceAccount.create(tmp_path / "device.db", budget=MIXED, days=7)
    first, second, third = rounds_of(["1/2", "1/2", "1/100"])
    assert first.task == second.task == third.task
    first.client(account=account).randomize(NUMBER)
    second.client(account=account).randomize(NUMBER)
    assert account.spent == MIXED
    with pytest.raises(mh.InvalidInput, match=r"together they take 1\.01 times the promise"):
        third.client(account=account).randomize(NUMBER)
    # A task counts in full in every period in which one of its rounds was answered.
    clock.days += 5
    other = replace(first, survey=protocols.Survey("other"))
    with pytest.raises(mh.BudgetExceeded):
        other.client(account=account).randomize(NUMBER)


def test_a_late_round_brings_its_task_into_the_period_again(tmp_path, clock):
    account = DeviceAccount.create(tmp_path / "device.db", budget=MIXED, days=7)
    first, second = rounds_of(["1/2", "1/2"])
    first.client(account=account).randomize(NUMBER)
    clock.days += 30
    assert account.spent == 0
    second.client(account=account).randomize(NUMBER)
    assert account.spent == MIXED


def test_rounds_that_the_account_does_not_know_are_counted_if_they_are_named(account, tmp_path):
    first, second = rounds_of(["1/2", "3/4"])
    roomy = DeviceAccount.create(tmp_path / "roomy.db", budget=mh.ApproxDP(9.0, 1e-5))
    with pytest.raises(mh.InvalidInput, match=r"1\.25 times"):
        second.client(answered=[first], account=roomy)
    first.client(account=roomy).randomize(NUMBER)
    with pytest.raises(mh.InvalidInput, match=r"1\.25 times"):
        second.client(account=roomy).randomize(NUMBER)


def test_an_older_version_of_a_survey_is_not_answered_after_a_newer_one(tmp_path):
    account = DeviceAccount.create(tmp_path / "device.db", budget=mh.PureDP(epsilon=9.0))
    versions = [mean().surveyed("ages", version=version) for version in (1, 2, 3)]
    messages = {each.client(account=account).randomize(RECORD) for each in versions[1:]}
    assert len(messages) == 2
    with pytest.raises(mh.InvalidInput, match="version 3 of the survey was answered"):
        versions[0].client(account=account).randomize(RECORD)
    mean().surveyed("ways", version=1).client(account=account).randomize(RECORD)
    assert account.spent == mh.PureDP(epsilon=3.0)
    assert [(each.survey, each.version) for each in account.answered] == [
        ("ages", 2),
        ("ages", 3),
        ("ways", 1),
    ]


def test_what_has_ended_is_not_answered_and_its_message_is_erased(account, clock):
    ends = mean().surveyed("ages", expires="2024-10-10T12:00:00+02:00")
    assert ends.survey.expires == "2024-10-10T10:00:00Z"
    clock.days = ends.survey.ends / 86_400 - 0.001
    message = ends.client(account=account).randomize(RECORD)
    assert message in account.path.read_bytes()
    clock.days += 0.002
    with pytest.raises(mh.InvalidInput, match="the survey ended at 2024-10-10"):
        ends.client(account=account).randomize(RECORD)
    mean(101).client(account=account).randomize(RECORD)
    assert message not in account.path.read_bytes()
    clock.days -= 1
    with pytest.raises(mh.InvalidInput, match="the survey ended"):
        ends.client(account=account).randomize(RECORD)
    assert account.remaining == 0


def test_a_record_of_the_wrong_kind_costs_nothing(account):
    with pytest.raises(mh.InvalidInput):
        mean().client(account=account).randomize("secret77")
    assert account.spent == 0
    assert b"secret77" not in account.path.read_bytes()


def test_a_device_that_fails_while_it_answers_has_not_answered(account, monkeypatch):
    def fails(*_):
        raise KeyboardInterrupt

    protocol = mean()
    monkeypatch.setattr("muhat.protocols.roles.client.messages", fails)
    with pytest.raises(KeyboardInterrupt):
        protocol.client(account=account).randomize(RECORD)
    monkeypatch.undo()
    assert account.spent == 0
    assert account.answered == []


def _answer(path, queue):
    queue.put(mean().client(account=path).randomize(RECORD))


def test_processes_that_race_send_one_message(account):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    racing = [context.Process(target=_answer, args=(account.path, queue)) for _ in range(4)]
    for process in racing:
        process.start()
    assert len({queue.get(timeout=60) for _ in racing}) == 1
    for process in racing:
        process.join()
    assert len(account.answered) == 1


@pytest.mark.parametrize("promise", [mh.ZCDP(rho=0.5), mh.GDP(mu=1.0), MIXED, PURE], ids=repr)
def test_the_budget_of_a_user_takes_promises_of_every_usual_kind(promise, tmp_path):
    account = DeviceAccount.create(tmp_path / "device.db")
    assert mean(promise=promise).client(account=account).randomize(RECORD)
    assert 0 < account.spent.rho <= 0.5


def test_a_promise_that_the_budget_cannot_be_compared_with_is_refused(account):
    with pytest.raises(mh.InvalidInput, match="cannot be charged"):
        mean(promise=mh.GDP(mu=0.1)).client(account=account).randomize(RECORD)


def test_files_that_are_no_account_are_refused_and_left_alone(tmp_path):
    ledger = tmp_path / "ledger.db"
    mh.Ledger.create(ledger, budget=mh.PureDP(1.0), neighbors="substitute")
    text = tmp_path / "text.db"
    text.write_text("precious")
    for path in (ledger, text):
        before = path.read_bytes()
        for attempt in (DeviceAccount.open, DeviceAccount.create):
            with pytest.raises(mh.InvalidInput):
                attempt(path)
        assert path.read_bytes() == before
    with pytest.raises(mh.InvalidInput, match="muhat protocol account create"):
        DeviceAccount.open(tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()
    with pytest.raises(mh.InvalidInput):
        mh.Ledger.open(DeviceAccount.create(tmp_path / "device.db").path)


def test_an_account_that_was_tampered_with_is_refused(account):
    for change in (
        "CREATE TRIGGER t AFTER INSERT ON answers BEGIN DELETE FROM answers; END",
        "DROP TRIGGER t; UPDATE account SET body = 'x'",
        """UPDATE account SET body = '{"budget": {"kind": "pure", "epsilon": 99.0}, "days": 7}'""",
    ):
        connection = sqlite3.connect(account.path)
        connection.executescript(change)
        connection.close()
        with pytest.raises(mh.InvalidInput):
            mean().client(account=account).randomize(RECORD)


def test_an_account_belongs_to_its_owner_alone_whatever_the_umask_allows(tmp_path):
    before = os.umask(0)
    try:
        made = DeviceAccount.create(tmp_path / "device.db")
    finally:
        os.umask(before)
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600


def test_a_survey_is_part_of_the_description_and_of_the_task():
    plain = mean()
    named = plain.surveyed("ages", version=2, expires="2030-01-01")
    assert "survey" not in json.loads(plain.to_json())
    assert Protocol.from_json(named.to_json()) == named
    assert len({plain.task, named.task, plain.surveyed("ages").task}) == 3
    assert "'ages', version 2, until 2030-01-01T00:00:00Z" in repr(named)
    first = protocols.local_mean(
        domain=mh.Reals(2, 9.0), n=64, privacy=PURE, mechanism="local-three-rounds"
    ).surveyed("ages")
    following = radius_after(first)
    assert following.survey == first.survey
    assert following.task == first.task


@pytest.mark.parametrize(
    "survey",
    [
        *({"name": "", "version": 1}, {"name": "x" * 201, "version": 1}, {"version": 1}, 7, None),
        *({"name": "a", "version": 0}, {"name": "a", "version": 1, "expires": "soon"}),
        *({"name": 3, "version": 1}, {"name": "a", "version": 1, "expires": 7, "more": 1}),
    ],
)
def test_a_survey_that_is_wrong_is_refused(survey):
    fields = {**json.loads(mean().to_json()), "survey": survey}
    with pytest.raises(mh.InvalidInput):
        Protocol.from_json(json.dumps(fields))


def test_many_people_in_one_process_have_no_account(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "none"))
    assert len(set(mean().crowd().randomize_many(np.zeros((20, 2))))) == 20
    assert not (tmp_path / "none").exists()
