"""How far a draw moves a count, beside the exact binomial law."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from muhat.mechanisms.quantiles.sampling import sampling_reach

SHARES = (1e-4, 0.01, 0.1, 0.25, 0.5, 0.9, 0.999)


@pytest.mark.parametrize("draws", [1, 2, 5, 37, 1000, 123_456])
def test_a_draw_is_rarely_farther_off(draws):
    for share in SHARES:
        for miss in (0.2, 0.025, 0.005, 1e-5):
            reach = sampling_reach(draws, share, miss)
            above = binom.sf(math.floor(draws * share + reach + 1e-9), draws, share)
            below = binom.cdf(math.ceil(draws * share - reach - 1e-9) - 1, draws, share)
            assert max(above, below) <= miss
            # Hardly more than what is needed: about a record.
            nearer = reach - 2.5
            if nearer > 0:
                above = binom.sf(math.floor(draws * share + nearer), draws, share)
                below = binom.cdf(math.ceil(draws * share - nearer) - 1, draws, share)
                assert max(above, below) > miss


def test_fewer_draws_are_less_far_off():
    draws = np.arange(1, 3000, 7)
    for share in SHARES:
        reach = [sampling_reach(int(number), share, 0.01) for number in draws]
        assert (np.diff(reach) >= -1e-4 * np.maximum(reach[1:], 1)).all()
