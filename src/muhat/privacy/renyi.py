"""Rényi differential privacy at one order."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, NoReturn

from muhat import _check
from muhat.errors import InvalidInput
from muhat.privacy.conversions import pure_within
from muhat.privacy.gaussian_curve import context
from muhat.privacy.promise import Privacy, plain
from muhat.privacy.rounding import LEAST_FLOAT, MARGIN, as_typed, float_at_least, root_below

LARGEST = 1e6
"""Of α, and of ε: beyond it no digits are spent."""

_TINY = Decimal("1e-35")  # above every rounding of what has 55 digits or more


@dataclass(frozen=True, kw_only=True)
class RDP(Privacy):
    """(α, ε)-Rényi differential privacy: D_α ≤ ε for one order α > 1, in both directions.

    >>> promise = RDP(alpha=8.0, epsilon=0.5)
    >>> promise.describe(), promise.normal_mu_squared
    ('(8, 0.5)-RDP', Fraction(1, 8))
    >>> promise.to("approx", delta=1e-6).describe()
    '(2.0386697636812405, 1e-06)-DP'
    """

    alpha: float
    epsilon: float

    kind: ClassVar[str] = "rdp"
    spoken: ClassVar[str] = "Rényi"
    suffix: ClassVar[str] = "RDP"
    example: ClassVar[str] = "mh.RDP(alpha=8, epsilon=0.5)"
    flags: ClassVar[Mapping[str, str]] = {
        "epsilon": "with --alpha Rényi",
        "alpha": "α, the order of Rényi differential privacy, together with --epsilon",
    }
    numbers: ClassVar[tuple[str, ...]] = ("epsilon",)
    grouping: ClassVar[str] = "nothing at one order"
    asked: ClassVar[tuple[str, ...]] = ("alpha",)
    rules: ClassVar[Mapping[str, str]] = {
        "pure": "ε = ln(cosh((α − ½)ε₀)/cosh(ε₀/2))/(α − 1)",
        "zcdp": "ε = α·ρ",
        "gdp": "ε = α·μ²/2",
        "rdp": "a lower order has no larger divergence",
    }
    why_not: ClassVar[Mapping[tuple[str, str], str]] = {
        ("rdp", "pure"): "one moment of the privacy loss is bounded, not the loss itself. "
        "Use to('approx', delta=...)",
        ("rdp", "zcdp"): "one order says nothing about higher ones. Ask the mechanism for ZCDP, "
        "and convert that to RDP",
        ("rdp", "gdp"): "one order does not bound the whole trade-off curve. "
        "Ask the mechanism for GDP, and convert that to RDP",
        ("rdp", "rdp"): "its order is lower, and says nothing about higher ones",
        ("approx", "rdp"): "an event of probability delta may reveal anything, so no divergence is "
        "bounded. Ask the mechanism for RDP and convert that to ApproxDP",
    }
    admits_pure: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", _order(self.alpha))
        object.__setattr__(self, "epsilon", _check.positive("epsilon", self.epsilon))
        if self.epsilon > LARGEST:
            raise InvalidInput(
                f"must be at most {LARGEST:g}", parameter="epsilon", value=f"{self.epsilon:g}"
            )

    @property
    def currency(self) -> str:
        """Divergences of one order add up, those of several do not."""
        return f"{self.kind}-{plain(self.alpha)}"

    @classmethod
    def check_currency(cls, currency: str) -> None:
        """ValueError unless it is "rdp-" and an order, as it prints."""
        _, _, order = currency.partition("-")
        if plain(_order(float(order))) != order:
            raise ValueError("not an order of RDP")

    @classmethod
    def written(cls, currency: str, numbers: Sequence[str]) -> str:
        """(α, ε)-RDP."""
        return f"({currency.partition('-')[2]}, {', '.join(numbers)})-{cls.suffix}"

    def for_groups(self, size: int) -> NoReturn:
        """Hölder's inequality asks for a higher order at every step."""
        raise InvalidInput(
            f"{self.describe()} says nothing at its own order about datasets {size} steps apart. "
            "Use ZCDP, or plan for as many contributions as the account counts."
        )

    def renyi(self, alpha: Fraction) -> Fraction | None:
        """ε, up to the order of the promise."""
        return as_typed(self.epsilon) if alpha <= as_typed(self.alpha) else None

    def epsilon_at(self, delta: float) -> float:
        """The least ε ≥ 0 of all pairs of outputs that keep the promise, rounded up."""
        return renyi_epsilon(self.alpha, self.epsilon, delta)

    def delta_at(self, epsilon: float) -> float:
        """The least δ of all pairs of outputs that keep the promise, rounded up."""
        return renyi_delta(self.alpha, self.epsilon, epsilon)

    def certain_error(self) -> float:
        """By TV ≤ min(√(ε/2), √(1 − e^−ε)), as the Kullback–Leibler divergence is at most ε."""
        variation = math.sqrt(min(self.epsilon / 2, -math.expm1(-self.epsilon)))
        return max(0.0, (1 - variation) / 2 - 1e-16)

    def least_error(self) -> float:
        """That of normal noise or of randomised response, and perhaps still less."""
        normal = 0.5 * math.erfc(math.sqrt(self.normal_mu_squared / 8))
        odds = math.exp(-pure_within(self))
        return min(normal, odds / (1 + odds))

    @property
    def normal_mu_squared(self) -> Fraction:
        """2ε/α, exactly."""
        return 2 * as_typed(self.epsilon) / as_typed(self.alpha)

    def follows_from_pure(self, epsilon: float) -> bool:
        """Randomised response has the largest divergence of all ε-DP mechanisms."""
        return pure_renyi(epsilon, self.alpha) <= self.epsilon

    @property
    def simple_pure(self) -> Fraction:
        """ε, which bounds every divergence of an ε-DP mechanism, or √(2ε/α) if that is more."""
        return max(as_typed(self.epsilon), root_below(self.normal_mu_squared))

    @property
    def rho_within(self) -> Fraction:
        """ε/α."""
        return as_typed(self.epsilon) / as_typed(self.alpha)

    @classmethod
    def implied_by(cls, promise: Privacy, **given: float) -> RDP | None:
        """Of a bounded divergence of this order or a higher one."""
        if "alpha" not in given:
            raise InvalidInput(
                "must be given for kind 'rdp'",
                parameter="alpha",
                hint="Example: to('rdp', alpha=8).",
            )
        alpha = _order(given["alpha"])
        found = _divergence(promise, alpha)
        return None if found is None else cls(alpha=alpha, epsilon=float_at_least(found))

    @classmethod
    def cost_of(cls, promise: Privacy, currency: str) -> tuple[Fraction, ...] | None:
        """The divergence of the account's order."""
        found = _divergence(promise, float(currency.partition("-")[2]))
        return None if found is None else (found,)

    @classmethod
    def of_noise(cls, strength: float, *, pure: bool, delta: float | None) -> NoReturn:
        """No order is better than all others."""
        raise InvalidInput(
            "kind 'rdp' has an order alpha, which an error does not decide. Ask for kind='zcdp': "
            "noise of that rho keeps RDP(alpha=alpha, epsilon=alpha*rho) for every alpha."
        )


