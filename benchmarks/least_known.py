"""Errors of known mechanisms by their formulas: root mean square ℓ₂ norms of noise, or ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import muhat as mh
from muhat.mechanisms.quantiles.joint_choice import walk_deviation
from muhat.privacy import Privacy

MEASURED = {
    64: (42.6, "HDMM p-identity"),
    256: (123.0, "HDMM p-identity"),
    1024: (352.0, "tree"),
}
"""Prefixes of so many cells under pure privacy at ε = 1, as peers were measured."""


@dataclass(frozen=True)
class Known:
    """A mechanism, and its error for a promise: infinite where it does not keep it."""

    name: str
    error: Callable[[Privacy], float]


def of_cells(cells: int) -> tuple[Known, ...]:
    """A record adds one to one of so many numbers."""
    return (
        Known("Laplace", lambda promise: math.sqrt(cells) * laplace(promise)),
        Known("geometric", lambda promise: math.sqrt(cells) * geometric(promise)),
        Known("cut Laplace", lambda promise: math.sqrt(cells) * cut_laplace(promise)),
        Known("normal", lambda promise: math.sqrt(cells) * normal(promise)),
    )


def of_tables(cells: int, n: int) -> tuple[Known, ...]:
    """A record moves one from one of so many numbers to another, which are divided by n."""
    root = math.sqrt(cells) / n
    # Two counts are one, and normal noise is the least that hides two directions or more.
    across = math.sqrt(2 * (cells - 1)) / n
    return (
        Known("Laplace", lambda promise: 2 * root * laplace(promise)),
        Known("geometric", lambda promise: root * geometric(promise, 2)),
        Known("geometric, one", lambda promise: two(cells) * geometric(promise) / n),
        Known("normal", lambda promise: across * normal(promise)),
    )


def two(cells: int) -> float:
    """Of two counts one is what the other leaves."""
    return math.sqrt(2) if cells == 2 else math.inf


def of_boxes(d: int, n: int) -> tuple[Known, ...]:
    """The mean of d columns in [−1, 1], of n records: each moves every column by 2/n."""
    moved = 2 / n
    norm = math.sqrt(d * (d + 1) * (d + 2) / 3)
    found = (
        Known("K-norm", lambda promise: moved * norm / pure_epsilon(promise)),
        Known("Laplace", lambda promise: moved * d * math.sqrt(d) * laplace(promise)),
        Known("normal", lambda promise: moved * d * normal(promise)),
    )
    if d > 1:
        return found
    return (
        *found,
        Known("staircase", lambda promise: moved * staircase(promise)),
        Known("cut Laplace", lambda promise: moved * cut_laplace(promise)),
    )


def of_gaps(d: int, n: int) -> tuple[Known, ...]:
    """The mean of d columns in [−1, 1] with gaps, at the worst mean: sums and counts together.

    A record moves a sum by 2, or a sum and a count by 1: Laplace noise of scale 2d/ε on each, or
    that of the norm of the rows 1 ± x; normal noise of variances 4 and 4/3.
    """
    norm = math.sqrt(d * (2 * d + 1) * (2 * d + 2) / 3)
    return (
        Known("Laplace", lambda promise: 4 / n * d * math.sqrt(d) / pure_epsilon(promise)),
        Known("K-norm", lambda promise: 2 / n * norm / pure_epsilon(promise)),
        Known("normal", lambda promise: 2 / n * math.sqrt(4 / 3) * d * normal(promise)),
    )


def of_secret(n: int) -> tuple[Known, ...]:
    """The mean of a secret number of records in [−1, 1], at the worst mean: sum and count."""
    return (
        Known("K-norm", lambda promise: math.sqrt(8) / n / pure_epsilon(promise)),
        Known("normal", lambda promise: 2 / n * normal(promise)),
    )


def of_balls(d: int, n: int) -> tuple[Known, ...]:
    """The mean of vectors in the unit ball, of n records: each moves it by 2/n."""
    moved, norm = 2 / n, math.sqrt(d * (d + 1))
    return (
        Known("K-norm", lambda promise: moved * norm / pure_epsilon(promise)),
        Known("normal", lambda promise: moved * math.sqrt(d) * normal(promise)),
    )


def of_bodies(l1: float, l2: float, weights: Sequence[float], n: int) -> tuple[Known, ...]:
    """The mean of vectors of a body of these diameters, whose coordinates' errors have weights."""
    weight = math.hypot(*weights) / n
    return (
        Known("Laplace", lambda promise: weight * l1 * laplace(promise)),
        Known("normal", lambda promise: weight * l2 * normal(promise)),
    )


