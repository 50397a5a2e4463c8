"""Public vectors of a message: the same for device and server, uniform, whatever the direction."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest

from muhat.errors import InvalidInput
from muhat.protocols.randomizers.codebook import Codebook

SHAPES = [(1, 2), (2, 16), (2, 256), (3, 64), (5, 32), (8, 128), (8, 512), (33, 40), (700, 8)]


def numbered_nonces(rows: int, first: int = 0) -> np.ndarray:
    """Different nonces, the same ones on every run."""
    digests = [hashlib.md5(str(first + row).encode()).digest() for row in range(rows)]
    return np.frombuffer(b"".join(digests), np.uint8).reshape(rows, 16)


def whole(book: Codebook, nonce: np.ndarray) -> np.ndarray:
    """All vectors of one message."""
    return book.vectors(np.repeat(nonce[None], book.size, axis=0), np.arange(book.size))


def directions(rows: int, dim: int) -> np.ndarray:
    return np.random.default_rng(5).normal(size=(rows, dim))


@pytest.mark.parametrize(("dim", "index"), [(3, 0), (3, 1), (4, 37), (8, 127), (600, 3)])
def test_a_vector_is_that_of_the_written_recipe(dim, index):
    # SHAKE128 of label, nonce and block; 32-bit words; Box and Muller; made unit; odd: negated.
    (nonce,) = numbered_nonces(1)
    width = dim + dim % 2
    block, place = divmod(index // 2, max(1, 512 // width))
    seed = b"muhat codebook 1" + nonce.tobytes() + block.to_bytes(4, "little")
    stream = hashlib.shake_128(seed).digest(4 * width * (place + 1))[-4 * width :]
    uniform = [
        (int.from_bytes(stream[at : at + 4], "little") + 0.5) / 2**32
        for at in range(0, len(stream), 4)
    ]
    pairs = list(zip(uniform[: width // 2], uniform[width // 2 :], strict=True))
    normal = [math.sqrt(-2 * math.log(a)) * math.cos(2 * math.pi * b) for a, b in pairs]
    normal += [math.sqrt(-2 * math.log(a)) * math.sin(2 * math.pi * b) for a, b in pairs]
    length = math.sqrt(math.fsum(x * x for x in normal[:dim])) * (-1 if index % 2 else 1)
    found = Codebook(dim, 128).vectors(nonce[None], np.array([index]))[0]
    assert found == pytest.approx([x / length for x in normal[:dim]], abs=1e-13)


def test_the_vectors_never_change():
    found = Codebook(3, 64).vectors(np.arange(16, dtype=np.uint8)[None], np.array([5]))[0]
    pinned = [-0.9677854452058259, -0.10387153932446846, 0.2293513360896919]
    assert found.tolist() == pytest.approx(pinned, abs=1e-12)


@pytest.mark.parametrize(("dim", "size"), SHAPES)
def test_vectors_are_unit_and_come_with_their_negatives(dim, size):
    book = Codebook(dim, size)
    vectors = whole(book, numbered_nonces(1)[0])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-12)
    shift = 1 if dim != 2 else size // 2
    negatives = vectors[np.arange(size) ^ 1] if dim != 2 else np.roll(vectors, shift, axis=0)
    assert vectors == pytest.approx(-negatives, abs=1e-12)


@pytest.mark.parametrize(("dim", "size"), SHAPES)
def test_the_largest_are_the_largest_of_all(dim, size):
    book, nonces, y = Codebook(dim, size), numbered_nonces(20), directions(20, dim)
    for count in sorted({1, min(2, size // 2), size // 5 or 1, size // 2}):
        found = book.largest(y, nonces, count)
        assert found.shape == (20, count)
        for row in range(20):
            products = whole(book, nonces[row]) @ y[row]
            expected = np.sort(products)[-count:]
            assert np.sort(products[found[row]]) == pytest.approx(expected, abs=1e-9)
            assert len(set(found[row].tolist())) == count


@pytest.mark.parametrize(("dim", "size"), SHAPES)
def test_a_row_does_not_depend_on_the_others(dim, size):
    book, nonces, y = Codebook(dim, size), numbered_nonces(100), directions(100, dim)
    count = max(1, size // 4)
    together = book.largest(y, nonces, count)
    alone = [book.largest(y[row : row + 1], nonces[row : row + 1], count)[0] for row in range(100)]
    assert [set(row) for row in together.tolist()] == [set(row.tolist()) for row in alone]
    ranks = np.arange(100) % count
    picked = book.picked(y, nonces, count, ranks)
    assert picked.tolist() == together[np.arange(100), ranks].tolist()
    vectors = book.vectors(nonces, picked)
    apart = [book.vectors(nonces[r : r + 1], picked[r : r + 1])[0] for r in range(100)]
    assert vectors == pytest.approx(np.array(apart), abs=1e-14)


@pytest.mark.parametrize(("dim", "size"), SHAPES)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.0, 1e308, 5e-324])
def test_whatever_the_floats_the_indices_are_different_ones(dim, size, value):
    book, count = Codebook(dim, size), size // 2
    y = np.ones((3, dim))
    y[0], y[1, 0] = value, value
    for row in book.largest(y, numbered_nonces(3), count).tolist():
        assert len(set(row)) == count
        assert set(row) <= set(range(size))


def test_no_messages_are_no_vectors():
    book = Codebook(3, 64)
    none = np.empty((0, 16), np.uint8)
    assert book.largest(np.empty((0, 3)), none, 4).shape == (0, 4)
    assert book.vectors(none, np.empty(0, np.int64)).shape == (0, 3)


def moments_off(vectors: np.ndarray) -> float:
    """The largest deviation of a moment of order 1, 2 or 4 from the sphere's, in standard errors.

    In dimension r: E v_i = 0, E v_i v_j = 1/r or 0, E v_i⁴ = 3/(r(r+2)).
    """
    rows, dim = vectors.shape
    first, second = np.triu_indices(dim)
    columns = np.hstack([vectors, vectors[:, first] * vectors[:, second], vectors**4])
    truth = np.concatenate(
        [np.zeros(dim), np.where(first == second, 1 / dim, 0.0), np.full(dim, 3 / dim / (dim + 2))]
    )
    errors = columns.std(axis=0) / math.sqrt(rows)
    return float(np.max(np.abs(columns.mean(axis=0) - truth) / errors))


@pytest.mark.parametrize(("dim", "size"), [(2, 256), (3, 64), (4, 64), (7, 512)])
def test_vectors_are_uniform_on_the_sphere(dim, size):
    # At most 49 moments at 6 standard errors, four shapes: P < 4e-7 together.
    rows = 40_000
    book, nonces = Codebook(dim, size), numbered_nonces(rows)
    vectors = book.vectors(nonces, np.arange(rows) % size)
    assert moments_off(vectors) < 6
    # A cube in the place of the ball, and one coordinate a little too long, are found out.
    cube = np.random.default_rng(1).uniform(-1, 1, (rows, dim))
    assert moments_off(cube / np.linalg.norm(cube, axis=1)[:, None]) > 10
    longer = vectors * np.array([1.1, *[1.0] * (dim - 1)])
    assert moments_off(longer / np.linalg.norm(longer, axis=1)[:, None]) > 12


def test_vectors_of_one_message_are_independent():
    # ⟨v, w⟩ and its square over 20,000 messages, for four w, at 6 standard errors: P < 2e-8.
    book, rows = Codebook(5, 512), 20_000
    nonces = numbered_nonces(rows)
    one = book.vectors(nonces, np.full(rows, 6))

    def off(other: np.ndarray) -> float:
        products = np.einsum("ij,ij->i", one, other) / np.linalg.norm(other, axis=1)
        columns = np.stack([products, products**2 - 1 / 5])
        errors = columns.std(axis=1) / math.sqrt(rows)
        return float(np.max(np.abs(columns.mean(axis=1)) / errors))

    for index in (8, 100, 110, 510):
        other = book.vectors(nonces, np.full(rows, index))
        assert off(other) < 6
        assert off(other + 0.2 * one) > 12


@pytest.mark.parametrize(("dim", "size"), [(3, 7), (1, 4), (3, 0), (0, 8), (3, 1 << 17)])
def test_impossible_codebooks_are_refused(dim, size):
    with pytest.raises(InvalidInput):
        Codebook(dim, size)


def test_codebooks_that_no_device_could_make_are_refused():
    with pytest.raises(InvalidInput, match="dim times size"):
        Codebook(1 << 20, 1 << 10)
    with pytest.raises(InvalidInput, match="count"):
        Codebook(3, 8).largest(np.ones((1, 3)), numbered_nonces(1), 5)
