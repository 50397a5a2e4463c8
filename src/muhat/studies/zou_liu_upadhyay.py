"""γ_(p) of running sums and parities: tree, square root, optimum, and what nobody can beat.

Zou, Liu and Upadhyay measure (E‖error‖_p^p)^{1/p}. At unit noise a factorisation A = L·R errs by
m_p·‖row lengths of L‖_p·(longest column of R), and γ_(p)(A) is the least product of the last two.
"""

from __future__ import annotations

import math

import numpy as np

from muhat.bounds import linear_queries, minimum_width
from muhat.bounds.schatten import schatten_floor
from muhat.domains.norms import p_norm
from muhat.privacy import ApproxDP
from muhat.privacy.gaussian_curve import gaussian_mu
from muhat.studies.drawing import Line, lines
from muhat.studies.study import Panel, Progress, Row, Rows, Settings, Study, Verdict, tracked, where
from muhat.workloads import Workload, parity, prefix
from muhat.workloads.factorize import factorize
from muhat.workloads.toeplitz import square_root

PAPER_TREE = "tree, as in the paper"
TREE, ROOT, OPTIMUM = "tree, least squares", "square root", "optimum"
SCHATTEN, FLOOR = "bound by singular values", "bound, proved"
"""Columns of γ: three mechanisms, the best factorisation, and two lower bounds."""


def measure(settings: Settings, progress: Progress) -> list[Row]:
    """Rows of four kinds: "prefix", "parity", "width" (Lemma 2.14), "moment" (Theorem D.1)."""
    cells = [("prefix", n, p) for n in settings["lengths"] for p in settings["ps"]]
    cells += [("parity", dim, p) for dim in settings["parity_dims"] for p in settings["ps"]]
    rows: list[Row] = []
    for kind, size, p in tracked(cells, progress):
        workload = prefix(size) if kind == "prefix" else parity(size, settings["parity_width"])
        rows.append({"kind": kind, "size": size, "p": p, **_norms(workload, p, settings)})
    rows += [_width(n) for n in settings["lengths"]]
    rows += [_moment(p) for p in settings["moment_ps"]]
    return rows


def _norms(workload: Workload, p: float, settings: Settings) -> Row:
    """γ of every mechanism, the bounds on it, and errors under (ε, δ)."""
    found = factorize(workload, p)
    queries, cells = workload.shape
    row: Row = {
        "queries": queries,
        "cells": cells,
        OPTIMUM: found.value,
        FLOOR: found.floor,
        SCHATTEN: schatten_floor(workload, p),
    }
    if workload.kind == "prefix":
        row |= {PAPER_TREE: paper_tree(cells, p), TREE: tree(cells, p), ROOT: root(cells, p)}
        row["formula"] = queries ** (1 / p) * math.log(queries)
    else:
        row["formula"] = queries ** (0.5 + 1 / p)
    if math.isfinite(p):
        privacy = ApproxDP(epsilon=settings["epsilon"], delta=settings["delta"])
        row["privacy"] = privacy.describe()
        scale = 1 / gaussian_mu(privacy.epsilon, privacy.delta)
        row["error"] = found.expected_error(scale)
        bounds = linear_queries(workload, privacy, p, floor=found.floor)
        row["lower_additive"] = next(b.value for b in bounds if b.is_of_noise)
        row["lower_paper"] = next(b.value for b in bounds if b.source == "paper")
    return row


def paper_tree(n: int, p: float) -> float:
    """The binary tree as it is usually told: each sum adds up its dyadic nodes.

    >>> round(paper_tree(4, math.inf) ** 2, 12)  # 3 levels, times 2 nodes of the third sum
    6.0
    """
    nodes = np.array([number.bit_count() for number in range(1, n + 1)], dtype=np.float64)
    levels = (n - 1).bit_length() + 1
    return math.sqrt(levels) * float(p_norm(np.sqrt(nodes), p))


def tree(n: int, p: float) -> float:
    """The same nodes, each sum estimated from all of them by least squares; n a power of 2."""
    levels = [np.kron(np.eye(n >> k), np.ones((1, 1 << k))) for k in range(n.bit_length())]
    strategy = np.concatenate(levels)
    inverse = np.linalg.inv(strategy.T @ strategy)
    A = np.tril(np.ones((n, n)))
    deviations = np.sqrt(np.einsum("ij,jk,ik->i", A, inverse, A, optimize=True))
    return math.sqrt(len(levels)) * float(p_norm(deviations, p))


def root(n: int, p: float) -> float:
    """L = R = A^{½}, the Toeplitz matrix of (1 − x)^{−½}."""
    lengths = np.sqrt(np.cumsum(square_root(n) ** 2))
    return float(lengths[-1] * p_norm(lengths, p))


