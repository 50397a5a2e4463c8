"""Records of many shapes for studies: drawn from a seed, or handwritten digits from a folder.

    rows = SHAPES["lognormal"].draw(np.random.default_rng(0), 4000, 128)

Shapes know their scale, the root of the largest eigenvalue of their covariance: an oracle for
baselines that must be told it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat.errors import InvalidInput

FAR, FAR_PART = 10.0, 20
"""Every coordinate of one record in so many is so much larger than those of the others."""

IMAGES = ("train-images-idx3-ubyte", "t10k-images-idx3-ubyte")
LABELS = ("train-labels-idx1-ubyte", "t10k-labels-idx1-ubyte")
"""The files of handwritten digits, as they were first published (not compressed)."""


@dataclass(frozen=True)
class SampleShape:
    """A distribution of records, in any dimension.

    `draw(generator, n, dim)` gives rows of shape (n, dim). `scale(dim)` is the root of the largest
    eigenvalue of their covariance, 1 for records that are all equal.
    """

    draw: Callable[[Generator, int, int], Floats]
    scale: Callable[[int], float]


def normal(mean: float = 0.0) -> SampleShape:
    """N(μ·1, I)."""
    return SampleShape(lambda g, n, dim: g.standard_normal((n, dim)) + mean, lambda dim: 1.0)


def rotated_normal(kappa: float) -> SampleShape:
    """N(0, Σ(κ)): variances uniform in [1, κ] along the axes of a random rotation.

    The matrix depends on κ and d alone, so that trials differ in the records only.
    """

    def draw(generator: Generator, n: int, dim: int) -> Floats:
        return np.asarray(generator.standard_normal((n, dim)) @ covariance_root(kappa, dim))

    return SampleShape(draw, lambda dim: math.sqrt(kappa))


def covariance_root(kappa: float, dim: int) -> Floats:
    """A matrix B, of shape (d, d), with BᵀB = Σ(κ)."""
    fixed = default_rng([int(kappa), dim])
    variances = fixed.uniform(1.0, kappa, dim)
    rotation, triangle = np.linalg.qr(fixed.standard_normal((dim, dim)))
    rotation *= np.sign(np.diag(triangle))
    return np.asarray(np.sqrt(variances)[:, None] * rotation.T)


def _lognormal(generator: Generator, n: int, dim: int) -> Floats:
    return np.asarray(np.exp(generator.standard_normal((n, dim))))


def _ray(generator: Generator, n: int, dim: int) -> Floats:
    return np.asarray(generator.exponential(1.0, (n, 1)) * np.full(dim, 1 / math.sqrt(dim)))


def _cluster(generator: Generator, n: int, dim: int) -> Floats:
    rows = generator.standard_normal((n, dim))
    rows[: n // FAR_PART] += FAR
    return rows


def _cluster_scale(dim: int) -> float:
    part = 1 / FAR_PART
    return math.sqrt(1 + part * (1 - part) * FAR**2 * dim)


SHAPES: dict[str, SampleShape] = {
    "normal": normal(),
    "normal + 10": normal(10.0),
    "normal + 1000": normal(1000.0),
    "κ = 10": rotated_normal(10.0),
    "κ = 100": rotated_normal(100.0),
    "κ = 1000": rotated_normal(1000.0),
    "t₃": SampleShape(lambda g, n, dim: g.standard_t(3, (n, dim)), lambda dim: math.sqrt(3)),
    "lognormal": SampleShape(_lognormal, lambda dim: math.sqrt(math.e * (math.e - 1))),
    "exponential ray": SampleShape(_ray, lambda dim: 1.0),
    "5 % far cluster": SampleShape(_cluster, _cluster_scale),
    "integers": SampleShape(
        lambda g, n, dim: g.poisson(3.0, (n, dim)).astype(float), lambda dim: math.sqrt(3)
    ),
    "constant": SampleShape(lambda g, n, dim: np.full((n, dim), 7.5), lambda dim: 1.0),
}
"""By name, in the order of the tables."""


def digits(folder: Path) -> dict[int, Floats]:
    """All images of each of the ten handwritten digits: rows of 784 pixels between 0 and 1."""
    pixels = np.concatenate([_unpacked(folder / name) for name in IMAGES])
    labels = np.concatenate([_unpacked(folder / name) for name in LABELS])
    rows = pixels.reshape(len(pixels), -1) / 255.0
    return {digit: rows[labels == digit] for digit in range(10)}


def fixed(rows: Floats) -> SampleShape:
    """The same rows in every trial."""
    covariance = np.cov(rows, rowvar=False)
    scale = math.sqrt(float(np.linalg.eigvalsh(covariance)[-1]))
    return SampleShape(lambda g, n, dim: rows, lambda dim: scale)


def _unpacked(path: Path) -> NDArray[np.uint8]:
    """The array in an IDX file: two zero bytes, a type, the number of axes, their lengths."""
    raw = path.read_bytes()
    if raw[:3] != b"\0\0\x08" or len(raw) < 4 + 4 * raw[3]:
        raise InvalidInput(f"{path.name} must be an IDX file of bytes, not compressed.")
    shape = np.frombuffer(raw, ">u4", raw[3], 4).tolist()
    if len(raw) != 4 + 4 * raw[3] + math.prod(shape):
        raise InvalidInput(f"{path.name} must be an IDX file of bytes; this one is cut short.")
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape)
