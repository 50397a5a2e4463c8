"""`mh.quantile`: what it releases, what it refuses, what it charges."""

from __future__ import annotations

import math
import re
from itertools import product

import numpy as np
import pytest

import muhat as mh
from muhat.errors import DataChanged, InvalidInput, SourceFailed
from muhat.statistics.quantiles import MOST_QUANTILES

PROMISES = [
    mh.PureDP(epsilon=1.0),
    mh.ApproxDP(epsilon=1.0, delta=1e-9),
    mh.ZCDP(rho=0.1),
    mh.GDP(mu=0.5),
]
SURE = 1 - 1e-9
VALUES = np.random.default_rng(0).permutation(np.arange(20_000))


def median(data=VALUES, q=0.5, **options):
    return mh.quantile(
        data, q, **{"lower": 0, "upper": 1e5, "privacy": mh.ZCDP(rho=0.1), **options}
    )


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.kind)
@pytest.mark.parametrize("n", [20_000, None])
def test_every_promise_finds_the_median_within_its_rank_error(promise, n):
    release = median(privacy=promise, n=n)
    assert abs(float(release) - 9_999) <= release.rank_error(SURE)[0]
    lower, upper = release.interval(SURE)
    assert lower[0] <= 9_999 <= upper[0]
    assert lower[0] <= float(release) <= upper[0]
    assert release.privacy == release.cost == promise
    assert release.n == n


def test_the_stated_noise_is_that_of_the_theory():
    """σ = √((T + ⌈T/5⌉)/(2ρ)): T = ⌈log₂(u + 1)⌉ halvings and a fifth more for the interval."""
    promise = mh.GDP(mu=math.sqrt(0.2))
    release = median(upper=1024, resolution=1, privacy=promise)
    assert release.rounds.tolist() == [14]
    assert release.noise_scale[0] == pytest.approx(math.sqrt(14 / 0.2))
    assert median(upper=1023, resolution=1, privacy=promise).rounds.tolist() == [12]
    assert median(upper=1, resolution=1, privacy=promise).rounds.tolist() == [2]


def test_a_choice_takes_the_place_of_the_halvings():
    """⌈T/2⌉ questions for the interval, and for the choice what T of them would spend."""
    release = median(upper=1024, resolution=1)
    assert release.rounds.tolist() == [6]
    assert release.noise_scale[0] == pytest.approx(math.sqrt(17 / 0.2))
    # Between two cells a comparison errs less than a choice.
    assert median(upper=1, resolution=1).mechanism == "noisy-search (normal)"
    plan = mh.plan_quantile(0.5, lower=0, upper=1024, resolution=1, privacy=mh.ZCDP(rho=0.1))
    assert plan.mechanism == release.mechanism == "exponential"
    ((name, error),) = plan.alternatives
    assert name == "noisy-search (normal)"
    assert plan.to_dict()["typical_rank_error"] < error
    assert "exponential" in plan.describe()
    assert name in plan.describe()


def test_a_choice_is_made_where_its_promise_is_proved_and_one_pass_is_enough():
    options = {"lower": 0, "upper": 1e6, "n": 1000}
    names = [mh.plan_quantile(0.5, privacy=one, **options).mechanism for one in PROMISES]
    assert names == ["exponential"] * 3 + ["noisy-search (normal)"]
    fine = mh.plan_quantile(0.5, resolution=0.01, privacy=mh.PureDP(epsilon=1), **options)
    assert fine.mechanism == "noisy-search (laplace)"
    assert fine.alternatives == ()


def test_a_secret_number_of_records_costs_nothing():
    public, secret = median(missing="none"), median(missing="none", n=None)
    assert secret.noise_scale[0] == pytest.approx(public.noise_scale[0] / 2)
    assert secret.neighbors is mh.Neighbors.ADD_REMOVE
    assert secret.to_dict()["n"] is None
    said = secret.to_json() + repr(secret) + secret.describe()
    # As a number of its own: among the digits of noise it is found now and then.
    assert not re.search(r"(?<![\d.,])20,?000(?![\d.,])", said)