def _width(n: int) -> Row:
    """κ of running sums; and the width in the direction that proves it small."""
    direction = np.array([(-1.0) ** i * (2 if i < n - 1 else 1) for i in range(n)])
    suffix = np.cumsum(direction[::-1])
    seen = 2 * float(np.abs(suffix).max()) / float(np.linalg.norm(direction))
    found = minimum_width(prefix(n))
    return {
        "kind": "width",
        "size": n,
        "paper": 2.0,
        "counterexample": seen,
        "kappa_low": found.lower,
        "kappa_high": found.upper,
    }


def _moment(p: float) -> Row:
    """One query (m = 1) and N(0, 1): (E|z|^p)^{1/p} against √min{p, ln 2m}."""
    exact = math.sqrt(2) * math.exp((math.lgamma((p + 1) / 2) - math.lgamma(0.5)) / p)
    return {
        "kind": "moment",
        "p": p,
        "paper": math.sqrt(min(p, math.log(2))),
        "counterexample": exact,
        "growth": math.sqrt(p / math.e),
    }


def panels(rows: Rows) -> list[Panel]:
    """Over n, over p, errors, parities, and the two statements that are false."""
    sums = where(rows, kind="prefix", p=2)
    sizes = [row["size"] for row in sums]
    last = where(rows, kind="prefix", size=max(sizes))
    names = (PAPER_TREE, TREE, ROOT, OPTIMUM, SCHATTEN)
    over_n = [
        Line(name, sizes, [row[name] / row["formula"] for row in sums], look)
        for look, name in enumerate(names)
    ]
    over_n.append(Line("limit of the optimum, 1/π", sizes, [1 / math.pi] * len(sizes), None, "--"))
    over_p = [
        Line(name, range(len(last)), [row[name] / row[FLOOR] for row in last], look)
        for look, name in enumerate(names)
    ]
    length = "number of running sums n"
    return [
        lines("Theorem 1.5: running sums over n, p = 2", over_n, x=length, y="γ ÷ (√n · ln n)"),
        lines(
            "Running sums over p",
            over_p,
            x="p",
            y=f"γ ÷ proved least, n = {max(sizes)}",
            scale="plot",
            categories=[_order(row["p"]) for row in last],
        ),
        lines(
            f"Errors of running sums under {sums[0]['privacy']}",
            _errors(rows),
            x=length,
            y=r"$(\mathrm{E}\,\|\mathrm{error}\|_p^p)^{1/p}$, records",
        ),
        lines(
            "Theorem 1.6: parities (the lines coincide)",
            _parities(rows),
            x="number of bits d",
            y=r"γ ÷ $m^{1/2+1/p}$, m parities",
            scale="plot",
            columns=4,
        ),
        lines("Lemma 2.14 is false", _widths(rows), x=length, y="least width of the body"),
        lines(
            "Theorem D.1 is false for large p",
            _moments(rows),
            x="p",
            y="error of one query, unit noise",
        ),
    ]


def _order(p: float) -> str:
    return "∞" if math.isinf(p) else f"{p:g}"


def _errors(rows: Rows) -> list[Line]:
    found = []
    for look, p in enumerate((2.0, 4.0)):
        chosen = where(rows, kind="prefix", p=p)
        for column, dash, label in (
            ("error", "-", "Gaussian"),
            ("lower_additive", "--", "additive noise, bound"),
            ("lower_paper", ":", "the same, paper's"),
        ):
            heights = [row[column] for row in chosen]
            sizes = [row["size"] for row in chosen]
            found.append(Line(f"{label}, p = {p:g}", sizes, heights, look, dash, dash != "-"))
    return found


def _parities(rows: Rows) -> list[Line]:
    found = []
    for look, p in enumerate(sorted({row["p"] for row in where(rows, kind="parity")})):
        chosen = where(rows, kind="parity", p=p)
        heights = [row[OPTIMUM] / row["formula"] for row in chosen]
        found.append(Line(f"p = {_order(p)}", [r["size"] for r in chosen], heights, look))
    return found


def _widths(rows: Rows) -> list[Line]:
    chosen = where(rows, kind="width")
    sizes = [row["size"] for row in chosen]
    return [
        Line("Lemma 2.14: κ = 2", sizes, [row["paper"] for row in chosen], 1),
        Line("width of one direction", sizes, [row["counterexample"] for row in chosen], 0),
        Line("κ = 2/√(4n−3)", sizes, [row["kappa_low"] for row in chosen], None, ":"),
    ]