def of_categories(m: int, n: int) -> tuple[Known, ...]:
    """Without a curator: the parts of m categories, each of n people telling about one."""
    return (
        Known("randomised response", lambda promise: _subsets(promise, m, range(1, 2)) / n**0.5),
        Known("subset selection", lambda promise: _subsets(promise, m, range(1, m)) / n**0.5),
        Known("unary encoding", lambda promise: unary(promise, m) / n**0.5),
    )


def _subsets(promise: Privacy, m: int, sizes: range) -> float:
    """Of one message that names k of m categories, the true one as often as allowed."""
    e = math.exp(pure_epsilon(promise))
    if e == 1:
        return math.inf
    errors = []
    for k in sizes:
        own = e * k / (e * k + m - k)
        other = (k - own) / (m - 1)
        spread = own * (1 - own) + (m - 1) * other * (1 - other)
        errors.append(math.sqrt(spread) / (own - other))
    return min(errors)


def unary(promise: Privacy, m: int) -> float:
    """A bit for every category (Wang et al. 2017): ½ if it is the case, else 1/(e^ε + 1)."""
    epsilon = pure_epsilon(promise)
    other = 1 / (math.exp(epsilon) + 1)
    if other == 0.5:
        return math.inf
    return math.sqrt(0.25 + (m - 1) * other * (1 - other)) / (0.5 - other)


def of_devices(d: int, n: int) -> tuple[Known, ...]:
    """Without a curator: the mean of vectors in the unit ball, each device's moved by 2."""
    half = math.sqrt(math.pi) / 2 * math.exp(math.lgamma((d + 1) / 2) - math.lgamma(d / 2 + 1)) * d
    root = 2 * math.sqrt(d / n)

    def half_space(promise: Privacy) -> float:
        answers = math.tanh(pure_epsilon(promise) / 2)
        return half / answers / math.sqrt(n) if answers else math.inf

    return (
        Known("half space", half_space),
        Known("K-norm", lambda promise: root * math.sqrt(d + 1) / pure_epsilon(promise)),
        Known("Laplace", lambda promise: root * math.sqrt(d) * laplace(promise)),
        Known("normal", lambda promise: root * normal(promise)),
    )


def of_diamonds(d: int, n: int) -> tuple[Known, ...]:
    """The mean of vectors in the unit ball of the ℓ₁ norm, of n records: each moves it by 2/n."""
    moved, norm = 2 / n, math.sqrt(d * (d + 1))
    return (
        Known("K-norm, Laplace", lambda promise: moved * math.sqrt(d) * laplace(promise)),
        Known("K-norm of a ball", lambda promise: moved * norm / pure_epsilon(promise)),
        Known("normal", lambda promise: moved * math.sqrt(d) * normal(promise)),
    )


def of_prefixes(cells: int) -> tuple[Known, ...]:
    """All running totals of a table of counts."""
    root = math.sqrt(math.fsum(_root_series(cells)))
    answers = math.sqrt(cells * (cells + 1) / 2)
    levels = math.ceil(math.log2(cells)) + 1
    nodes = math.sqrt(math.fsum(k.bit_count() for k in range(1, cells + 1)))
    measured, whose = MEASURED[cells]
    return (
        Known("Laplace, cells", lambda promise: answers * laplace(promise)),
        Known("geometric, cells", lambda promise: answers * geometric(promise)),
        Known("tree", lambda promise: levels * nodes * laplace(promise)),
        Known("tree, normal", lambda promise: math.sqrt(levels) * nodes * normal(promise)),
        Known("square root", lambda promise: root * normal(promise)),
        Known(whose, lambda promise: measured / pure_epsilon(promise)),
    )


