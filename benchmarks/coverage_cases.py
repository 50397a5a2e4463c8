"""What is released, and which interval is held against which truth: one function a statistic.

Each takes a shape and n and gives a trial: new records in, what was printed and whether it holds
out, as (label, held) pairs. The truth is that of the label and of nothing kinder: of the records
as they are, unless the label says that they are clipped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import special

import muhat as mh
from benchmarks.coverage_shapes import Floats, Shape

Held = tuple[str, bool]
Trial = Callable[[Floats], Iterator[Held]]
Case = Callable[[Shape, int], Trial]

RHO = mh.ZCDP(rho=0.5)
PURE = mh.PureDP(epsilon=1.0)
GROUPS = ("a", "b", "c", "d")
CELLS = 8


def inside(interval: tuple[Any, Any], truth: Any) -> Floats:
    """Whether each truth lies between the ends, of the shape of both."""
    lower, upper = interval
    return np.asarray((np.asarray(lower) <= truth) & (truth <= np.asarray(upper)))


def student(shape: Shape, n: int) -> Trial:
    """The ordinary t-interval of the clipped records: not private, for comparison."""
    reach = float(special.stdtrit(n - 1, 0.975)) / math.sqrt(n)

    def trial(records: Floats) -> Iterator[Held]:
        clipped = np.clip(records, shape.lower, shape.upper)
        half = reach * clipped.std(ddof=1)
        yield "clipped population", abs(clipped.mean() - shape.clipped_mean) <= half

    return trial


def bounded(privacy: mh.privacy.Privacy, *, secret: bool = False, absent: float = 0.0) -> Case:
    """A mean within bounds; a part of the values may be absent, at random."""

    def case(shape: Shape, n: int) -> Trial:
        plan = mh.plan_mean(
            domain={"x": (shape.lower, shape.upper)}, n=None if secret else n, privacy=privacy
        )
        missing = np.random.default_rng(n)

        def trial(records: Floats) -> Iterator[Held]:
            values = np.where(missing.uniform(size=n) < absent, np.nan, records)
            release = plan.release({"x": values})
            mean = np.clip(values[~np.isnan(values)], shape.lower, shape.upper).mean()
            yield "clipped records", bool(inside(release.interval(), mean)[0])
            drawn = release.interval(target="population")
            yield "clipped population", bool(inside(drawn, shape.clipped_mean)[0])
            drawn = release.interval(target="population", guaranteed=True)
            yield "clipped population, guaranteed", bool(inside(drawn, shape.clipped_mean)[0])

        return trial

    return case


def in_a_ball(*, secret: bool = False) -> Case:
    """A mean within a ball: the values, and a second column that stays in the middle."""

    def case(shape: Shape, n: int) -> Trial:
        middle, half = (shape.lower + shape.upper) / 2, (shape.upper - shape.lower) / 2
        ball = mh.Ball(radius=half, dim=2, center=[middle, middle])
        plan = mh.plan_mean(domain=ball, n=None if secret else n, privacy=RHO)

        def trial(records: Floats) -> Iterator[Held]:
            release = plan.release(np.column_stack([records, np.full(n, middle)]))
            mean = np.clip(records, shape.lower, shape.upper).mean()
            yield "clipped records", bool(inside(release.interval(), mean)[0])
            drawn = release.interval(target="population")
            yield "clipped population", bool(inside(drawn, shape.clipped_mean)[0])

        return trial

    return case


def two_columns(shape: Shape, n: int) -> Trial:
    """Two means within bounds, with pure noise; a fifth of the values is absent, at random."""
    bounds = (shape.lower, shape.upper)
    plan = mh.plan_mean(domain={"x": bounds, "y": bounds}, n=n, privacy=PURE, population=True)
    missing = np.random.default_rng(n)

    def trial(records: Floats) -> Iterator[Held]:
        values = [
            np.where(missing.uniform(size=n) < 0.2, np.nan, column)
            for column in (records, records[::-1])
        ]
        release = plan.release(dict(zip("xy", values, strict=True)))
        means = [np.clip(v[~np.isnan(v)], *bounds).mean() for v in values]
        for held in inside(release.interval(), means):
            yield "clipped records", bool(held)
        drawn = release.interval(target="population")
        for held in inside(drawn, np.full(2, shape.clipped_mean)):
            yield "clipped population", bool(held)

    return trial


def unbounded(shape: Shape, n: int) -> Trial:
    """A mean within a generous magnitude; the label depends on how many records lie outside."""
    plan = mh.plan_mean(domain=mh.Reals(dim=1, magnitude=1e6), n=n, privacy=RHO, insist=True)

    def trial(records: Floats) -> Iterator[Held]:
        release = plan.release(records)
        if release.failed:
            return
        ball = release.domain
        clipped = np.clip(records, *(float(end[0]) for end in ball.bounding_box))
        yield "clipped records", bool(inside(release.interval(), clipped.mean())[0])
        number = int((clipped != records).sum())
        yield "outside", release.outside.lower <= number <= release.outside.upper

    return trial


def low_bias(shape: Shape, n: int) -> Trial:
    """A population's mean, of which a standard deviation is assumed and known to be right."""
    plan = mh.plan_mean(
        domain=mh.Reals(dim=1, magnitude=1e6),
        n=n,
        privacy=PURE,
        max_bias=shape.deviation / 10,
        moment=(2, shape.deviation),
    )

    def trial(records: Floats) -> Iterator[Held]:
        release = plan.release(records)
        if not release.failed:
            drawn = release.interval(target="population")
            yield "population", bool(inside(drawn, shape.mean)[0])

    return trial


