"""Noise on every device: the plan for a single record, carried out by its owner.

A message is the record's integers, with noise, and rounded, which is post-processing. The noise of
a hundred thousand people averages out. docs/proofs/local.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Bytes, Floats
from muhat.domains import Domain
from muhat.noise import FRACTION_BITS
from muhat.noise.entropy import Words, system_words
from muhat.noise.integers import Integers
from muhat.noise.laws import LAWS
from muhat.noise.spread import Spread
from muhat.protocols.encodings.record_numbers import OneRecord, exact_numbers, largest_number
from muhat.protocols.randomizers.randomizer import MeanRandomizer, PrivateAlone

_LOW = (1 << 32) - 1


class NoiseRandomizer(OneRecord, PrivateAlone, MeanRandomizer):
    """The records of a domain, each with noise of its own."""

    if TYPE_CHECKING:  # a field

        @property
        def domain(self) -> Domain:
            """Where records lie."""

    number: ClassVar[str]
    """How a message writes one of its numbers."""

    kept_bits: ClassVar[int]
    """Of the unit of the noise, messages keep so many binary digits."""

    @property
    @abstractmethod
    def farthest(self) -> int:
        """Noise beyond so many units, one number in 10^22 at most, is cut off."""

    @abstractmethod
    def noise(self, count: int, words: Words) -> Integers:
        """Independent noise of so many people, of shape (count, rows)."""

    @property
    def payload_bytes(self) -> int:
        """Of each noisy number."""
        return np.dtype(self.number).itemsize * self.query.rows

    @cached_property
    def reach(self) -> int:
        """The largest number of a message: no false one moves the mean farther than that."""
        return (largest_number(self.query) >> self._dropped) + (self.farthest << self.kept_bits) + 1

    def randomize(self, records: Floats, nonces: Bytes, words: Words = system_words) -> Bytes:
        """Every record's integers, with noise, rounded: see `Randomizer`."""
        exact = np.array(exact_numbers(self.query, records), object)
        kept = (exact + self.noise(len(records), words) + (1 << self._dropped - 1)) >> self._dropped
        numbers: NDArray[Any] = np.clip(kept, -self.reach, self.reach).astype(self.number)
        return numbers.view(np.uint8).reshape(len(records), self.payload_bytes)

    def valid(self, payloads: Bytes) -> NDArray[np.bool_]:
        """Numbers within reach of the domain and of noise: see `Randomizer`."""
        numbers = self._numbers(payloads)
        return np.asarray(((-self.reach <= numbers) & (numbers <= self.reach)).all(axis=1))

    def mean(self, nonces: Bytes, payloads: Bytes) -> Floats:
        """The mean of the noisy records: see `MeanRandomizer`."""
        numbers = self._numbers(payloads)
        # Half of the digits at a time: all together might not fit 64 bits.
        high, low = (numbers >> 32).sum(axis=0), (numbers & _LOW).sum(axis=0)
        totals = [(a << 32) + b for a, b in zip(high.tolist(), low.tolist(), strict=True)]
        return self.mean_from(totals, len(payloads), self._dropped)

    def false_step(self, n: int) -> Floats:
        """From one end of what messages can be to the other: see `MeanRandomizer`.

        Each of r numbers lies within ±reach, and a coordinate is Σ_j F_ij·number_j with Σ_j F_ij²
        known: at most √r times that.
        """
        units = self.reach / (1 << self.kept_bits)
        several = 1.0 if self.alone.factor is None else math.sqrt(self.alone.rows)
        return np.asarray(2 * units * several * self.alone.scales / n)

    def spread(self, n: int) -> Spread:
        """That of one record's noise, divided by √n."""
        alone = self.alone
        deviation = math.sqrt(alone.law.variance(alone.rows) / n)
        factor = None if alone.factor is None else alone.factor * deviation
        return Spread(LAWS["normal"], alone.rows, alone.scales * deviation, factor)

    @property
    def _dropped(self) -> int:
        return FRACTION_BITS - self.kept_bits

    def _numbers(self, payloads: Bytes) -> NDArray[np.int64]:
        return np.ascontiguousarray(payloads).view(self.number).astype(np.int64)
