"""Noisy moments made of numbers and drawn noise, without a mechanism; and exact statistics.

Columns have bounds 0 to 10 (x), −1 to 3 (y) and 1 to 3 (w), so that centres and half-widths differ.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from muhat.release.moments import NoisyMoments, NoisyTable
from muhat.release.statistic_answer import StatisticAnswer

CENTERS = {"x": 5.0, "y": 1.0, "w": 2.0}
HALVES = {"x": 5.0, "y": 2.0, "w": 1.0}


def terms_of(columns):
    """Every term of these columns, in a fixed order."""
    pairs = [tuple(sorted(pair)) for pair in combinations(columns, 2)]
    return [(), *((c,) for c in columns), *((c, c) for c in columns), *pairs]


def exact_tables(units, columns):
    """The sums of every group; `units` are arrays of u by column, of shape (groups, n)."""
    some = next(iter(units.values()))
    tables = {}
    for term in terms_of(columns):
        if term == ():
            tables[term] = np.full(len(some), float(some.shape[1]))
        elif len(term) == 1:
            tables[term] = units[term[0]].sum(axis=1)
        elif term[0] == term[1]:
            tables[term] = (1 - units[term[0]] ** 2).sum(axis=1)
        else:
            tables[term] = (units[term[0]] * units[term[1]]).sum(axis=1)
    return tables


def drawn(rng, law, scale, shape):
    """Noise of a law; "laplaces" is a combination of five Laplace variables of that length."""
    if law == "none":
        return np.zeros(shape)
    if law == "laplaces":
        return rng.laplace(0, scale / np.sqrt(5), (5, *shape)).sum(axis=0)
    return getattr(rng, law)(0, scale, shape)


def noisy(tables, columns, rng, law="none", scale=0.0, count_scale=None):
    """The moments with noise on every table.

    Of the law "ends" it is Laplace noise, and the count is read off the sums of the first column.
    """
    if law == "ends":
        return with_ends(tables, columns, rng, scale)
    named = "laplace" if law == "laplaces" else law
    found = {}
    for term in terms_of(columns):
        own = scale if term or count_scale is None else count_scale
        values = tables[term] + (drawn(rng, law, own, tables[term].shape) if own else 0.0)
        found[term] = NoisyTable(values, own, named if own else "none")
    return NoisyMoments.of(found, {c: CENTERS[c] for c in columns}, {c: HALVES[c] for c in columns})


def with_ends(tables, columns, rng, scale):
    """The number of records, Σu and Σ(1 − u²) of a column are read off three noisy tables."""

    def table(values, times=1.0):
        return NoisyTable(values + rng.laplace(0, times * scale, values.shape), times * scale, law)

    law = "laplace"
    found = {
        term: table(tables[term], 2.0 if len(set(term)) < len(term) else 1.0)
        for term in terms_of(columns)
    }
    if columns:
        first = columns[0]
        number, total, lack = (tables[term] for term in ((), (first,), (first, first)))
        low, high = (table((number + side * total) / 2 - lack / 4) for side in (-1, 1))
        middle = table(lack / 2)
        found[()] = {low: 1.0, middle: 1.0, high: 1.0}
        found[first,] = {low: -1.0, high: 1.0}
        found[first, first] = {middle: 2.0}
    own = {c: CENTERS[c] for c in columns}, {c: HALVES[c] for c in columns}
    return NoisyMoments.of(found, *own)


def answer(kind, columns, moments, **more):
    """The answer of a statistic of these moments."""
    fields = {
        "by": ("region",),
        "labels": (tuple(f"g{place}" for place in range(moments.groups)),),
        "mechanism": "drawn",
        "n": None,
        "contributions": 1,
        "assumptions": (),
    }
    name = f"{kind} {', '.join(columns)}".strip()
    return StatisticAnswer(kind=kind, name=name, columns=columns, moments=moments, **fields | more)


def statistic(kind, columns, units):
    """The exact statistic of every group, in the columns' own units, of shape (groups, numbers)."""
    own = [CENTERS[c] + HALVES[c] * units[c] for c in columns]
    some = next(iter(units.values()))
    if kind == "count":
        return np.full((len(some), 1), float(some.shape[1]))
    first = own[0]
    if kind in ("covariance", "correlation", "regression"):
        return np.array([_together(kind, [one[g] for one in own]) for g in range(len(first))])
    if kind == "weighted mean":
        return ((first * own[1]).sum(axis=1) / own[1].sum(axis=1))[:, None]
    reduce = {
        "sum": lambda x: x.sum(axis=1),
        "mean": lambda x: x.mean(axis=1),
        "variance": lambda x: x.var(axis=1, ddof=1),
        "standard deviation": lambda x: x.std(axis=1, ddof=1),
    }
    return reduce[kind](first)[:, None]


def _together(kind, own):
    if kind == "regression":
        matrix = np.column_stack([np.ones(len(own[0])), *own[1:]])
        return np.linalg.lstsq(matrix, own[0], rcond=None)[0]
    table = np.cov(own)
    if kind == "correlation":
        spread = np.sqrt(np.maximum(np.diag(table), 1e-300))
        table = table / np.outer(spread, spread)
    return np.array([table[i, j] for i, j in combinations(range(len(own)), 2)])
