"""The grid of a box in a description: what any device makes of a number, in whole numbers alone."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest

import muhat as mh
from muhat import protocols
from muhat.protocols import Protocol
from muhat.protocols.encodings.box_grid import BoxGrid
from muhat.protocols.encodings.domain_encoding import DomainEncoding

PROMISE = mh.ApproxDP(epsilon=1.0, delta=1e-6)
BOXES = [
    mh.Box([0.0], [100.0]),
    mh.Box([16, -3, 1e9], [90, 1e5, 1e9 + 1]),
    mh.Box([Fraction(1, 3)], [Fraction(2, 3)]),
    mh.Box([1e-139], [3e-139]),
    mh.Box([-1e139], [3e139]),
    mh.Box([(1 << 60) + 1], [(1 << 60) + 2]),
]
HOSTILE = [math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, -5e-324, 2.3e-308, 1.8e308, 50.0]


def as_described(grid: BoxGrid, row: list[float]) -> list[int]:
    """The integers of a record by the words of the module, and by nothing else."""
    found = []
    columns = zip(
        grid.exponents, grid.centers, grid.lower, grid.upper, grid.multipliers, strict=True
    )
    for x, (e, c, low, high, b) in zip(row, columns, strict=True):
        q = 0
        if math.isfinite(x):
            q = min(max(round(Fraction(x) / Fraction(2) ** e - c), low), high)
        t = grid.fraction_bits
        found.append((b * q + (1 << t >> 1)) >> t)
    return found


@pytest.mark.parametrize("box", BOXES, ids=repr)
def test_a_grid_says_all_that_makes_the_integers_of_a_record(box):
    encoding = DomainEncoding(box)
    assert encoding.grid is not None
    rng = np.random.default_rng(1)
    inside = rng.uniform(box.lower, box.upper, (50, box.dim)).tolist()
    ends = [box.lower.tolist(), box.upper.tolist(), box.center.tolist()]
    hostile = [[x] * box.dim for x in HOSTILE]
    rows = inside + ends + hostile
    exact = encoding._exact_numbers(np.array(rows)).tolist()
    assert exact == [as_described(encoding.grid, row) for row in rows]


def test_only_boxes_have_a_grid_and_a_description_says_it():
    assert DomainEncoding(mh.Ball(1.0, dim=2)).grid is None
    protocol = protocols.shuffle_mean(domain=BOXES[0], n=200, privacy=PROMISE)
    fields = json.loads(protocol.to_json())
    grid = fields["randomizer"]["encoding"]["grid"]
    assert grid["exponents"] == [-39]
    assert Protocol.from_json(json.dumps(fields)).digest == protocol.digest


@pytest.mark.parametrize(
    "change",
    [{"centers": [3]}, {"upper": [1]}, {"fraction_bits": 0}, {"multipliers": [1]}, {"lower": []}],
)
def test_a_grid_that_this_machine_does_not_find_is_refused(change):
    protocol = protocols.shuffle_mean(domain=BOXES[0], n=200, privacy=PROMISE)
    fields = json.loads(protocol.to_json())
    encoding = fields["randomizer"]["encoding"]
    encoding["grid"] = encoding["grid"] | change
    with pytest.raises(mh.InvalidInput, match="another grid"):
        Protocol.from_json(json.dumps(fields))
    del encoding["grid"]
    with pytest.raises(mh.InvalidInput, match="another grid"):
        Protocol.from_json(json.dumps(fields))


def test_multipliers_that_differ_in_their_last_digits_are_the_description_s_own():
    protocol = protocols.shuffle_mean(domain=BOXES[0], n=200, privacy=PROMISE)
    fields = json.loads(protocol.to_json())
    fields["randomizer"]["encoding"]["grid"]["multipliers"][0] += 1
    found = Protocol.from_json(json.dumps(fields))
    assert json.loads(found.to_json()) == fields
    assert found.digest != protocol.digest