def quantiles(shape: Shape, n: int) -> Trial:
    """Three quantiles of the records, asked for together."""
    fractions = (0.25, 0.5, 0.75)
    population = shape.clipped_quantiles(fractions)[:, None]

    def trial(records: Floats) -> Iterator[Held]:
        release = mh.quantile(
            {"x": records},
            q=list(fractions),
            lower=shape.lower,
            upper=shape.upper,
            privacy=RHO,
            n=n,
        )
        ordered = np.sort(np.clip(records, shape.lower, shape.upper))
        exact = ordered[[int(np.ceil(q * n)) - 1 for q in fractions]]
        for held in inside(release.interval(), exact[:, None]):
            yield "records", bool(held[0])
        for held in inside(release.interval(target="population"), population):
            yield "clipped population", bool(held[0])

    return trial


def table(privacy: mh.privacy.Privacy) -> Case:
    """Counts of equal cells between the bounds."""

    def case(shape: Shape, n: int) -> Trial:
        plan = mh.plan_queries(
            mh.workloads.identity(CELLS), privacy=privacy, neighbors="add-remove"
        )
        edges = np.linspace(shape.lower, shape.upper, CELLS + 1)

        def trial(records: Floats) -> Iterator[Held]:
            counts, _ = np.histogram(np.clip(records, shape.lower, shape.upper), edges)
            held = inside(plan.release(counts).interval(), counts)
            yield from (("records", bool(each)) for each in held)

        return trial

    return case


def group_means(shape: Shape, n: int) -> Trial:
    """Means of four groups of unequal sizes."""
    sizes = np.array([0.4, 0.3, 0.2, 0.1])
    which = np.repeat(np.arange(len(GROUPS)), np.round(sizes * n).astype(int))

    def trial(records: Floats) -> Iterator[Held]:
        release = mh.mean(
            {"x": records, "g": np.array(GROUPS)[which]},
            domain={"x": (shape.lower, shape.upper)},
            by="g",
            groups=list(GROUPS),
            privacy=RHO,
            n=None,
        )
        clipped = np.clip(records, shape.lower, shape.upper)
        for index, group in enumerate(GROUPS):
            own = release[group]
            if np.isnan(own.value).any():
                continue
            exact = clipped[which == index].mean()
            yield "clipped records", bool(inside(own.interval(), exact)[0])
            drawn = own.interval(target="population")
            yield "clipped population", bool(inside(drawn, shape.clipped_mean)[0])

    return trial


CASES: dict[str, Case] = {
    "Not private: the t-interval": student,
    "Mean within bounds, n public, 0.5-zCDP": bounded(RHO),
    "Mean within bounds, n public, a fifth missing, 0.5-zCDP": bounded(RHO, absent=0.2),
    "Mean within bounds, n public, 1-DP": bounded(PURE),
    "Mean within bounds, n public, a fifth missing, 1-DP": bounded(PURE, absent=0.2),
    "Mean within bounds, n secret, 1-DP": bounded(PURE, secret=True),
    "Mean within bounds, n secret, 0.5-zCDP": bounded(RHO, secret=True),
    "Two means within bounds, n public, a fifth missing, 1-DP, squares asked for": two_columns,
    "Mean within a ball, n public, 0.5-zCDP": in_a_ball(),
    "Mean within a ball, n secret, 0.5-zCDP": in_a_ball(secret=True),
    "Means of four groups, n secret, 0.5-zCDP": group_means,
    "Mean within a magnitude of a million, 0.5-zCDP": unbounded,
    "Mean of low bias, a standard deviation assumed, 1-DP": low_bias,
    "Three quantiles together, 0.5-zCDP": quantiles,
    "Counts of eight cells, 0.5-zCDP": table(RHO),
    "Counts of eight cells, 1-DP": table(PURE),
}