def _moments(rows: Rows) -> list[Line]:
    chosen = where(rows, kind="moment")
    orders = [row["p"] for row in chosen]
    return [
        Line("Theorem D.1, m = 1", orders, [row["paper"] for row in chosen], 1),
        Line(r"$(\mathrm{E}\,|z|^p)^{1/p}$", orders, [r["counterexample"] for r in chosen], 0),
        Line("√(p/e)", orders, [row["growth"] for row in chosen], None, ":"),
    ]


def verdict(rows: Rows) -> Verdict:
    """Both rates hold; a lemma and a factor do not."""
    longest = max(row["size"] for row in where(rows, kind="prefix"))
    last = where(rows, kind="prefix", size=longest)
    at_two = where(last, p=2)[0]
    before = where(rows, kind="prefix", size=longest // 2, p=2)[0]
    slope = (at_two[OPTIMUM] / longest**0.5 - before[OPTIMUM] / (longest / 2) ** 0.5) / math.log(2)
    gap = max(row[OPTIMUM] / row[FLOOR] - 1 for row in (*last, *where(rows, kind="parity")))
    exact = max(abs(row[OPTIMUM] / row["formula"] - 1) for row in where(rows, kind="parity"))
    width = where(rows, kind="width", size=longest)[0]
    moment = where(rows, kind="moment")[-1]
    sharpest = min(
        (row for row in where(rows, kind="prefix") if row["lower_paper"]),
        key=lambda row: float(row["lower_additive"]) / float(row["lower_paper"]),
    )
    ours = at_two["error"] / at_two["lower_additive"]
    over = {name: at_two[name] / at_two[OPTIMUM] for name in (PAPER_TREE, TREE, ROOT)}
    smaller = sharpest["lower_additive"] / sharpest["lower_paper"]
    rates = abs(slope * math.pi - 1) < 0.05 and exact < 1e-6
    false = width["counterexample"] < 1 and moment["counterexample"] > 2 * moment["paper"]
    return Verdict(
        "in part" if rates and false else "yes" if rates else "no",
        f"Theorems 1.5 and 1.6 {'' if rates else 'not '}reproduced: γ_(2) of n running sums, "
        f"optimal to {gap:.0e}, grows by {slope:.4f}·√n for every factor e of n (1/π is "
        f"{1 / math.pi:.4f}), and γ_(p) of parities is m^(1/2+1/p) to {exact:.0e}. At n = "
        f"{longest} and p = 2 the paper's tree is {over[PAPER_TREE]:.2f} times the optimum, the "
        f"tree with least squares {over[TREE]:.3f}, the square root {over[ROOT]:.3f}. Gaussian "
        f"noise errs {ours:.2f} times what any additive noise must; the constant of the paper's "
        f"proof is at least {smaller:.0f} times smaller than ours wherever it applies. "
        f"{'Not r' if false else 'R'}eproduced: Lemma 2.14 says that running sums have least width "
        f"2; at n = {longest} one direction has width {width['counterexample']:.4f}; and Theorem "
        f"D.1's factor √min(p, ln 2m) is {moment['paper']:.3f} for one query, where the error at "
        f"p = {moment['p']:g} is {moment['counterexample']:.2f} and grows like √(p/e).",
    )


STUDY = Study(
    name="zou-liu-upadhyay",
    title="Running sums and parities: the matrix mechanism in the ℓ_p metric",
    paper="Zou, Liu and Upadhyay, Optimality of Matrix Mechanism on ℓ_p^p-metric, ICLR 2025",
    claim="The least error of n running sums is of the order n^(1/p)·ln n (Theorem 1.5), of m "
    "parities m^(1/2+1/p) (Theorem 1.6); Gaussian noise attains it up to √min(p, ln 2m) (Theorem "
    "D.1); running sums have least width 2 (Lemma 2.14).",
    noise="none: every error is a formula, γ_(p) has certified upper and lower ends.",
    settings={
        "quick": {
            "lengths": (8, 16, 32, 64, 128, 256),
            "ps": (2.0, 4.0, 16.0, math.inf),
            "parity_dims": (4, 6, 8, 10, 12),
            "parity_width": 2,
            "moment_ps": (2.0, 4.0, 10.0, 20.0, 50.0, 100.0),
            "epsilon": 0.1,
            "delta": 1e-9,
        },
        "full": {
            "lengths": (8, 16, 32, 64, 128, 256, 512, 1024),
            "ps": (2.0, 3.0, 4.0, 8.0, 16.0, math.inf),
            "parity_dims": (4, 6, 8, 10, 12, 14, 16),
            "parity_width": 2,
            "moment_ps": (2.0, 4.0, 10.0, 20.0, 50.0, 100.0, 1000.0),
            "epsilon": 0.1,
            "delta": 1e-9,
        },
    },
    measure=measure,
    panels=panels,
    verdict=verdict,
)
