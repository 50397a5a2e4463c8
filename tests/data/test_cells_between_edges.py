"""Cells between public edges: leading bits and comparisons find what the definition says."""

from __future__ import annotations

import numpy as np
import pytest

from muhat.data.cells import Cells
from muhat.data.distances import RadialCells

EDGES = [
    np.geomspace(1e-9, 1e4, 256),
    np.concatenate([np.geomspace(0.02, 0.6, 6), np.geomspace(0.62, 2.2, 82), [30.0, 1e9]]),
    np.array([1.0]),
    np.array([1.0, np.nextafter(1.0, 2.0), 1.0000001]),
    np.geomspace(1e-320, 1e300, 64),
    np.geomspace(1e-170, 1e-160, 5),
    np.geomspace(1e160, 1e170, 5),
]


def cells(edges: np.ndarray, squares: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        found = np.searchsorted(np.square(edges), squares, side="left")
    return np.minimum(found, len(edges) - 1)


@pytest.mark.parametrize("edges", EDGES)
def test_every_sum_is_counted_in_its_cell(edges: np.ndarray) -> None:
    rng = np.random.default_rng(1)
    with np.errstate(all="ignore"):
        near = np.square(rng.choice(edges, 3000)) * (1 + rng.integers(-9, 10, 3000) * 2.0**-52)
        wide = 10.0 ** rng.uniform(-320, 308, 3000)
        usual = np.square(rng.choice(edges, 3000) * rng.uniform(0.5, 2.0, 3000))
    squares = np.concatenate([near, wide, usual, [0.0, 5e-324, 1.7e308, np.inf]])
    expected = np.bincount(cells(edges, squares), minlength=len(edges)).tolist()
    radial = RadialCells(edges)
    assert radial.count(squares, None).tolist() == expected
    assert radial.count(squares, lambda places: squares[places]).tolist() == expected


SIGNED = [
    np.concatenate([-np.geomspace(1, 1e6, 40)[::-1], [0.0], np.geomspace(1, 1e6, 40), [np.inf]]),
    np.array([-1.0, -np.nextafter(1.0, 0.0), 0.0, 5e-324, 1.0]),
    np.array([-1e308, -1e-308, -5e-324, 1e308]),
    np.array([-2.0, -1.0]),
    np.array([-1.0]),
    np.linspace(-1, 1, 500),
]


@pytest.mark.parametrize("edges", SIGNED)
def test_every_number_is_in_its_cell_whatever_its_sign(edges: np.ndarray) -> None:
    rng = np.random.default_rng(3)
    with np.errstate(all="ignore"):
        near = rng.choice(edges, 3000) * (1 + rng.integers(-3, 4, 3000) * 2.0**-52)
        wide = 10.0 ** rng.uniform(-320, 308, 3000) * rng.choice([-1, 1], 3000)
    usual = rng.standard_normal(3000) * 10
    ends = [0.0, -0.0, 5e-324, -5e-324, 1.7e308, -1.7e308, np.inf, -np.inf]
    numbers = np.concatenate([edges, near, wide, usual, ends])
    expected = np.minimum(np.searchsorted(edges, numbers), len(edges) - 1)
    assert Cells(edges).of(numbers).tolist() == expected.tolist()


def test_no_numbers_are_in_no_cell() -> None:
    found = Cells(np.array([1.0, 2.0]))
    assert found.counts(found.of(np.empty(0))).tolist() == [0, 0]


def test_the_exact_sum_decides_next_to_an_edge_and_nowhere_else() -> None:
    edges = np.geomspace(0.01, 100, 50)
    rng = np.random.default_rng(2)
    exact = np.concatenate([np.square(rng.choice(edges[:-1], 500)), rng.uniform(0, 100, 5000)])
    exact *= 1 + rng.integers(-2, 3, len(exact)) * 2.0**-52
    rounded = exact * (1 + rng.integers(-50, 51, len(exact)) * 2.0**-52)
    asked: list[int] = []

    def look(places: np.ndarray) -> np.ndarray:
        asked.extend(places.tolist())
        return exact[places]

    found = RadialCells(edges).count(rounded, look)
    assert found.tolist() == np.bincount(cells(edges, exact), minlength=50).tolist()
    assert found.tolist() != np.bincount(cells(edges, rounded), minlength=50).tolist()
    assert set(range(500)) <= set(asked)
    assert len(asked) < 520
