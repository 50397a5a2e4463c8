"""Records moved into a body along their ray, and then onto a ball's integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from muhat.data.engine import Accumulator, record_integers
from muhat.domains import LpBall, SchattenBall
from muhat.domains.lattice import BallLattice, LpGauge, SchattenGauge
from muhat.domains.norms import p_norm
from muhat.records.columns import Batch, Floats
from muhat.records.norms import norms, singular_values

Array = NDArray[np.float64]

POISON = [math.nan, math.inf, -math.inf, -0.0, 0.0, 5e-324, -1e-310, 1e308, -1.7976931348623157e308]
ORDERS = [1.0, 1.2, 4 / 3, 1.5, 2.0, 2.5, 3.0, 4.0, 10.0, 77.7, math.inf]
SHAPES = [(1, 4), (2, 2), (2, 3), (3, 2), (4, 4), (5, 3)]


def lp_ball(order: float, size: float = 1.0) -> tuple[LpBall, BallLattice]:
    """An ℓ_p ball off the origin, and the lattice of a ball around it."""
    domain = LpBall(order, size, 4, np.array([0.5, -1.0, 3.0, 0.0]) * size, [1.0, 2.0, 0.25, 1.5])
    gauge = LpGauge(order, tuple(domain.half_widths.tolist()))
    radius = domain.farthest(np.ones(4))
    return domain, BallLattice.around(domain.center.tolist(), radius, gauge)


def schatten_ball(order: float, shape: tuple[int, int]) -> tuple[SchattenBall, BallLattice]:
    """A Schatten ball off the origin, and the lattice of a ball around it."""
    size = shape[0] * shape[1]
    domain = SchattenBall(order, shape, 1.7, np.linspace(-1, 2, size))
    gauge = SchattenGauge(order, shape, 1.7)
    radius = domain.farthest(np.ones(size))
    return domain, BallLattice.around(domain.center.tolist(), radius, gauge)


def made_records(domain: Any, seed: int, rows: int = 400) -> Array:
    """Records in, near, far and very far from the body."""
    rng = np.random.default_rng(seed)
    directions = rng.standard_normal((rows, domain.dim)) * domain.half_widths
    directions[::7] = 0.0
    directions[::7, 1] = domain.half_widths[1]
    sizes = np.where(rng.random(rows) < 0.5, 1.0, 10.0 ** rng.uniform(-2, 5, rows))
    return np.asarray(domain.center + directions * sizes[:, None])


def points(lattice: BallLattice, integers: NDArray[np.int64]) -> Array:
    """What integers of a lattice that is not whitened stand for."""
    return np.asarray(np.array(lattice.center) + integers * float(lattice.grid))


def squares_at_most(integers: NDArray[np.int64], radius: int) -> bool:
    """Σ q² ≤ radius² for every row, in Python integers."""
    squares = (integers.astype(object) ** 2).sum(axis=1)
    return bool((squares <= radius * radius).all())


@pytest.mark.parametrize("order", ORDERS)
def test_norms_are_right_and_never_overflow(order: float) -> None:
    made = np.random.default_rng(1).standard_normal((300, 5))
    made[0] = 0.0
    for size in (1.0, 1e-200, 1e300):
        found = norms(list((made * size).T.copy()), order)
        assert found == pytest.approx(p_norm(made * size, order), rel=1e-13)


@pytest.mark.parametrize("shape", [*SHAPES, (8, 8), (12, 5)])
def test_singular_values_are_right_for_all_ranks(shape: tuple[int, int]) -> None:
    made = np.random.default_rng(2).standard_normal((200, *shape))
    made[:40] = made[:40, :, :1] * made[:40, :1, :]
    made[40:60, 0] *= 1e-9
    made[60:70] = np.eye(*shape)
    made[70] = 0.0
    made[71] = 1.0
    made[80:90] *= 1e-200
    made[90:100] *= 1e200
    entries = list(made.reshape(200, -1).T.copy())
    with np.errstate(all="ignore"):
        found = np.sort(np.stack(singular_values(entries, shape), axis=1))[:, ::-1]
    expected = np.linalg.svd(made, compute_uv=False)
    assert (np.abs(found - expected) <= 1e-13 * expected[:, :1]).all()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", [1.0, 1e-120, 1e120])
def test_records_of_an_lp_ball_are_clipped_as_the_domain_says(order: float, size: float) -> None:
    domain, lattice = lp_ball(order, size)
    made = made_records(domain, 3)
    found = points(lattice, record_integers(lattice, Batch(400, matrix=made)))
    assert (np.abs(found - domain.clip(made)) <= 1e-12 * lattice.clip_radius).all()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_records_of_a_schatten_ball_are_clipped_as_the_domain_says(
    order: float, shape: tuple[int, int]
) -> None:
    domain, lattice = schatten_ball(order, shape)
    made = made_records(domain, 4)
    found = points(lattice, record_integers(lattice, Batch(400, matrix=made)))
    assert (np.abs(found - domain.clip(made)) <= 1e-12 * lattice.clip_radius).all()


@pytest.mark.parametrize("order", ORDERS)
def test_honest_records_are_not_moved_and_never_rejected(order: float) -> None:
    """The ball touches the body at its corners, so nothing is left between them."""
    domain, _ = lp_ball(order)
    gauge = LpGauge(order, tuple(domain.half_widths.tolist()))
    axes = 1 / domain.half_widths / (1.0 if order <= 2 else 2 ** (1 - 2 / order))
    lattice = BallLattice.scaled(domain.center.tolist(), axes.tolist(), gauge)
    corners = [np.eye(4), -np.eye(4), np.array([[1, 1, 1, 1], [1, -1, 1, -1]])]
    inside = np.random.default_rng(5).standard_normal((500, 4))
    unit = np.concatenate([*corners, inside])
    unit /= p_norm(unit, order)[:, None]
    for excess in (-1e-12, -1e-15, 0.0, 1e-15, 1e-12):
        made = domain.center + unit * domain.half_widths * (1 + excess)
        integers = record_integers(lattice, Batch(len(made), matrix=made))
        expected = (made - domain.center) * axes
        assert np.abs(integers * 2.0**lattice.exponent - expected).max() < 1e-11
        assert squares_at_most(integers, lattice.radius)


@pytest.mark.parametrize(
    "lattice",
    [
        *(lp_ball(order)[1] for order in ORDERS),
        BallLattice.scaled([0.1] * 4, [1e-3, 1.0, 1e3, 0.0], LpGauge(1.5, (1e3, 1.0, 1e-3, 1.0))),
        BallLattice.mapped([0.1] * 4, [[1.0, 2, -3, 4], [0, 1, 0, 1]], LpGauge(3, (1.0, 2, 3, 4))),
        BallLattice.mapped([0.1] * 4, np.tri(6, 4, 1).tolist(), LpGauge(1, (1.0, 2, 3, 4))),
        schatten_ball(1.0, (2, 2))[1],
        schatten_ball(3.0, (2, 2))[1],
        schatten_ball(math.inf, (2, 2))[1],
    ],
)
def test_no_record_leaves_the_integer_ball(lattice: BallLattice) -> None:
    rng = np.random.default_rng(6)
    rows = 60_000
    bits = rng.integers(0, 2**64, (rows, 4), dtype=np.uint64).view(np.float64)
    near = lattice.center + rng.standard_normal((rows, 4)) * 10.0 ** rng.uniform(-2, 3, (rows, 1))
    poison = rng.random(near.shape) < 0.02
    near[poison] = rng.choice(POISON, int(poison.sum()))
    for made in (bits, near):
        integers = record_integers(lattice, Batch(rows, matrix=made))
        assert squares_at_most(integers, lattice.radius)
        assert np.count_nonzero(integers.any(axis=1)) > rows // 4


@pytest.mark.parametrize("order", [1.0, 1.3, math.inf])
def test_a_million_adversarial_records_stay_in_the_ball_of_a_body(order: float) -> None:
    rng = np.random.default_rng(7)
    for lattice in (lp_ball(order)[1], schatten_ball(order, (2, 2))[1]):
        for _ in range(10):
            bits = rng.integers(0, 2**64, (100_000, 4), dtype=np.uint64).view(np.float64)
            integers = record_integers(lattice, Batch(len(bits), matrix=bits))
            assert squares_at_most(integers, lattice.radius)


@pytest.mark.parametrize(
    "make", [*(lambda p=p: lp_ball(p) for p in ORDERS), lambda: schatten_ball(1.0, (2, 2))]
)
def test_huge_records_reach_the_boundary_in_their_direction(make: Any) -> None:
    domain, lattice = make()
    rng = np.random.default_rng(8)
    direction = rng.uniform(-1, 1, (100, 4))
    huge = domain.center + direction * 10.0 ** rng.uniform(140, 308, (100, 1))
    huge[:10] *= 1.79 / np.abs(huge[:10] / 1e308).max(axis=1, keepdims=True)
    integers = record_integers(lattice, Batch(100, matrix=huge))
    expected = direction / domain.gauge(domain.center + direction)[:, None]
    found = points(lattice, integers) - domain.center
    assert np.abs(found - expected).max() < 1e-9


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (4, 4)])
@pytest.mark.parametrize("order", [1.0, 1.5, 3.0, math.inf])
def test_a_matrix_has_the_same_integers_whatever_its_neighbours(
    shape: tuple[int, int], order: float
) -> None:
    """Chunks stop turning when all of them are done: nobody may notice."""
    domain, lattice = schatten_ball(order, shape)
    made = made_records(domain, 9, 3000)
    poison = np.random.default_rng(10).random(made.shape) < 0.01
    made[poison] = np.random.default_rng(11).choice(POISON, int(poison.sum()))
    together = record_integers(lattice, Batch(len(made), matrix=made))
    alone = [
        record_integers(lattice, Batch(1, [Floats(value[None]) for value in made[row]]))[0]
        for row in range(0, 3000, 19)
    ]
    assert np.array_equal(together[::19], alone)
    order_ = np.random.default_rng(12).permutation(3000)
    whole, shuffled = Accumulator(lattice), Accumulator(lattice)
    whole.add(Batch(3000, matrix=made))
    for part in np.array_split(made[order_], 7):
        shuffled.add(Batch(len(part), [Floats(values) for values in part.T]))
    assert whole.total == shuffled.total == [sum(q) for q in together.T.tolist()]


def test_records_inside_by_a_bound_have_a_gauge_of_at_most_one() -> None:
    function = SchattenGauge(1, (3, 3), 2.0).function(1.0)
    made = np.random.default_rng(13).standard_normal((500, 9)) * 0.4
    expected = p_norm(np.linalg.svd(made.reshape(500, 3, 3), compute_uv=False), 1) / 2.0
    with np.errstate(all="ignore"):
        found = function(list(made.T.copy()))
    assert (found >= expected * (1 - 1e-12)).all()
    assert found[expected > 1] == pytest.approx(expected[expected > 1], rel=1e-12)
    assert (found[expected <= 1] <= 1 + 1e-12).all()
    assert (expected <= 1).any()
    assert (expected > 1).any()


def test_a_diagonal_whitening_scales_every_coordinate() -> None:
    made = np.random.default_rng(14).standard_normal((1000, 3))
    made[::50] *= 1e200
    axes = [2.0, 0.25, 16.0]
    scaled = record_integers(BallLattice.scaled([0.0] * 3, axes), Batch(1000, matrix=made))
    plain = record_integers(
        BallLattice.around([0.0] * 3, 1.0), Batch(1000, matrix=np.ascontiguousarray(made * axes))
    )
    assert np.array_equal(scaled, plain)


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_a_dense_map_has_as_many_sums_as_rows(rows: int) -> None:
    rng = np.random.default_rng(15)
    matrix = rng.standard_normal((rows, 3)) * 0.2
    center = np.array([0.5, -1.0, 2.0])
    lattice = BallLattice.mapped(center.tolist(), matrix.tolist())
    made = center + rng.standard_normal((500, 3)) * 2
    image = (made - center) @ matrix.T
    image /= np.maximum(np.linalg.norm(image, axis=1, keepdims=True), 1.0)
    integers = record_integers(lattice, Batch(500, matrix=made))
    assert integers.shape == (500, rows) == (500, lattice.dim)
    assert np.abs(integers * 2.0**lattice.exponent - image).max() < 1e-12
    total = Accumulator(lattice)
    total.add(Batch(500, matrix=made))
    assert total.total == [sum(column) for column in integers.T.tolist()]


def test_values_that_a_map_ignores_still_have_to_be_finite() -> None:
    lattice = BallLattice.mapped([0.0, 0.0], [[0.5, 0.0]])
    made = np.array([[1.0, np.nan], [1.0, 7.0], [1.0, 1e308], [np.inf, 0.0]])
    half = 1 << 43
    assert record_integers(lattice, Batch(4, matrix=made))[:, 0].tolist() == [half, half, half, 0]
    dropped = record_integers(lattice, Batch(4, matrix=made), "drop")
    assert dropped[:, 0].tolist() == [0, half, half, 0]


@pytest.mark.parametrize("wrong", [-1.0, 0.0, 1.0, 1e300, math.inf, math.nan])
def test_a_gauge_that_is_wrong_cannot_push_a_record_out(
    wrong: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Privacy rests on the integer check alone."""
    _, lattice = lp_ball(1.0)
    monkeypatch.setattr(
        "muhat.domains.gauges.norms", lambda vectors, order: np.full(len(vectors[0]), wrong)
    )
    made = np.random.default_rng(16).standard_normal((20_000, 4)) * 1e3
    made[::9] *= 1e304
    integers = record_integers(lattice, Batch(len(made), matrix=made))
    assert squares_at_most(integers, lattice.radius)
