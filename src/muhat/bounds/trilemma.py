"""Bias, accuracy, privacy: what a private mean of low bias must err.

Clipping buys privacy with bias. Kamath, Mouzakis, Regehr, Singhal, Steinke and Ullman, "A
Bias-Accuracy-Privacy Trilemma for Statistical Estimation", 2024 (K24), prove that the trade is
forced on everybody; B8 sharpens their constant. Proofs: docs/proofs/trilemma.md.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muhat import _check
from muhat._plain import Key
from muhat.bounds.divergences import one_sided
from muhat.bounds.lower_bound import BoundTable, LowerBound, rounded_down
from muhat.bounds.score import Score
from muhat.bounds.trilemma_paper import CITATION, paper_bounds
from muhat.bounds.trilemma_search import Landscape
from muhat.bounds.unbiased import SUBSTITUTION
from muhat.errors import InvalidInput
from muhat.privacy import ApproxDP, Neighbors, Privacy, PureDP, check_promise, for_groups

_SECRET = (
    "The number of records is secret and neighbours add or remove one; to replace one is two steps."
)


@dataclass(frozen=True, repr=False)
class Trilemma(
    BoundTable,
    keys=(
        "n",
        "privacy",
        "bias",
        Key("moment_order", infinite=True),
        "scale",
        "interval",
        "value",
        "impossible",
        "floor",
        "bounds",
    ),
):
    """What a private mean errs whose bias is small for every distribution of a class.

    The class: the mean lies in an interval of length `interval` and E|X − μ|^λ ≤ scale^λ, λ the
    `moment_order`. The records are independent draws, the errors root mean square errors against
    the mean of the distribution, and the bounds hold for some distribution of the class.

    Attributes:
        bounds: B8 first; the same without a limit on the bias; the floor for any estimator; and
            the paper's own constants.
    """

    n: int
    privacy: Privacy
    bias: float
    moment_order: float
    scale: float
    interval: float
    bounds: tuple[LowerBound, ...]

    @property
    def value(self) -> float:
        """B8, rounded down: no mechanism of such a bias errs less on the whole class."""
        return math.inf if self.impossible else _number(self.bounds[0])

    @property
    def floor(self) -> float:
        """What no estimator can beat, private or not, biased or not."""
        return _number(self.bounds[2])

    @property
    def strongest(self) -> LowerBound:
        """The largest of the proved bounds."""
        return max(self.bounds, key=_number)

    @property
    def impossible(self) -> bool:
        """Whether no finite error is possible at all."""
        return _is_impossible(self.privacy, self.bias, self.moment_order)

    def sentence(self) -> str:
        """B8 in words, with the class it speaks of."""
        bias = "no bias" if self.bias == 0 else f"a bias of at most {self.bias:g}"
        people = f"{self.privacy.describe()} mean of {self.n} records"
        where = _class(self.moment_order, self.scale, self.interval)
        if self.impossible:
            return f"No {people} has {bias} and a finite error for every distribution {where}."
        return (
            f"Every {people} with {bias} for every distribution {where} has a root mean square "
            f"error of at least {rounded_down(self.value)} for one of them."
        )

    def to_dict(self) -> dict[str, Any]:
        """The bounds as JSON; an impossible value is null."""
        written = super().to_dict()
        return {**written, "value": None} if self.impossible else written

    def _title(self) -> str:
        return (
            f"Bias, accuracy, privacy · {self.privacy.describe()} · n = {self.n} · "
            f"bias at most {self.bias:g}"
        )

    def _rows(self) -> list[list[str]]:
        rows = [["theorem", "error at least", "for", "constant"]]
        for index, bound in enumerate(self.bounds):
            if bound.value is None:
                number = "rate only" if "rate" in bound.assumptions[-1] else "not applicable"
            else:
                number = "∞" if bound.value == sys.float_info.max else rounded_down(bound.value)
            who = {1: "any bias", 2: "any estimator"}.get(index, "this bias")
            rows.append([bound.theorem, number, who, bound.source])
        return rows

    def _notes(self) -> list[str]:
        if self.strongest is self.bounds[0]:
            return [self.sentence()]
        return [self.sentence(), f"More is known: {self.strongest.sentence()}"]


def trilemma(
    n: int,
    epsilon: float | None = None,
    delta: float = 0.0,
    bias: float = 0.0,
    moment_order: float = 2.0,
    *,
    scale: float = 1.0,
    interval: float = 1.0,
    privacy: Privacy | None = None,
    neighbors: Neighbors | str = Neighbors.SUBSTITUTE,
) -> Trilemma:
    """The least root mean square error of a private mean whose bias is at most `bias`.

    If for every distribution of the class (mean in an interval of length ℓ, E|X − μ|^λ ≤ ψ^λ)
    the bias is at most β and the root mean square error at most α, then in units of ψ

        α ≥ sup over 0 ≤ a < b ≤ 1 of [v(b − a) − 2β] / ∫_a^b min{n√Q(p), √(n/(p(1 − p)))} dp,

    v = min{(max over [a, b] of h)^{−1/λ}, ℓ/(b − a)}, h(p) = p(1 − p)[p^{λ−1} + (1 − p)^{λ−1}],
    Q(p) = (1 − δ)κ/(1 + κp(1 − p)) + δ/(p(1 − p)), κ = 4sinh²(ε/2) for ε- and (ε, δ)-DP,
    e^{2ρ} − 1 for ρ-zCDP and e^{μ²} − 1 for μ-GDP. For δ = 0 and λ = 2 it is at least
    ψ²/(16nβ·sinh(ε/2)), if β ≤ ψ/√32 and 4β ≤ ℓ.

    Args:
        n: the number of records.
        epsilon: ε; with `delta` = 0 pure privacy.
        delta: δ.
        bias: β, in the unit of the data.
        moment_order: λ > 1; ∞ for |X − μ| ≤ ψ.
        scale: ψ.
        interval: ℓ, what is known of the mean beforehand.
        privacy: a promise of any kind, in place of epsilon and delta.
        neighbors: which datasets must look alike. If records come and go, n is a secret that the
            mechanism must hide, and the bounds are those of the promise for two steps.

    >>> found = trilemma(n=1000, epsilon=1.0, delta=0.0, bias=0.001)
    >>> f"{found.value:.4f}"
    '0.1199'
    >>> trilemma(n=1000, epsilon=1.0).impossible  # unbiased and pure
    True
    """
    privacy = _promise(privacy, epsilon, delta)
    n = _check.count("n", n)
    beta = _bias(bias)
    order, psi, length = _class_of(moment_order, scale, interval)
    low_bias = beta / psi
    replaced = Neighbors.parse(neighbors) is Neighbors.SUBSTITUTE
    strength, relation = privacy, SUBSTITUTION
    if not replaced:
        strength, relation = for_groups(privacy, 2), _SECRET
    landscape = Landscape(Score.of(n, strength), order, length / psi, low_bias)
    impossible = _is_impossible(strength, beta, order)
    value = sys.float_info.max if impossible else landscape.best(low_bias) * psi
    promise = privacy.describe()
    where = f"The records are independent draws of a distribution {_class(order, psi, length)}."
    limited = "unbiased" if beta == 0 else "any"
    who = promise if beta == 0 else f"{beta:g}-biased {promise}"
    limit = f"The bias is at most {beta:g} for every distribution of the class."

    def low(
        value: float | None, theorem: str, source: str, more: tuple[str, ...] = ()
    ) -> LowerBound:
        given = (relation, where, limit, *more)
        return LowerBound(_finite(value), limited, "class", theorem, source, given, who, CITATION)

    def any_mechanism(value: float, theorem: str, name: str) -> LowerBound:
        given = (relation, where) if name else (where,)
        number = _finite(value * psi)
        return LowerBound(number, "any", "class", theorem, "derived", given, name, CITATION)

    sampling, theorem = _floor(n, order, length / psi)
    bounds = [
        low(value, "B8, sharpened", "derived"),
        any_mechanism(landscape.best_for_any_bias(), "B8, any bias", promise),
        any_mechanism(sampling, theorem, ""),
    ]
    if strength.point is not None:
        at, leak = strength.point
        bounds += paper_bounds(
            low,
            n=n,
            epsilon=at,
            delta=leak,
            bias=low_bias,
            order=order,
            scale=psi,
            interval=length / psi,
        )
    return Trilemma(n, privacy, beta, order, psi, length, tuple(bounds))


def trilemma_curve(
    biases: ArrayLike,
    *,
    n: int,
    epsilon: float | None = None,
    delta: float = 0.0,
    moment_order: float = 2.0,
    scale: float = 1.0,
    interval: float = 1.0,
    privacy: Privacy | None = None,
) -> NDArray[np.float64]:
    """The strongest proved bound at every bias, of the shape of `biases`; ∞ where impossible.

    The largest of B8, of B8 for any bias and of the floor for any estimator: what goes under a
    curve of bias against error.

    >>> trilemma_curve([0.001, 0.01], n=1000, epsilon=1.0).round(4)
    array([0.1199, 0.031 ])
    """
    privacy = _promise(privacy, epsilon, delta)
    n = _check.count("n", n)
    wanted = np.asarray(biases, dtype=np.float64)
    betas = [_bias(beta) for beta in wanted.ravel().tolist()]
    order, psi, length = _class_of(moment_order, scale, interval)
    least = min((beta for beta in betas if beta > 0), default=0.0)
    landscape = Landscape(Score.of(n, privacy), order, length / psi, least / psi)
    everywhere = max(landscape.best_for_any_bias(), _floor(n, order, length / psi)[0])
    values = [
        math.inf
        if _is_impossible(privacy, beta, order)
        else min(max(landscape.best(beta / psi), everywhere) * psi, sys.float_info.max)
        for beta in betas
    ]
    return np.array(values, dtype=np.float64).reshape(wanted.shape)


def _floor(n: int, order: float, interval: float) -> tuple[float, str]:
    """What no estimator beats, in units of the scale, and why.

    Van Trees: normal data with E|X − μ|^λ = 1 have the information m_λ² a record, and the prior
    (2/ℓ)cos² on the interval has 4π²/ℓ². Or the two-point family of B8 with sampling alone.
    """
    two_points = Landscape(Score(n, math.inf, 0.0), order, interval, 0.0).best_for_any_bias()
    if math.isfinite(order):
        log_moment = math.lgamma((order + 1) / 2) - math.lgamma(0.5) + order / 2 * math.log(2)
        # m_λ may be beyond the floats' relative precision for a huge λ: hence the wide margin.
        information = n * math.exp(2 * log_moment / order) + (2 * math.pi / interval) ** 2
        value = (1 - 1e-10) / math.sqrt(information)
        if value > two_points:
            return value, "van Trees, normal data"
    return two_points, "B8 without privacy, any bias"


def _is_impossible(privacy: Privacy, bias: float, order: float) -> bool:
    """B8 is infinite: unbiased, and b → 0 costs nothing."""
    if bias > 0 or math.isinf(order):
        return False
    return order < 2 or one_sided(privacy) is not None


def _promise(privacy: Privacy | None, epsilon: float | None, delta: float) -> Privacy:
    if privacy is None:
        if epsilon is None:
            raise InvalidInput(
                "must be given, or a promise as privacy=...", parameter="epsilon", value="neither"
            )
        if _check.real("delta", delta) == 0:
            return PureDP(epsilon=epsilon)
        return ApproxDP(epsilon=epsilon, delta=delta)
    if epsilon is not None or delta:
        raise InvalidInput("must not be given together with epsilon or delta", parameter="privacy")
    check_promise(privacy)
    return privacy


def _class_of(moment_order: float, scale: float, interval: float) -> tuple[float, float, float]:
    order = moment_order if moment_order == math.inf else _check.real("moment_order", moment_order)
    if not order > 1:
        raise InvalidInput(
            "must be greater than 1",
            parameter="moment_order",
            value=f"{order:g}",
            hint="With the first moment alone no mean can be estimated.",
        )
    psi, length = _check.positive("scale", scale), _check.positive("interval", interval)
    if not 1e-150 < length / psi < 1e150:
        raise InvalidInput(
            "must be within 1e±150 of the scale",
            parameter="interval",
            value=f"{length / psi:g} of it",
        )
    return float(order), psi, length


def _bias(value: float) -> float:
    bias = _check.real("bias", value)
    if bias < 0:
        raise InvalidInput("must be at least 0", parameter="bias", value=f"{bias:g}")
    return bias


def _class(order: float, scale: float, interval: float) -> str:
    moment = f"|X − μ| ≤ {scale:g}"
    if order == 2:
        moment = f"Var X ≤ {scale:g}²" if scale != 1 else "Var X ≤ 1"
    elif math.isfinite(order):
        moment = f"E|X − μ|^{order:g} ≤ " + (f"{scale:g}^{order:g}" if scale != 1 else "1")
    return f"with its mean in an interval of length {interval:g} and {moment}"


def _number(bound: LowerBound) -> float:
    return -math.inf if bound.value is None else bound.value


def _finite(value: float | None) -> float | None:
    return None if value is None else min(value, sys.float_info.max)
