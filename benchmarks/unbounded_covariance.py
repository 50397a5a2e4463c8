"""COINPRESS that learns the covariance first, beside one that does not, and muhat."""

from __future__ import annotations

import math
import zlib

import numpy as np

import muhat as mh
from benchmarks.unbounded_cells import Cell
from benchmarks.unbounded_lines import ROUNDS, rms
from muhat.studies.coinpress import coinpress_mean, coinpress_whitened_mean
from muhat.studies.samples import SHAPES, covariance_root

COVARIANCE_ROUNDS = (1, 2, 3, 4, 5)
LARGEST = 100.0
"""The public bound on every coordinate of the mean and on every deviation."""

HEADER = (
    f"  {'data':<10}{'d':>6}{'runs':>6}{'muhat':>10}{'(Mah.)':>10}{'MVMRec':>10}{'(Mah.)':>10}"
    f"{'MVCRec-':>10}{'(Mah.)':>10}"
)
ABOUT = """\
N(0, Σ(κ)) as in Figures 3 to 5 of Huang, Liang and Yi: n = 4000, ρ = ½, and 100 in the place of the
magnitude and of the largest deviation. RMS ℓ₂ and Mahalanobis errors (against the empirical mean)
of muhat, of MVMRec, which believes in variances of at most 1, and of MVCRec-MVMRec, which spends
half of ρ on the covariance; both with the best number of rounds in hindsight."""


def learnt_covariance(cell: Cell, trials: int) -> str:
    """The papers' comparison: COINPRESS that knows no scale but learns the covariance first.

    A line with root mean square ℓ₂ and Mahalanobis errors of the three.
    """
    radius = LARGEST * math.sqrt(cell.dim)
    domain, promise = mh.Reals(cell.dim, LARGEST), mh.ZCDP(rho=cell.rho)
    plan = mh.plan_mean(domain=domain, n=cell.n, privacy=promise)
    shape = SHAPES[cell.name]
    straight = np.linalg.inv(covariance_root(shape.scale(cell.dim) ** 2, cell.dim))
    found: dict[str, list[tuple[float, float]]] = {}
    for trial in range(trials):
        generator = np.random.default_rng([zlib.crc32(cell.label.encode()), trial])
        rows = shape.draw(generator, cell.n, cell.dim)
        means = {"muhat": plan.release(rows).value}
        for t in ROUNDS:
            means[f"blind {t}"] = coinpress_mean(
                rows, cell.rho, radius=radius, rounds=t, generator=generator
            )
        for t in COVARIANCE_ROUNDS:
            means[f"learnt {t}"] = coinpress_whitened_mean(
                rows,
                cell.rho,
                radius=radius,
                largest=LARGEST,
                covariance_rounds=t,
                generator=generator,
            )
        for name, mean in means.items():
            miss = mean - rows.mean(axis=0)
            pair = float(np.linalg.norm(miss)), float(np.linalg.norm(miss @ straight))
            found.setdefault(name, []).append(pair)
    text = f"  {cell.name:<10}{cell.dim:>6}{trials:>6}"
    for kind in ("muhat", "blind", "learnt"):
        errors = [np.array(pairs) for name, pairs in found.items() if name.startswith(kind)]
        text += "".join(f"{min(rms(pairs[:, i]) for pairs in errors):>10.3g}" for i in (0, 1))
    return text
