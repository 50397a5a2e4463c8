"""The noisy binary search: rounds, exact sensitivity, rank error and free intervals."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muhat.errors import InvalidInput
from muhat.mechanisms.quantiles.noisy_search import NoisySearch
from muhat.noise.laws import INDEPENDENT, LAWS

UNIT = 1 << 54
NORMAL, LAPLACE = LAWS["normal"], LAWS["laplace"]


def silence(rounds):
    return np.zeros(rounds, np.int64)


def seeded(law, seed):
    """The law's noise from a fixed seed, rounded as the real one is."""
    rng = np.random.default_rng(seed)
    draw = rng.standard_normal if law is NORMAL else rng.laplace
    return lambda rounds: np.rint(draw(size=rounds) * UNIT).astype(np.int64)


def counts_of(cells, records):
    return np.bincount(records, minlength=cells).astype(np.int64)


@pytest.mark.parametrize(
    ("cells", "rounds"), [(1, 0), (2, 1), (3, 2), (1000, 10), (1024, 10), (1025, 11), (1026, 11)]
)
def test_as_many_rounds_are_paid_as_all_cells_need(cells, rounds):
    assert NoisySearch(cells, NORMAL, Fraction(1)).rounds == rounds


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_without_noise_the_search_finds_the_record_of_the_rank(data):
    cells = data.draw(st.integers(1, 70))
    records = np.array(data.draw(st.lists(st.integers(0, cells - 1), min_size=1, max_size=30)))
    rank = data.draw(st.integers(1, len(records)))
    counts, exact = counts_of(cells, records), int(np.sort(records)[rank - 1])
    search = NoisySearch(cells, NORMAL, Fraction(1))
    assert search.find(counts, rank, sample=silence) == exact
    above = len(records) - rank
    assert search.find(counts, above=above, sample=silence) == exact
    q = Fraction(rank, len(records)) if rank < len(records) else Fraction(999, 1000)
    fraction = NoisySearch(cells, LAPLACE, Fraction(1), quantile=q)
    assert fraction.find(counts, sample=silence) == exact


def test_comparing_with_at_most_would_find_the_next_record():
    """The paper's `≤` is a target one rank higher: planted, it returns x_(m+1), and u at m = n."""
    counts = counts_of(16, [2, 5, 9])
    search = NoisySearch(16, NORMAL, Fraction(1))
    assert [search.find(counts, m, sample=silence) for m in (1, 2, 3)] == [2, 5, 9]
    assert [search.find(counts, m + 1, sample=silence) for m in (1, 2, 3)] == [5, 9, 15]


@pytest.mark.parametrize("law", [NORMAL, LAPLACE])
@pytest.mark.parametrize("quantile", [None, Fraction(1, 2), Fraction(1, 3), Fraction("0.9137")])
@pytest.mark.parametrize("contributions", [1, 7])
def test_all_rounds_together_use_the_promise_up_and_no_more(law, quantile, contributions):
    strength = Fraction(3, 7)
    for cells in (2, 1000, 1024, 1025):
        search = NoisySearch(cells, law, strength, contributions, quantile)
        weight = 1 if quantile is None else max(quantile, 1 - quantile)

        def spent(multiplier, search=search, weight=weight):
            moved = math.ceil(multiplier * weight * contributions)
            power = 1 if law is NORMAL else 2
            return search.rounds**power * Fraction(moved, UNIT) ** 2

        assert spent(search.multiplier) <= strength
        assert spent(search.multiplier + 1) > strength
        assert spent(search.multiplier) > strength * (1 - 1e-12)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_a_person_moves_no_comparison_by_more_than_the_sensitivity(data):
    """Every cell, every target, records replaced, added and removed: the integers themselves."""
    cells, many = 9, data.draw(st.integers(1, 3))
    records = data.draw(st.lists(st.integers(0, cells - 1), min_size=many, max_size=12))
    others = data.draw(st.lists(st.integers(0, cells - 1), min_size=many, max_size=many))
    q = data.draw(st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=50))
    public = NoisySearch(cells, NORMAL, Fraction(1, 10**20), many)
    secret = NoisySearch(cells, NORMAL, Fraction(1, 10**20), many, q)
    replaced, removed = others + records[many:], records[many:]

    def integers(search, rows, **target):
        counts = counts_of(cells, np.array(rows, np.int64))
        aim = search._target(len(rows), target.get("rank"), target.get("above"))
        below = np.cumsum(counts).tolist()
        return [math.floor(search.multiplier * (count - aim)) for count in below]

    cases = [
        (public, replaced, {"rank": 2}),
        (public, removed, {"rank": 2}),
        (public, replaced, {"above": 1}),
        (public, removed, {"above": 1}),
        (secret, removed, {}),
    ]
    for search, neighbor, target in cases:
        pairs = zip(
            integers(search, records, **target), integers(search, neighbor, **target), strict=True
        )
        assert max(abs(one - other) for one, other in pairs) <= search.sensitivity


