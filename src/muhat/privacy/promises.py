"""What is promised: pure, approximate, zero-concentrated and Gaussian differential privacy.

A promise is a frozen description. The numbers are read as the decimals the user typed: a
`rho` of 0.1 means one tenth, not the binary float next to it, so that ten charges of 0.1
fill a budget of 1 exactly. Mechanisms calibrate to the exact rational (`amounts`), never to
the float.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, cast

from muhat import _check
from muhat.errors import InvalidInput
from muhat.privacy.gaussian_curve import gaussian_mu
from muhat.privacy.rounding import as_typed


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
        from muhat.privacy.conversions import convert

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
