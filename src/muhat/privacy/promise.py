"""What a promise answers, whatever its kind.

A promise is a frozen description. The numbers are read as the decimals the user typed: a
`rho` of 0.1 means one tenth, not the binary float next to it, so that ten charges of 0.1
fill a budget of 1 exactly. Mechanisms calibrate to the exact rational (`amounts`), never to
the float.

Whoever plans, charges or bounds asks for what a promise can do, and never which kind it is. A new
kind is one module here with one subclass, which registers itself. "Implied" numbers hold for every
mechanism that keeps the promise; what is called "within" is enough to keep it.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Self

from muhat import _check
from muhat._plain import Plain
from muhat.errors import InvalidInput
from muhat.privacy.rounding import as_typed, float_at_least, float_at_most

KINDS: dict[str, type[Privacy]] = {}
"""Every kind of promise by its name, in the order in which they are listed to users."""


class Privacy(Plain, abc.ABC, tag="kind"):
    """A promise about data; its fields are the numbers that a user types."""

    kind: ClassVar[str]
    """The name in files and for `to`."""

    spoken: ClassVar[str]
    """The name in sentences: "zCDP"."""

    suffix: ClassVar[str]
    """What stands behind the numbers: "0.1-zCDP"."""

    example: ClassVar[str]
    """How it is typed in Python."""

    flags: ClassVar[Mapping[str, str]]
    """Its numbers on the command line, and what each means there."""

    numbers: ClassVar[tuple[str, ...]]
    """The fields that add up under composition, as `amounts`."""

    grouping: ClassVar[str]
    """What holds for k steps between datasets, as a formula."""

    asked: ClassVar[tuple[str, ...]] = ()
    """What `to` must be told for this kind."""

    rules: ClassVar[Mapping[str, str]] = {}
    """By which formula a promise of another kind is charged to an account of this one."""

    why_not: ClassVar[Mapping[tuple[str, str], str]] = {}
    """Why one kind implies no promise of another: reasons that this kind brings along."""

    admits_normal: ClassVar[bool] = True
    """Whether normal noise can keep it."""

    admits_pure: ClassVar[bool] = False
    """Whether pure noise, which keeps every promise, can be the better choice."""

    spends_delta: ClassVar[bool] = False
    """Whether it has a δ that may be spent on a failure: a bin left out, mixing, a secret n."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        KINDS[cls.kind] = cls

    # In words and numbers.

    def describe(self) -> str:
        """The promise in words: "0.1-zCDP"."""
        written = [plain(getattr(self, name)) for name in self.numbers]
        return self.written(self.currency, written)

    @property
    def currency(self) -> str:
        """What an account of it is kept in: promises of one currency add up."""
        return self.kind

    @classmethod
    def check_currency(cls, currency: str) -> None:
        """ValueError unless it is a currency of this kind."""
        if currency != cls.kind:
            raise ValueError(f"not a currency of {cls.kind}")

    @classmethod
    def written(cls, currency: str, numbers: Sequence[str]) -> str:
        """An amount in a currency of this kind, from its numbers: "(1, 1e-06)-DP"."""
        listed = ", ".join(numbers)
        return f"{f'({listed})' if len(numbers) > 1 else listed}-{cls.suffix}"

    # Composition: amounts add up, whole or in parts.

    @property
    def amounts(self) -> tuple[Fraction, ...]:
        """What adds up under composition, exactly: (ε,), (ε, δ), (ρ,) or (μ²,)."""
        return tuple(self.amount_of(as_typed(getattr(self, name))) for name in self.numbers)

    @classmethod
    def amount_of(cls, number: Fraction) -> Fraction:
        """What a number counts for in a sum."""
        return number

    @classmethod
    def number_at_least(cls, amount: Fraction) -> float:
        """The least float that, as typed, counts for this amount or more."""
        return float_at_least(amount)

    @classmethod
    def number_at_most(cls, amount: Fraction) -> float:
        """The largest float that, as typed, counts for this amount or less."""
        return float_at_most(amount)

    def with_amounts(self, amounts: Sequence[Fraction]) -> Self:
        """The promise of these amounts, rounded up."""
        return self._with([self.number_at_least(amount) for amount in amounts])

    def part(self, share: Fraction) -> Self:
        """A share of the promise, rounded down: shares of at most 1 together keep it."""
        return self._with([self.number_at_most(share * amount) for amount in self.amounts])

    def _with(self, numbers: Sequence[float]) -> Self:
        fields = {**vars(self), **dict(zip(self.numbers, numbers, strict=True))}
        return type(self)(**fields)

    @abc.abstractmethod
    def for_groups(self, size: int) -> Privacy:
        """What holds for datasets that are `size` > 1 steps apart, rounded up."""

    # What every mechanism that keeps the promise keeps too.

    @property
    def implied_epsilon(self) -> float | None:
        """ε of the pure privacy that it implies; None if it implies none."""
        return None

    @property
    def implied_rho(self) -> Fraction | None:
        """ρ of the zero-concentrated privacy that it implies, rounded up; None if none."""
        return None

    @property
    def implied_mu(self) -> float | None:
        """μ of the Gaussian privacy that it implies, rounded up; None if none."""
        return None

    @property
    def leak(self) -> Fraction:
        """δ: how likely an event may be that reveals anything; 0 if there is none."""
        return Fraction(0)

    def selecting(self, share: Fraction) -> tuple[Privacy, Privacy]:
        """What a selection of values has that takes a share, and what it leaves.

        InvalidInput for a promise without a δ, which keeps nobody's value from being shown but by
        showing none.
        """
        raise InvalidInput(f"{self.describe()} has no delta for a selection of values.")

    @property
    def point(self) -> tuple[float, float] | None:
        """(ε, δ), if the promise is no more than this one point of a curve; δ may be 0."""
        return None

    def renyi(self, alpha: Fraction) -> Fraction | None:
        """The least bound on the Rényi divergence of order α > 1, rounded up; None if none."""
        return None if self.implied_rho is None else alpha * self.implied_rho

    @abc.abstractmethod
    def epsilon_at(self, delta: float) -> float:
        """An ε ≥ 0 with which (ε, δ)-privacy is proved, rounded up; ∞ if none is."""

    @abc.abstractmethod
    def delta_at(self, epsilon: float) -> float:
        """The least δ with which (ε, δ)-privacy is proved, rounded up; 1 if nothing is."""

    @abc.abstractmethod
    def certain_error(self) -> float:
        """How often every guess between two values of a record is wrong, at least.

        Half the overlap of neighbouring outputs, (1 − TV)/2, for all mechanisms that keep the
        promise; up to the rounding of a few floats.
        """

    def least_error(self) -> float:
        """How seldom a guess may be wrong, by the most telling mechanism that is known."""
        return self.certain_error()

    # What is enough to keep it.

    @property
    @abc.abstractmethod
    def normal_mu_squared(self) -> Fraction:
        """The largest μ² for which μ-Gaussian privacy keeps it; InvalidInput if none does."""

    @abc.abstractmethod
    def follows_from_pure(self, epsilon: float) -> bool:
        """Whether every ε-DP mechanism keeps it; in doubt, no."""

    @property
    def simple_pure(self) -> Fraction | None:
        """An ε that is enough by the simplest proof, ε or √(2ρ); None if there is none."""
        return None

    @property
    def rho_within(self) -> Fraction | None:
        """The ρ whose zero-concentrated privacy is exactly enough; None if none is."""
        return None

    # From other promises, and from noise.

    @classmethod
    @abc.abstractmethod
    def implied_by(cls, promise: Privacy, **given: float) -> Privacy | None:
        """The best promise of this kind that `promise` implies; None if there is none."""

    @classmethod
    def cost_of(cls, promise: Privacy, currency: str) -> tuple[Fraction, ...] | None:
        """What a promise of a kind in `rules` costs in a currency of this kind; None if refused."""
        return None

    @classmethod
    @abc.abstractmethod
    def of_noise(cls, strength: float, *, pure: bool, delta: float | None) -> Privacy:
        """The promise that noise of this μ keeps, or of this ε if it is pure; ten digits."""

    def to(self, kind: str, **given: float | None) -> Privacy:
        """The best promise of another kind that this one implies, rounded to the safe side.

        `kind` is "pure", "approx", "zcdp", … For "approx" exactly one of delta and epsilon is
        given and the other one follows. What is not implied is InvalidInput.

        >>> import muhat as mh
        >>> mh.ZCDP(rho=0.1).to("approx", delta=1e-6).describe()
        '(2.141938928385474, 1e-06)-DP'
        >>> mh.GDP(mu=1.0).to("zcdp")
        ZCDP(rho=0.5)
        """
        return _converted(self, kind, given)


