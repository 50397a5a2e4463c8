"""One byte about a cell: its exact law, its description, records of any kind."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from muhat.data.grids import UniformGrid
from muhat.errors import InvalidInput
from muhat.privacy import ZCDP, PureDP
from muhat.protocols.encodings.range_cells import Coordinates, Distance, Rotated
from muhat.protocols.estimators.range_choice import best_mix, best_ranges
from muhat.protocols.estimators.range_counts import range_counts
from muhat.protocols.randomizers.frequency import SubsetResponse
from muhat.protocols.randomizers.randomizer import Randomizer
from muhat.protocols.randomizers.range_randomizer import RangeRandomizer
from muhat.release.quantile_grids import RelativeGrid

GRID = UniformGrid(-1.0, 1.0, 0.1)
ONE = PureDP(epsilon=1.0)
BEST = best_ranges(Coordinates(1), GRID, ONE)


def nonces(rows: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (rows, 16), np.uint8)


def test_the_payload_has_the_exact_law_of_its_cell_and_another_cell_is_told_apart():
    size = 40_000
    for nonce in nonces(4):
        repeated = np.repeat(nonce[None], size, axis=0)
        payloads = BEST.randomize(np.full((size, 1), 0.31), repeated)
        counts = np.bincount(payloads[:, 0], minlength=BEST.response.answers)
        leaf = BEST.tree.leaves(np.array([13]))
        own = int(BEST.mix.buckets(leaf, nonce[None])[0])
        chances = np.array(
            [
                [float(BEST.response.likelihood(answer, bucket)) for answer in range(4)]
                for bucket in (own, own ^ 1)
            ]
        )
        assert stats.chisquare(counts, chances[0] * size).pvalue > 1e-7
        assert stats.chisquare(counts, chances[1] * size).pvalue < 1e-12


@pytest.mark.parametrize(
    ("look", "grid", "promise"),
    [
        (Coordinates(1), GRID, ONE),
        (Coordinates(3), UniformGrid(0.0, 1.0, 0.01), ZCDP(rho=0.3)),
        (Distance((0.0, 1.0)), RelativeGrid(0.1, 1000.0, 1.3), PureDP(epsilon=3.0)),
        (Rotated((1, -1, 1), (0.0, 0.0, 0.0)), GRID, ONE),
    ],
)
def test_a_randomizer_is_read_back_from_json(look, grid, promise):
    made = best_ranges(look, grid, promise)
    again = RangeRandomizer.from_dict(json.loads(json.dumps(made.to_dict())))
    assert again == made
    assert again.privacy == promise
    assert again.record_dim == look.dim
    assert again.payload_bytes == 1


def test_missing_and_distant_records_have_their_cells():
    records = np.array([[np.nan], [np.inf], [-np.inf], [0.0], [-7.0], [1e308], [0.33]])
    assert BEST.cells(records, nonces(7)).tolist() == [10, 10, 10, 10, 0, 20, 13]
    radial = best_ranges(Distance((1.0, 1.0)), RelativeGrid(1.0, 8.0, 2.0), ONE)
    records = np.array([[np.nan, np.nan], [4.0, 5.0], [1e308, -1e308], [1.0, np.inf]])
    assert radial.cells(records, nonces(4)).tolist() == [0, 3, 3, 0]
    rotated = best_ranges(Rotated((1,), (0.5,)), GRID, ONE)
    assert rotated.cells(np.array([[np.nan], [0.8]]), nonces(2)).tolist() == [10, 13]


def test_no_warning_and_no_error_depends_on_the_records():
    strange = np.array([[np.nan, -0.0], [1e308, -1e308], [5e-324, np.inf], [-np.inf, 1.7e308]])
    for look in (Coordinates(2), Distance((0.0, 0.0)), Rotated((1, -1), (1e308, -1e308))):
        made = best_ranges(look, GRID, ONE)
        payloads = made.randomize(strange, nonces(4))
        assert payloads.shape == (4, 1)
        assert made.valid(payloads).all()
    assert BEST.randomize(np.empty((0, 1)), nonces(0)).shape == (0, 1)


def test_only_sets_that_there_are_are_valid():
    every = np.arange(256, dtype=np.uint8)[:, None]
    for made in (BEST, best_ranges(Coordinates(1), UniformGrid(0, 63, 1), PureDP(epsilon=0.5))):
        assert made.valid(every).tolist() == [place < made.response.answers for place in range(256)]


def test_hostile_descriptions_are_refused():
    good = BEST.to_dict()
    for name in good:
        for bad in (None, 7, "x", [], {}, [[]], -1.0, float("nan")):
            fields = json.loads(json.dumps(good))
            fields[name] = bad
            with pytest.raises(InvalidInput):
                Randomizer.from_dict(fields)
        fields = dict(good)
        del fields[name]
        with pytest.raises(InvalidInput):
            Randomizer.from_dict(fields)


def test_parts_that_do_not_fit_are_refused():
    with pytest.raises(InvalidInput, match="levels"):
        RangeRandomizer(Coordinates(1), GRID, ONE, best_mix(64, 2), BEST.response)
    with pytest.raises(InvalidInput, match="as large as"):
        RangeRandomizer(Coordinates(1), GRID, ONE, BEST.mix, SubsetResponse(1, 1, 1.0))
    with pytest.raises(InvalidInput, match="too many"):
        best_ranges(Coordinates(1 << 17), UniformGrid(0.0, 1000.0, 1.0), ONE)
    with pytest.raises(InvalidInput, match="several_range_counts"):
        range_counts(best_ranges(Coordinates(2), GRID, ONE), nonces(1), np.zeros((1, 1), np.uint8))
