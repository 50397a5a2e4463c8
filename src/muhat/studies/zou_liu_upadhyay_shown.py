"""What the study of Zou, Liu and Upadhyay shows of its rows: six panels and the verdict."""

from __future__ import annotations

import math

from muhat.studies.drawing import Line, lines
from muhat.studies.study import Panel, Rows, Verdict, where

PAPER_TREE = "tree, as in the paper"
TREE, ROOT, OPTIMUM = "tree, least squares", "square root", "optimum"
SCHATTEN, FLOOR = "bound by singular values", "bound, proved"
"""Columns of γ: three mechanisms, the best factorisation, and two lower bounds."""


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
