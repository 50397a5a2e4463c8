"""The proved ways to charge a promise to an account of another kind or another unit."""

from __future__ import annotations

from muhat._words import SECRET_N, Parameter, Sentence
from muhat.errors import InvalidInput
from muhat.ledger.balance import Balance
from muhat.ledger.units import Unit
from muhat.privacy import Neighbors, Privacy, charged_in, for_groups

AS_PROMISED = "as promised"


def cost(promise: Privacy, unit: Unit, kind: str, account: Unit) -> tuple[Balance, str]:
    """What a promise about a unit costs in an account of a kind and unit, and by what reasoning.

    Group privacy comes first: of pure privacy it then asks for less ρ than the other way round.
    """
    grouped, groups = _about(promise, unit, account)
    amount, how = convert(grouped, kind)
    said = [words for words in (groups, how) if words != AS_PROMISED]
    return amount, "; ".join(said) or AS_PROMISED


def _about(promise: Privacy, unit: Unit, account: Unit) -> tuple[Privacy, str]:
    """The promise about the account's unit that one about another unit implies."""
    steps = unit.steps_to(account)
    if steps is None:
        raise InvalidInput(f"A promise about {unit} says nothing about {account}.")
    if unit.is_same(account):
        return promise, AS_PROMISED
    if steps == 1:
        return promise, f"a promise about {unit} is one about {account}"
    words = f"group privacy, k = {steps} steps of {unit}: {promise.grouping}"
    return for_groups(promise, steps), words


def convert(promise: Privacy, kind: str) -> tuple[Balance, str]:
    """What a promise costs in a ledger of the given currency, and by which implication."""
    amounts, how = charged_in(promise, kind)
    return Balance(kind, amounts), how or AS_PROMISED


def unit_refusal(unit: Unit, account: Unit, path: object) -> InvalidInput:
    """Why a promise about another unit is not charged, and which option to change.

    Never another ledger: two accounts of the same people add up to a loss that nobody counts.
    """
    if account.column not in (None, unit.column):
        return InvalidInput(
            f"must be {account.column!r} as in {path}, which counts the loss of {account}",
            parameter="unit",
            value="none" if unit.column is None else repr(unit.column),
        )
    pay = Parameter("convert", "open it with convert=True", "add --convert")
    price = " to pay what group privacy asks for it."
    if unit.neighbors is account.neighbors:
        return InvalidInput(
            f"must be {account.contributions} as in {path}, which counts the loss of {account}",
            parameter="contributions",
            value=str(unit.contributions),
            hint=("Change it, or ", pay, price),
        )
    hint: Sentence = ("Make n public (leave out ", SECRET_N, "), or ", pay, price)
    if account.neighbors is Neighbors.ADD_REMOVE:
        public = "A release with n public says nothing about adding a record: keep n secret ("
        hint = (public, SECRET_N, ").")
    return InvalidInput(
        f"must be {account.neighbors.value!r} as in {path}",
        parameter="neighbors",
        value=repr(unit.neighbors.value),
        hint=hint,
    )
