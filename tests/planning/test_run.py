"""One order for everything that is released, and one place that knows it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import muhat as mh
from muhat.planning.run import LONGEST_NOTE, run

SOURCE = Path(mh.__file__).parent
RHO = mh.ZCDP(rho=0.5)


@dataclass
class Planned:
    privacy: mh.ZCDP = RHO
    neighbors: mh.Neighbors = mh.Neighbors.SUBSTITUTE
    contributions: int = 1
    digest: str = "0" * 64


@dataclass
class Watched:
    """Work that notes its steps, and what the account had spent by then."""

    account: mh.Ledger
    fails_at: str = ""
    says: str | None = "watched"
    plan: Planned = field(default_factory=Planned)
    steps: list[tuple[str, int]] = field(default_factory=list)

    def step(self, name: str) -> None:
        self.steps.append((name, len(self.account.entries())))
        if name == self.fails_at:
            raise mh.InvalidInput("refused")

    def open(self, data: Any, columns: Any) -> str:
        self.step("open")
        return "source"

    def counted(self, source: str) -> Planned:
        self.step("count")
        return self.plan

    def admit(self, plan: Planned, source: str) -> None:
        self.step("admit")

    def note(self, plan: Planned, source: str) -> str | None:
        self.step("note")
        return self.says

    def read(self, plan: Planned, source: str, head: Any) -> Any:
        self.step("read")
        return head


@pytest.fixture
def account(tmp_path):
    path = tmp_path / "budget.db"
    return mh.Ledger.create(path, budget=mh.ZCDP(rho=1), neighbors="substitute")


def test_the_account_is_charged_after_all_checks_and_before_any_value(account):
    work = Watched(account)
    head = run(work, None, None, account)
    assert work.steps == [("open", 0), ("count", 0), ("admit", 0), ("note", 0), ("read", 1)]
    assert head == account.head.to_dict()


@pytest.mark.parametrize("step", ["open", "count", "admit"])
def test_what_is_refused_before_the_charge_costs_nothing(account, step):
    with pytest.raises(mh.InvalidInput):
        run(Watched(account, step), None, None, account)
    assert account.entries() == []


def test_a_failure_after_the_charge_keeps_it(account):
    with pytest.raises(mh.InvalidInput):
        run(Watched(account, "read"), None, None, account)
    assert len(account.entries()) == 1


def test_what_cannot_be_paid_opens_nothing(account):
    work = Watched(account, plan=Planned(privacy=mh.ZCDP(rho=2)))
    with pytest.raises(mh.BudgetExceeded):
        run(work, None, None, account)
    assert work.steps == []


def test_what_tells_nothing_costs_nothing(account):
    assert run(Watched(account, says=None), None, None, account) is None
    assert account.entries() == []


def test_notes_are_cut_and_printable(account):
    run(Watched(account, says="mean of \x1b[31m" + "x" * 1000), None, None, account)
    (entry,) = account.entries()
    assert "\x1b" not in entry.note
    assert len(entry.note) < 2 * LONGEST_NOTE


def test_nothing_else_asks_or_charges_an_account():
    places = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("approve", "charge")
                and any(keyword.arg == "neighbors" for keyword in node.keywords)
            ):
                places.add(str(path.relative_to(SOURCE)))
    assert places == {"planning/run.py"}