def _order(alpha: object) -> float:
    order = _check.real("alpha", alpha)
    if not 1 < order <= LARGEST:
        raise InvalidInput(
            f"must be above 1 and at most {LARGEST:g}", parameter="alpha", value=f"{order:g}"
        )
    return order


def _divergence(promise: Privacy, alpha: float) -> Fraction | None:
    if promise.implied_epsilon is not None:
        return as_typed(pure_renyi(promise.implied_epsilon, alpha))
    return promise.renyi(as_typed(alpha))


def pure_renyi(epsilon: float, alpha: float) -> float:
    """The largest D_α of ε-DP mechanisms, that of randomised response, rounded up.

    >>> f"{pure_renyi(1.0, 2.0):.6f}"
    '0.735326'
    """
    loss, order = Decimal(repr(epsilon)), Decimal(repr(alpha))
    with decimal.localcontext(context(small=loss * loss * (order - 1), large=order)):
        ratio = (1 + ((1 - 2 * order) * loss).exp()) / (1 + (-loss).exp())
        return float_at_least(min(loss, (loss + ratio.ln() / (order - 1)) * MARGIN))


def renyi_epsilon(alpha: float, bound: float, delta: float) -> float:
    """The least ε ≥ 0 for which D_α ≤ `bound` implies (ε, δ)-DP, rounded up.

    For every s in [0, 1], with r^{α−1} = s^{α−1} + (e^{(α−1)D} − αs^{α−1} + (α−1)s^α)/(αδ),

        ε = ln[(α−1)(r^α − s^α)/(α(r^{α−1} − s^{α−1}))]

    will do, and D + ln(1 − δ) if δ ≥ 1/α. s = 0 is the formula of Canonne, Kamath and Steinke.
    docs/proofs/renyi.md.

    >>> f"{renyi_epsilon(8.0, 0.5, 1e-6):.6f}"
    '2.038670'
    """
    target = Decimal(repr(_check.probability("delta", delta)))
    order, most = Decimal(repr(alpha)), Decimal(repr(bound))
    with decimal.localcontext(_digits(order, most)):
        grown = ((order - 1) * most).exp()

        def ratio(s: Decimal) -> Decimal:
            power = s ** (order - 1)
            apart = _numerator(grown, order, s) / (order * target)
            r = (power + apart) ** (1 / (order - 1))
            return (order - 1) * (r * (power + apart) - power * s) / (order * apart)

        found = (ratio(_best(ratio, order)) * MARGIN).ln()
        if target * order >= 1:
            found = min(found, most + (1 - target).ln() + _TINY)
        return max(0.0, float_at_least(found))


