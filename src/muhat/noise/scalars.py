"""Independent normal and Laplace noise, rounded to multiples of 2^−54, exactly distributed."""

from __future__ import annotations

from muhat import _check
from muhat.noise.density import LAPLACE, NORMAL, Density
from muhat.noise.entropy import Words, system_words
from muhat.noise.integers import Integers, as_integers, fits
from muhat.noise.strips import draw


def rounded_normal(size: int) -> Integers:
    """round(2^54·N) for independent standard normal N, of shape (size,), exactly distributed.

    Added to an integer answer q it gives round(q + 2^54·N): post-processing of the Gaussian
    mechanism, hence exactly as private.

    >>> from muhat.noise import rounded_normal
    >>> rounded_normal(3).shape
    (3,)
    """
    return rounded(NORMAL, _check.count("size", size, least=0), system_words)


def rounded_laplace(size: int) -> Integers:
    """round(2^54·L) for independent L with density ½exp(−|x|), of shape (size,), exactly.

    >>> from muhat.noise import rounded_laplace
    >>> rounded_laplace(2).dtype
    dtype('int64')
    """
    return rounded(LAPLACE, _check.count("size", size, least=0), system_words)


def rounded(density: Density, size: int, words: Words) -> Integers:
    """round(2^54·t) for independent samples t of a density."""
    sample = draw(density, size, words)
    # round(y) = floor(y + ½), ties having probability zero; the floor of 2y decides it.
    values = sample.floors
    values += 1
    values >>= 1
    if all(fits(settled.floor) for settled in sample.settled.values()):
        return values
    exact = values.tolist()
    for index, settled in sample.settled.items():
        exact[index] = (settled.floor + 1) >> 1
    return as_integers(exact)