def test_leaving_missing_values_out_costs_a_round_at_most():
    """Nothing where n is public; else 1/(Q + 1) of the promise for the count, at Q questions."""
    variants = ((mh.GDP(mu=0.4), 20, 20), (mh.ZCDP(rho=0.08), 8, 24))
    for n, (promise, asked, paid) in product((20_000, None), variants):
        factor = math.sqrt((paid + 1) / paid) if n is None else 1.0
        options = {"n": n, "upper": 65_535, "resolution": 1, "privacy": promise}
        complete, dropped = median(missing="none", **options), median(**options)
        assert dropped.rounds[0] == asked
        assert dropped.noise_scale[0] == pytest.approx(factor * complete.noise_scale[0])


def test_several_quantiles_and_columns_have_the_shape_that_numpy_gives():
    data = np.column_stack([VALUES, VALUES / 20_000])
    release = mh.quantile(
        data, [0.25, 0.5, 0.75], lower=[0, 0], upper=[1e5, 1], privacy=mh.ZCDP(rho=2)
    )
    assert release.value.shape == release.rank_error().shape == (3, 2)
    exact = np.quantile(data, [0.25, 0.5, 0.75], axis=0)
    allowed = (release.rank_error(SURE) + 2) * np.array([1, 1 / 20_000])
    assert (np.abs(release.value - exact) <= allowed).all()
    assert (release.rank_error(simultaneous=True) >= release.rank_error()).all()
    with pytest.raises(TypeError):
        float(release)


def test_one_quantile_has_one_value_a_column():
    assert median().value.shape == (1,)
    assert median(q=[0.5]).value.shape == (1, 1)


def test_values_lie_on_the_grid_and_within_the_bounds():
    release = median(lower=0.05, upper=2e4, resolution=0.1)
    steps = (release.value - 0.05) / 0.1
    assert np.abs(steps - np.rint(steps)).max() < 1e-6
    assert median(upper=100).value[0] == 100
    assert median(lower=50_000).value[0] == 50_000


@pytest.mark.parametrize("where", [0, 41, 100])
@pytest.mark.parametrize("n", [5_000, None])
def test_equal_records_have_their_own_value_as_every_quantile(where, n):
    for q in (0.2, 0.5, 0.8):
        release = median(np.full(5_000, where), q, upper=100, resolution=1, n=n)
        assert float(release) == where


GAPS = np.concatenate([np.full(3_000, 10.0), np.full(6_000, np.nan), np.full(1_000, -np.inf)])


@pytest.mark.parametrize("n", [10_000, None])
def test_missing_values_are_left_out_unless_something_else_is_said(n):
    release = median(GAPS, upper=100, resolution=1, n=n)
    assert float(release) == 10
    assert release.missing == "drop"
    for rule in ("center", "none"):
        other = median(GAPS, upper=100, resolution=1, n=n, missing=rule)
        assert float(other) == 50
        assert other.recorded is None
        assert other.recorded_error is None


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.kind)
@pytest.mark.parametrize("n", [10_000, None])
@pytest.mark.parametrize("q", [0.02, 0.5, [0.1, 0.9]])
def test_the_number_of_recorded_values_is_released(promise, n, q):
    release = median(GAPS, q, upper=100, resolution=1, n=n, privacy=promise)
    (number,), (error,) = release.recorded, release.recorded_error
    # Laplace noise passes 21 of its deviations with probability 1e-13.
    assert abs(number - 3_000) <= 21 * error
    assert 0 < error < 100