def plain(value: float) -> str:
    """A float without a needless ".0"."""
    return repr(value).removesuffix(".0")


def to_dict(promise: Privacy) -> dict[str, Any]:
    """The promise as JSON: {"kind": "zcdp", "rho": 0.1}."""
    return promise.to_dict()


def from_dict(fields: Mapping[str, Any]) -> Privacy:
    """The promise that `to_dict` described."""
    return Privacy.from_dict(fields)


def _converted(promise: Privacy, kind: str, given: Mapping[str, float | None]) -> Privacy:
    """The promise of that kind which every mechanism that keeps `promise` keeps too."""
    target = KINDS[_check.one_of("kind", kind, KINDS)]
    numbers = {name: value for name, value in given.items() if value is not None}
    _refuse_others_numbers(target, numbers)
    if isinstance(promise, target) and not target.asked:
        return promise
    found = target.implied_by(promise, **numbers)
    if found is None:
        raise InvalidInput(
            f"{promise.describe()} implies no promise of kind {kind!r}: "
            f"{why_not(promise.kind, kind)}."
        )
    return found


def _refuse_others_numbers(target: type[Privacy], numbers: Mapping[str, float]) -> None:
    for name in numbers:
        if name in target.asked:
            continue
        owner = next((each for each in KINDS.values() if name in each.asked), None)
        if owner is None:
            raise InvalidInput(f"{name:.40} belongs to no kind of promise.")
        verb, them = ("belong", "them") if len(owner.asked) > 1 else ("belongs", "it")
        raise InvalidInput(
            f"{' and '.join(owner.asked)} {verb} to kind {owner.kind!r}; got {them} with "
            f"{target.kind!r}."
        )


def why_not(source: str, target: str) -> str:
    """Why a promise of one kind implies none of another."""
    reasons = {pair: why for kind in KINDS.values() for pair, why in kind.why_not.items()}
    return reasons[source, target]
