"""Public unit vectors of a message, made from its nonce: device and server see the same ones.

A message points at one of `size` unit vectors of R^dim. Together they are as likely as any
rotation of them, and v comes with −v:

    dim 1   +1 and −1
    dim 2   a regular polygon, turned by a random angle
    else    size/2 independent vectors, uniform on the sphere, and their negatives

The vectors are floats, and may differ in their last bits from one machine to another: no promise
rests on them. docs/proofs/local.md.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat._arrays import Bytes, Floats
from muhat.errors import InvalidInput
from muhat.protocols.encodings.encoding import NONCE_BYTES

LARGEST_SIZE = 1 << 16
"""Two bytes tell so many vectors apart."""

LARGEST_DIM = 1 << 20
LARGEST_NUMBERS = 1 << 25
"""Coordinates of all vectors of one message: a device has to make them all."""

_LABEL = b"muhat codebook 1"
_WORD_BYTES = 4
_BLOCK_WORDS = 512
"""One stream of the hash function gives vectors of so many words together, or one vector."""

_CHUNK_NUMBERS = 1 << 17
"""Coordinates at a time, over many messages: few enough for the cache."""

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Codebook:
    """`size` unit vectors of R^dim, size even; 2 in one dimension.

    >>> book, nonces = Codebook(dim=3, size=64), np.zeros((1, 16), np.uint8)
    >>> (nearest,) = book.largest(np.array([[0.0, 0.6, 0.8]]), nonces, 1)
    >>> bool(book.vectors(nonces, nearest)[0] @ [0.0, 0.6, 0.8] > 0.8)
    True
    """

    dim: int
    size: int

    def __post_init__(self) -> None:
        dim = _check.count("dim", self.dim, most=LARGEST_DIM)
        size = _check.count("size", self.size, least=2, most=LARGEST_SIZE)
        if size % 2 or (dim == 1 and size > 2):
            raise InvalidInput(f"size must be even, and 2 in one dimension; got {size}.")
        if dim * size > LARGEST_NUMBERS:
            raise InvalidInput(
                f"dim times size must be at most {LARGEST_NUMBERS}; got {dim * size}."
            )
        object.__setattr__(self, "dim", dim)
        object.__setattr__(self, "size", size)

    @property
    def kind(self) -> str:
        """How the vectors lie: "signs", "polygon" or "pairs"."""
        return {1: "signs", 2: "polygon"}.get(self.dim, "pairs")

    def largest(self, directions: Floats, nonces: Bytes, count: int) -> Indices:
        """The indices of the `count` vectors nearest to each direction, count ≤ size/2.

        Args:
            directions: shape (rows, dim), of any length; the vectors with the largest inner
                products are the nearest. Whatever the numbers, the indices are different ones.
            nonces: shape (rows, 16).
            count: from 1 to size/2.

        Returns:
            Shape (rows, count), in no particular order.
        """
        count = _check.count("count", count, most=self.size // 2)
        if self.dim == 1:
            return np.asarray(np.where(directions < 0, 1, 0), np.int64)
        # A warning would depend on the record.
        with np.errstate(all="ignore"):
            if self.dim == 2:
                return self._around(directions, nonces, count)
            parts = [
                self._largest_pairs(directions[rows], nonces[rows], count)
                for rows in _chunks(len(nonces), self.size // 2 * self.dim)
            ]
        return np.concatenate([np.empty((0, count), np.int64), *parts])

    def picked(self, directions: Floats, nonces: Bytes, count: int, ranks: Indices) -> Indices:
        """Of the `count` nearest vectors of each direction, the one at this place; (rows,)."""
        found = np.empty(len(nonces), np.int64)
        for rows in _chunks(len(nonces), max(self.size // 2 * self.dim, count)):
            near = self.largest(directions[rows], nonces[rows], count)
            found[rows] = np.take_along_axis(near, ranks[rows, None], axis=1)[:, 0]
        return found

    def vectors(self, nonces: Bytes, indices: Indices) -> Floats:
        """The vector of each message with this index, of shape (rows, dim)."""
        if self.dim == 1:
            return np.where(indices == 1, -1.0, 1.0)[:, None]
        if self.dim == 2:
            angles = _phases(nonces) + indices * (2 * math.pi / self.size)
            return np.stack([np.cos(angles), np.sin(angles)], axis=1)
        found = np.empty((len(nonces), self.dim))
        for rows in _chunks(len(nonces), self.dim):
            base = _normals(self._words_of(nonces[rows], indices[rows] // 2), self.dim)
            lengths = np.sqrt(np.einsum("ij,ij->i", base, base))
            signs = np.where(indices[rows] % 2 == 1, -1.0, 1.0)
            found[rows] = base * (signs / lengths)[:, None]
        return found

    def _around(self, directions: Floats, nonces: Bytes, count: int) -> Indices:
        """The corners of the polygon within count/2 steps of the direction's angle."""
        angles = np.arctan2(directions[:, 1], directions[:, 0]) - _phases(nonces)
        places = np.nan_to_num(angles) * (self.size / (2 * math.pi))
        first = np.ceil(places - count / 2).astype(np.int64)
        return np.asarray((first[:, None] + np.arange(count)) % self.size)

    def _largest_pairs(self, directions: Floats, nonces: Bytes, count: int) -> Indices:
        # Short floats are four times as quick. What they confuse is nearly as near: the mean of
        # what is chosen changes by less than one part in 10¹⁰.
        base = _normals(self._words(nonces), self.dim, np.float32)
        scaled = directions / np.abs(directions).max(axis=1, keepdims=True)
        products = np.matmul(base, scaled.astype(np.float32)[:, :, None])[:, :, 0]
        squares = np.einsum("ijk,ijk->ij", base, base)
        # The larger of ⟨v, y⟩ and ⟨−v, y⟩, and which it is.
        pairs = np.argpartition(-(products**2 / squares), count - 1, axis=1)[:, :count]
        return np.asarray(2 * pairs + (np.take_along_axis(products, pairs, axis=1) < 0))

    @property
    def _vector_words(self) -> int:
        """Normal numbers come two at a time."""
        return self.dim + self.dim % 2

    @property
    def _block(self) -> int:
        """Vectors that come from one stream."""
        return max(1, _BLOCK_WORDS // self._vector_words)

    def _words(self, nonces: Bytes) -> NDArray[np.uint32]:
        """Of every pair of vectors, shape (rows, size/2, words of a vector)."""
        half, width, block = self.size // 2, self._vector_words, self._block
        starts = range(0, half, block)
        lengths = [_WORD_BYTES * width * min(block, half - start) for start in starts]
        streams = [
            _stream(nonce, number, length)
            for nonce in _each(nonces)
            for number, length in enumerate(lengths)
        ]
        words = np.frombuffer(b"".join(streams), "<u4")
        return words.reshape(len(nonces), half, width)

    def _words_of(self, nonces: Bytes, pairs: Indices) -> NDArray[np.uint32]:
        """Of one pair of vectors for each message, shape (rows, words of a vector)."""
        width = _WORD_BYTES * self._vector_words
        streams = []
        for nonce, pair in zip(_each(nonces), pairs.tolist(), strict=True):
            number, place = divmod(pair, self._block)
            streams.append(_stream(nonce, number, width * (place + 1))[-width:])
        return np.frombuffer(b"".join(streams), "<u4").reshape(len(nonces), self._vector_words)


def _chunks(rows: int, numbers: int) -> Iterator[slice]:
    """Rows that together have about `_CHUNK_NUMBERS` numbers."""
    step = max(1, _CHUNK_NUMBERS // numbers)
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def _each(nonces: Bytes) -> Iterator[bytes]:
    whole = np.ascontiguousarray(nonces, np.uint8).tobytes()
    return (whole[start : start + NONCE_BYTES] for start in range(0, len(whole), NONCE_BYTES))


def _stream(nonce: bytes, number: int, length: int) -> bytes:
    """Pseudorandom bytes; a longer stream begins with a shorter one."""
    seed = _LABEL + nonce + number.to_bytes(4, "little")
    return hashlib.shake_128(seed).digest(length)


def _phases(nonces: Bytes) -> Floats:
    """An angle for each message, uniform in [0, 2π)."""
    words = np.frombuffer(b"".join(_stream(nonce, 0, 8) for nonce in _each(nonces)), "<u8")
    return (words >> np.uint64(11)).astype(np.float64) * (2 * math.pi * 2.0**-53)


def _normals(
    words: NDArray[np.uint32], dim: int, kind: type[np.floating[Any]] = np.float64
) -> NDArray[Any]:
    """Independent standard normal numbers by Box and Muller, shape (..., dim).

    The first half of the words gives lengths, the second angles. Thirty-two bits a word: what
    the grid of 2^-32 does to the mean of a codebook's vectors is below one part in 10⁹.
    """
    half = words.shape[-1] // 2
    uniform = words.astype(kind)
    uniform += 0.5
    lengths = uniform[..., :half] * 2.0**-32
    np.log(lengths, out=lengths)
    lengths *= -2.0
    np.sqrt(lengths, out=lengths)
    angles = uniform[..., half:] * (2 * math.pi * 2.0**-32)
    np.multiply(np.cos(angles), lengths, out=uniform[..., :half])
    np.multiply(np.sin(angles, out=angles), lengths, out=uniform[..., half:])
    return uniform[..., :dim]
