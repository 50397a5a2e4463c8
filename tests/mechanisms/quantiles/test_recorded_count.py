"""Counts of recorded values beside searches: exact sensitivity, and what they cost."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muhat.errors import InvalidInput
from muhat.mechanisms.quantiles.noisy_search import NoisySearch
from muhat.mechanisms.quantiles.recorded_count import RecordedCount, count_beside, spent_beside
from muhat.noise.laws import LAWS

CELLS, WHOLE = 9, 1 << 108
NORMAL, LAPLACE = LAWS["normal"], LAWS["laplace"]


def integers(search, records):
    """What every question would compare at every cell, and what the count is made of."""
    recorded = [record for record in records if record is not None]
    below = np.cumsum(np.bincount(np.array(recorded, np.int64), minlength=CELLS)).tolist()
    target = Fraction(1, 2) if search.quantile is None else search.quantile * len(recorded)
    return [math.floor(search.multiplier * (count - target)) for count in below], len(recorded)


@settings(deadline=None, max_examples=300)
@given(st.data())
@pytest.mark.parametrize("law", [NORMAL, LAPLACE])
@pytest.mark.parametrize("replaced", [True, False])
def test_a_person_moves_searches_and_count_together_by_no_more_than_the_promise(
    law, replaced, data
):
    many = data.draw(st.integers(1, 3))
    value = st.none() | st.integers(0, CELLS - 1)
    records = data.draw(st.lists(value, min_size=many, max_size=12))
    others = data.draw(st.lists(value, min_size=many, max_size=many)) if replaced else []
    neighbor = others + records[many:]
    fractions = data.draw(
        st.lists(
            st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=50),
            min_size=1,
            max_size=3,
        )
    )
    # So strong a promise that a unit of rounding would be seen.
    strength = Fraction(1, 10**20)
    part = strength * Fraction(9, 10) ** 2 / len(fractions) ** 2
    end = data.draw(st.booleans())
    asked = [None if end else fractions[0], *fractions[1:]]
    searches = [NoisySearch(CELLS, law, part, many, q, replaced, 2) for q in asked]
    count = count_beside(searches, strength)
    moved = []
    for search in searches:
        pairs = zip(integers(search, records)[0], integers(search, neighbor)[0], strict=True)
        moved += [max(abs(one - other) for one, other in pairs)] * search.questions
    change = integers(searches[0], records)[1] - integers(searches[0], neighbor)[1]
    moved.append(abs(change) * count.multiplier)
    spent = sum(m**2 for m in moved) if law is NORMAL else sum(moved) ** 2
    assert spent <= spent_beside(searches, count) * WHOLE <= strength * WHOLE


def test_where_records_are_replaced_the_count_is_free_and_finer_than_a_round():
    """C² = Σ T·S²·(1 − w²): at the median of 20 rounds a deviation √15 smaller than a round's."""
    search = NoisySearch(1 << 20, NORMAL, Fraction(1), 1, Fraction(1, 2), True)
    count = count_beside([search], Fraction(1))
    assert count.scale == pytest.approx(search.scale / math.sqrt(15), rel=1e-6)
    pure = NoisySearch(1 << 20, LAPLACE, Fraction(1), 1, Fraction(1, 2), True)
    assert count_beside([pure], Fraction(1)).scale == pytest.approx(pure.scale / 10, rel=1e-6)


def test_where_nothing_is_left_there_is_no_count():
    search = NoisySearch(16, NORMAL, Fraction(1), 1, Fraction(1, 2))
    with pytest.raises(InvalidInput):
        count_beside([search], Fraction(1, 4))


def test_a_count_has_the_noise_that_it_states():
    """5.5 standard errors of a mean of 20,000: a false alarm below 4e-8."""
    count = RecordedCount(LAPLACE, 1 << 52)
    noise = count.law.sample(20_000)
    values = [count.release(700, sample=lambda _, z=z: [z]) for z in noise]
    assert abs(np.mean(values) - 700) <= 5.5 * count.scale / math.sqrt(20_000)
    assert np.std(values) == pytest.approx(count.scale, rel=0.1)
    assert RecordedCount.from_dict(count.to_dict()) == count
