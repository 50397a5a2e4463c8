"""What several releases promise together."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from muhat.errors import BudgetExceeded, InvalidInput
from muhat.privacy.concentrated import ZCDP
from muhat.privacy.conversions import gaussian_mu_squared, pure_within
from muhat.privacy.gaussian import GDP
from muhat.privacy.promise import Privacy
from muhat.privacy.pure import PureDP
from muhat.privacy.rounding import float_at_most


def compose(promises: Iterable[Privacy]) -> Privacy:
    """What several releases about the same data promise together; kinds are never mixed.

    ε, (ε, δ) and ρ add up, for GDP the squares of μ do. The sum is exact and rounded up only
    when it becomes a float.

    >>> from muhat.privacy import ZCDP
    >>> compose([ZCDP(rho=0.1), ZCDP(rho=0.2)])
    ZCDP(rho=0.3)
    """
    parts = list(promises)
    if not parts:
        raise InvalidInput("must hold at least one promise", parameter="promises", value="none")
    for part in parts[1:]:
        _require_like(parts[0], part)
    totals = [sum(column, Fraction(0)) for column in zip(*(p.amounts for p in parts), strict=True)]
    return parts[0].with_amounts(totals)


def adding_up(promise: Privacy, *, pure: bool) -> Privacy:
    """The promise that steps with noise of one kind share: it adds up, and implies the one given.

    Normal noise under (ε, δ) is shared as Gaussian privacy, which loses nothing, and never needs
    the δ of approximate zCDP.

    >>> from muhat.privacy import ZCDP, ApproxDP
    >>> adding_up(ZCDP(rho=0.1), pure=False)
    ZCDP(rho=0.1)
    >>> round(adding_up(ApproxDP(epsilon=1.0, delta=1e-6), pure=False).mu, 4)
    0.2367
    """
    if pure:
        return PureDP(epsilon=pure_within(promise))
    if promise.leak and promise.rho_within is not None:
        return ZCDP(rho=float_at_most(promise.rho_within))
    if promise.spends_delta:
        return GDP(mu=GDP.number_at_most(gaussian_mu_squared(promise)))
    return promise


def _require_like(first: Privacy, second: Privacy) -> None:
    if first.currency != second.currency:
        raise InvalidInput(
            "must be of one kind",
            parameter="promises",
            value=f"{first.currency!r} and {second.currency!r}",
            hint="Convert them first, for example with to('zcdp').",
        )


class Filter:
    """Adaptive composition: each next promise may depend on every output so far.

    As long as the charges stay within the budget surely, whatever the outputs, all releases
    together keep the budget's promise: for ρ and μ² by the filter theorems (Feldman and Zrnic
    2021; Smith and Thakurta 2022), for ε and (ε, δ) by basic composition, whose proof multiplies
    the likelihood ratios of the steps and adds their δ one after the other, so that only the
    fixed sums matter and not how they were split on the way. Choices may never depend on the
    data other than through released outputs.

    >>> from muhat.privacy import ZCDP
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
