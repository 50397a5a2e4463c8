"""From a record to the whole numbers whose sums are wanted.

    domain   a point of a domain, in the coordinates in which noise has the same size everywhere,
             on a coarse grid: rounded up or down at random, so that sums of many have no bias
    shell    what of such a point lies beyond a radius
    tree     cells of a line: for every level of a tree, a one in the block that holds the cell
    cuts     between which cuts a number lies

An encoding is public. What it proves is how far its numbers move if the record is replaced;
everything that happens before is exact arithmetic of integers. docs/proofs/shuffle-sums.md.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from muhat import _check
from muhat._arrays import Bytes, Floats, Integers
from muhat._plain import Plain
from muhat.errors import InvalidInput
from muhat.noise.entropy import Words, system_words
from muhat.noise.spread import Spread

FINEST = 44
"""A record moves its numbers by at most so many binary digits: finer than any noise."""


@dataclass(frozen=True)
class Sensitivity:
    """How far one person's r whole numbers move if the record is replaced: upper bounds."""

    numbers: int
    l1: Fraction
    l2: Fraction

    def __post_init__(self) -> None:
        _check.count("numbers", self.numbers)
        if not (self.l1 > 0 and self.l2 > 0):
            raise InvalidInput("the sensitivity must be above 0: what never moves needs no noise.")


class Encoding(Plain, ABC, tag="kind"):
    """A frozen dataclass that validates itself."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def record_dim(self) -> int:
        """The number of coordinates of a record."""

    @property
    @abstractmethod
    def sensitivity(self) -> Sensitivity:
        """How many numbers there are, and how far they move if a record is replaced."""

    @property
    @abstractmethod
    def low(self) -> int:
        """The least that a number can be."""

    @property
    @abstractmethod
    def high(self) -> int:
        """The largest that a number can be."""

    @property
    @abstractmethod
    def unit(self) -> Fraction:
        """What a step is worth; the same whatever the resolution."""

    @property
    def rounding(self) -> float:
        """A bound on the variance that rounding adds to a person's number, in steps²."""
        return 0.0

    @abstractmethod
    def at(self, bits: int) -> Self:
        """The same at another resolution: one record moves the numbers about 2^bits steps."""

    @abstractmethod
    def integers(self, records: Floats, words: Words = system_words) -> Integers:
        """The numbers of these records, of shape (people, numbers)."""

    def mean(self, totals: Sequence[int], people: int) -> Floats:
        """The mean of the records, from the sums of their numbers, if they have one."""
        raise InvalidInput(NO_MEAN)

    def spread(self, variance: float, people: int) -> Spread:
        """The noise of that mean, if each sum has this variance, in steps²."""
        raise InvalidInput(NO_MEAN)


NO_MEAN = "these numbers are counts, which have no mean."


NONCE_BYTES = 16


def fresh_nonces(rows: int) -> Bytes:
    """Nonces for new messages, of shape (rows, 16)."""
    return np.frombuffer(os.urandom(rows * NONCE_BYTES), np.uint8).reshape(rows, NONCE_BYTES)