CAUSAL = {64: 58.1, 256: 172.8, 1024: 482.3}
"""Running sums of so many events at ε = 1 from a tree whose nodes are used when they are complete,
by least squares (Honaker), with the best branching and weights of levels, as they were found."""


def of_streams(steps: int, weights: list[float]) -> tuple[Known, ...]:
    """Sums of events, released one by one; an event counts so much in the sums after it.

    The trees of running sums are those of `of_prefixes`; "tree, normal" is that of Zou, Liu and
    Upadhyay's Theorem 1.5.
    """
    shares = weights + [0.0] * (steps - len(weights))
    answers = math.sqrt(math.fsum((steps - k) * share**2 for k, share in enumerate(shares)))
    series = [1.0]
    for k in range(1, steps):
        inner = math.fsum(series[j] * series[k - j] for j in range(1, k))
        series.append((shares[k] - inner) / 2)
    squares = [x * x for x in series]
    rows = math.fsum((steps - k) * square for k, square in enumerate(squares))
    root = math.sqrt(rows * math.fsum(squares))
    found = (
        Known("Laplace, events", lambda promise: answers * laplace(promise)),
        Known("staircase, events", lambda promise: answers * staircase(promise)),
        Known("normal, events", lambda promise: answers * normal(promise)),
        Known("square root", lambda promise: root * normal(promise)),
    )
    if min(shares) < 1:
        return found
    causal = Known("tree, weighed", lambda promise: CAUSAL[steps] / pure_epsilon(promise))
    # Events are numbers, not counts of records, so that whole noise is none for them.
    prefixes = (one for one in of_prefixes(steps) if one.name != "geometric, cells")
    return (*found, causal, *prefixes)


def of_replaced(axes: tuple[int, ...]) -> tuple[Known, ...]:
    """Running totals along every axis, of records that are replaced.

    Columns of the square root, of the tree and of their products have no negative inner products:
    two are at most √2 as far apart as one is long. All columns of the tree share its root.
    """
    root = math.prod(math.sqrt(math.fsum(_root_series(cells))) for cells in axes)
    nodes = math.prod(
        math.sqrt(math.fsum(k.bit_count() for k in range(1, cells + 1))) for cells in axes
    )
    levels = math.prod(math.ceil(math.log2(cells)) + 1 for cells in axes) - 1
    return (
        Known("tree, normal", lambda promise: math.sqrt(2 * levels) * nodes * normal(promise)),
        Known("square root", lambda promise: math.sqrt(2) * root * normal(promise)),
    )


ROUNDS, FOUND = 20, 0.7
"""Halvings of 2^20 cells, and the rank error of a search in deviations of one, as measured."""


def of_quantiles(many: int, *, secret: bool) -> tuple[Known, ...]:
    """The rank error in the middle of so many quantiles where records lie evenly.

    `moved` is how far a record moves a rank, and the range of a choice is twice that. Where n is
    secret, ranks are fractions of it: w = max(q, 1 − q) for a record that comes or goes.
    """
    parts = [j / (many + 1) for j in range(1, many + 1)]
    moved = max(parts) if secret else 1.0
    steps = 2 * (1 - 1 / (many + 1)) if secret else 2.0
    levels = math.ceil(math.log2(many + 1))
    recursion, worst = _recursion(parts)
    across = (worst, worst) if secret else (max(1, 2 * worst), max(1, math.sqrt(2) * worst))
    # Of all counts between quantiles a record that is replaced moves two.
    walk = steps * walk_deviation(many)
    return (
        Known("exponential", lambda promise: 2 * moved * many * laplace(promise)),
        Known("exponential, zCDP", lambda promise: moved * math.sqrt(2 * many) * _choice(promise)),
        Known("noisy search", lambda promise: FOUND * moved * ROUNDS * many * laplace(promise)),
        Known(
            "noisy search, normal",
            lambda promise: FOUND * moved * math.sqrt(ROUNDS * many) * normal(promise),
        ),
        Known("recursion", lambda promise: 2 * across[0] * levels * recursion * laplace(promise)),
        Known(
            "recursion, zCDP",
            lambda promise: across[1] * math.sqrt(2 * levels) * recursion * _choice(promise),
        ),
        Known("joint", lambda promise: 2 * walk / pure_epsilon(promise)),
        Known("joint, zCDP", lambda promise: walk * _choice(promise)),
    )


