"""What no private mechanism for the linear queries A·x can beat.

Adding or removing a record moves A·x by a column, so the smallest ellipsoid around the columns,
γ_(p)(A) = Γ_p(±columns), bounds the error as it does for sums. Zou, Liu and Upadhyay, "Optimality
of Matrix Mechanism on ℓ_p^p-metric", ICLR 2025 (ZLU25), measure it by (E‖·‖_p^p)^{1/p}, which is
at least (E‖·‖_p²)^½; the bounds here hold for both. Proofs: docs/proofs/bounds.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from muhat import _check
from muhat.bounds import divergences
from muhat.bounds.divergences import one_sided, pair, two_sided
from muhat.bounds.lower_bound import LowerBound
from muhat.bounds.schatten import schatten_floor
from muhat.bounds.steps import noise_floor
from muhat.bounds.unbiased import near, quotient
from muhat.bounds.width import minimum_width
from muhat.errors import InvalidInput
from muhat.privacy import Neighbors, Privacy, check_promise
from muhat.workloads import Workload
from muhat.workloads.cells import LARGEST_VECTOR

_ZLU25 = "Zou, Liu and Upadhyay 2025, ICLR"
_METRIC = "The error is (E‖answers − truth‖_p^p)^{1/p}, or (E‖answers − truth‖_p²)^½."
_SCHATTEN = "γ_(p) is at least m^{1/p−1/2}·‖A‖₁/√N, with ‖A‖₁ the sum of the singular values."
_RELATIONS = {
    Neighbors.ADD_REMOVE: "Neighbours add or remove one record.",
    Neighbors.SUBSTITUTE: "The number of records is public and neighbours replace one of them.",
}
_CLASSES = {
    "unbiased": "The mechanism is unbiased on every histogram of counts.",
    "additive": "The law of the noise is the same for all datasets; it may be biased.",
    "any": "The mechanism may be biased and may depend on the data.",
}
_REDUCTION = (
    "Conditional on Bhaskara et al. 2012, Theorem 4.3, as ZLU25 cites it and not proved here (an "
    "(ε, δ)-DP mechanism for all real histograms gives (2ε, e^ε·δ)-DP additive noise whose error "
    "is no larger than the worst error of the mechanism), and on histograms that may hold any real "
    "numbers, without bound, with neighbours at most 1 apart in ℓ₁."
)


class _Norm(NamedTuple):
    """What is known of γ_(p): `floor` ≤ γ ≤ `ceiling`, and whether the floor is Schatten's."""

    floor: float | None
    ceiling: float
    schatten: bool
    records: int = 1

    def times(self, records: int) -> _Norm:
        """The norm of what several records of one person move together."""
        floor = None if self.floor is None else self.floor * records
        return _Norm(floor, self.ceiling * records, self.schatten, records)


def linear_queries(
    W: Workload,
    privacy: Privacy,
    p: float = 2,
    *,
    neighbors: Neighbors | str = Neighbors.ADD_REMOVE,
    floor: float | None = None,
    contributions: int = 1,
) -> tuple[LowerBound, ...]:
    """Lower bounds on the error of private answers to the queries of a workload.

    Args:
        W: the workload, of shape (m, N).
        privacy: the promise.
        p: the error is measured in ℓ_p, p ≥ 2.
        neighbors: which histograms must look alike.
        floor: a proved lower bound on γ_(p) for these neighbours; by default that of
            `factorize`, or the Schatten bound where a workload is too large for it.
        contributions: how many records one person may have; together they move the answers that
            many times as far.

    The constants are ours; those of the paper stand beside them (`source="paper"`), smaller.

    >>> from muhat.privacy import ZCDP
    >>> from muhat.workloads import parity
    >>> for bound in linear_queries(parity(8, 2), ZCDP(rho=0.1), floor=28.0)[:4]:
    ...     print(bound.sentence())
    Every unbiased 0.1-zCDP mechanism has error at least 59.5 on every dataset.
    Every unbiased 0.1-zCDP mechanism has error at least 61.56 on some dataset.
    Every 0.1-zCDP mechanism has error at least 62.59 on some dataset.
    Every additive-noise 0.1-zCDP mechanism has error at least 62.59 on every dataset.
    """
    if not isinstance(W, Workload):
        raise InvalidInput(
            f"W must be a workload; got {type(W).__name__}. Wrap a matrix in workloads.matrix."
        )
    check_promise(privacy)
    p, relation = _check.norm_order(p), Neighbors.parse(neighbors)
    rows = _check.count("contributions", contributions)
    norm = _norm(W, p, relation, floor).times(rows)
    if relation is Neighbors.SUBSTITUTE:
        return (*_near(W, p, norm, privacy, relation), *_substitution(norm, privacy))
    bounds = [*_near(W, p, norm, privacy, relation), *_ours(norm, privacy)]
    if not norm.schatten:
        cheap = _Norm(schatten_floor(W, p), math.inf, True).times(rows)
        bounds += [_ours(cheap, privacy)[-1]] if cheap.floor is not None else []
    if privacy.point is not None:
        bounds += [_paper(W, p, norm, privacy, *privacy.point)]
        bounds += [_any_mechanism(norm, privacy, *privacy.point)]
    return tuple(bounds)