def renyi_delta(alpha: float, bound: float, epsilon: float) -> float:
    """The least δ for which D_α ≤ `bound` implies (ε, δ)-DP, rounded up.

    For every s in [0, 1] and every r ≥ s with r^{α−1}(r − κ) ≤ s^{α−1}(s − κ), κ = e^ε·α/(α−1),

        δ = (e^{(α−1)D} − αs^{α−1} + (α−1)s^α)/(α(r^{α−1} − s^{α−1}))

    will do, and 1 − e^{ε−D} if it is 1/α or more. docs/proofs/renyi.md.

    >>> f"{renyi_delta(8.0, 0.5, 2.0):.3e}"
    '1.311e-06'
    """
    loss = Decimal(repr(_check.positive("epsilon", epsilon)))
    order, most = Decimal(repr(alpha)), Decimal(repr(bound))
    with decimal.localcontext(_digits(order, most, loss)):
        certain = 1 - (loss - most).exp()
        if certain * order >= 1:
            return min(1.0, float_at_least(certain + _TINY))
        grown = ((order - 1) * most).exp()
        turning = loss.exp()

        def value(s: Decimal) -> Decimal:
            power, r = s ** (order - 1), _beyond(turning, order, s)
            return _numerator(grown, order, s) / (order * (r ** (order - 1) - power))

        least = float_at_least(value(_best(value, order)) * MARGIN)
        return min(1.0, max(LEAST_FLOAT, least))


def _digits(order: Decimal, *losses: Decimal) -> decimal.Context:
    """Digits for what cancels: e^{(α−1)D} − 1, and r − s, which may be as small as either."""
    small = min(Decimal(1), *losses) * min(Decimal(1), order - 1)
    return context(small=small * small, large=max(order, *losses))


def _numerator(grown: Decimal, order: Decimal, s: Decimal) -> Decimal:
    """e^{(α−1)D} − αs^{α−1} + (α−1)s^α, which is positive."""
    return grown - s ** (order - 1) * (order - (order - 1) * s)


def _beyond(turning: Decimal, order: Decimal, s: Decimal) -> Decimal:
    """The root r > e^ε of h(r) = h(s), h(x) = x^{α−1}(x − κ), rounded down: h is convex there."""
    kappa = turning * order / (order - 1)
    level, x = s ** (order - 1) * (s - kappa), kappa
    for _ in range(1000):
        power = x ** (order - 2)
        step = (power * x * (x - kappa) - level) / (order * power * (x - turning))
        x -= step
        if step <= x * _TINY:
            break
    return x * (1 - 2 * _TINY)


def _best(value: Callable[[Decimal], Decimal], order: Decimal) -> Decimal:
    """The s in [0, 1] of the least value, nearly; every s is valid.

    It is s^{α−1} that matters for large orders, so that is what is searched there.
    """
    root = 1 / max(Decimal(1), order - 1)
    low, high, part = Decimal(0), Decimal(1), Decimal("0.381966")
    for _ in range(40):
        left, right = low + part * (high - low), high - part * (high - low)
        low, high = (low, right) if value(left**root) <= value(right**root) else (left, high)
    return min((Decimal(0), ((low + high) / 2) ** root, Decimal(1)), key=value)
