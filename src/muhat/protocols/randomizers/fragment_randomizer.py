"""Sums in the shuffle model: every number in fragments that tell nothing unless all are added up.

A device turns its record into a few whole numbers (`Encoding`), adds its part of the noise
(`fragment_noise`) and splits each of them into m fragments modulo q = 2^k: m − 1 are uniform, the
last is what is missing. A shuffler mixes the fragments of all people, and what is left for the
server is the sums, with the noise of a trusted curator. docs/proofs/shuffle-sums.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Bytes, Floats
from muhat.errors import InvalidInput
from muhat.noise.entropy import WORD_BITS, Words, system_words
from muhat.noise.laws import LAWS as SCALED
from muhat.noise.spread import Spread
from muhat.privacy import ApproxDP, Privacy
from muhat.protocols.encodings.encoding import FINEST, Encoding, fresh_nonces
from muhat.protocols.encodings.modulus import check_modulus, signed
from muhat.protocols.randomizers.allowance import Allowance
from muhat.protocols.randomizers.fragment_noise import LAWS, FragmentNoise, fit
from muhat.protocols.randomizers.randomizer import (
    MeanRandomizer,
    Randomizer,
    Received,
)

Fragments = NDArray[np.uint64]
Unsigned = NDArray[Any]
"""The same, or words of half as many bytes."""

TOLERANCE = 1.02
"""A coarser grid may cost so much variance if it makes messages shorter."""

FRAGMENT_BYTES = 8
"""Of a fragment that is sealed: the same for every modulus, so that none is told by its length."""

HALF_WORD = 4
"""Bytes of the words that short fragments are handled in."""

GAIN = 1.001
"""A finer grid is tried as long as the last one had so much less variance."""

_FEW = 8
"""Values for each fragment: up to here they are counted."""

_AT_ONCE = 1 << 22
"""Fragments added up together: memory stays small however many people there are."""


class Mixed(Randomizer):
    """One whose messages are private when their fragments are mixed with others', not before."""

    adds_up = True

    parts: tuple[FragmentRandomizer, ...]
    """What is asked, each with numbers, noise and a share of the promise of its own."""

    @property
    def share(self) -> Fraction:
        """The part that the round takes of the promise."""
        return sum((part.noise.allowance.share for part in self.parts), Fraction(0))

    def keeps(self, promise: Privacy) -> bool:
        """No promise at all: see `Randomizer`."""
        return False

    def split(self, payloads: Bytes) -> Iterator[tuple[FragmentRandomizer, Bytes]]:
        """Every part with its payloads."""
        start = 0
        for part in self.parts:
            end = start + part.payload_bytes
            yield part, np.ascontiguousarray(payloads[:, start:end])
            start = end

    def summed(self, received: Received) -> list[PartSums]:
        """The sums of every part, whether the payloads are mixed, added or neither."""
        people = received.users
        return [
            PartSums(part, part.totals(mine, people), people)
            for part, mine in self.split(received.payloads)
        ]

    def added(self, payloads: Bytes) -> Bytes:
        """Every fragment the sum of those in its place, modulo q: see `Randomizer`."""
        found = []
        for part, mine in self.split(payloads):
            fragments = part.unpacked(mine).sum(axis=0, keepdims=True, dtype=np.uint64)
            found.append(part.packed(fragments & part._mask))
        return np.concatenate(found, axis=1)

    def keeps_mixed(self, promise: Privacy, users: int) -> bool:
        """That of the noise, if enough people add theirs: see `Randomizer`."""
        return self.privacy == promise and all(each.noise.honest <= users for each in self.parts)

    def mixed(
        self, nonces: Bytes, payloads: Bytes, words: Words = system_words
    ) -> tuple[Bytes, Bytes]:
        """The fragments of each number of each part in ascending order: see `Randomizer`.

        How often each value occurs is all that a random order leaves, and ascending order says it.
        """
        mixed, start = np.empty_like(payloads), 0
        for part in self.parts:
            width = part.payload_bytes // part.messages
            for _ in range(part.numbers):
                end = start + width * part.noise.fragments
                fragments = ascending(widened(payloads[:, start:end].reshape(-1, width)), part)
                mixed[:, start:end] = narrowed(fragments, width).reshape(len(mixed), end - start)
                start = end
        return fresh_nonces(len(nonces)), mixed

    @property
    def groups(self) -> tuple[int, ...]:
        """The fragments of each number: see `Randomizer`."""
        return tuple(part.noise.fragments for part in self.parts for _ in range(part.numbers))

    def pieces(self, nonces: Bytes, payloads: Bytes) -> Bytes:
        """The fragments, each in eight bytes whatever its modulus: see `Randomizer`."""
        found, start, rows = [], 0, len(payloads)
        for part in self.parts:
            end = start + part.payload_bytes
            fragments = part.unpacked(np.ascontiguousarray(payloads[:, start:end]))
            found.append(fragments.reshape(rows, part.messages))
            start = end
        whole = np.ascontiguousarray(np.concatenate(found, axis=1), "<u8")
        return whole.view(np.uint8).reshape(rows, self.messages, FRAGMENT_BYTES)

    def joined(self, pieces: Bytes) -> tuple[Bytes, Bytes]:
        """Fragments modulo q, in which a false one is a fragment like any other; new nonces."""
        rows = len(pieces)
        flat = np.ascontiguousarray(pieces).reshape(rows, pieces.shape[1] * pieces.shape[2])
        numbers = flat.view("<u8").astype(np.uint64, copy=False)
        found, start = [], 0
        for part in self.parts:
            shape = rows, part.numbers, part.noise.fragments
            fragments = numbers[:, start : start + part.messages].reshape(shape)
            found.append(part.packed(fragments & part._mask))
            start += part.messages
        return fresh_nonces(rows), np.concatenate(found, axis=1)


