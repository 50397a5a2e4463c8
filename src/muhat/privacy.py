"""What is promised: pure, approximate, zero-concentrated and Gaussian differential privacy.

A promise is a frozen description. The numbers are read as the decimals the user typed: a
`rho` of 0.1 means one tenth, not the binary float next to it, so that ten charges of 0.1
fill a budget of 1 exactly. Mechanisms calibrate to the exact rational (`amounts`), never to
the float.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, cast

from muhat import _check
from muhat._gaussian_curve import gaussian_delta, gaussian_epsilon, gaussian_mu
from muhat._rounding import as_typed, float_at_least, root_at_least
from muhat.errors import BudgetExceeded, InvalidInput

__all__ = [
    "GDP",
    "KINDS",
    "ZCDP",
    "ApproxDP",
    "Filter",
    "Neighbors",
    "Privacy",
    "PureDP",
    "as_substitution",
    "as_typed",
    "compose",
    "from_dict",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "gaussian_mu_squared",
    "to_dict",
]


class Neighbors(enum.Enum):
    """Which datasets must look alike: one record replaced, or one record added or removed."""

    SUBSTITUTE = "substitute"
    ADD_REMOVE = "add-remove"

    @classmethod
    def parse(cls, value: Neighbors | str) -> Neighbors:
        """The relation itself, from the enum or its name."""
        if isinstance(value, cls):
            return value
        if not isinstance(value, str):
            raise InvalidInput(f"neighbors must be a name; got {type(value).__name__}.")
        return cls(_check.one_of("neighbors", value, [relation.value for relation in cls]))


class _Promise:
    """What every promise can do."""

    def to(self, kind: str, *, delta: float | None = None, epsilon: float | None = None) -> Privacy:
        """The best promise of another kind that this one implies, rounded to the safe side.

        `kind` is "pure", "approx", "zcdp" or "gdp". For "approx" exactly one of delta and
        epsilon is given and the other one follows. What is not implied is InvalidInput.

        >>> ZCDP(rho=0.1).to("approx", delta=1e-6).describe()
        '(2.141938928385474, 1e-06)-DP'
        >>> GDP(mu=1.0).to("zcdp")
        ZCDP(rho=0.5)
        """
        from muhat._conversions import convert

        return convert(cast("Privacy", self), kind, delta=delta, epsilon=epsilon)


def _plain(value: float) -> str:
    """A float without a needless ".0"."""
    return repr(value).removesuffix(".0")


@dataclass(frozen=True, kw_only=True)
class PureDP(_Promise):
    """ε-differential privacy."""

    epsilon: float
    kind: ClassVar[str] = "pure"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _check.positive("epsilon", self.epsilon))

    def describe(self) -> str:
        """The promise in words: "1-DP (pure)"."""
        return f"{_plain(self.epsilon)}-DP (pure)"

    @property
    def amounts(self) -> tuple[Fraction, ...]:
        """What adds up under composition: (ε,)."""
        return (as_typed(self.epsilon),)


@dataclass(frozen=True, kw_only=True)
class ApproxDP(_Promise):
    """(ε, δ)-differential privacy."""

    epsilon: float
    delta: float
    kind: ClassVar[str] = "approx"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _check.positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", _check.probability("delta", self.delta))

    def describe(self) -> str:
        """The promise in words: "(1, 1e-06)-DP"."""
        return f"({_plain(self.epsilon)}, {_plain(self.delta)})-DP"

    @property
    def amounts(self) -> tuple[Fraction, ...]:
        """What adds up under composition: (ε, δ)."""
        return (as_typed(self.epsilon), as_typed(self.delta))


@dataclass(frozen=True, kw_only=True)
class ZCDP(_Promise):
    """ρ-zero-concentrated differential privacy: D_α ≤ αρ for every α > 1."""

    rho: float
    kind: ClassVar[str] = "zcdp"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", _check.positive("rho", self.rho))

    def describe(self) -> str:
        """The promise in words: "0.1-zCDP"."""
        return f"{_plain(self.rho)}-zCDP"

    @property
    def amounts(self) -> tuple[Fraction, ...]:
        """What adds up under composition: (ρ,)."""
        return (as_typed(self.rho),)


@dataclass(frozen=True, kw_only=True)
class GDP(_Promise):
    """μ-Gaussian differential privacy: as hard to tell apart as N(0, 1) and N(μ, 1)."""

    mu: float
    kind: ClassVar[str] = "gdp"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", _check.positive("mu", self.mu))

    def describe(self) -> str:
        """The promise in words: "1-GDP"."""
        return f"{_plain(self.mu)}-GDP"

    @property
    def amounts(self) -> tuple[Fraction, ...]:
        """What adds up under composition: (μ²,)."""
        return (as_typed(self.mu) ** 2,)


Privacy = PureDP | ApproxDP | ZCDP | GDP
KINDS: dict[str, type[PureDP] | type[ApproxDP] | type[ZCDP] | type[GDP]] = {
    promise.kind: promise for promise in (PureDP, ApproxDP, ZCDP, GDP)
}


def to_dict(promise: Privacy) -> dict[str, str | float]:
    """The promise as JSON: {"kind": "zcdp", "rho": 0.1}."""
    return {"kind": promise.kind, **vars(promise)}


def from_dict(fields: dict[str, str | float]) -> Privacy:
    """The promise that `to_dict` described."""
    parameters = {name: value for name, value in fields.items() if name != "kind"}
    kind = KINDS[_check.one_of("privacy kind", str(fields.get("kind")), KINDS)]
    return kind(**parameters)  # type: ignore[arg-type]


def gaussian_mu_squared(promise: Privacy) -> Fraction:
    """The largest μ² for which μ-Gaussian DP keeps the promise, as a rational.

    Exact for GDP (μ²) and zCDP (2ρ); for (ε, δ) the root of the Gaussian curve, rounded down by
    less than one part in 10¹⁵ and verified.

    >>> gaussian_mu_squared(ZCDP(rho=0.1))
    Fraction(1, 5)
    """
    if isinstance(promise, GDP):
        return promise.amounts[0]
    if isinstance(promise, ZCDP):
        return 2 * promise.amounts[0]
    if isinstance(promise, ApproxDP):
        return as_typed(gaussian_mu(promise.epsilon, promise.delta)) ** 2
    raise InvalidInput(
        "privacy must be ZCDP, GDP or ApproxDP for Gaussian noise; got PureDP. No Gaussian "
        "mechanism is purely private: allow a small delta, ApproxDP(epsilon=..., delta=1e-9)."
    )


def compose(promises: Iterable[Privacy]) -> Privacy:
    """What several releases about the same data promise together; kinds are never mixed.

    ε, (ε, δ) and ρ add up, for GDP the squares of μ do. The sum is exact and rounded up only
    when it becomes a float.

    >>> compose([ZCDP(rho=0.1), ZCDP(rho=0.2)])
    ZCDP(rho=0.3)
    """
    parts = list(promises)
    if not parts:
        raise InvalidInput("promises must hold at least one promise; got none.")
    for part in parts[1:]:
        _require_like(parts[0], part)
    totals = [sum(column, Fraction(0)) for column in zip(*(p.amounts for p in parts), strict=True)]
    if isinstance(parts[0], GDP):
        return GDP(mu=root_at_least(totals[0]))
    if isinstance(parts[0], ZCDP):
        return ZCDP(rho=float_at_least(totals[0]))
    if isinstance(parts[0], PureDP):
        return PureDP(epsilon=float_at_least(totals[0]))
    return ApproxDP(epsilon=float_at_least(totals[0]), delta=float_at_least(totals[1]))


def _require_like(first: Privacy, second: Privacy) -> None:
    if first.kind != second.kind:
        raise InvalidInput(
            f"promises must be of one kind; got {first.kind!r} and {second.kind!r}. "
            "Convert them first, for example with to('zcdp')."
        )


class Filter:
    """Adaptive composition: each next promise may depend on every output so far.

    As long as the charges stay within the budget surely, whatever the outputs, all releases
    together keep the budget's promise: for ρ and μ² by the filter theorems (Feldman and Zrnic
    2021; Smith and Thakurta 2022), for ε and (ε, δ) by basic composition, whose proof multiplies
    the likelihood ratios of the steps and adds their δ one after the other, so that only the
    fixed sums matter and not how they were split on the way. Choices may never depend on the
    data other than through released outputs.

    >>> budget = Filter(ZCDP(rho=1.0))
    >>> for _ in range(10):
    ...     budget.charge(ZCDP(rho=0.1))
    >>> budget.remaining
    (Fraction(0, 1),)
    """

    def __init__(self, budget: Privacy) -> None:
        self.budget = budget
        self._spent = (Fraction(0),) * len(budget.amounts)

    @property
    def spent(self) -> tuple[Fraction, ...]:
        """What was charged, exactly, in the units of `budget.amounts`."""
        return self._spent

    @property
    def remaining(self) -> tuple[Fraction, ...]:
        """What is left, exactly, in the units of `budget.amounts`."""
        pairs = zip(self.budget.amounts, self._spent, strict=True)
        return tuple(whole - part for whole, part in pairs)

    def charge(self, promise: Privacy) -> None:
        """Spend a promise of the budget's kind, or raise BudgetExceeded and spend nothing."""
        _require_like(self.budget, promise)
        after = tuple(s + a for s, a in zip(self._spent, promise.amounts, strict=True))
        if any(total > whole for total, whole in zip(after, self.budget.amounts, strict=True)):
            raise BudgetExceeded(
                f"{promise.describe()} is more than what is left of {self.budget.describe()}; "
                "nothing was spent."
            )
        self._spent = after

    def __repr__(self) -> str:
        left = ", ".join(f"{float(amount):g}" for amount in self.remaining)
        return f"Filter({self.budget.describe()}, remaining {left})"


def as_substitution(promise: Privacy) -> Privacy:
    """What a promise about adding or removing one record says about replacing one.

    Replacing is one removal and one addition: 2ε; (2ε, (1 + e^ε)δ); 4ρ; 2μ. Never done silently.

    >>> as_substitution(ZCDP(rho=0.1))
    ZCDP(rho=0.4)
    """
    from muhat._conversions import doubled_delta

    if isinstance(promise, GDP):
        return GDP(mu=float_at_least(2 * as_typed(promise.mu)))
    if isinstance(promise, ZCDP):
        return ZCDP(rho=float_at_least(4 * as_typed(promise.rho)))
    epsilon = float_at_least(2 * as_typed(promise.epsilon))
    if isinstance(promise, PureDP):
        return PureDP(epsilon=epsilon)
    delta = doubled_delta(promise.epsilon, promise.delta)
    if delta >= 1:
        raise InvalidInput(
            f"{promise.describe()} about adding or removing a record says nothing about replacing "
            "one: (1 + exp(epsilon))*delta is 1 or more. Use a smaller epsilon or delta."
        )
    return ApproxDP(epsilon=epsilon, delta=delta)