def test_a_search_with_too_little_noise_does_not_exist():
    """Noise for one round too few (log₂ u instead of ⌈log₂(u + 1)⌉ at u = 1024) is refused."""

    class Careless(NoisySearch):
        @property
        def multiplier(self):
            return NoisySearch(1024, self.law, self.strength_squared).multiplier

    for law in (NORMAL, LAPLACE):
        Careless(1024, law, Fraction(1))
        with pytest.raises(AssertionError):
            Careless(1025, law, Fraction(1))


def worst_counts(cells, rank, short):
    """All comparisons but the last cell's count `short` records less than the rank."""
    return counts_of(cells, [0] * (rank - short) + [cells - 1] * 1000)


@pytest.mark.parametrize("law", [NORMAL, LAPLACE])
@pytest.mark.parametrize("cells", [1024, 1000])
def test_the_rank_error_holds_at_its_confidence_on_the_worst_data(law, cells):
    """Each of T rounds is in danger; 4000 runs, false alarm below 1e-7 (5.5 standard errors)."""
    runs, confidence, rank = 4000, 0.9, 500
    search = NoisySearch(cells, law, Fraction(1, 100))
    error = search.rank_error(confidence)
    counts, sample = worst_counts(cells, rank, error + 1), seeded(law, 5)
    failures = sum(search.find(counts, rank, sample=sample) < cells - 1 for _ in range(runs))
    allowed = 1 - confidence
    spread = 5.5 * math.sqrt(allowed * (1 - allowed) / runs)
    assert failures / runs <= allowed + spread
    # The bound is tight: a rank error smaller by a fifth would be caught.
    counts = worst_counts(cells, rank, int(0.8 * error))
    failures = sum(search.find(counts, rank, sample=sample) < cells - 1 for _ in range(runs))
    assert failures / runs > allowed + spread


def test_the_papers_rank_error_is_too_small():
    """Theorem 1's τ fails far more often than the β = 5 % it states."""
    runs, rho, cells, rank = 2000, Fraction(1, 200), 1024, 500
    search = NoisySearch(cells, NORMAL, 2 * rho)
    paper = math.sqrt(10 * math.log(10 / 0.05) / (2 * float(rho)))
    assert paper < search.rank_error(0.95)
    natural = math.sqrt(math.log(1023) * math.log(math.log(1023) / 0.05) / (2 * float(rho)))
    counts, sample = worst_counts(cells, rank, int(natural) + 1), seeded(NORMAL, 8)
    failures = sum(search.find(counts, rank, sample=sample) < cells - 1 for _ in range(runs))
    assert failures / runs > 0.2