def _near(
    W: Workload, p: float, norm: _Norm, privacy: Privacy, relation: Neighbors
) -> tuple[LowerBound, ...]:
    if norm.floor is None or one_sided(privacy) is not None:
        return ()
    # Euclidean errors are those of the span of the columns.
    dim = min(W.shape) if p == 2 else W.shape[0]
    given: tuple[str, ...] = (_METRIC, _RELATIONS[relation], _CLASSES["unbiased"])
    given += (_SCHATTEN,) if norm.schatten else ()
    return near(norm.floor, privacy, dim, given, replaced=relation is Neighbors.SUBSTITUTE)


def _ours(norm: _Norm, privacy: Privacy) -> tuple[LowerBound, ...]:
    """One record added or removed; the last of them is for additive noise.

    A cell may hold any number of records, so whatever additive noise errs any mechanism errs on
    some histogram.
    """
    relation = Neighbors.ADD_REMOVE
    one, floor = one_sided(privacy), noise_floor(privacy)
    kind, theorem, noise = privacy.spoken, floor.theorem, -floor.log_square
    bounds = [
        _bound(norm, noise, "any", "some", f"{theorem}, for any mechanism", privacy, relation),
        _bound(norm, noise, "additive", "every", theorem, privacy, relation),
    ]
    if privacy.point is not None and one is None:
        group = divergences.log_group_approx(*privacy.point)
        coins = _bound(norm, group, "unbiased", "some", "B4 for linear queries", privacy, relation)
        return (coins, *bounds)
    if privacy.implied_epsilon is None:
        title = f"B5 for {kind}, by coins"
        bounds[:0] = [_bound(norm, pair(privacy), "unbiased", "some", title, privacy, relation)]
    if one is not None:
        number = "B2" if privacy.implied_epsilon is None else "B3"
        title = f"{number} for linear queries, {kind}"
        bounds[:0] = [_bound(norm, one, "unbiased", "every", title, privacy, relation)]
    return tuple(bounds)


def _substitution(norm: _Norm, privacy: Privacy) -> tuple[LowerBound, ...]:
    """One of n records replaced: the answers are n times a mean of columns."""
    relation = Neighbors.SUBSTITUTE
    theorem = "B1, every dataset" if privacy.implied_epsilon is None else "B3, every dataset"
    floor = noise_floor(privacy)
    square = -floor.log_square
    noise = _bound(norm, square, "additive", "every", floor.theorem, privacy, relation)
    two = two_sided(privacy)
    if two is None:
        return (noise,)
    return (_bound(norm, two, "unbiased", "every", theorem, privacy, relation), noise)


def _bound(
    norm: _Norm,
    log_divergence: float,
    mechanisms: str,
    datasets: str,
    theorem: str,
    privacy: Privacy,
    relation: Neighbors,
    *,
    conditions: tuple[str, ...] = (),
    refused: str | None = None,
    source: str = "derived",
) -> LowerBound:
    """γ/√divergence, or no number where a condition is `refused` for this reason."""
    assumptions = (_METRIC, _RELATIONS[relation], _CLASSES[mechanisms], *conditions)
    if norm.records > 1:
        assumptions += (f"One person may have {norm.records} records, all of which may change.",)
    if norm.schatten and norm.floor is not None:
        theorem, assumptions = f"{theorem}, Schatten norm", (*assumptions, _SCHATTEN)
    if norm.floor is None and refused is None:
        refused = "No lower bound on the factorisation norm is computed for this workload."
    value = None
    if refused is None and norm.floor is not None:
        value = quotient(norm.floor, log_divergence)
    elif refused is not None:
        assumptions = (*assumptions, refused)
    return LowerBound(
        value, mechanisms, datasets, theorem, source, assumptions, privacy.describe(), _ZLU25
    )


