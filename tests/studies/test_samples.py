"""Records for studies: their scales, their seeds, and handwritten digits from files."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from benchmarks.hindsight import hindsight_error

from muhat.errors import InvalidInput
from muhat.studies.samples import IMAGES, LABELS, SHAPES, covariance_root, digits, fixed

LIGHT = sorted(set(SHAPES) - {"constant", "t₃"} - {name for name in SHAPES if "κ" in name})
"""Shapes whose sample covariance settles; t₃ has no fourth moment."""


def packed(array):
    head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(np.uint8).tobytes()


@pytest.mark.parametrize("name", SHAPES)
def test_a_seed_gives_the_same_rows_again(name):
    first, again, other = (
        SHAPES[name].draw(np.random.default_rng(seed), 40, 5) for seed in (1, 1, 2)
    )
    assert first.shape == (40, 5)
    assert first.dtype == float
    assert np.array_equal(first, again)
    assert np.array_equal(first, other) == (name == "constant")


@pytest.mark.parametrize("name", LIGHT)
def test_the_scale_is_the_root_of_the_largest_eigenvalue(name):
    rows = SHAPES[name].draw(np.random.default_rng(3), 100_000, 3)
    largest = np.linalg.eigvalsh(np.cov(rows, rowvar=False))[-1]
    assert math.sqrt(largest) == pytest.approx(SHAPES[name].scale(3), rel=0.05)


@pytest.mark.parametrize("kappa", [10.0, 1000.0])
def test_variances_lie_between_one_and_kappa_and_do_not_change(kappa):
    root = covariance_root(kappa, 6)
    assert np.array_equal(root, covariance_root(kappa, 6))
    values = np.linalg.eigvalsh(root.T @ root)
    assert 1 - 1e-9 <= values[0] <= values[-1] <= kappa + 1e-9
    assert values[-1] > kappa / 3
    assert SHAPES[f"κ = {kappa:g}"].scale(6) == math.sqrt(kappa)
    rows = SHAPES[f"κ = {kappa:g}"].draw(np.random.default_rng(4), 100_000, 6)
    assert np.linalg.norm(np.cov(rows, rowvar=False) - root.T @ root) < 0.05 * kappa


def test_one_record_in_twenty_is_far():
    rows = SHAPES["5 % far cluster"].draw(np.random.default_rng(5), 1000, 4)
    assert int(np.sum(rows.mean(axis=1) > 5)) == 50


def test_digits_are_read_from_their_files_and_sorted_by_label(tmp_path):
    generator = np.random.default_rng(6)
    images = [generator.integers(0, 256, (count, 28, 28)) for count in (30, 10)]
    labels = [generator.integers(0, 10, count) for count in (30, 10)]
    for name, array in zip((*IMAGES, *LABELS), (*images, *labels), strict=True):
        (tmp_path / name).write_bytes(packed(array))
    found = digits(tmp_path)
    every = np.concatenate(images).reshape(40, 784) / 255
    for digit in range(10):
        assert np.array_equal(found[digit], every[np.concatenate(labels) == digit])


@pytest.mark.parametrize("spoil", [lambda raw: raw[:-1], lambda raw: b"\x1f" + raw[1:]])
def test_files_that_are_not_digits_are_refused_by_name(tmp_path, spoil):
    for name in (*IMAGES, *LABELS):
        (tmp_path / name).write_bytes(spoil(packed(np.zeros((2, 3)))))
    with pytest.raises(InvalidInput, match=IMAGES[0]):
        digits(tmp_path)


def test_fixed_rows_are_the_same_in_every_trial_and_know_their_scale():
    rows = np.random.default_rng(7).standard_normal((500, 3)) * [1, 2, 3]
    shape = fixed(rows)
    assert shape.draw(np.random.default_rng(8), 500, 3) is rows
    assert shape.scale(3) == pytest.approx(3, rel=0.2)


def test_no_ball_of_the_grid_is_better_than_the_one_found_in_hindsight():
    """The error of a clipped mean with noise, measured for a few balls, is never below it."""
    generator = np.random.default_rng(9)
    rows = SHAPES["lognormal"].draw(generator, 1000, 4)
    least = hindsight_error(rows, 0.5)
    centred = rows - rows.mean(axis=0)
    norms = np.linalg.norm(centred, axis=1)
    for radius in np.quantile(norms, [0.5, 0.8, 0.95, 0.99, 0.999]):
        bias = np.mean(centred * np.minimum(1, radius / norms)[:, None], axis=0)
        noise = generator.standard_normal((4000, 4)) * (2 * radius / 1000)
        error = math.sqrt(np.mean(np.sum((bias + noise) ** 2, axis=1)))
        assert error > 0.97 * least
