"""A few buffers: the noise they make, what neighbours need of it, and that it does not drift."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from muhat.errors import InvalidInput
from muhat.mechanisms.queries.buffered import (
    BLOCK,
    BufferedNoise,
    band,
    buffered_deviations,
    inflation,
    rounded_products,
)
from muhat.mechanisms.queries.streaming import RunningNoise
from muhat.noise.real_normal import FIRST_BITS, RealNormals
from muhat.workloads.buffered import INVERSE_BITS, SCALE_BITS

REACH = 1 << 36
COLUMNS = 128


def plan(
    size: int, strength: Fraction = Fraction(1), contributions: int = 1, reach: int = REACH
) -> RunningNoise:
    return RunningNoise(size, (-36,), (reach,), (Fraction(1),), strength, contributions)


def exact_normals() -> tuple[RealNormals, list[Fraction]]:
    """Normals that are known to 119 bits, and taken for exactly that."""
    normals = RealNormals.draw(COLUMNS)
    normals.refine()
    return normals, [Fraction(x, 1 << normals.bits) for x in normals.integers()]


def known(values: list[Fraction]) -> RealNormals:
    """Numbers as the samplers would have drawn them, up to 2^−183."""
    shifted = [int(value * (1 << FIRST_BITS + 128) // 1) for value in values]
    floors = np.array([x >> 128 for x in shifted], np.int64)
    words = [
        np.array([x >> shift & ((1 << 64) - 1) for x in shifted], np.uint64) for shift in (64, 0)
    ]
    return RealNormals(floors, lambda count: np.zeros(count, np.uint64), words)


def foreseen(one: RunningNoise, floors: np.ndarray) -> list[int]:
    noise = BufferedNoise(one, 0)
    return noise.foreseen(noise.weights(COLUMNS), floors).tolist()


def noise_of_neighbour(
    one: RunningNoise, values: list[Fraction], moved: list[int]
) -> list[Fraction]:
    """The normals with which sums that are smaller by `moved` have the same answers."""
    noise = BufferedNoise(one, 0)
    weights = noise.weights(COLUMNS).tolist()
    floors = np.array([value * (1 << FIRST_BITS) // 1 for value in values], np.int64)
    first = foreseen(one, floors)
    found = list(values)
    for t in range(one.size):
        # f_t depends on what was before t alone.
        second = foreseen(one, floors)[t]
        found[t] += Fraction((moved[t] << noise.guard) + first[t] - second, weights[t])
        floors[t] = found[t] * (1 << FIRST_BITS) // 1
    return found


def sums_moved(size: int, places: list[int], reach: int) -> list[int]:
    return np.cumsum([reach if t in places else 0 for t in range(size)]).tolist()


@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize(
    ("strength", "reach"), [(Fraction(1), REACH), (Fraction(1, 10**8), 1 << 24), (Fraction(50), 9)]
)
def test_what_neighbours_need_of_the_noise_is_at_most_mu_apart(strength, reach, contributions):
    one = plan(80, strength, contributions, reach)
    closest = Fraction(0)
    for place in (0, 1, 37, 79):
        _, values = exact_normals()
        places = [min(place + step, 79 - step) for step in range(contributions)]
        other = noise_of_neighbour(one, values, sums_moved(80, places, reach))
        apart = sum((a - b) ** 2 for a, b in zip(values, other, strict=True))
        assert apart <= strength
        closest = max(closest, apart / strength)
    # Events one after the other move the sums almost alike: nothing is wasted.
    assert closest > (Fraction(99, 100) if contributions == 1 else Fraction(50, 100))


def test_twice_the_reach_would_be_caught():
    one = plan(80)
    _, values = exact_normals()
    other = noise_of_neighbour(one, values, sums_moved(80, [0], 2 * REACH))
    assert sum((a - b) ** 2 for a, b in zip(values, other, strict=True)) > 1


@pytest.mark.parametrize("strength", [Fraction(1), Fraction(1, 10**8)])
def test_with_that_noise_neighbours_have_the_same_answers(strength):
    one = plan(80, strength)
    normals, values = exact_normals()
    moved = sums_moved(80, [30], REACH)
    other = known(noise_of_neighbour(one, values, moved))
    noise = BufferedNoise(one, 0)
    weights = noise.weights(COLUMNS)
    answers = []
    for drawn, added in ((normals, np.array(moved)), (other, np.zeros(80, np.int64))):
        sums = rounded_products(weights, drawn)[:80] + np.array(foreseen(one, drawn.floors))[:80]
        answers.append((sums + (added << noise.guard)).tolist())
    assert answers[0] == answers[1]


@pytest.mark.parametrize("extreme", [False, True])
def test_what_is_foreseen_is_within_its_band_of_the_exact_decoder(extreme):
    """The inverse of the strategy, entry by entry, to 1,000 bits."""
    size, bits = 100, 1000
    noise = BufferedNoise(plan(size), 0)
    root, weights = noise.root, noise.weights(COLUMNS)
    _, values = exact_normals()
    if extreme:
        # As large as they come, with bits that a filter of floors cannot see.
        values = [(-1) ** k * 250 + Fraction(1, 1 << FIRST_BITS + 1) for k in range(COLUMNS)]
    floors = np.array([value * (1 << FIRST_BITS) // 1 for value in values], np.int64)
    powers, c, h = list(root.weights), [1 << bits], [1 << bits]
    powers = [weight << (bits - SCALE_BITS) for weight in powers]
    for _ in range(1, size):
        powers = [x * decay >> SCALE_BITS for x, decay in zip(powers, root.decays, strict=True)]
        c.append(sum(powers))
        known_part = sum(a * b for a, b in zip(c[1:], h[::-1], strict=True)) >> bits
        h.append((1 << bits) - known_part)
    gathered, worst = Fraction(0), Fraction(0)
    for t, found in enumerate(noise.foreseen(weights, floors).tolist()[:size]):
        past = sum(Fraction(h[t - s], 1 << bits) * values[s] for s in range(t))
        worst = max(worst, abs(found - (int(weights[t]) * past + gathered)))
        if t + 1 < size:
            gathered += int(weights[t] - weights[t + 1]) * (past + values[t])
    assert worst <= band(root, float(weights[0]))


@pytest.mark.parametrize("steps", [1 << 14, pytest.param(1 << 18, marks=pytest.mark.slow)])
def test_roundings_do_not_add_up(steps):
    """Beside the same filter step by step in 128 bits, at a horizon of a million."""
    noise = BufferedNoise(plan(1 << 20), 0)
    one, shift = 1 << INVERSE_BITS, INVERSE_BITS - FIRST_BITS
    rests, weights = noise.root.inverse
    sums, buffers = list(noise.sums), [0] * len(rests)
    worst = 0
    for _ in range(steps // BLOCK):
        floors = RealNormals.draw(BLOCK).floors
        past, sums = noise.filter.after(sums, floors)
        for value, found in zip(floors.tolist(), past.tolist(), strict=True):
            buffers = [x - (x * rest >> INVERSE_BITS) for x, rest in zip(buffers, rests)]  # noqa: B905
            worst = max(worst, abs(sum(buffers) - (found << shift)))
            buffers = [x + (value * w >> FIRST_BITS) for x, w in zip(buffers, weights)]  # noqa: B905
    allowed = (band(noise.root, 1.0) - 1) * one
    assert worst < allowed / 8


def test_products_are_rounded_as_if_they_were_exact():
    weights = np.full(6400, (1 << 50) + 12345, np.int64)
    normals = RealNormals.draw(6400)
    found = rounded_products(weights, normals)
    # One in 32 takes more bits than are drawn at first.
    assert len(normals.words) == 1
    half = 1 << (normals.bits - 1)
    exact = [(x * int(weights[0]) + half) >> normals.bits for x in normals.integers()]
    assert found.tolist() == exact
    coarse = [
        (x * int(weights[0]) + (1 << FIRST_BITS - 1)) >> FIRST_BITS for x in normals.floors.tolist()
    ]
    assert found.tolist() != coarse


@pytest.mark.parametrize("planted", [False, True])
def test_noise_has_the_covariance_of_the_decoder(planted):
    size, count = 5, 1500
    one = plan(size)
    noise = np.empty((size, count))
    for k in range(count):
        noise[:, k] = BufferedNoise(one, 0).draw() / REACH
    if planted:
        noise[1:] = noise[:-1].copy()
    root = BufferedNoise(one, 0).root
    c = root.coefficients()
    matrix = np.array([[c[t - s] if s <= t else 0.0 for s in range(size)] for t in range(size)])
    decoder = np.tril(np.ones((size, size))) @ np.diag(root.lengths(0, size))
    decoder = decoder @ np.linalg.inv(matrix)
    assert np.allclose(np.linalg.norm(decoder, axis=1), buffered_deviations(one)[:, 0], rtol=1e-5)
    white = np.linalg.solve(decoder, noise)
    moments = white @ white.T / count
    errors = np.where(np.eye(size), np.sqrt(2 / count), np.sqrt(1 / count))
    # 15 comparisons at six standard errors: a false alarm in 3·10^7 runs.
    assert (np.abs(moments - np.eye(size)) < 6 * errors).all() != planted


def test_a_state_goes_on_where_it_was():
    one = plan(3 * BLOCK - 100)
    noise = BufferedNoise(one, 0)
    noise.draw()
    noise.draw()
    rest = []
    for state in (noise.to_dict(), noise.to_dict()):
        words = np.random.default_rng(3).integers(0, 1 << 64, 1 << 20, np.uint64)
        again = BufferedNoise(one, 0, state, lambda count, words=words: words[:count])
        rest.append(again.draw().tolist())
    assert len(rest[0]) == BLOCK - 100
    assert rest[0] == rest[1]
    with pytest.raises(ValueError):
        BufferedNoise(plan(5), 0, noise.to_dict())


def test_weights_do_not_increase_and_are_long_enough():
    noise = BufferedNoise(plan(10_000), 0)
    found = []
    while noise.drawn < 10_000:
        found += noise.weights(min(BLOCK, 10_000 - noise.drawn)).tolist()
        noise.draw()
    assert found == sorted(found, reverse=True)
    scale = noise.guard + 36
    assert (np.array(found) >= np.ldexp(noise.root.lengths(0, 10_000), scale)).all()


def test_the_band_costs_next_to_nothing_where_promises_are_usual():
    assert inflation(plan(10**6), 0) < 1 + 1e-8


def test_a_promise_too_strong_for_the_integers_is_refused():
    with pytest.raises(InvalidInput, match="too strong"):
        BufferedNoise(plan(100, Fraction(1, 10**24)), 0)
    with pytest.raises(InvalidInput, match="too strong"):
        BufferedNoise(plan(10**6, Fraction(1, 10**16), reach=1 << 6), 0)
