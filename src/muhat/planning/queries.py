"""Plans the answers to linear queries: the strategy is chosen before any data is seen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from muhat._words import SUBSTITUTE, Parameter
from muhat.domains.norms import p_norm
from muhat.errors import InvalidInput
from muhat.mechanisms.queries.linear_recipe import (
    LinearRecipe,
    is_on_cells,
    methods,
    needs_normal_noise,
)
from muhat.noise.kinds import NoiseKind
from muhat.noise.law import IndependentFamily
from muhat.noise.laws import independent_law
from muhat.planning.linear_answers import LinearAnswers, comparable_errors
from muhat.planning.plan import Plan
from muhat.planning.terms import COUNTED, Terms, kinds_of_noise
from muhat.privacy import Neighbors, Privacy
from muhat.statistics.queries import LinearQueries
from muhat.workloads import Workload
from muhat.workloads.absent import factorize_with_absent
from muhat.workloads.base import Scaled
from muhat.workloads.cells_and_sums import with_sums
from muhat.workloads.factorization import Factorization
from muhat.workloads.factorize import factorize
from muhat.workloads.identity import Identity
from muhat.workloads.linear_map import LinearMap
from muhat.workloads.marginals import Marginals
from muhat.workloads.products import Centred, times
from muhat.workloads.residuals import MarginalFactorization

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
) -> Plan:
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
    (6.757615, 1.0)
    """
    asked = LinearQueries.of(workload, categories, p=p, missing=missing, tol=tol)
    relation = Neighbors.parse(neighbors)
    if n is not None and relation is Neighbors.ADD_REMOVE:
        raise InvalidInput(
            "under add/remove the number of records is secret; leave ",
            Parameter("n"),
            " out, or use ",
            SUBSTITUTE,
            ".",
        )
    number = COUNTED if n is None and relation is Neighbors.SUBSTITUTE else n
    terms = Terms.checked(privacy, number, contributions=contributions)
    return Plan.of(linear_answers(asked, terms))


def linear_answers(asked: LinearQueries, terms: Terms) -> LinearAnswers:
    """The strategy and the noise with the least error; the others are its rivals."""
    every = terms.unit is None and all(one.keeps_every_record for one in asked.categories)
    absent = not terms.is_secret and not every
    # The certificate is about complete data, where records are replaced.
    floor = floor_of_queries(asked, terms)
    found = [
        LinearAnswers(
            terms=terms,
            statistic="queries",
            premises=asked.premises(),
            workload=asked.workload,
            p=asked.p,
            categories=asked.categories,
            attributes=asked.attributes,
            recipe=recipe,
            floor=floor,
        )
        for recipe in _recipes(asked, terms, absent)
    ]
    errors = comparable_errors(found)
    best, *others = sorted(range(len(found)), key=errors.__getitem__)
    return found[best].beside(tuple(found[place] for place in others), terms)


def floor_of_queries(asked: LinearQueries, terms: Terms) -> float:
    """Below the value of every strategy, for data in which nothing is missing."""
    return _factorized(asked.workload, asked.p, terms.neighbors, asked.tol).floor


def _recipes(asked: LinearQueries, terms: Terms, absent: bool) -> list[LinearRecipe]:
    """Every law on every strategy; whole numbers on cells, if they or sums of them are asked."""
    candidates = _candidates(asked, terms, absent)
    protection = terms.protection
    found = [
        LinearRecipe.of(factorization, law, protection, absent=absent, method=method)
        for law, factorization in candidates
        for method in methods(factorization, law)
    ]
    pure = [factorization for law, factorization in candidates if law.kind is NoiseKind.PURE]
    cells = [
        LinearRecipe.on_cells(factorization, protection, absent=absent)
        for factorization in pure
        if is_on_cells(factorization)
    ]
    replaced = terms.neighbors is Neighbors.SUBSTITUTE and not absent
    if pure and replaced and _are_cells(asked.workload):
        # Where balanced noise is not for them, counts may each have noise of their own.
        free = _factorized(asked.workload, asked.p, Neighbors.ADD_REMOVE, asked.tol)
        cells.append(LinearRecipe.on_cells(_on_every_cell(free), protection, absent=True))
    return [*found, *(one for one in cells if one is not None and one.has_exact_intervals)]


def _candidates(
    asked: LinearQueries, terms: Terms, absent: bool
) -> list[tuple[IndependentFamily, Factorization]]:
    """The laws and strategies that compete: one for normal noise, three for pure noise.

    Whatever the number of cells, pure noise may win: one person moves few of them. Where replaced
    records may be `absent`, strategies for adding and removing them serve, and one of their own.
    """
    workload, p, tol = asked.workload, asked.p, asked.tol
    best = _factorized(workload, p, Neighbors.ADD_REMOVE if absent else terms.neighbors, tol)
    kinds = kinds_of_noise(terms.privacy, 1)
    found = []
    for kind in kinds:
        law = independent_law(kind)
        if kind is NoiseKind.NORMAL or not needs_normal_noise(best):
            found.append((law, best))
        small = workload.shape[1] <= LARGEST_IDENTITY
        if kind is NoiseKind.PURE and small and not isinstance(best.strategy, Identity):
            sums = None if isinstance(best, MarginalFactorization) else _with_sums(best)
            found += [(law, one) for one in (_on_every_cell(best), sums) if one is not None]
    if not absent or NoiseKind.NORMAL not in kinds:
        return found
    own = _factorized_with_absent(workload, p, tol)
    return found if own is None else [*found, (independent_law(NoiseKind.NORMAL), own)]


@lru_cache(maxsize=16)
def _factorized(workload: Workload, p: float, neighbors: Neighbors, tol: float) -> Factorization:
    """Solved once for all promises."""
    return factorize(workload, p=p, neighbors=neighbors, tol=tol)


@lru_cache(maxsize=16)
def _factorized_with_absent(workload: Workload, p: float, tol: float) -> Factorization | None:
    """Solved once for all promises."""
    return factorize_with_absent(workload, p, tol)


@lru_cache(maxsize=16)
def _with_sums(best: Factorization) -> Factorization | None:
    """Solved once for all promises, since factorisations are."""
    return with_sums(best)


def _are_cells(workload: Workload) -> bool:
    """Whether the answers are the cells themselves, as a single table of all attributes is."""
    axes = tuple(range(len(workload.cells)))
    table = isinstance(workload, Marginals) and workload.sets == (axes,)
    return table or isinstance(workload, Identity)


def _on_every_cell(best: Factorization) -> Factorization:
    """The workload answered from noisy counts of the cells, at unit sensitivity.

    If their total is public, what the noise adds to it is taken off all cells alike.
    """
    workload, p = best.workload, best.p
    cells: Workload = Identity(workload.cells)
    decoder: LinearMap = cells if _are_cells(workload) else workload
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
        decoder=decoder if reach == 1 else times(reach, decoder),
        deviations=lambda: deviations,
        value=float(p_norm(deviations, p)),
        floor=best.floor,
        method="every cell",
        common=None if average is None else lambda: average,
    )