@pytest.mark.parametrize("law", [NORMAL, LAPLACE])
@pytest.mark.parametrize("q", [None, Fraction(1, 2), Fraction(9, 10)])
def test_rank_error_and_interval_hold_on_spread_out_records(law, q):
    """Records all over the cells, a rank public or a fraction of a secret number."""
    runs, confidence, cells, n = 2000, 0.8, 300, 900
    records = np.sort((np.arange(n) ** 2 * cells) // n**2)
    search = NoisySearch(cells, law, Fraction(1, 50) if law is NORMAL else Fraction(1), quantile=q)
    rank = 450 if q is None else math.ceil(q * n)
    error = search.rank_error(confidence)
    counts, sample = counts_of(cells, records), seeded(law, 11)
    lowest = records[rank - error - 1] if rank > error else 0
    highest = records[rank + error - 1] if rank + error <= n else cells - 1
    off = missed = informative = 0
    for _ in range(runs):
        walk = search.start(n, rank if q is None else None, sample=sample)
        walk.descend(0, counts, search.rounds)
        first, last = search.enclosing(walk.comparisons, walk.cell, search.clear(confidence))
        off += not lowest <= walk.cell <= highest
        missed += not first <= records[rank - 1] <= last
        informative += last - first < cells // 2
        assert first <= walk.cell <= last
    allowed = 0.2 + 5.5 * math.sqrt(0.2 * 0.8 / runs)
    assert off / runs <= allowed
    assert missed / runs <= allowed
    assert informative > runs / 2


def test_an_interval_that_is_too_sure_is_caught():
    """Planted: the interval of a lower confidence misses the record more often than 10 %."""
    runs, cells, rank = 1500, 1024, 500
    search = NoisySearch(cells, NORMAL, Fraction(1, 100))
    counts, sample = worst_counts(cells, rank, 1), seeded(NORMAL, 3)
    missed = {0.9: 0, 0.01: 0}
    for _ in range(runs):
        walk = search.start(int(counts.sum()), rank, sample=sample)
        walk.descend(0, counts, search.rounds)
        for confidence in missed:
            last = search.enclosing(walk.comparisons, walk.cell, search.clear(confidence))[1]
            missed[confidence] += last < cells - 1
    limit = 0.1 + 5.5 * math.sqrt(0.09 / runs)
    assert missed[0.9] / runs <= limit < missed[0.01] / runs


def test_every_path_draws_all_its_noise_at_once():
    drawn = []

    def counting(rounds):
        drawn.append(rounds)
        return silence(rounds)

    search = NoisySearch(1000, NORMAL, Fraction(1))
    for records in ([0] * 5, [999] * 5, [500] * 5):
        walk = search.start(5, 3, sample=counting)
        walk.descend(0, counts_of(1000, records), 10)
        assert len(walk.comparisons) == 10
    assert drawn == [10, 10, 10]


def test_a_search_in_stages_finds_what_one_table_finds():
    cells, rng = 1000, np.random.default_rng(4)
    records = rng.integers(0, cells, 500)
    counts = counts_of(cells, records)
    search = NoisySearch(cells, NORMAL, Fraction(1, 10))
    for seed in range(40):
        rank = 1 + 12 * seed
        whole = search.find(counts, rank, sample=seeded(NORMAL, seed))
        walk = search.start(500, rank, sample=seeded(NORMAL, seed))
        while walk.rounds_left:
            rounds = min(3, walk.rounds_left)
            width = 1 << (walk.rounds_left - rounds)
            inside = np.pad(counts, (0, 1024 - cells))[walk.left :][: width << rounds]
            before = int(counts[: walk.left].sum())
            walk.descend(before, inside.reshape(-1, width).sum(axis=1), rounds)
        assert walk.cell == whole


def test_noise_has_the_stated_deviation():
    search = NoisySearch(1024, NORMAL, Fraction(1, 5))
    assert search.scale == pytest.approx(math.sqrt(10 / 0.2))  # √(T/(2ρ)), ρ = 0.1
    laplace = NoisySearch(1024, LAPLACE, Fraction(1))
    assert laplace.scale == pytest.approx(math.sqrt(2) * 10)
    half = NoisySearch(1024, LAPLACE, Fraction(1), quantile=Fraction(1, 2))
    assert half.scale == pytest.approx(math.sqrt(2) * 5)


def test_the_real_noise_is_used_when_no_other_is_given():
    """20 rounds of real noise of deviation 45: the median of 10⁵ equal records is safe."""
    search = NoisySearch(1 << 20, NORMAL, Fraction(1, 100))
    counts = np.zeros(1 << 20, np.int64)
    counts[777_777] = 100_000
    assert search.find(counts, 50_000) == 777_777


@pytest.mark.parametrize(("cells", "law"), [(2, LAPLACE), (2, NORMAL), (8, LAPLACE)])
def test_neighbours_with_an_extreme_record_find_the_same_cells(cells, law):
    """10⁴ pairs with real noise: frequencies differ by what the promise allows (5.5 errors).

    A record on the edge of the decision jumps to the other end. Pure: P(up) ≤ e^ε·P'(up). Normal,
    one round: Φ⁻¹(P(up)) moves by at most μ. Planted noise of a tenth is caught.
    """
    runs, strength = 10_000, 0.5
    pair = counts_of(cells, [0, 0, 0, cells - 1]), counts_of(cells, [0, 0, cells - 1, cells - 1])

    def shares(strength):
        search = NoisySearch(cells, law, Fraction(strength) ** 2)
        noise = law.sample(2 * runs * search.rounds).reshape(2, runs, -1)
        return [
            np.mean([search.find(counts, 3, sample=lambda _, z=z: z) > 0 for z in drawn])
            for counts, drawn in zip(pair, noise, strict=True)
        ]

    def violated(few, many):
        error = 5.5 * math.sqrt(0.25 / runs)
        if law is LAPLACE:
            return many > math.exp(strength) * few + (1 + math.exp(strength)) * error
        shift = NormalDist().inv_cdf(max(few, 1e-9) + error) + strength
        return many > NormalDist().cdf(shift) + error

    assert not violated(*shares(strength))
    assert violated(*shares(10 * strength))


def test_a_search_survives_its_description():
    search = NoisySearch(1025, LAPLACE, Fraction(3, 7), 4, Fraction(1, 3))
    assert NoisySearch.from_dict(search.to_dict()) == search


@pytest.mark.parametrize(
    "bad",
    [
        {"cells": 0},
        {"cells": 1 << 63},
        {"contributions": 0},
        {"quantile": Fraction(0)},
        {"quantile": Fraction(1)},
        {"strength_squared": Fraction(1, 10**60)},
        {"law": LAWS["euclidean-norm"]},
    ],
)
def test_impossible_searches_are_refused(bad):
    fields = {"cells": 8, "law": NORMAL, "strength_squared": Fraction(1), **bad}
    with pytest.raises(InvalidInput):
        NoisySearch(**fields)


def test_a_rank_is_asked_for_in_one_way():
    counts = np.ones(8, np.int64)
    public = NoisySearch(8, NORMAL, Fraction(1))
    secret = NoisySearch(8, NORMAL, Fraction(1), quantile=Fraction(1, 2))
    for search, target in [
        (public, {}),
        (public, {"rank": 1, "above": 1}),
        (public, {"rank": 0}),
        (public, {"above": -1}),
        (secret, {"rank": 1}),
    ]:
        with pytest.raises(InvalidInput):
            search.find(counts, **target)
    with pytest.raises(InvalidInput):
        public.find(counts[:7], 1)
    with pytest.raises(InvalidInput):
        public.rank_error(1.0)


@pytest.mark.parametrize("name", ["normal", "laplace"])
def test_a_search_typically_errs_as_planned_where_records_lie_evenly(name: str) -> None:
    # The mean of 1500 squares has a relative deviation of 7 %: 5.5 of it are 18 % of the root.
    search = NoisySearch(1 << 14, INDEPENDENT[name], Fraction(1, 2), further=3)
    counts = np.ones(1 << 14, np.int64)
    ranks = np.random.default_rng(3).integers(2_000, 14_000, 1_500)
    squares = [(search.find(counts, int(rank)) - rank + 1) ** 2 for rank in ranks]
    assert 0.8 < math.sqrt(np.mean(squares)) / search.typical_error < 1.25
