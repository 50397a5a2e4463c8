"""Points of a domain as a few whole numbers each, for sums of many people's.

The exact integers v of a record are those of the central plan for one record, in which normal
noise has the same size in every row and 2^54 steps are as far as two records can lie apart. Sums
of many people have noise of so many of these steps that most of the digits mean nothing: they are
dropped, rounding up or down at random. docs/proofs/shuffle-sums.md.

What records have beyond an inner radius, for means that are shrunk where it is noise.

For y = weights∘(x − center) a record has y·max(0, 1 − inner/‖y‖), clipped to a ball about 0: with
y clipped to the inner radius it adds up to y clipped to the outer one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from muhat import _check
from muhat._arrays import Floats, Integers
from muhat._integers import root_up
from muhat._plain import Key
from muhat.domains import Ball, Domain
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.block_query import BlockQuery, PartQuery
from muhat.mechanisms.sums.integer_query import IntegerQuery
from muhat.noise import FRACTION_BITS
from muhat.noise.entropy import WORD_BITS, Words, system_words
from muhat.noise.spread import Spread
from muhat.planning.sums import NoisySums
from muhat.privacy import GDP, Neighbors
from muhat.protocols.encodings.box_grid import BoxGrid, check_grid
from muhat.protocols.encodings.cut_encoding import Radius
from muhat.protocols.encodings.encoding import FINEST, Encoding, Sensitivity
from muhat.protocols.encodings.record_numbers import (
    AIMS,
    OneRecord,
    exact_numbers,
    largest_number,
    sums_of_one,
)


@dataclass(frozen=True)
class DomainEncoding(OneRecord, Encoding, keys=(*AIMS, "bits", "axes", Key("grid", optional=True))):
    """Points of a domain; `bits` says how fine: one record moves the numbers 2^bits steps.

    `p` and `weights` are those of the error that is made small; `axes` (`traced_axes`) and, of a
    box, `grid` follow from the others.
    """

    domain: Domain
    bits: int = 1
    p: float = 2.0
    weights: tuple[float, ...] | None = None
    axes: tuple[float, ...] | None = None
    grid: BoxGrid | None = None

    kind: ClassVar[str] = "domain"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", _check.count("bits", self.bits, most=FINEST))
        super().__post_init__()
        if self.query.rows == 0:
            raise InvalidInput("the domain is a single point: its mean is known without any data.")
        if self.grid is None:
            object.__setattr__(self, "grid", BoxGrid.of(self.query))

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """What was described, if this machine finds the same grid."""
        made = super().from_dict(fields)
        check_grid(BoxGrid.of(made.query), made.grid if "grid" in fields else None)
        return made

    @cached_property
    def plan(self) -> NoisySums:
        """The plan for one record and normal noise of μ = 1."""
        return sums_of_one(self.domain, GDP(mu=1.0), self.p, self.weights)

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """Two records' numbers, rounded by the same random bits, differ by at most this.

        Each of the r numbers is then less than a step from the difference of the exact ones.
        """
        query, r = self.query, self.query.rows
        l2 = self._steps(query.sensitivity(2, Neighbors.SUBSTITUTE, 1)) + root_up(Fraction(r))
        l1 = root_up(Fraction(r)) * l2
        if isinstance(query, IntegerQuery) and query.lattice and query.lattice.plain_box:
            l1 = min(l1, self._steps(query.sensitivity(1, Neighbors.SUBSTITUTE, 1)) + r)
        return Sensitivity(r, l1, l2)

    @property
    def low(self) -> int:
        return self._range[0]

    @property
    def high(self) -> int:
        return self._range[1]

    @property
    def unit(self) -> Fraction:
        """The largest distance of two records is 1."""
        return Fraction(1, 1 << self.bits)

    @property
    def rounding(self) -> float:
        """A number between two steps has the variance f·(1 − f)."""
        return 0.25

    def at(self, bits: int) -> Self:
        """Of the same plan: see `Encoding`."""
        return replace(self, bits=bits)

    def integers(self, records: Floats, words: Words = system_words) -> Integers:
        """⌊(v + u)/2^D⌋ for the exact numbers v and uniform u in [0, 2^D): see `Encoding`."""
        exact = self._exact_numbers(records)
        u = (words(exact.size) >> np.uint64(WORD_BITS - self._dropped)).astype(np.int64)
        return np.asarray((exact + u.reshape(exact.shape)) >> self._dropped)

    def mean(self, totals: Sequence[int], people: int) -> Floats:
        """The mean of the records, from the sums of their numbers, of shape (d,)."""
        return self.mean_from(totals, people, self._dropped)

    def spread(self, variance: float, people: int) -> Spread:
        return self.alone.shrunk(people / (math.sqrt(variance) * float(self.unit)))

    @property
    def _dropped(self) -> int:
        return FRACTION_BITS - self.bits

    def _steps(self, exact: Fraction) -> Fraction:
        return exact / (1 << self._dropped)

    def _exact_numbers(self, records: Floats) -> Integers:
        """v of every record, of shape (people, r), as the central plan has it."""
        exact = exact_numbers(self.query, records)
        return np.array(exact, np.int64).reshape(len(records), self.query.rows)

    @cached_property
    def _range(self) -> tuple[int, int]:
        """Where all numbers lie, rounding included."""
        farthest = _farthest(self.query)
        if farthest is None:
            farthest = largest_number(self.query)
        most = (farthest >> self._dropped) + 1
        return -most, most


def _farthest(query: PartQuery | BlockQuery) -> int | None:
    """The largest |v| of a record where that is known from the lattice."""
    if not isinstance(query, IntegerQuery) or query.lattice is None:
        return None
    most = query.lattice.largest(query.multipliers)
    return None if most is None else (most >> query.fraction_bits) + 1


ORIGIN = Radius((0.0,))


@dataclass(frozen=True)
class ShellEncoding(DomainEncoding, keys=("domain", "bits", "look", "inner")):
    """Points of a ball about 0, `domain`: what lies beyond `inner` around `look.center`.

    Means are those of the weighted coordinates. The ball's integers are proved to move no further
    than they may, whatever floats the record became before.
    """

    look: Radius = ORIGIN
    inner: float = 0.0

    kind: ClassVar[str] = "shell"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "inner", _check.positive("inner", self.inner))
        ball = self.domain
        about_zero = ball.euclidean_radius is not None and not ball.center.any()
        if not about_zero or ball.dim != self.look.record_dim:
            raise InvalidInput("a shell is encoded as a ball about 0 of the records' dimensions.")

    @classmethod
    def between(cls, look: Radius, inner: float, outer: float) -> Self:
        """What lies between two radii."""
        return cls(Ball(outer - inner, look.record_dim), look=look, inner=inner)

    def integers(self, records: Floats, words: Words = system_words) -> Integers:
        """The numbers of what lies beyond, of shape (people, numbers): see `Encoding`."""
        moved = self.look.moved(records)
        length = np.sqrt(np.square(moved).sum(axis=1))
        # 0/0 stands for records in the centre, of which nothing lies beyond.
        with np.errstate(all="ignore"):
            part = np.where(length > self.inner, 1 - self.inner / length, 0.0)
        return super().integers(moved * part[:, None], words)
