"""All kinds of promises together: what a user may ask for, type and convert."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from muhat._words import Parameter
from muhat.errors import InvalidInput
from muhat.privacy.promise import KINDS, Privacy, why_not


def check_promise(privacy: Any, name: str = "privacy") -> None:
    """A promise of any kind, or InvalidInput that says how one is typed."""
    if not isinstance(privacy, Privacy):
        examples = _listed([kind.example for kind in KINDS.values()], "or")
        is_class = isinstance(privacy, type)
        got = f"the class {privacy.__name__}" if is_class else type(privacy).__name__
        raise InvalidInput(f"must be a promise: {examples}", parameter=name, value=got)


def currency_kind(currency: str) -> type[Privacy]:
    """The kind of promises that an account in a currency is about; KeyError or ValueError."""
    kind = KINDS[currency.partition("-")[0]]
    kind.check_currency(currency)
    return kind


def charged_in(promise: Privacy, currency: str) -> tuple[tuple[Fraction, ...], str]:
    """What a promise costs in a currency, exactly, and by which implication: "" if by none.

    Only implications that are proved; whatever has no rule is InvalidInput.

    >>> from muhat.privacy import GDP
    >>> charged_in(GDP(mu=1.0), "zcdp")
    ((Fraction(1, 2),), 'GDP → zCDP: ρ = μ²/2')
    """
    if promise.currency == currency:
        return promise.amounts, ""
    taker = currency_kind(currency)
    rule = taker.rules.get(promise.kind)
    amounts = None if rule is None else taker.cost_of(promise, currency)
    if amounts is not None:
        return amounts, f"{promise.spoken} → {taker.spoken}: {rule}"
    if isinstance(promise, taker):
        account = taker.written(currency, ["…"] * len(taker.numbers))
        raise InvalidInput(
            f"{promise.describe()} cannot be charged to a ledger of {account}: "
            f"{why_not(promise.kind, promise.kind)}."
        )
    others = [KINDS[kind] for kind in KINDS if kind in taker.rules and kind != taker.kind]
    taken = [taker, *others]
    raise InvalidInput(
        f"A promise of {type(promise).__name__} cannot be charged to a ledger whose budget is "
        f"{taker.__name__}; ask for ",
        Parameter(
            "privacy",
            " or ".join(f"mh.{each.__name__}" for each in taken),
            " or ".join(map(_flags_of, taken)),
        ),
        ", which it takes.",
    )


def flags() -> dict[str, str]:
    """The numbers of all kinds on the command line, and what each means."""
    found: dict[str, list[str]] = {}
    for kind in KINDS.values():
        for name, words in kind.flags.items():
            found.setdefault(name, []).append(words)
    return {name: f"{', '.join(words)}." for name, words in found.items()}


def from_flags(given: Mapping[str, float | None]) -> Privacy:
    """The promise that the numbers on a command line ask for: those of exactly one kind."""
    numbers = {name: value for name, value in given.items() if value is not None}
    for kind in KINDS.values():
        if set(kind.flags) == set(numbers):
            return kind(**numbers)
    ways = [_flags_of(kind) for kind in KINDS.values()]
    raise InvalidInput(f"give exactly one of {_listed(ways, 'and')}.")


def _flags_of(kind: type[Privacy]) -> str:
    return " with ".join(f"--{name}" for name in kind.flags)


def _listed(texts: list[str], word: str) -> str:
    """One, two and three."""
    return f"{', '.join(texts[:-1])} {word} {texts[-1]}"
