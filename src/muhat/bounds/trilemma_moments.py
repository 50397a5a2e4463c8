"""The trilemma for other errors than root mean squares: (E|M − μ|^k)^{1/k}, k ≥ 1.

K24's Theorem 2.1 is about the mean absolute error, and its Lemma 2.2 about other moments. B8 has
Hölder's inequality in place of Cauchy and Schwarz's: with s = k/(k − 1) the mean of a private
answer moves by at most n·α·Q_s(p)^{1/s} dp,

    Q_s = (1 − δ)·(c₋c₊^s + c₊c₋^s)/(c₊ + c₋) + δ·(p^{1−s} + (1 − p)^{1−s}),

c₊ = (e^ε − 1)/(1 + p(e^ε − 1)), c₋ = (e^ε − 1)/(e^ε − p(e^ε − 1)); for k = 1 max(c₊, c₋), if δ = 0.
Proof: docs/proofs/trilemma.md.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from muhat import _check
from muhat._arrays import Floats
from muhat.bounds.divergences import points
from muhat.bounds.lower_bound import LowerBound
from muhat.bounds.trilemma import trilemma
from muhat.bounds.trilemma_paper import CITATION, log_theorem, outside
from muhat.bounds.trilemma_search import distances
from muhat.errors import InvalidInput
from muhat.privacy import Neighbors, Privacy, for_groups

CELLS, REACH = 6000, 60.0
"""Of [0, ½], in equal ratios down to e^−REACH: the integral is too large by up to 1 %."""

SHARES = (46, 69, 139, 230, 500, 1200)
"""How many cells below b an a is tried; 69 cells are a factor 2."""


def trilemma_moment(
    n: int,
    *,
    bias: float,
    privacy: Privacy,
    error_order: float = 1.0,
    moment_order: float = 2.0,
    scale: float = 1.0,
    interval: float = 1.0,
    neighbors: Neighbors | str = Neighbors.SUBSTITUTE,
) -> tuple[LowerBound, ...]:
    """The least (E|M − μ|^k)^{1/k} of a private mean whose bias is small; k the `error_order`.

    The class and the other arguments are those of `trilemma`. B8 first, then the paper's Theorem
    2.1 with its Lemma 2.2.

    >>> from muhat.privacy import PureDP
    >>> ours, paper = trilemma_moment(1000, bias=0.001, privacy=PureDP(epsilon=1.0))
    >>> f"{ours.value:.4f}, {paper.value:.4f}"
    '0.0727, 0.0017'
    """
    squared = trilemma(
        n,
        bias=bias,
        moment_order=moment_order,
        scale=scale,
        interval=interval,
        privacy=privacy,
        neighbors=neighbors,
    )
    k = _check.real("error_order", error_order)
    if not k >= 1:
        raise InvalidInput("must be at least 1", parameter="error_order", value=f"{k:g}")
    replaced = Neighbors.parse(neighbors) is Neighbors.SUBSTITUTE
    strength = privacy if replaced else for_groups(privacy, 2)
    pure, beta = strength.implied_epsilon, squared.bias / scale
    known = [(pure, 0.0)] if pure is not None else points(strength)
    given = (*squared.bounds[0].assumptions, f"The error is (E|M − μ|^{k:g})^{{1/{k:g}}}.")
    # A root mean square is no larger than a higher moment's root.
    value = squared.value if k >= 2 else 0.0
    if pure is not None and beta == 0 and math.isfinite(squared.moment_order):
        value = math.inf
    for epsilon, delta in known if math.isfinite(value) else ():
        found = _best(n, epsilon, delta, k, beta, squared.moment_order, interval / scale)
        value = max(value, found * scale)

    def bound(number: float | None, theorem: str, source: str, *more: str) -> LowerBound:
        who = squared.bounds[0]
        number = None if number is None else min(number, sys.float_info.max)
        return LowerBound(
            number, who.mechanisms, "class", theorem, source, (*given, *more), who.promise, CITATION
        )

    title = f"B8, moments of order {k:g}"
    if k == 1 and pure is None:
        why = "With a δ the mean absolute error alone is not bounded here: take an order above 1."
        return (bound(None, title, "derived", why),)
    ours = bound(value, title, "derived")
    if strength.point is None:
        return (ours,)
    refused = outside(beta, squared.moment_order, interval / scale)
    paper = None
    if refused is None:
        log_value = log_theorem(n, *strength.point, beta, squared.moment_order, k)
        paper = math.exp(min(log_value, 709.0)) * (1 - 1e-11) * scale
    theorem = "K24 Theorem 2.1 and Lemma 2.2"
    return ours, bound(paper, theorem, "paper", *([refused] if refused else []))


def _best(
    n: int, epsilon: float, delta: float, k: float, bias: float, order: float, interval: float
) -> float:
    """The largest [v(b − a) − 2β]/(n·∫Q_s^{1/s}) over a grid of 0 ≤ a < b ≤ ½, rounded down."""
    if epsilon > 600 or (delta and k == 1):
        return 0.0
    edges = 0.5 * np.exp(np.linspace(-REACH, 0.0, CELLS + 1))
    costs = np.cumsum(_pieces(edges, epsilon, delta, k))
    best = 0.0
    for share in (None, *SHARES):
        high = slice(0, None) if share is None else slice(share, None)
        low = np.zeros(len(edges)) if share is None else edges[:-share]
        cost = costs if share is None else costs[share:] - costs[:-share]
        angles = np.arcsin(np.sqrt(low)), np.arcsin(np.sqrt(edges[high]))
        moves = distances(*angles, order, interval) * (edges[high] - low) * (1 - 1e-9) - 2 * bias
        best = max(best, float(np.max(moves / (n * cost))))
    return best * (1 - 1e-9)


def _pieces(edges: Floats, epsilon: float, delta: float, k: float) -> Floats:
    """∫Q_s^{1/s} over [0, e₀] and between the edges, each rounded up.

    c₊ falls with p and c₋ rises, and Q_s grows with both: each is taken at its larger end.
    """
    grown = math.expm1(epsilon)
    below = np.concatenate([[0.0], edges[:-1]])
    plus = grown / (1 + below * grown)
    minus = grown / (1 + grown - edges * grown)
    # Powers of what is at most 1, so that a large s does not leave the floats.
    top: Floats = np.maximum(plus, minus)
    if k == 1:
        return np.asarray(top * (edges - below))
    s = k / (k - 1)
    private = (minus * (plus / top) ** s + plus * (minus / top) ** s) / (plus + minus)
    speeds: Floats = top * private ** (1 / s) * (edges - below)
    if not delta:
        return speeds
    # (A + B)^{1/s} ≤ A^{1/s} + B^{1/s}, and p^{(1−s)/s} = p^{−1/k} is integrated in closed form.
    power = 1 - 1 / k
    open_ = (edges**power - below**power) / power + 2 ** (1 / k) * (edges - below)
    return np.asarray(speeds + delta ** (1 / s) * open_, dtype=np.float64)