def _choice(promise: Privacy) -> float:
    """1/η of a choice of the range 2η, which is η²/2-zCDP."""
    return normal(promise) if isinstance(promise, mh.ZCDP) else math.inf


def _recursion(parts: list[float]) -> tuple[float, float]:
    """Kaplan, Schnapp and Stemmer (2022): the middle quantile first, then those of the halves.

    The largest deviation if every choice has 1, since halves are counted from where they were
    divided, and the largest w: a record that leaves one half for another moves both by w.
    """
    ends = [0.0, *parts, 1.0]
    noises: list[dict[int, float]] = [{} for _ in ends]
    worst, open_parts = 0.5, [(0, len(ends) - 1)]
    while open_parts:
        low, high = open_parts.pop()
        if high - low < 2:
            continue
        middle = (low + high) // 2
        share = (ends[middle] - ends[low]) / (ends[high] - ends[low])
        worst = max(worst, share, 1 - share)
        mixed = {middle: 1.0}
        for end, weight in ((low, 1 - share), (high, share)):
            for noise, part in noises[end].items():
                mixed[noise] = mixed.get(noise, 0.0) + weight * part
        noises[middle] = mixed
        open_parts += [(low, middle), (middle, high)]
    return max(math.sqrt(math.fsum(x * x for x in each.values())) for each in noises), worst


def _root_series(cells: int) -> list[float]:
    """Squared norms of the rows of the square root of the prefix matrix, times its largest."""
    coefficient, squares = 1.0, [1.0]
    for k in range(1, cells):
        coefficient *= (2 * k - 1) / (2 * k)
        squares.append(coefficient**2)
    column = math.fsum(squares)
    rows = [math.fsum(squares[: k + 1]) for k in range(cells)]
    return [column * row for row in rows]


# Noise for one number that a person moves by one.


def pure_epsilon(promise: Privacy) -> float:
    """ε of what is pure, or implied by it; 0 where no pure noise is measured."""
    match promise:
        case mh.PureDP() | mh.ApproxDP():
            return float(promise.epsilon)
    return math.ulp(0.0)


def laplace(promise: Privacy) -> float:
    return math.sqrt(2) / pure_epsilon(promise)


def geometric(promise: Privacy, moves: int = 1) -> float:
    b = math.exp(-pure_epsilon(promise) / moves)
    return math.sqrt(2 * b) / (1 - b) if b < 1 else math.inf


def staircase(promise: Privacy) -> float:
    b = math.exp(-pure_epsilon(promise))
    return math.sqrt((b * (1 + b) / 2) ** (2 / 3) + b) / (1 - b) if b < 1 else math.inf


def cut_laplace(promise: Privacy) -> float:
    """Laplace noise without its tails, which weigh δ."""
    if not isinstance(promise, mh.ApproxDP):
        return math.inf
    epsilon, delta = float(promise.epsilon), float(promise.delta)
    end = math.log1p(math.expm1(epsilon) / (2 * delta))
    kept = -math.expm1(-end)
    return math.sqrt((2 - math.exp(-end) * (end * (end + 2) + 2)) / kept) / epsilon


def normal(promise: Privacy) -> float:
    """Normal noise of the least deviation that keeps the promise."""
    match promise:
        case mh.GDP():
            return 1 / float(promise.mu)
        case mh.ZCDP():
            return 1 / math.sqrt(2 * float(promise.rho))
        case mh.ApproxDP():
            return _analytic(float(promise.epsilon), float(promise.delta))
    return math.inf


def _analytic(epsilon: float, delta: float) -> float:
    """By bisection of Balle and Wang's equation."""

    def lost(sigma: float) -> float:
        near, far = 0.5 / sigma - epsilon * sigma, -0.5 / sigma - epsilon * sigma
        return _below(near) - math.exp(epsilon) * _below(far)

    low, high = 1e-3, 1e4
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if lost(middle) <= delta else (middle, high)
    return high


def _below(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2
