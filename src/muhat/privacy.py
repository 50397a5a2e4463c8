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
from typing import ClassVar

from muhat import _check
from muhat.errors import InvalidInput


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


def as_typed(value: float) -> Fraction:
    """The decimal number a float prints as: 0.1 is one tenth."""
    return Fraction(repr(float(value)))


@dataclass(frozen=True, kw_only=True)
class PureDP:
    """ε-differential privacy."""

    epsilon: float
    kind: ClassVar[str] = "pure"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _check.positive("epsilon", self.epsilon))

    @property
    def amounts(self) -> tuple[Fraction, ...]:
        """What adds up under composition: (ε,)."""
        return (as_typed(self.epsilon),)


@dataclass(frozen=True, kw_only=True)
class ApproxDP:
    """(ε, δ)-differential privacy."""

    epsilon: float
    delta: float
    kind: ClassVar[str] = "approx"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _check.positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", _check.probability("delta", self.delta))

    @property
    def amounts(self) -> tuple[Fraction, ...]:
        """What adds up under composition: (ε, δ)."""
        return (as_typed(self.epsilon), as_typed(self.delta))


@dataclass(frozen=True, kw_only=True)
class ZCDP:
    """ρ-zero-concentrated differential privacy: D_α ≤ αρ for every α > 1."""

    rho: float
    kind: ClassVar[str] = "zcdp"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", _check.positive("rho", self.rho))

    @property
    def amounts(self) -> tuple[Fraction, ...]:
        """What adds up under composition: (ρ,)."""
        return (as_typed(self.rho),)


@dataclass(frozen=True, kw_only=True)
class GDP:
    """μ-Gaussian differential privacy: as hard to tell apart as N(0, 1) and N(μ, 1)."""

    mu: float
    kind: ClassVar[str] = "gdp"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", _check.positive("mu", self.mu))

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
