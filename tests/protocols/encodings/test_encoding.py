"""Records as whole numbers: how far they move, where they lie, and what is left of hostile ones."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import muhat as mh
from muhat.errors import InvalidInput
from muhat.protocols.encodings.domain_encoding import DomainEncoding
from muhat.protocols.encodings.tree_encoding import TreeEncoding

DOMAINS = {
    "ball": mh.Ball(2.0, dim=3, center=[1.0, 2.0, 3.0]),
    "line": mh.Box([-1.0], [5.0]),
    "box": mh.Box([-1.0, 0.0, 5.0], [1.0, 10.0, 6.0]),
    "ellipsoid": mh.Ellipsoid(np.array([[2.0, 0.5], [0.5, 1.0]])),
    "points": mh.Points(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 3.0]])),
    "simplex": mh.Simplex(3),
    "product": mh.Ball(1.0, dim=2) * mh.Box([0.0], [4.0]),
    "diamond": mh.LpBall(1, 1.0, dim=4),
}

HOSTILE = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.0, -0.0, 1e150]


def extreme_records(domain, rng, count=40):
    """Points of the boundary, and far outside of it."""
    directions = rng.normal(size=(count, domain.dim))
    extreme = np.array([domain.extreme_point(direction) for direction in directions])
    return np.concatenate([extreme, 1e6 * directions, domain.center + 0 * directions[:2]])


def replayed(seed):
    """The same random words at every call."""
    return lambda count: np.random.default_rng(seed).integers(0, 1 << 64, count, np.uint64)


@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("bits", [2, 6, 20])
def test_two_records_rounded_alike_differ_by_at_most_the_sensitivity(name, bits):
    domain = DOMAINS[name]
    encoding = DomainEncoding(domain, bits)
    moved = encoding.sensitivity
    records = extreme_records(domain, np.random.default_rng(bits))
    for seed in range(3):
        # The same bits for every record: one at a time.
        numbers = np.array([encoding.integers(row[None], replayed(seed))[0] for row in records])
        apart = numbers[:, None] - numbers[None]
        assert max(int(s) for s in (apart**2).sum(axis=2).ravel()) <= moved.l2**2
        assert int(np.abs(apart).sum(axis=2).max()) <= moved.l1
        assert encoding.low <= numbers.min() <= numbers.max() <= encoding.high


def test_without_room_for_rounding_the_sensitivity_would_be_wrong():
    encoding = DomainEncoding(mh.Ball(1.0, dim=3), 2)
    ends = np.array([[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]]) / np.sqrt(3)
    largest = 0.0
    for seed in range(30):
        first, second = (encoding.integers(row[None], replayed(seed))[0] for row in ends)
        largest = max(largest, float(np.linalg.norm(first - second)))
    assert largest > 1.15 * 2**2
    assert largest <= encoding.sensitivity.l2


@pytest.mark.parametrize("name", DOMAINS)
def test_rounding_has_no_bias(name):
    """Means of 20,000 roundings of a record, each within 5.5 standard errors of the exact one."""
    domain, size = DOMAINS[name], 20_000
    coarse, fine = DomainEncoding(domain, 3), DomainEncoding(domain, 40)
    record = np.broadcast_to(domain.extreme_point(np.ones(domain.dim)) * 0.999, (size, domain.dim))
    exact = fine.integers(record[:1])[0] / 2.0**37
    mean = coarse.integers(record).mean(axis=0)
    assert np.abs(mean - exact).max() < 5.5 * 0.5 / np.sqrt(size)
    # Rounding down would be off by far more.
    assert np.abs(np.floor(exact) - exact).max() > 0.1


@pytest.mark.parametrize("name", DOMAINS)
def test_hostile_records_stay_in_range(name):
    domain = DOMAINS[name]
    encoding = DomainEncoding(domain, 8)
    grid = np.array(np.meshgrid(*[HOSTILE] * min(domain.dim, 3))).reshape(min(domain.dim, 3), -1).T
    records = np.zeros((len(grid), domain.dim))
    records[:, : grid.shape[1]] = grid
    numbers = encoding.integers(records)
    assert encoding.low <= numbers.min() <= numbers.max() <= encoding.high
    missing = encoding.integers(np.full((1, domain.dim), np.nan), replayed(1))
    assert np.abs(missing - encoding.integers(domain.center[None], replayed(1))).max() <= 1


@pytest.mark.parametrize("name", DOMAINS)
def test_the_mean_comes_back_from_the_sums(name):
    domain, people = DOMAINS[name], 500
    encoding = DomainEncoding(domain, 30)
    weights = np.random.default_rng(3).dirichlet(np.ones(3), people)
    ends = np.array([domain.extreme_point(row) for row in np.eye(3, domain.dim)])
    records = weights @ ends if name != "points" else ends[weights.argmax(axis=1)]
    totals = encoding.integers(records).sum(axis=0).tolist()
    assert np.abs(encoding.mean(totals, people) - records.mean(axis=0)).max() < 1e-7


def test_a_domain_of_one_point_needs_no_numbers():
    with pytest.raises(InvalidInput, match="single point"):
        DomainEncoding(mh.Points(np.array([[1.0, 2.0]])), 5)


@pytest.mark.parametrize("bits", [0, 45, 1.5, True])
def test_impossible_resolutions_are_refused(bits):
    with pytest.raises(InvalidInput, match="bits"):
        DomainEncoding(mh.Ball(1.0, dim=2), bits)


@given(
    cells=st.sampled_from([2, 6, 16]),
    scale=st.integers(1, 1000),
    records=st.lists(st.tuples(st.floats(), st.floats()), min_size=2, max_size=2),
)
def test_a_record_is_in_one_block_of_every_size(cells, scale, records):
    blocks = tuple(size for size in (1, 2, 3, 8) if cells % size == 0 and 2 * size <= cells)
    encoding = TreeEncoding(cells, blocks, dim=2, scale=scale)
    numbers = encoding.integers(np.array(records))
    parts = np.split(numbers.reshape(2, 2, -1), np.cumsum(encoding.widths)[:-1], axis=2)
    for size, part in zip(blocks, parts, strict=True):
        assert part.shape[2] == cells // size
        assert (np.sort(part, axis=2)[..., -1] == scale).all()
        assert (part.sum(axis=2) == scale).all()
        # The block of a cell is the one that holds it.
        assert (part.argmax(axis=2) == parts[blocks.index(1)].argmax(axis=2) // size).all()
    apart = numbers[0] - numbers[1]
    assert int((apart**2).sum()) <= encoding.sensitivity.l2**2
    assert int(np.abs(apart).sum()) <= encoding.sensitivity.l1


def test_cells_are_clipped_and_missing_ones_are_in_the_middle():
    encoding = TreeEncoding(8, (1,))
    records = np.array([[-5.0], [0.9], [7.0], [1e300], [np.nan], [-np.inf]])
    assert encoding.integers(records).argmax(axis=1).tolist() == [0, 0, 7, 7, 4, 4]


def test_the_sensitivity_of_a_tree_is_reached():
    encoding = TreeEncoding(8, (1, 2, 4), dim=2, scale=3)
    first, second = encoding.integers(np.array([[0.0, 0.0], [7.0, 7.0]]))
    apart = first - second
    assert int(np.abs(apart).sum()) == encoding.sensitivity.l1 == 36
    assert float(encoding.sensitivity.l2) == pytest.approx(np.linalg.norm(apart), rel=1e-12)


def test_counts_come_back_from_the_sums_of_a_tree():
    encoding = TreeEncoding(4, (1, 2), dim=2, scale=10)
    records = np.array([[0.0, 3.0], [1.0, 3.0], [3.0, 2.0]])
    single, double = encoding.counts(encoding.integers(records).sum(axis=0).tolist())
    assert single.tolist() == [[1, 1, 0, 1], [0, 0, 1, 2]]
    assert double.tolist() == [[2, 1], [0, 3]]


@pytest.mark.parametrize(
    "arguments",
    [
        (1, (1,)),
        (8, ()),
        (8, (8,)),
        (8, (3,)),
        (8, (1, 1)),
        (8, (0,)),
        (1 << 41, (1,)),
        (8.5, (1,)),
    ],
)
def test_impossible_trees_are_refused(arguments):
    with pytest.raises(InvalidInput):
        TreeEncoding(*arguments)
    with pytest.raises(InvalidInput, match="numbers"):
        TreeEncoding(1 << 21, (1,))


def test_descriptions_come_back():
    weighted = DomainEncoding(DOMAINS["box"], 9, 4.0, (1.0, 2.0, 3.0))
    tree = TreeEncoding(16, (1, 4), dim=3, scale=7)
    for encoding in (weighted, tree, DomainEncoding(DOMAINS["ball"], 9, np.inf)):
        fields = json.loads(json.dumps(encoding.to_dict()))
        assert type(encoding).from_dict(fields) == encoding
        assert encoding.unit > 0
    assert tree.unit == Fraction(1, 7)