def test_a_column_of_words_shows_what_it_is(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("name\n" + "x\n" * 5_000)
    release = mh.quantile(
        str(path), columns=["name"], lower=0, upper=100, privacy=mh.PureDP(epsilon=1)
    )
    assert "too few values" in repr(release)
    assert "too few values" in release._repr_html_()
    assert abs(release.recorded[0]) < 100


@pytest.mark.parametrize("missing", ["drop", "center", "none"])
def test_the_rule_for_missing_values_is_printed_wherever_the_values_are(missing):
    words = {"drop": "left out", "center": "middle of the bounds", "none": "as was declared"}
    release = median(GAPS, missing=missing)
    for text in (repr(release), release._repr_html_(), release.describe()):
        assert words[missing] in text
        assert ("Recorded values" in text) == (missing == "drop")
    assert release.to_dict()["missing"] == missing
    assert any(words[missing] in line for line in release.assumptions)


JUMPS = np.round(np.random.default_rng(4).lognormal(6.2, 0.6, 30_000) / 25) * 25
ASKED = [0.75, 0.1, 0.5, 0.74]


@pytest.mark.parametrize("promise", PROMISES[:1] + PROMISES[2:3], ids=lambda p: p.kind)
def test_intervals_are_nested_and_ascend_with_q(promise):
    order = np.argsort(ASKED)
    for _ in range(30):
        release = median(JUMPS, ASKED, upper=20_000, privacy=promise)
        values = release.value[order]
        assert (np.diff(values, axis=0) >= 0).all()
        inner = (values, values)
        for confidence in (1e-3, 0.2, 0.5, 0.8, 0.95, 0.999, SURE):
            lower, upper = (end[order] for end in release.interval(confidence))
            assert (np.diff(lower, axis=0) >= 0).all()
            assert (np.diff(upper, axis=0) >= 0).all()
            assert (lower <= inner[0]).all()
            assert (upper >= inner[1]).all()
            inner = (lower, upper)


def test_intervals_are_steady():
    """Halving alone had widths between 1 and 9,000 here, a spread of 1.3 in logarithms.

    The sample deviation of 60 logarithms passes twice the true .35 with probability below 1e-9.
    """
    data = np.random.default_rng(1).normal(5e5, 5e4, 28_155)
    widths = []
    for _ in range(60):
        release = median(data, upper=1e6, resolution=1, privacy=mh.ZCDP(rho=0.02))
        lower, upper = release.interval()
        widths.append(float(upper[0] - lower[0]))
    assert np.log(widths).std() < 0.7
    assert np.median(widths) < 2_000


@pytest.mark.slow
@pytest.mark.parametrize("promise", [mh.ZCDP(rho=0.01), mh.PureDP(epsilon=1)], ids=str)
@pytest.mark.parametrize("n", [4_000, None])
def test_intervals_of_recorded_values_cover_their_quantiles(promise, n):
    """400 releases of three quantiles at 90 %: 5.5 standard errors, a false alarm below 4e-8 each.

    Planted: each misses the quantile of another fraction more often than that.
    """
    rng = np.random.default_rng(2)
    data = np.where(rng.random(4_000) < 0.4, np.nan, np.round(rng.gamma(2, 200, 4_000)))
    kept = np.sort(data[np.isfinite(data)])
    asked = [0.25, 0.5, 0.9]
    truth = np.array([kept[math.ceil(q * len(kept)) - 1] for q in asked])
    held, careless = np.zeros(3), np.zeros(3)
    for _ in range(400):
        release = median(data, asked, upper=5_000, resolution=1, privacy=promise, n=n)
        lower, upper = (end[:, 0] for end in release.interval(0.9))
        for count, sought in ((held, truth), (careless, truth[[2, 2, 0]])):
            count += (lower <= sought) & (sought <= upper)
    allowed = 0.9 - 5.5 * math.sqrt(0.09 / 400)
    assert (held / 400 >= allowed).all()
    assert (careless / 400 < allowed).all()


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.kind)
@pytest.mark.parametrize("n", [20_000, None])
@pytest.mark.parametrize("missing", ["drop", "none"])
def test_the_least_and_the_greatest_lie_within_their_rank_error(promise, n, missing):
    """Each fails with probability 1e-9; the values are 10,000 … 29,999, the bounds 0 and 1e5."""
    release = median(VALUES + 10_000, [0, 0.5, 1], n=n, privacy=promise, missing=missing)
    error = int(release.rank_error(SURE)[0, 0])
    least, middle, greatest = release.value[:, 0]
    assert 0 <= least <= 10_000 + error
    assert abs(middle - 19_999) <= error
    assert 29_999 - error <= greatest <= 1e5
    lower, upper = release.interval(SURE)
    assert (lower[:, 0] <= [10_000, 19_999, 29_999]).all()
    assert (upper[:, 0] >= [10_000, 19_999, 29_999]).all()