def _any_mechanism(norm: _Norm, privacy: Privacy, epsilon: float, leak: float) -> LowerBound:
    """B6: ZLU25 Theorem 1.4 with the constant of B5, at twice the privacy loss."""
    loss, refused = math.inf, None
    if leak == 0:
        loss = divergences.log_one_sided_pure(2 * epsilon)
    else:
        delta = math.exp(min(epsilon, 700.0)) * leak * (1 + 1e-12)
        if delta < 1:
            loss = divergences.log_group_approx(2 * epsilon, delta)
        else:
            refused = "Nothing is left of it here, as e^ε·δ is at least 1."
    return _bound(
        norm,
        loss,
        "any",
        "some",
        "B6, ZLU25 Theorem 1.4 with the constant of B5",
        privacy,
        Neighbors.ADD_REMOVE,
        conditions=(_REDUCTION,),
        refused=refused,
    )


def _paper(
    W: Workload, p: float, norm: _Norm, privacy: Privacy, epsilon: float, delta: float
) -> LowerBound:
    """ZLU25 Theorem 2.1 with the constant and the range of δ that its proof gives.

    (1 − 8δ')γ/(16(e^{3ε} − 1)), δ' = 2δ/(1 − e^{−ε}), where δ' is at most 1/16, 1 − e^{−ε}, ε² and
    εκm^{1/p−1/2}/(12γ). The statement has 8 for 16, δ' for 8δ' and n^{1−2/p} for m^{1/p−1/2}.
    """
    grown = 2 * delta / -math.expm1(-epsilon)
    conditions: tuple[str, ...] = ()
    refused = None
    if delta:
        limit, width = _range_of_delta(W, p, norm, epsilon)
        condition = "δ' = 2δ/(1 − e^{−ε}) is at most 1/16, 1 − e^{−ε}, ε² and ε·κ·m^{1/p−1/2}/(12γ)"
        conditions = (f"{condition}.",)
        if not grown <= limit * (1 - 1e-9):
            refused = (
                f"That is not shown here: κ is at least {width:.4g}, so the limit is "
                f"{limit:.4g}, and δ' is {grown:.4g}."
            )
    log_root = math.inf
    if refused is None:
        log_root = math.log(16) - math.log1p(-8 * grown) + _log_expm1(3 * epsilon)
    return _bound(
        norm,
        2 * log_root,
        "additive",
        "every",
        "ZLU25 Theorem 2.1, mended",
        privacy,
        Neighbors.ADD_REMOVE,
        conditions=conditions,
        refused=refused,
        source="paper",
    )


def _range_of_delta(W: Workload, p: float, norm: _Norm, epsilon: float) -> tuple[float, float]:
    """The largest δ' that the paper's proof is shown to allow, and the κ behind it."""
    width = minimum_width(W).lower
    share = math.exp((1 / p - 0.5) * math.log(W.shape[0]))
    room = epsilon * width * share / (12 * norm.ceiling)
    return min(1 / 16, -math.expm1(-epsilon), epsilon**2, room), width


def _log_expm1(x: float) -> float:
    return math.log(math.expm1(x)) if x < 1 else x + math.log1p(-math.exp(-x))


def _norm(W: Workload, p: float, relation: Neighbors, floor: float | None) -> _Norm:
    if floor is not None:
        floor = _check.real("floor", floor)
        if floor < 0:
            raise InvalidInput("must be at least 0", parameter="floor", value=f"{floor:g}")
        return _Norm(floor, _simple_ceiling(W, p), False)
    from muhat.workloads.factorize import factorize

    try:
        factors = factorize(W, p, relation)
    except InvalidInput:
        if relation is Neighbors.SUBSTITUTE:
            return _Norm(None, math.inf, False)
        return _Norm(schatten_floor(W, p), _simple_ceiling(W, p), True)
    return _Norm(factors.floor, factors.value, False)


def _simple_ceiling(W: Workload, p: float) -> float:
    """γ_(p) is at most the value of A·I and of I·A; ∞ where their norms are not written out."""
    rows, columns = W.shape
    if max(rows, columns) > LARGEST_VECTOR:
        return math.inf
    try:
        lengths = W.row_norms()
        longest = float(np.max(W.column_norms()))
    except InvalidInput:
        return math.inf
    top = float(np.max(lengths))
    by_rows = top * float(np.sum((lengths / top) ** p)) ** (1 / p) if math.isfinite(p) else top
    return min(by_rows, longest * math.exp(math.log(rows) / p)) * (1 + 1e-9)
