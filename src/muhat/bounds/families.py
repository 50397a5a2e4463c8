"""Parameters of exponential families: what no private estimate of them can be.

The records are n independent draws with the density h(x)·exp(η·T(x) − Z(η)). Kamath et al. 2024
(K24, Theorems 5.2 and D.5): no pure or concentrated mechanism is unbiased for a parameter that is
unbounded over the family, not even on a short interval of it. And where the mean of an answer moves
with the parameter as the truth does, a private Cramér–Rao bound holds (B14):

    α ≥ |τ'(η)| / min{n·C·E|T − E T|, √(n·Var T)},   C = min{(e^ε − 1)/2, 2sinh(ε/2)} for ε-DP,

√(e^{2ρ} − 1) for ρ-zCDP. Proofs: docs/proofs/exponential-families.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from muhat import _check
from muhat.bounds.divergences import one_sided
from muhat.bounds.lower_bound import BoundTable, LowerBound, rounded_down
from muhat.bounds.unbiased import SUBSTITUTION
from muhat.errors import InvalidInput
from muhat.privacy import Privacy, check_promise

_OURS = "docs/proofs/exponential-families.md"
_LOCAL = "At the parameter the mean of the answer moves with it as the truth does."


class _Family(NamedTuple):
    """E|T − E T| and Var T at a parameter; which targets are unbounded; what the parameter is."""

    deviation: Callable[[float], float]
    variance: Callable[[float], float]
    unbounded: tuple[str, ...]
    words: str
    most: float = math.inf


def _poisson(mean: float) -> float:
    k = math.floor(mean)
    return 2 * math.exp(-mean + (k + 1) * math.log(mean) - math.lgamma(k + 1))


def _geometric(p: float) -> float:
    k = math.floor((1 - p) / p) + 1
    return 2 * k * math.exp(k * math.log1p(-p))


FAMILIES = {
    "normal": _Family(
        lambda sigma: sigma * math.sqrt(2 / math.pi),
        lambda sigma: sigma * sigma,
        ("mean", "natural"),
        "normal numbers of the standard deviation",
    ),
    "exponential": _Family(
        lambda rate: 2 / (math.e * rate),
        lambda rate: 1 / (rate * rate),
        ("mean", "natural"),
        "exponential numbers of the rate",
    ),
    "poisson": _Family(
        _poisson, lambda mean: mean, ("mean", "natural"), "Poisson numbers of the mean"
    ),
    "geometric": _Family(
        _geometric,
        lambda p: (1 - p) / (p * p),
        ("mean", "natural"),
        "geometric numbers of the probability",
        1.0,
    ),
    "bernoulli": _Family(
        lambda p: 2 * p * (1 - p),
        lambda p: p * (1 - p),
        ("natural",),
        "Bernoulli numbers of the probability",
        1.0,
    ),
}


@dataclass(frozen=True, repr=False)
class ExponentialFamily(BoundTable):
    """What a private estimate of a family's mean, or of its natural parameter, cannot be."""

    family: str
    parameter: float
    target: str
    n: int
    privacy: Privacy
    bounds: tuple[LowerBound, ...]

    @property
    def impossible(self) -> bool:
        """Whether no mechanism is unbiased on any interval of parameters (with finite variance)."""
        return (
            self.target in FAMILIES[self.family].unbounded and one_sided(self.privacy) is not None
        )

    @property
    def value(self) -> float:
        """The larger bound on the error where the bias does not change at the parameter."""
        return max(bound.value or 0.0 for bound in self.bounds)

    def _title(self) -> str:
        what = f"{FAMILIES[self.family].words} {self.parameter:g}"
        return f"The {self.target} of {what} · {self.privacy.describe()} · n = {self.n}"

    def _rows(self) -> list[list[str]]:
        rows = [["theorem", "error at least", "constant"]]
        for bound in self.bounds:
            shown = "no number" if bound.value is None else rounded_down(bound.value)
            rows.append([bound.theorem, shown, bound.source])
        return rows

    def _notes(self) -> list[str]:
        notes = [f"The errors are root mean squares. {_LOCAL}"]
        if self.impossible:
            notes.append(
                f"No {self.privacy.describe()} mechanism of a finite variance is unbiased for it "
                "on any interval of parameters (K24 Theorems 5.2 and D.5)."
            )
        return notes


def exponential_family(
    family: str, parameter: float, *, n: int, privacy: Privacy, target: str = "mean"
) -> ExponentialFamily:
    """What no private estimate of the mean, or of the natural parameter, of a family can be.

    Args:
        family: "normal" (of known standard deviation), "exponential", "poisson", "geometric" (from
            0 on) or "bernoulli".
        parameter: the standard deviation, rate, mean or probability of success.
        n: the number of records, public.
        privacy: the promise, about replacing one record.
        target: what is estimated: the "mean", or the "natural" parameter η.

    >>> from muhat.privacy import PureDP
    >>> found = exponential_family("poisson", 3.0, n=1000, privacy=PureDP(epsilon=0.1))
    >>> found.impossible, f"{found.value:.4f}"
    (True, '0.0548')
    >>> exponential_family("bernoulli", 0.5, n=9, privacy=PureDP(epsilon=0.1)).impossible
    False
    """
    check_promise(privacy)
    _check.one_of("family", family, FAMILIES)
    _check.one_of("target", target, ("mean", "natural"))
    law, at = FAMILIES[family], _check.positive("parameter", parameter)
    if not at < law.most or not 1e-100 < at < 1e100:
        most = min(law.most, 1e100)
        raise InvalidInput(f"must be below {most:g}", parameter="parameter", value=f"{at:g}")
    n = _check.count("n", n)
    variance = law.variance(at)
    slope = variance if target == "mean" else 1.0
    given = (SUBSTITUTION, f"The records are independent {law.words} {at:g}.", _LOCAL)
    promise = privacy.describe()

    def bound(value: float | None, theorem: str, source: str, *more: str) -> LowerBound:
        number = None if value is None else value * (1 - 1e-10)
        name = promise if theorem.startswith("B14") else ""
        return LowerBound(
            number, "unbiased", "class", theorem, source, (*given, *more), name, _OURS
        )

    sampling = bound(slope / math.sqrt(n * variance), "Cramér–Rao, private or not", "derived")
    log_square = one_sided(privacy)
    if log_square is None:
        none = bound(None, "B14", "derived", "Nothing is proved for promises with a δ.")
        return ExponentialFamily(family, at, target, n, privacy, (none, sampling))
    log_told = log_square / 2
    if privacy.implied_epsilon is not None:
        # (e^ε − 1)/2, for an ε of any size
        epsilon = privacy.implied_epsilon
        log_told = min(log_told, epsilon + math.log(-math.expm1(-epsilon)) - math.log(2))
    private = slope / (n * law.deviation(at)) * math.exp(-log_told)
    ours = bound(private, "B14, a private Cramér–Rao bound", "derived")
    return ExponentialFamily(family, at, target, n, privacy, (ours, sampling))