@pytest.mark.parametrize("n", [5_000, None])
def test_equal_records_are_the_least_and_the_greatest_of_themselves(n):
    """Half the records and more lie beyond the noise, but not beyond the bounds."""
    release = median(np.full(5_000, 0), [0, 1], upper=100, resolution=1, n=n)
    assert release.value[0, 0] == 0
    release = median(np.full(5_000, 100), [0, 1], upper=100, resolution=1, n=n)
    assert release.value[1, 0] == 100


def test_ends_say_what_noise_cannot_tell():
    for q in (0, 1, [0.5, 1]):
        assert "cannot be told from" in repr(median(q=q))
        assert (
            "cannot be told from"
            in mh.plan_quantile(q, lower=0, upper=1, n=10, privacy=mh.ZCDP(rho=0.1)).describe()
        )
    assert "cannot be told from" not in repr(median())
    release = median(q=[0, 1], n=None)
    assert mh.Release.from_json(release.to_json()).to_json() == release.to_json()


def test_a_single_record_is_enough_to_ask():
    assert 0 <= float(median(np.array([3.0]))) <= 1e5
    assert 0 <= float(median(np.zeros(0), n=None)) <= 1e5


def test_tables_and_files_give_the_same_columns(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet

    table = pa.table({"age": VALUES, "name": ["x"] * len(VALUES)})
    pa.parquet.write_table(table, tmp_path / "people.parquet")
    for data in (table, tmp_path / "people.parquet", {"age": VALUES}):
        release = mh.quantile(
            data, 0.5, columns=["age"], lower=0, upper=1e5, privacy=mh.ZCDP(rho=0.1)
        )
        assert release.columns == ("age",)
        assert abs(float(release) - 9_999) <= release.rank_error(SURE)[0]


def test_contributions_widen_the_noise():
    assert median(contributions=5).noise_scale[0] == pytest.approx(5 * median().noise_scale[0])


def test_the_ledger_is_charged_once_and_before_reading(tmp_path, monkeypatch):
    from muhat.data import grid_counts

    ledger = mh.Ledger.create(tmp_path / "b.db", budget=mh.ZCDP(rho=1.0), neighbors="substitute")
    release = median(q=[0.1, 0.5], ledger=ledger)
    (entry,) = ledger.entries()
    assert entry.plan_digest == release.plan_digest
    assert ledger.spent == mh.ZCDP(rho=0.1)
    assert release.ledger_head == ledger.head.to_dict()

    def broken(*_, **__):
        raise SourceFailed("the charge stays")

    monkeypatch.setattr(grid_counts, "counting_windows", broken)
    with pytest.raises(SourceFailed):
        median(ledger=ledger)
    assert ledger.spent == mh.ZCDP(rho=0.2)
    with pytest.raises(mh.BudgetExceeded):
        median(ledger=ledger, privacy=mh.ZCDP(rho=5.0))
    assert len(list(ledger.entries())) == 2


def test_a_refusal_charges_nothing(tmp_path):
    ledger = mh.Ledger.create(tmp_path / "b.db", budget=mh.ZCDP(rho=1.0), neighbors="substitute")
    for bad in ({"lower": 2e5}, {"n": 19_999}, {"q": 1.5}, {"resolution": -1}, {"columns": [3]}):
        with pytest.raises(InvalidInput):
            median(ledger=ledger, **bad)
    assert list(ledger.entries()) == []


def test_a_change_of_length_after_counting_is_noticed(monkeypatch):
    from muhat.data import grid_counts
    from muhat.data.grid_counts import WindowCounts

    count = grid_counts.counting_windows

    def another(*a, **k):
        found = yield from count(*a, **k)
        return [WindowCounts(t.before, t.counts, t.total, t.rows + 1) for t in found]

    monkeypatch.setattr(grid_counts, "counting_windows", another)
    with pytest.raises(DataChanged):
        median()


@pytest.mark.parametrize(
    "bad",
    [
        {"q": 1.1},
        {"q": -0.1},
        {"q": float("nan")},
        {"q": []},
        {"q": "half"},
        {"q": [0.5, 1.0001]},
        {"q": np.full((2, 2), 0.5)},
        {"lower": 1e5},
        {"lower": 1e6},
        {"lower": float("nan")},
        {"upper": float("inf")},
        {"upper": None},
        {"upper": [1e5]},
        {"lower": [], "upper": []},
        {"lower": [0, 0], "upper": [1, 1]},
        {"resolution": 0},
        {"resolution": -1.0},
        {"resolution": float("nan")},
        {"resolution": 1e-9},
        {"resolution": [1, 1]},
        {"privacy": None},
        {"privacy": 0.5},
        {"n": 0},
        {"n": 19_999},
        {"n": 2.5},
        {"missing": "zero"},
        {"contributions": 0},
        {"columns": ["a", "b"]},
        {"data": "/no/such/file.csv"},
        {"data": np.zeros(0)},
        {"data": np.zeros((5, 2))},
        {"data": np.array(["a"])},
        {"privacy": mh.ZCDP(rho=1e-60)},
    ],
    ids=repr,
)
def test_bad_arguments_are_refused(bad):
    with pytest.raises(InvalidInput):
        median(**bad)


def test_no_data_value_is_in_anything_that_comes_out():
    """A canary far from every grid point and noisy count is in no text, JSON or HTML."""
    canary = 31_234.5678
    release = median(np.full(500, canary), upper=1e6, resolution=100, n=None)
    texts = [repr(release), release.to_json(), release._repr_html_(), release.describe()]
    assert not any("31234.5678" in text or "31,234" in text for text in texts)
    complete = median(np.full(500, canary), upper=1e6, resolution=100, n=None, missing="none")
    assert " 500" not in repr(complete)


def test_a_release_survives_json():
    release = median(q=[0.1, 0.9], n=None, privacy=mh.PureDP(epsilon=1))
    text = release.to_json()
    again = mh.Release.from_json(text)
    assert again.to_json() == text
    assert repr(again) == repr(release)
    assert (again.rank_error(0.99) == release.rank_error(0.99)).all()
    assert again.recorded == release.recorded
    for bad in ("{}", "[]", "x", text.replace("muhat.quantile/2", "muhat.quantile/9")):
        with pytest.raises(InvalidInput):
            mh.Release.from_json(bad)


def test_the_digest_knows_every_argument():
    base = {"q": 0.5, "resolution": 1, "n": None}
    variants = [
        {},
        {"q": 0.4},
        {"resolution": 2},
        {"missing": "center"},
        {"missing": "none"},
        {"contributions": 2},
        {"upper": 2e5},
        {"privacy": mh.GDP(mu=0.5)},
        {"n": 20_000},
    ]
    digests = {median(**{**base, **variant}).plan_digest for variant in variants}
    assert len(digests) == len(variants)


def test_a_release_reads_well():
    release = median(q=[0.25, 0.5])
    assert "Private quantiles · 0.1-zCDP · n = 20000" in repr(release)
    assert "rank error (95 %)" in repr(release)
    assert "noisy comparisons" in release.describe()
    assert "<table>" in release._repr_html_()
    assert any("n was counted" in line for line in release.assumptions)


def test_more_quantiles_than_a_thousand_are_refused():
    with pytest.raises(InvalidInput):
        median(q=[0.5] * (MOST_QUANTILES + 1))
