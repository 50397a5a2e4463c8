"""One order for everything that is released, and one place that knows it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import muhat as mh
from muhat.planning.mechanism import Mechanism
from muhat.planning.run import LONGEST_NOTE, carried_out
from muhat.planning.terms import Terms

SOURCE = Path(mh.__file__).parent
RHO = mh.ZCDP(rho=0.5)
SUBSTITUTE = mh.Neighbors.SUBSTITUTE
TERMS = Terms(privacy=RHO, neighbors=SUBSTITUTE, n=3)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Watched(Mechanism):
    """A mechanism that notes its steps, and what the account had spent by then."""

    account: mh.Ledger
    terms: Terms = TERMS
    fails_at: str = ""
    says: str | None = "watched"
    steps: list[tuple[str, int]] = field(default_factory=list)

    name = "watched"

    def step(self, name: str) -> None:
        self.steps.append((name, len(self.account.entries())))
        if name == self.fails_at:
            raise mh.InvalidInput("refused")

    def keeps(self, terms: Terms) -> bool:
        return True

    def errors(self) -> list[tuple[Any, Any]]:
        return []

    def decisive(self) -> dict[str, Any]:
        return {}

    def facts(self) -> list[list[str]]:
        return []

    def tables(self) -> list[list[list[str]]]:
        return []

    def figure(self) -> Any:
        return None

    def open(self, data: Any, columns: Any) -> str:
        self.step("open")
        return "source"

    def counted(self, source: str) -> Mechanism:
        self.step("count")
        return self

    def admit(self, source: str) -> None:
        self.step("admit")

    def note(self, source: str) -> str | None:
        self.step("note")
        return self.says

    def read(self, source: str) -> str:
        self.step("read")
        return source


def head_of(work: Watched) -> Any:
    _, answers, head = carried_out(mh.Plan.of(work), None, None, work.account)
    assert answers == ("source",)
    return head


@pytest.fixture
def account(tmp_path):
    path = tmp_path / "budget.db"
    return mh.Ledger.create(path, budget=mh.ZCDP(rho=1), neighbors="substitute")


def test_the_account_is_charged_after_all_checks_and_before_any_value(account):
    work = Watched(account=account)
    head = head_of(work)
    assert work.steps == [("open", 0), ("count", 0), ("admit", 0), ("note", 0), ("read", 1)]
    assert head == account.head.to_dict()


@pytest.mark.parametrize("step", ["open", "count", "admit"])
def test_what_is_refused_before_the_charge_costs_nothing(account, step):
    with pytest.raises(mh.InvalidInput):
        head_of(Watched(account=account, fails_at=step))
    assert account.entries() == []


def test_a_failure_after_the_charge_keeps_it(account):
    with pytest.raises(mh.InvalidInput):
        head_of(Watched(account=account, fails_at="read"))
    assert len(account.entries()) == 1


def test_what_cannot_be_paid_opens_nothing(account):
    dear = Terms(privacy=mh.ZCDP(rho=2), neighbors=SUBSTITUTE, n=3)
    work = Watched(account=account, terms=dear)
    with pytest.raises(mh.BudgetExceeded):
        head_of(work)
    assert work.steps == []


def test_what_tells_nothing_costs_nothing(account):
    assert head_of(Watched(account=account, says=None)) is None
    assert account.entries() == []


def test_notes_are_cut_and_printable(account):
    head_of(Watched(account=account, says="mean of \x1b[31m" + "x" * 1000))
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
