"""Plans the answers to linear queries: the strategy is chosen before any data is seen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check, workloads
from muhat._words import SUBSTITUTE, Parameter
from muhat.domains.norms import p_norm
from muhat.ellipsoids.finite import check_tolerance
from muhat.errors import InvalidInput
from muhat.mechanisms.queries.linear_recipe import LinearRecipe, needs_normal_noise
from muhat.mechanisms.sums.recipe import Protection
from muhat.noise.law import LAWS
from muhat.planning.noise_kinds import kinds_of_noise
from muhat.planning.query_plan import QueryPlan
from muhat.privacy import Neighbors, Privacy, check_promise
from muhat.release.query_table import Attributes
from muhat.workloads import Workload
from muhat.workloads.absent import factorize_with_absent
from muhat.workloads.factorization import Factorization
from muhat.workloads.factorize import factorize
from muhat.workloads.identity import Identity
from muhat.workloads.linear_map import LinearMap
from muhat.workloads.products import Centred, times
from muhat.workloads.stack import Scaled

if TYPE_CHECKING:
    from muhat.data.categories import Categories

MOST_LABELS = 1 << 22
"""Names of categories are kept for every release, and written with it."""

LARGEST_IDENTITY = 1 << 20
"""Pure privacy compares with noise on every cell up to this many cells."""


def plan_queries(
    workload: Workload | ArrayLike,
    *,
    privacy: Privacy,
    p: float = 2,
    neighbors: Neighbors | str = Neighbors.ADD_REMOVE,
    n: int | None = None,
    contributions: int = 1,
    categories: Mapping[str, Any] | None = None,
    missing: str | None = None,
    tol: float = 1e-6,
) -> QueryPlan:
    """Plan private answers W·x to linear queries on a histogram x.

    Under add/remove, the default, the number of records is secret. Under substitution it is
    public: `n`, or counted from the data. `categories` names the columns of a table and their
    public categories, one entry for every axis of the histogram: a list of labels, or the edges
    of bins for numbers, `{"sex": ["f", "m"], "age": {"bins": [0, 18, 65, 120]}}`. Records with
    other or missing values are left out ("drop"), so that tables are of recorded values, whose
    noisy number is part of the release; or they go to one more category each ("other"); or there
    are none, as a public fact ("none"). `missing` says which, by default whichever of the first two
    the workload has cells for.

    >>> import muhat as mh
    >>> plan = mh.plan_queries(mh.workloads.prefix(16), privacy=mh.ZCDP(rho=0.1))
    >>> round(plan.factorization.value, 6), round(plan.certificate.ratio, 3)
    (6.757615, 1.017)
    """
    check_promise(privacy)
    p, tol = _check.norm_order(p), check_tolerance(tol)
    relation = Neighbors.parse(neighbors)
    contributions = _check.count("contributions", contributions)
    if n is not None:
        n = _check.count("n", n)
        if relation is Neighbors.ADD_REMOVE:
            raise InvalidInput(
                "under add/remove the number of records is secret; leave ",
                Parameter("n"),
                " out, or use ",
                SUBSTITUTE,
                ".",
            )
    if not isinstance(workload, Workload):
        workload = workloads.matrix(workload)
    declared, attributes = _attributes(workload, categories, missing)
    replaced = relation is Neighbors.SUBSTITUTE
    absent = replaced and not all(one.keeps_every_record for one in declared)
    found = [
        LinearRecipe.of(
            factorization,
            LAWS[law],
            Protection.of(privacy, relation, contributions, pure=LAWS[law].is_pure),
            absent=absent,
        )
        for law, factorization in _candidates(workload, p, relation, privacy, tol, absent)
    ]
    # The certificate is about complete data, where records are replaced.
    floor = _factorized(workload, p, relation, tol).floor
    plans = [
        QueryPlan(
            workload=workload,
            privacy=privacy,
            neighbors=relation,
            n=n,
            p=p,
            contributions=contributions,
            categories=declared,
            attributes=attributes,
            recipe=recipe,
            floor=floor,
            assumptions=_assumptions(relation, n, contributions, declared),
        )
        for recipe in found
    ]
    best, *others = _ranked(plans)
    return replace(
        best, alternatives=tuple((plan.mechanism, plan.expected_error) for plan in others)
    )


def _ranked(plans: list[QueryPlan]) -> list[QueryPlan]:
    """The plans by their errors; by bounds for all, if only a bound is known for any of them."""
    if any(plan.expected_error_method == "bound" for plan in plans):
        return sorted(plans, key=lambda plan: plan.noise.bound(plan.p))
    return sorted(plans, key=lambda plan: plan.expected_error)


def _candidates(
    workload: Workload,
    p: float,
    neighbors: Neighbors,
    privacy: Privacy,
    tol: float,
    absent: bool,
) -> list[tuple[str, Factorization]]:
    """The laws and strategies that compete: one for normal noise, two for pure noise.

    Whatever the number of cells, pure noise may win: one person moves few of them. Where replaced
    records may be `absent`, strategies for adding and removing them serve, and one of their own.
    """
    best = _factorized(workload, p, Neighbors.ADD_REMOVE if absent else neighbors, tol)
    kinds = kinds_of_noise(privacy, 1)
    if needs_normal_noise(best):
        kinds = kinds[:1]
    found = []
    for pure in kinds:
        found.append(("laplace" if pure else "normal", best))
        small = workload.shape[1] <= LARGEST_IDENTITY
        if pure and small and not isinstance(best.strategy, Identity):
            found.append(("laplace", _on_every_cell(best)))
    own = _factorized_with_absent(workload, p, tol) if absent and False in kinds else None
    return found if own is None else [*found, ("normal", own)]


@lru_cache(maxsize=16)
def _factorized(workload: Workload, p: float, neighbors: Neighbors, tol: float) -> Factorization:
    """Solved once for all promises."""
    return factorize(workload, p=p, neighbors=neighbors, tol=tol)


@lru_cache(maxsize=16)
def _factorized_with_absent(workload: Workload, p: float, tol: float) -> Factorization | None:
    """Solved once for all promises."""
    return factorize_with_absent(workload, p, tol)


def _on_every_cell(best: Factorization) -> Factorization:
    """The workload answered from noisy counts of the cells, at unit sensitivity.

    If their total is public, what the noise adds to it is taken off all cells alike.
    """
    workload, p = best.workload, best.p
    cells: Workload = Identity(workload.cells)
    decoder: LinearMap = workload
    reach, average = 1.0, None
    if best.neighbors is Neighbors.SUBSTITUTE:
        reach = math.sqrt(2) * (1 + 1e-15)
        cells = Scaled(1 / reach, cells)
        decoder = Centred(workload)
        average = workload.apply(np.ones(workload.shape[1])) / workload.shape[1]
    deviations = decoder.row_norms() * (reach * (1 + 1e-12))
    return Factorization(
        workload=workload,
        p=p,
        neighbors=best.neighbors,
        strategy=cells,
        decoder=times(reach, decoder),
        deviations=lambda: deviations,
        value=float(p_norm(deviations, p)),
        floor=best.floor,
        method="every cell",
        common=None if average is None else lambda: average,
    )


def _attributes(
    workload: Workload,
    categories: Mapping[str, Any] | None,
    missing: str | None,
) -> tuple[tuple[Categories, ...], Attributes]:
    """The declared categories, and how the axes are called."""
    if categories is None:
        if missing is not None:
            raise InvalidInput("missing goes with categories; it is about values in a table.")
        return (), Attributes.unnamed(workload.cells)
    from muhat.data.categories import categories_of

    ways = ("other", "drop") if missing is None else (missing,)
    found = [categories_of(categories, missing=way) for way in ways]
    shapes = [tuple(one.size for one in declared) for declared in found]
    if workload.cells not in shapes:
        asked = " or ".join(str(shape) for shape in dict.fromkeys(shapes))
        raise InvalidInput(
            f"the categories make a histogram of shape {asked}, the workload asks about "
            f"{workload.cells}."
        )
    declared = found[shapes.index(workload.cells)]
    if sum(one.size for one in declared) > MOST_LABELS:
        raise InvalidInput(
            f"more than {MOST_LABELS:,} categories have no names. Leave categories out, and give "
            "codes 0, 1, … in the columns that release(data, columns=[…]) names."
        )
    names = tuple(str(one.name) for one in declared)
    if len(set(names)) < len(names):
        raise InvalidInput("must not name a column twice", parameter="categories", value=str(names))
    return declared, Attributes(names, tuple(tuple(map(str, one.labels)) for one in declared))


def _assumptions(
    neighbors: Neighbors, n: int | None, contributions: int, declared: Iterable[Categories]
) -> tuple[str, ...]:
    """What the promise and the errors rest on, in sentences."""
    records = "one record" if contributions == 1 else f"{contributions} records"
    lines = [f"a person contributes at most {records}"]
    if neighbors is Neighbors.ADD_REMOVE:
        lines.append("the number of records is secret")
    else:
        known = "counted from the data" if n is None else str(n)
        lines.append(f"the number of records is public: {known}")
    for one in declared:
        where = "are left out" if one.fallback is None else f"count as {one.labels[one.fallback]!s}"
        declares = "nothing is missing, as was declared; " if one.missing == "none" else ""
        lines.append(f"{declares}records with any other value of {one.name} {where}")
    return (*lines, "the workload and the categories were chosen without looking at the data")
