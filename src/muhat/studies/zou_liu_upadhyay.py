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
from muhat.studies.study import Progress, Row, Settings, Study, tracked
from muhat.studies.zou_liu_upadhyay_shown import (
    FLOOR,
    OPTIMUM,
    PAPER_TREE,
    ROOT,
    SCHATTEN,
    TREE,
    panels,
    verdict,
)
from muhat.workloads import Workload, parity, prefix
from muhat.workloads.factorize import factorize
from muhat.workloads.toeplitz import square_root


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
        row["lower_additive"] = next(b.value for b in bounds if b.theorem == "B5")
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
