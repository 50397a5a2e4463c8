"""An exact amount of privacy loss.

Amounts are rationals that add up under composition: ε, (ε, δ), ρ or μ². Sums never round, so
a million charges drift by nothing.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from muhat.privacy import Privacy, currency_kind
from muhat.privacy.rounding import as_typed


@dataclass(frozen=True, eq=False, repr=False)
class Balance:
    """An exact amount of one kind of privacy loss; unlike a promise it may be zero.

    `amounts` is exact: (ε,), (ε, δ), (ρ,) or (μ²,). `epsilon`, `delta`, `rho` and `mu` exist
    for the kinds they belong to; `float(balance)` is the first of them. These floats are
    rounded down, so that a promise made of what remains is never refused. Comparisons are
    exact, with balances and promises of the same kind and with numbers read as typed;
    (ε, δ) is smaller only if both numbers are, and of the plain numbers it knows 0 alone.

    >>> balance = Balance("zcdp", (Fraction(3, 10),))
    >>> balance, balance.rho, balance == 0.3, balance < 1
    (0.3-zCDP, 0.3, True, True)
    """

    kind: str
    """The currency of the account: that of every promise which adds up in it."""

    amounts: tuple[Fraction, ...]

    @classmethod
    def of(cls, promise: Privacy) -> Balance:
        """The whole promise as an amount."""
        return cls(promise.currency, promise.amounts)

    @classmethod
    def zero(cls, kind: str) -> Balance:
        """Nothing, of the given kind."""
        return cls(kind, (Fraction(0),) * len(currency_kind(kind).numbers))

    @property
    def epsilon(self) -> float:
        """ε of a pure or approximate amount."""
        return self._number("epsilon")

    @property
    def delta(self) -> float:
        """δ of an approximate amount."""
        return self._number("delta")

    @property
    def rho(self) -> float:
        """ρ of a zero-concentrated amount."""
        return self._number("rho")

    @property
    def mu(self) -> float:
        """μ of a Gaussian amount, the root of the μ² that adds up."""
        return self._number("mu")

    def _number(self, name: str) -> float:
        promise = currency_kind(self.kind)
        if name not in promise.numbers:
            raise AttributeError(f"a balance of kind {self.kind!r} has no {name}")
        return promise.number_at_most(self.amounts[promise.numbers.index(name)])

    @property
    def _names(self) -> tuple[str, ...]:
        return currency_kind(self.kind).numbers

    def to_dict(self) -> dict[str, object]:
        """As JSON: the kind, its numbers as floats, and the exact amounts as text."""
        numbers = {name: self._number(name) for name in self._names}
        return {"kind": self.kind, **numbers, "exact": [to_text(part) for part in self.amounts]}

    def __float__(self) -> float:
        return self._number(self._names[0])

    def __str__(self) -> str:
        return self._written(lambda number: repr(number).removesuffix(".0"))

    def __repr__(self) -> str:
        return self._written(lambda number: f"{number:.12g}")

    def __format__(self, specification: str) -> str:
        if not specification:
            return str(self)
        return self._written(lambda number: format(number, specification))

    def _written(self, write: Callable[[float], str]) -> str:
        numbers = [write(self._number(name)) for name in self._names]
        return currency_kind(self.kind).written(self.kind, numbers)

    def __add__(self, other: Balance) -> Balance:
        return Balance(self.kind, tuple(map(operator.add, self.amounts, self._same(other))))

    def __sub__(self, other: Balance) -> Balance:
        return Balance(self.kind, tuple(map(operator.sub, self.amounts, self._same(other))))

    def _same(self, other: Balance) -> tuple[Fraction, ...]:
        if not isinstance(other, Balance) or other.kind != self.kind:
            raise TypeError(f"only balances of kind {self.kind!r} can be added to this one")
        return other.amounts

    # Without a hash: a number is equal to a balance by its decimal, not its bits, and no hash can
    # agree with both.
    def __eq__(self, other: object) -> bool:
        amounts = self._comparable(other)
        return NotImplemented if amounts is None else self.amounts == amounts

    def __le__(self, other: object) -> bool:
        amounts = self._comparable(other)
        if amounts is None:
            return NotImplemented
        return all(mine <= theirs for mine, theirs in zip(self.amounts, amounts, strict=True))

    def __ge__(self, other: object) -> bool:
        amounts = self._comparable(other)
        if amounts is None:
            return NotImplemented
        return all(mine >= theirs for mine, theirs in zip(self.amounts, amounts, strict=True))

    def __lt__(self, other: object) -> bool:
        below = self.__le__(other)
        return below if below is NotImplemented else below and self != other

    def __gt__(self, other: object) -> bool:
        above = self.__ge__(other)
        return above if above is NotImplemented else above and self != other

    def _comparable(self, other: object) -> tuple[Fraction, ...] | None:
        if isinstance(other, Privacy):
            other = Balance.of(other)
        if isinstance(other, Balance):
            return other.amounts if other.kind == self.kind else None
        if isinstance(other, bool) or not isinstance(other, int | float | Fraction):
            return None
        if not math.isfinite(other):
            return None
        number = as_typed(other) if isinstance(other, float) else Fraction(other)
        if len(self.amounts) == 1:
            return (currency_kind(self.kind).amount_of(number),)
        return (number,) * len(self.amounts) if number == 0 else None


def to_text(amount: Fraction) -> str:
    """An exact amount as "numerator/denominator"."""
    return f"{amount.numerator}/{amount.denominator}"


def from_text(text: object) -> Fraction:
    """The amount that `to_text` wrote; any other text is a ValueError."""
    parts = text.split("/") if isinstance(text, str) else []
    # Digits alone: Fraction() would also take "1e999999999" and never return.
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError("not an exact amount")
    numerator, denominator = int(parts[0]), int(parts[1])
    if denominator == 0 or math.gcd(numerator, denominator) != 1:
        raise ValueError("not an exact amount in lowest terms")
    return Fraction(numerator, denominator)
