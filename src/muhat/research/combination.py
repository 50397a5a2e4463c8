"""Clipping and Laplace noise for the bulk of the records, name and shame for what it cuts off.

The symmetric mean that always answers: where no interval is found, records are published.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from muhat import _check
from muhat.data import exact_sums
from muhat.data.halves import split_rows
from muhat.domains import Box
from muhat.errors import InvalidInput
from muhat.mechanisms.learning.symmetric import run_alone
from muhat.mechanisms.learning.symmetric_column import SymmetricMean
from muhat.mechanisms.sums.body import Body
from muhat.mechanisms.sums.laplace import laplace
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.protection import Protection
from muhat.privacy import ApproxDP, Neighbors, with_delta
from muhat.records.columns import FloatArray
from muhat.research.disclosure import disclosed_total, open_column, require_acceptance


def name_and_shame_combination(
    data: Any,
    privacy: ApproxDP,
    interval: tuple[float, float],
    moment: tuple[float, float],
    *,
    columns: Sequence[str] | Sequence[int] | None = None,
    accept_disclosure: bool = False,
) -> float:
    """Publish a record in the clear with probability δ if it is far out: this undoes clipping.

    The noisy mean of the records clipped to [a − c, b + c], which is ε-private, plus name and
    shame of x − clip(x), which is (0, δ)-private: together unbiased for every law. interval =
    (a, b) holds the mean of the law, and E|X − μ|^λ ≤ ψ^λ with moment = (λ, ψ), λ > 2. Kamath et
    al. (2024), Proposition 3.7, in whose proof μ − a should be μ − â. A missing value counts as
    the middle.
    """
    require_acceptance(accept_disclosure)
    epsilon, delta = _amounts(privacy)
    source = open_column(data, columns)
    n = source.rows()
    lower, upper = _ends(interval)
    pad = _pad(n, float(epsilon), float(delta), moment)
    box = Box([lower - pad], [upper + pad])
    recipe = laplace(
        Body.of(box, 2.0, np.ones(1)),
        2.0,
        np.ones(1),
        Protection(Strength(NoiseKind.PURE, epsilon**2), Neighbors.SUBSTITUTE, 1),
    )
    lattice = recipe.query.lattice
    assert lattice is not None
    assert recipe.center is not None
    (noisy,) = recipe.run(exact_sums(source, lattice).total, n)

    def beyond(values: FloatArray) -> FloatArray:
        return np.asarray(values - np.clip(values, box.lower[0], box.upper[0]))

    total = disclosed_total(source, delta, beyond)
    bulk = Fraction(float(recipe.center[0])) + noisy / n
    return float(bulk + Fraction(total) / (delta * n))


def combination_mse_bound(
    n: int,
    privacy: ApproxDP,
    interval: tuple[float, float],
    moment: tuple[float, float],
    scale: float | None = None,
) -> float:
    """E[(M − μ)²] ≤ 2s²/n + 4(b − a)²/(nε)² + 24ψ²/(nε)²·(nε²/(4λδ))^{2/λ}, s = scale (or ψ).

    >>> bound = combination_mse_bound(1000, ApproxDP(epsilon=1, delta=1e-6), (0, 1), (4, 1.0))
    >>> round(bound, 5)
    0.19174
    """
    epsilon, delta = map(float, _amounts(privacy))
    order, size = _moment(moment)
    lower, upper = _ends(interval)
    spread = size if scale is None else _check.positive("scale", scale)
    whole = _check.count("n", n) * epsilon
    tail = (n * epsilon**2 / (4 * order * delta)) ** (2 / order)
    noise = (4 * (upper - lower) ** 2 + 24 * size**2 * tail) / whole**2
    return float(2 * spread**2 / n + noise)


def _pad(n: int, epsilon: float, delta: float, moment: tuple[float, float]) -> float:
    """c = ψ·(nε²(λ − 2)/(4λ²δ))^{1/λ}, where noise and what is cut off are in balance."""
    order, size = _moment(moment)
    inner = n * epsilon**2 * (order - 2) / (4 * order**2 * delta)
    return float(size * inner ** (1 / order))


def _amounts(privacy: ApproxDP) -> tuple[Fraction, Fraction]:
    if with_delta(privacy) is None:
        raise InvalidInput(
            "must be ApproxDP: records are published with probability delta", parameter="privacy"
        )
    epsilon, delta = privacy.amounts
    return epsilon, delta


def _ends(interval: tuple[float, float]) -> tuple[float, float]:
    lower, upper = (_check.real("interval", end) for end in interval)
    if lower > upper:
        raise InvalidInput(
            "must not be reversed", parameter="interval", value=f"{lower:g} and {upper:g}"
        )
    return lower, upper


def _moment(moment: tuple[float, float]) -> tuple[float, float]:
    order, size = (_check.positive("moment", part) for part in moment)
    if order <= 2:
        raise InvalidInput(f"the order of the moment must be above 2; got {order:g}.")
    return order, size


def symmetric_mean_with_fallback(
    data: Any,
    mean: SymmetricMean,
    *,
    columns: Sequence[str] | Sequence[int] | None = None,
    accept_disclosure: bool = False,
) -> float:
    """Publish a record in the clear with probability δ where the symmetric mean finds no interval.

    The value of `mean`, or name and shame of the other rows if no interval was found: unbiased
    without a condition. It is (ε, δ)-private, for the first rows lose (ε, δ) and each of the others
    (ε, 0) or (0, δ). Kamath et al. (2024), Algorithm 2 as it is printed.
    """
    require_acceptance(accept_disclosure)
    source = open_column(data, columns)
    outcome = run_alone(mean, source)
    if outcome.value is not None:
        return outcome.value
    tail = split_rows(source, mean.first).tail
    total = disclosed_total(tail, mean.delta, lambda values: values)
    return float(Fraction(total) / (mean.delta * mean.second))
