"""The best purely private message about one of m corners: a set of k of them.

A record is a corner of its domain, or a mean of several of which the device draws one. A set that
holds the corner is g times likelier than one that does not, g ≤ e^ε:

    P(Y | c) = g/W if c is in Y, else 1/W,      W = C(m−1, k−1)·g + C(m−1, k).

With the corners measured from their mean, the sum over Y has the mean σ·(corner c),

    σ = (g − 1)·k(m − k)/((m − 1)(m + (g − 1)k)),

so that (sum over Y)/σ estimates the record without bias. k = 1 is k-ary randomised response; for
unit vectors the best k has the least error that any unbiased message can have. Source: Ye and Barg
(2018), Wang et al. (2016) for the sets; docs/proofs/local.md for all that is used.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muhat import _check
from muhat._arrays import Bytes, Floats, Integers
from muhat.domains import Domain
from muhat.errors import InvalidInput
from muhat.noise.discrete import coins
from muhat.noise.entropy import Words, system_words
from muhat.noise.laws import LAWS
from muhat.noise.spread import Spread
from muhat.privacy import PureDP
from muhat.protocols.encodings.corners import MOST_CORNERS, Corners
from muhat.protocols.randomizers.cap_choice import gain
from muhat.protocols.randomizers.frequency import holding_chance
from muhat.protocols.randomizers.pure_randomizer import HidingRandomizer
from muhat.protocols.randomizers.randomizer import check_shapes, random_orders

_CHUNK_NUMBERS = 1 << 20


class SubsetMoments(NamedTuple):
    """What (sum over Y)/σ has on average for the corner c, all corners measured from their mean.

    Its covariance is common·Σ_j c_j·c_jᵀ + own·c·cᵀ.
    """

    shrinkage: Any
    common: Any
    own: Any


def moments(size: int, chosen: Any, excess: Any) -> SubsetMoments:
    """σ and the covariance for k of m corners, g = 1 + excess; of numbers or arrays of any kind."""
    shrinkage = excess * chosen * (size - chosen) / ((size - 1) * (size + excess * chosen))
    others = (chosen - 1) / max(size - 2, 1)
    return SubsetMoments(
        shrinkage, (1 / excess + others) / shrinkage, (1 - 2 * others) / shrinkage - 1
    )


@dataclass(frozen=True)
class SubsetRandomizer(HidingRandomizer, keys=("domain", "epsilon", "chosen")):
    """Which records, which promise, and how many corners a message names.

    >>> from muhat.domains import Simplex
    >>> SubsetRandomizer.of(Simplex(dim=20), 1.0).chosen
    5
    """

    domain: Domain
    epsilon: float
    chosen: int

    kind: ClassVar[str] = "subset"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", PureDP(epsilon=self.epsilon).epsilon)
        gain(self.epsilon)
        object.__setattr__(self, "chosen", _check.count("chosen", self.chosen, most=self.size // 2))

    @classmethod
    def of(cls, domain: Domain, epsilon: float, weights: tuple[float, ...] | None = None) -> Self:
        """The best one for errors ‖diag(weights)·error‖₂."""
        return cls(domain, epsilon, 1).at(epsilon, weights)

    def at(self, epsilon: float, weights: tuple[float, ...] | None = None) -> Self:
        """The number of corners with the least error: see `PureRandomizer`."""
        few = replace(self, epsilon=epsilon, chosen=1)
        squares = few._squares(np.arange(1, self.size // 2 + 1), weights)
        return replace(few, chosen=1 + int(np.argmin(squares)))

    @cached_property
    def corners(self) -> Corners:
        """The corners of the domain."""
        found = Corners.of(self.domain)
        if found is None:
            raise InvalidInput(
                f"sets of corners are for records that are means of 2 to {MOST_CORNERS} corners: "
                "Simplex and Points."
            )
        return found

    @property
    def size(self) -> int:
        """m: how many corners there are."""
        return len(self.corners.points)

    @property
    def record_dim(self) -> int:
        return self.domain.preimage().domain.record_dim

    @property
    def payload_bytes(self) -> int:
        """A bit for every corner."""
        return -(-self.size // 8)

    @property
    def favoured(self) -> Fraction:
        """k/m: the sets that hold the record's corner."""
        return Fraction(self.chosen, self.size)

    @cached_property
    def keep(self) -> Fraction:
        """The chance that a message holds its record's corner."""
        return holding_chance(gain(self.epsilon), self.size, self.chosen)

    @cached_property
    def moments(self) -> SubsetMoments:
        """σ and the covariance of a message."""
        return moments(self.size, self.chosen, float(gain(self.epsilon) - 1))

    def randomize(self, records: Floats, nonces: Bytes, words: Words = system_words) -> Bytes:
        """A set of corners for every record, as bits: see `Randomizer`.

        As many words are asked for whatever the records are.
        """
        check_shapes(records, nonces, self.record_dim)
        step = max(1, _CHUNK_NUMBERS // self.size)
        parts = [
            self._sets(self.corners.drawn(records[start : start + step], words), words)
            for start in range(0, len(records), step)
        ]
        held = np.concatenate(parts) if parts else np.zeros((0, self.size), np.bool_)
        return np.packbits(held, axis=1, bitorder="little")

    def law(self, record: ArrayLike) -> dict[tuple[int, ...], Fraction]:
        """The probability of every set, exactly: for audits of few corners, as it tells the record.

        >>> from muhat.domains import Simplex
        >>> law = SubsetRandomizer(Simplex(dim=4), 1.0, 2).law([1, 0, 0, 0])
        >>> len(law), law[0, 3] / law[1, 2] == gain(1.0)
        (6, True)
        """
        (parts,) = self.corners.parts(np.atleast_2d(np.asarray(record, np.float64))).tolist()
        inside = self.keep / math.comb(self.size - 1, self.chosen - 1)
        outside = (1 - self.keep) / math.comb(self.size - 1, self.chosen)
        found = {}
        for named in itertools.combinations(range(self.size), self.chosen):
            held = Fraction(sum(parts[index] for index in named), sum(parts))
            found[named] = held * inside + (1 - held) * outside
        return found

    def valid(self, payloads: Bytes) -> NDArray[np.bool_]:
        """Sets of as many corners as there should be: see `Randomizer`."""
        bits = np.unpackbits(payloads, axis=1, bitorder="little")
        right = bits.sum(axis=1, dtype=np.int64) == self.chosen
        return np.asarray(right & ~bits[:, self.size :].any(axis=1))

    def mean(self, nonces: Bytes, payloads: Bytes) -> Floats:
        """Σ_j f_j·c_j with f_j = (the part of the sets with corner j, less what chance has)/σ.

        The f are exact until they are multiplied by corners, and add up to 1.
        """
        people = len(payloads)
        if not people:
            raise InvalidInput("a mean needs one message at least.")
        by_chance = (self.chosen - self.keep) / (self.size - 1)
        shrinkage = self.keep - by_chance
        counts = np.zeros(self.size, np.int64)
        for held in self._held(payloads):
            counts += held.sum(axis=0, dtype=np.int64)
        found = (Fraction(count, people) for count in counts.tolist())
        parts = [float((part - by_chance) / shrinkage) for part in found]
        return np.asarray(self.corners.middle + np.array(parts) @ self.corners.offsets)

    def estimates(self, nonces: Bytes, payloads: Bytes) -> Iterator[Floats]:
        """Sums over the sets: see `PureRandomizer`."""
        units = self.corners.offsets / (self.longest * self.moments.shrinkage)
        for held in self._held(payloads):
            yield held @ units

    @property
    def longest(self) -> Floats:
        """k times the farthest corner, over σ; 1 where the domain has no width."""
        lengths = self.chosen * np.abs(self.corners.offsets).max(axis=0) / self.moments.shrinkage
        return np.where(lengths > 0, lengths, 1.0)

    @property
    def least_variance(self) -> Floats:
        """That of the corner which has it: see `PureRandomizer`. A mean of several varies more."""
        least = (self.moments.own * self.corners.offsets**2).min(axis=0)
        common = self.moments.common * np.sum(self.corners.offsets**2, axis=0)
        return np.asarray(np.maximum(common + least, 0.0) / self.longest**2)

    def spread(self, n: int) -> Spread:
        """Of every coordinate the largest variance that it has for any record.

        Of a record with the mean x in the corner's coordinate it is common·Σ_j c_j² + own·c², or
        for a mean of corners (own + 1)·E c² − x², at most (own + 1)((l + u)x − lu) − x² between
        the least coordinate l and the largest u.
        """
        _, common, own = self.moments
        offsets = self.corners.offsets
        if self.corners.are_records:
            worst = (own * offsets**2).max(axis=0)
        else:
            low, high = offsets.min(axis=0), offsets.max(axis=0)
            x = np.clip((own + 1) * (low + high) / 2, low, high)
            worst = (own + 1) * ((low + high) * x - low * high) - x**2
        squares = np.sum(offsets**2, axis=0)
        scales = np.sqrt(np.maximum(common * squares + worst, 0.0) / _check.count("n", n))
        rows = offsets.T / np.sqrt(np.where(squares > 0, squares, 1.0))[:, None]
        return Spread(LAWS["normal"], self.size, scales, scales[:, None] * rows)

    def expected_error(self, n: int, weights: tuple[float, ...] | None = None) -> float:
        """At most this root mean square error, whatever the records: see `MeanRandomizer`.

        Corners at equal distances from their mean attain it; in a simplex its centre does.
        """
        found = math.sqrt(float(self._squares(self.chosen, weights)) / _check.count("n", n))
        return min(found, super().expected_error(n, weights))

    def _squares(self, chosen: Any, weights: tuple[float, ...] | None) -> Any:
        """The largest mean square error of one message, for so many corners in a set."""
        _, common, own = moments(self.size, chosen, float(gain(self.epsilon) - 1))
        offsets = self.corners.offsets * (1.0 if weights is None else np.array(weights))
        squares = np.sum(offsets**2, axis=1)
        least, largest = float(squares.min()), float(squares.max())
        if self.corners.are_records:
            worst = np.maximum(own * least, own * largest)
        else:
            worst = (own + 1) * largest
        return common * math.fsum(squares.tolist()) + worst

    def _sets(self, corners: Integers, words: Words) -> NDArray[np.bool_]:
        """A random set for each corner, of shape (rows, m)."""
        rows, others = len(corners), self.size - 1
        kept = coins(self.keep, rows, words)
        # Of the other corners those of the smallest keys, which are in uniformly random order.
        ranks = np.argsort(random_orders(rows, others, words), axis=1)
        chosen = ranks < (self.chosen - kept)[:, None]
        held = np.empty((rows, self.size), np.bool_)
        places = np.arange(others)
        held[np.arange(rows)[:, None], places + (places >= corners[:, None])] = chosen
        held[np.arange(rows), corners] = kept
        return held

    def _held(self, payloads: Bytes) -> Iterator[NDArray[np.uint8]]:
        """Which corners every message names, of shape (rows, m), some thousand at a time."""
        step = max(1, _CHUNK_NUMBERS // self.size)
        for start in range(0, len(payloads), step):
            some = payloads[start : start + step]
            yield np.unpackbits(some, axis=1, count=self.size, bitorder="little")
