"""Records put aside come back, all of them and in either layout."""

from __future__ import annotations

import numpy as np
import pytest

from muhat.records.tiles import Waiting


@pytest.mark.parametrize("dim", [1, 3, 40])
def test_what_is_put_from_tiles_of_any_layout_is_taken_once(dim: int) -> None:
    rng = np.random.default_rng(dim)
    waiting = Waiting(dim)
    for _ in range(3):
        kept = []
        for turn in range(6):
            tile = rng.standard_normal((50, dim))
            values = tile if turn % 2 else np.asfortranarray(tile)
            places = np.flatnonzero(rng.random(50) < 0.4)
            waiting.put(values, places)
            kept.extend(tile[places].tolist())
        taken = waiting.take()
        assert taken.shape == (dim, len(kept))
        assert sorted(taken.T.tolist()) == sorted(kept)
        assert waiting.take().shape == (dim, 0)


def test_it_says_when_there_are_enough_and_holds_more() -> None:
    waiting = Waiting(64)
    tile, places = np.ones((1500, 64)), np.arange(1500)
    answers = [waiting.put(tile, places) for _ in range(5)]
    assert answers == [False, False, True, True, True]
    assert waiting.take().shape == (64, 7500)