@dataclass(frozen=True)
class FragmentRandomizer(Mixed, MeanRandomizer):
    """Records as fragments of whole numbers with noise.

    >>> import muhat as mh
    >>> promise = Allowance(mh.ApproxDP(epsilon=1.0, delta=1e-6))
    >>> from muhat.protocols.encodings.domain_encoding import DomainEncoding
    >>> ball = DomainEncoding(mh.Ball(1.0, dim=2))
    >>> mean = FragmentRandomizer.of(ball, promise, honest=900, users=1000)
    >>> mean.noise.law, mean.messages, mean.payload_bytes
    ('laplace', 16, 48)
    """

    encoding: Encoding
    noise: FragmentNoise

    kind: ClassVar[str] = "shares"
    """Descriptions have called fragments so from the beginning."""

    def __post_init__(self) -> None:
        if self.noise.sensitivity != self.encoding.sensitivity:
            raise InvalidInput("the noise belongs to other numbers than those of the encoding.")

    @classmethod
    def of(cls, encoding: Encoding, allowance: Allowance, *, honest: int, users: int) -> Self:
        """The shortest messages of those whose variance is next to the least.

        Args:
            encoding: the numbers that are wanted, at any resolution.
            allowance: the promise, or a round's part of it.
            honest: how many people at least follow the protocol and are not spied upon.
            users: how many take part at most.
        """
        found = list(cls._resolutions(encoding, allowance, honest, users))
        if not found:
            raise InvalidInput("no modulus is large enough for so many people, or so much noise.")
        least = min(each._worth(users) for each in found)
        good = [each for each in found if each._worth(users) <= TOLERANCE * least]
        return min(good, key=lambda each: (each.payload_bytes, each._worth(users)))

    @classmethod
    def _resolutions(
        cls, encoding: Encoding, allowance: Allowance, honest: int, users: int
    ) -> Iterator[Self]:
        """From coarse to fine, as long as that helps and the modulus is large enough."""
        before = dict.fromkeys(LAWS, math.inf)
        for bits in range(1, FINEST + 1):
            made = encoding.at(bits)
            ends = made.low, made.high
            fitted = [fit(made.sensitivity, allowance, honest, users, ends, law) for law in LAWS]
            found = [cls(made, noise) for noise in fitted if noise is not None]
            yield from found
            worth = {each.noise.law: each._worth(users) for each in found}
            # What finer grids could still gain at least halves with every bit.
            if all(worth[law] * GAIN > before[law] for law in worth):
                return
            before.update(worth)

    def _worth(self, people: int) -> float:
        """The variance of a sum, in the same units for all resolutions."""
        return self.variance(people) * float(self.encoding.unit) ** 2

    @property
    def parts(self) -> tuple[FragmentRandomizer, ...]:  # type: ignore[override]
        """Itself alone."""
        return (self,)

    @property
    def record_dim(self) -> int:
        return self.encoding.record_dim

    @property
    def numbers(self) -> int:
        """How many sums there are."""
        return self.noise.sensitivity.numbers

    @property
    def messages(self) -> int:
        """The fragments that a device sends."""
        return self.numbers * self.noise.fragments

    @property
    def payload_bytes(self) -> int:
        """As many for each fragment as the modulus needs."""
        return self.messages * self._width

    @property
    def privacy(self) -> ApproxDP:
        """What the mixed messages of all promise about a record, together with other rounds.

        It holds if at least `noise.honest` people follow the protocol, and the shuffler does. A
        message by itself, before it is mixed, is not private.
        """
        return self.noise.allowance.promise

    def randomize(self, records: Floats, nonces: Bytes, words: Words = system_words) -> Bytes:
        """The fragments of every record, those of the first number first: see `Randomizer`."""
        numbers = self.encoding.integers(records, words)
        numbers = numbers + self.noise.sample(len(records), words)
        return self.packed(self._split(numbers.view(np.uint64), words))

    def valid(self, payloads: Bytes) -> NDArray[np.bool_]:
        """Fragments below the modulus: see `Randomizer`."""
        rows = payloads.reshape(len(payloads), self.messages, self._width)
        unused = 8 * self._width - self.noise.modulus_bits
        return np.asarray((rows[:, :, -1] <= 255 >> unused).all(axis=1))

    def packed(self, fragments: Unsigned) -> Bytes:
        """Fragments of shape (people, numbers, m) as payloads."""
        flat = narrowed(fragments.reshape(-1), self._width)
        return flat.reshape(len(fragments), self.payload_bytes)

    def unpacked(self, payloads: Bytes) -> Unsigned:
        """The fragments of these payloads, of shape (people, numbers, m)."""
        shape = len(payloads), self.numbers, self.noise.fragments
        return widened(payloads.reshape(-1, self._width)).reshape(shape)

    def sums(self, remainders: Fragments, people: int) -> list[int]:
        """The sums of so many people's numbers, from the sums of their fragments, (numbers,)."""
        low, high, bits = self.encoding.low, self.encoding.high, self.noise.modulus_bits
        check_modulus(bits, people, low, high, self.noise.reach(people))
        return signed(remainders, bits, people, low, high)

    def variance(self, people: int) -> float:
        """A bound on the variance of each of these sums, noise and rounding, in steps²."""
        return self.noise.variance(people) + people * self.encoding.rounding

    def mean(self, nonces: Bytes, payloads: Bytes) -> Floats:
        """The mean of the records, whether the payloads are mixed or not: see `MeanRandomizer`."""
        people = len(nonces)
        return self.mean_of(self.totals(payloads, people), people)

    def totals(self, payloads: Bytes, people: int) -> list[int]:
        """The sums of all people's numbers, whether the payloads are mixed, added or neither."""
        return self.sums(self._remainders(payloads), people)

    def mean_of(self, sums: Sequence[int], people: int) -> Floats:
        """The mean of the records, from the sums of their numbers, of shape (d,)."""
        return self.encoding.mean(sums, people)

    def spread(self, n: int) -> Spread:
        """A bound on the noise of the mean of n people's records; rounding is counted in full.

        Laplace noise on a coordinate has longer tails than normal noise of its variance. With more
        people than those counted on it is a little closer to normal.
        """
        found = self.encoding.spread(self.variance(n), n)
        if self.noise.law != "laplace" or found.factor is not None:
            return found
        laplace = SCALED["laplace"]
        return Spread(laplace, found.rows, found.scales / math.sqrt(laplace.variance(found.rows)))

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """The randomizer described; InvalidInput if it does not keep its promise."""
        encoding = Encoding.from_dict(fields["encoding"])
        return cls(encoding, FragmentNoise.of_numbers(fields["noise"], encoding.sensitivity))

    @property
    def _width(self) -> int:
        return -(-self.noise.modulus_bits // 8)

    def _remainders(self, payloads: Bytes) -> Fragments:
        """The sums of all fragments modulo q, of shape (numbers,)."""
        step = max(1, _AT_ONCE // self.messages)
        found = np.zeros(self.numbers, np.uint64)
        for start in range(0, len(payloads), step):
            fragments = self.unpacked(payloads[start : start + step])
            found += fragments.sum(axis=(0, 2), dtype=np.uint64)
        return np.asarray(found & self._mask)

    @property
    def _mask(self) -> np.uint64:
        return np.uint64(self.noise.modulus - 1)

    def _split(self, numbers: Fragments, words: Words) -> Unsigned:
        """Uniform fragments that add up to these numbers modulo q: (people, numbers, m)."""
        shape = *numbers.shape, self.noise.fragments - 1
        bits, count = self.noise.modulus_bits, math.prod(shape)
        each = WORD_BITS // bits
        drawn = words(-(-count // each))
        # Every word is as many fragments as it has bits for, and what is above them is masked.
        uniform = np.empty((each, len(drawn)), np.uint32 if self._width <= HALF_WORD else np.uint64)
        for place in range(each):
            uniform[place] = drawn >> np.uint64(place * bits)
        return self.completed(numbers, uniform.ravel()[:count].reshape(shape))

    def completed(self, numbers: Fragments, uniform: Unsigned) -> Unsigned:
        """Uniform words, (people, numbers, m − 1), and what is missing to the numbers, modulo q."""
        # 2^k divides 2^32 and 2^64: sums may overflow, and the lowest bits of words are uniform.
        word = uniform.dtype
        fragments = np.empty((*numbers.shape, self.noise.fragments), word)
        fragments[..., 1:] = uniform
        missing = fragments[..., 0]
        missing[...] = numbers.astype(word)
        for place in range(1, self.noise.fragments):
            missing -= fragments[..., place]
        return np.asarray(fragments & word.type(self.noise.modulus - 1))


@dataclass(frozen=True, eq=False)
class PartSums:
    """What so many people's fragments of one part of a round add up to."""

    asked: FragmentRandomizer
    totals: Sequence[int]
    people: int

    @property
    def mean(self) -> Floats:
        """Of the records, if these are their sums, of shape (d,)."""
        return self.asked.mean_of(self.totals, self.people)

    @property
    def is_explained(self) -> bool:
        """Whether honest people may have such sums, but for a chance of `WRAP`.

        If not, somebody has sent a false fragment; if so, nobody knows.
        """
        encoding, reach = self.asked.encoding, self.asked.noise.reach(self.people)
        least, most = self.people * encoding.low - reach, self.people * encoding.high + reach
        return all(least <= each <= most for each in self.totals)


def widened(fragments: Bytes) -> Unsigned:
    """Numbers of some bytes each, the least significant first, (rows, bytes), as words.

    Of four bytes where that is enough, else of eight.
    """
    rows, width = fragments.shape
    word = np.dtype("<u4" if width <= HALF_WORD else "<u8")
    whole = np.zeros((rows, word.itemsize), np.uint8)
    # Byte by byte: numpy copies long columns faster than short rows.
    for place in range(width):
        whole[:, place] = fragments[:, place]
    return whole.view(word)[:, 0].astype(word.newbyteorder("="), copy=False)


def ascending(fragments: Unsigned, part: FragmentRandomizer) -> Unsigned:
    """Fragments in order; where values are few, each as often as it occurs, which is faster."""
    if part.noise.modulus > _FEW * len(fragments):
        return np.sort(fragments)
    counts = np.bincount(fragments)
    return np.repeat(np.arange(len(counts), dtype=fragments.dtype), counts)


def narrowed(words: Unsigned, width: int) -> Bytes:
    """Words as numbers of so many bytes, (rows, width)."""
    word = words.dtype.newbyteorder("<")
    flat = np.ascontiguousarray(words, word).view(np.uint8).reshape(-1, word.itemsize)
    narrow = np.empty((len(words), width), np.uint8)
    for place in range(width):
        narrow[:, place] = flat[:, place]
    return narrow
