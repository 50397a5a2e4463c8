"""Cells of distances: a table finds most of them, the definition decides the rest."""

from __future__ import annotations

import numpy as np
import pytest

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
    found = RadialCells(edges).count(squares, lambda places: squares[places])
    assert found.tolist() == np.bincount(cells(edges, squares), minlength=len(edges)).tolist()


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
