"""Releases: values, intervals, JSON, and the order charge, read, release.

Values carry real noise. Comparisons allow 6.5 standard errors for normal noise and 10 to 20
for heavier tails: a false alarm below 1e-9 a comparison.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import muhat as mh

RNG = np.random.default_rng(4)
X = RNG.normal(size=(4000, 3)) * [1, 2, 0.5] + [0, 1, 2]
BOX = mh.Box([-4, -8, 0], [4, 8, 4])
RHO = mh.ZCDP(rho=0.5)
DOMAINS = [
    BOX,
    mh.Ball(radius=8, dim=3, center=[0, 1, 2]),
    mh.Ellipsoid(np.array([[16, 1, 0], [1, 64, 2], [0, 2, 9.0]]), center=[0, 1, 2]),
]


def within(release, target, deviations=6.5):
    return np.all(np.abs(release.value - target) <= deviations * release.standard_error)


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@pytest.mark.parametrize(
    "promise",
    [RHO, mh.GDP(mu=1), mh.ApproxDP(epsilon=1, delta=1e-6), mh.PureDP(epsilon=1)],
    ids=lambda promise: promise.kind,
)
def test_a_mean_is_the_mean_of_the_clipped_records_plus_noise(domain, promise):
    release = mh.mean(X, domain=domain, privacy=promise)
    assert release.value.shape == (3,)
    assert release.n == 4000
    assert within(release, domain.clip(X).mean(axis=0), 20)
    lower, upper = release.interval()
    assert (lower < release.value).all()
    assert (release.value < upper).all()


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@pytest.mark.parametrize("promise", [RHO, mh.PureDP(epsilon=1)], ids=["zcdp", "pure"])
def test_a_secret_n_gives_a_ratio_with_an_interval(domain, promise):
    release = mh.mean(X, domain=domain, privacy=promise, n=None)
    assert release.mechanism == "ratio"
    assert release.n is None
    assert release.certificate.ratio > 1
    assert [bound.mechanisms for bound in release.certificate.bounds] == ["any"]
    assert within(release, domain.clip(X).mean(axis=0), 20)
    assert json.loads(release.to_json())["n"] is None


@pytest.mark.parametrize("n", [4000, None])
@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_a_sum_is_the_sum_of_the_clipped_records_plus_noise(domain, n):
    release = mh.sum(X, domain=domain, privacy=RHO, n=n)
    assert within(release, domain.clip(X).sum(axis=0))
    assert release.certificate.ratio >= 1


@pytest.mark.parametrize("n", [4000, None])
def test_a_sum_far_from_zero_keeps_its_digits(n):
    far = X + 1e6
    box = mh.Box(BOX.lower + 1e6, BOX.upper + 1e6)
    release = mh.sum(far, domain=box, privacy=RHO, n=n)
    assert within(release, box.clip(far).sum(axis=0))


def test_a_count_counts():
    release = mh.count(X, privacy=mh.PureDP(epsilon=1))
    assert release.columns == ("count",)
    assert abs(float(release) - 4000) < 30


def test_an_empty_secret_dataset_still_gives_a_finite_release():
    release = mh.mean(X[:0], domain=BOX, privacy=RHO, n=None)
    assert np.isfinite(release.value).all()
    # A noisy count beyond five deviations, 3e-7, would have an error; one above 0 at this
    # confidence, 5e-8, an interval.
    assert np.isinf(release.standard_error).all()
    assert np.isinf(np.diag(release.covariance)).all()
    lower, upper = release.interval(1 - 1e-7)
    assert np.allclose(lower, BOX.lower)
    assert np.allclose(upper, BOX.upper)
    again = mh.Release.from_json(release.to_json())
    assert np.isinf(again.standard_error).all()
    assert "unknown" in repr(release)


@pytest.mark.parametrize("n", [4000, None])
@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_a_release_survives_json(domain, n):
    release = mh.mean(X, domain=domain, privacy=RHO, n=n)
    again = mh.Release.from_json(release.to_json())
    assert again.to_json() == release.to_json()
    assert repr(again) == repr(release)
    for mine, theirs in zip(again.interval(0.9), release.interval(0.9), strict=True):
        assert (mine == theirs).all()
    assert (again.covariance == release.covariance).all()
    assert again.privacy == release.cost


def test_the_json_has_the_promised_keys():
    fields = json.loads(mh.mean(X, domain=BOX, privacy=RHO).to_json())
    expected = "schema value standard_error interval mechanism privacy neighbors n columns cost"
    assert set(expected.split()) <= set(fields)
    assert {"certificate", "assumptions", "ledger_head"} <= set(fields)
    assert {"error", "ratio", "bounds"} <= set(fields["certificate"])
    assert fields["privacy"] == {"kind": "zcdp", "rho": 0.5}
    assert fields["ledger_head"] is None


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"schema": "muhat.release/9"}', "null", '{"schema": 1, "noise": 2}']
)
def test_bad_json_is_refused(text):
    with pytest.raises(mh.InvalidInput):
        mh.Release.from_json(text)


def test_a_release_of_one_number_is_a_float():
    release = mh.mean(X[:, 0], domain=mh.Box([-4], [4]), privacy=RHO)
    assert float(release) == release.value[0]
    assert release.value.shape == release.standard_error.shape == (1,)
    with pytest.raises(TypeError):
        float(mh.mean(X, domain=BOX, privacy=RHO))


def test_a_release_prints_a_table_and_a_certificate():
    release = mh.mean(X, domain=BOX, privacy=RHO)
    text = repr(release)
    assert text.startswith("Private mean · 0.5-zCDP · n = 4000")
    assert "standard error" in text
    assert "within" in text
    assert "<table>" in release._repr_html_()


def test_a_projected_release_lies_in_the_domain_without_certificate():
    release = mh.mean(X[:5], domain=BOX, privacy=mh.ZCDP(rho=1e-4))
    inside = release.projected()
    assert (inside.value >= BOX.lower).all()
    assert (inside.value <= BOX.upper).all()
    assert inside.certificate is None
    with pytest.raises(mh.InvalidInput):
        mh.count(X, privacy=RHO).projected()


def test_simultaneous_and_surer_intervals_are_longer():
    release = mh.mean(X, domain=BOX, privacy=RHO)

    def length(**options):
        lower, upper = release.interval(**options)
        return float((upper - lower)[0])

    assert (
        length(confidence=0.9) < length() < length(simultaneous=True) < length(confidence=1 - 1e-6)
    )
    assert length(target="population") > length()
    assert length(target="population", simultaneous=True) > length(target="population")


def test_a_population_interval_is_refused_where_it_cannot_be_said():
    secret = mh.sum(X, domain=BOX, privacy=RHO, n=None)
    with pytest.raises(mh.InvalidInput, match="secret"):
        secret.interval(target="population")
    several = mh.mean(X, domain=BOX, privacy=RHO, contributions=2)
    with pytest.raises(mh.InvalidInput, match="independent"):
        several.interval(target="population")
    with pytest.raises(mh.InvalidInput, match="count"):
        mh.count(X, privacy=RHO).interval(target="population")
    inside = mh.mean(X, domain=BOX, privacy=RHO).projected()
    with pytest.raises(mh.InvalidInput, match="projected"):
        inside.interval(target="population")
    with pytest.raises(mh.InvalidInput, match="guaranteed is for"):
        mh.mean(X, domain=BOX, privacy=RHO).interval(guaranteed=True)
    assert "interval: population" not in repr(several)
    assert "No interval for a population: records of one person" in repr(several)
    assert "population_interval" not in json.loads(several.to_json())


@pytest.mark.parametrize("arguments", [{"confidence": 0}, {"confidence": 1}, {"target": "moon"}])
def test_a_bad_interval_is_refused(arguments):
    with pytest.raises(mh.InvalidInput):
        mh.mean(X, domain=BOX, privacy=RHO).interval(**arguments)


def test_the_ledger_is_charged_and_its_head_is_in_the_release(tmp_path):
    ledger = mh.Ledger.create(tmp_path / "b.db", budget=mh.ZCDP(rho=1), neighbors="substitute")
    first = mh.mean(X, domain=BOX, privacy=RHO, ledger=ledger)
    second = mh.mean(X, domain=BOX, privacy=RHO, ledger=tmp_path / "b.db")
    assert first.ledger_head["count"] == 1
    assert second.ledger_head["count"] == 2
    assert ledger.spent == 1
    assert [entry.plan_digest for entry in ledger.entries()] == [first.plan_digest] * 2
    with pytest.raises(mh.BudgetExceeded):
        mh.mean(X, domain=BOX, privacy=RHO, ledger=ledger)
    assert ledger.head.count == 2
    mh.Ledger.open(tmp_path / "b.db", expect_head=first.ledger_head)


@pytest.mark.parametrize(
    "wrong",
    [
        {"domain": None},
        {"privacy": None},
        {"n": 3999},
        {"n": 0},
        {"n": None},  # a ledger of the other neighbour relation
        {"privacy": mh.ApproxDP(epsilon=0.1, delta=1e-9)},  # another kind of promise
        {"columns": [0, 1]},
        {"columns": [0, 1, 7]},
        {"domain": mh.Box([0], [1])},
        {"data": X[:0]},
        {"data": iter(X)},
        {"data": "no-such-file.csv"},
        {"p": 1},
        {"mechanism": "magic"},
    ],
    ids=lambda wrong: "-".join(wrong),
)
def test_nothing_is_spent_on_bad_input(tmp_path, wrong):
    ledger = mh.Ledger.create(tmp_path / "b.db", budget=mh.ZCDP(rho=1), neighbors="substitute")
    arguments = {"data": X, "domain": BOX, "privacy": RHO, "ledger": ledger} | wrong
    data = arguments.pop("data")
    with pytest.raises(mh.InvalidInput) as caught:
        mh.mean(data, **arguments)
    assert ledger.spent == 0
    assert len(str(caught.value)) > 20


def test_the_number_of_rows_is_not_told_when_n_differs():
    with pytest.raises(mh.InvalidInput) as caught:
        mh.mean(X, domain=BOX, privacy=RHO, n=5000)
    assert "4000" not in str(caught.value)


def test_named_bounds_follow_the_columns():
    frame = {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}
    bounds = {"c": (0, 4), "a": (-4, 4)}
    for columns in (None, ["c", "a"], ["a", "c"]):
        release = mh.mean(frame, domain=bounds, columns=columns, privacy=mh.GDP(mu=10))
        truth = {"a": np.clip(X[:, 0], -4, 4).mean(), "c": np.clip(X[:, 2], 0, 4).mean()}
        assert release.columns == tuple(columns or ("c", "a"))
        assert within(release, [truth[name] for name in release.columns])
    with pytest.raises(mh.InvalidInput, match="no bounds"):
        mh.mean(frame, domain=bounds, columns=["a", "b"], privacy=RHO)
    with pytest.raises(mh.InvalidInput, match="not in columns"):
        mh.mean(frame, domain=bounds, columns=["a"], privacy=RHO)
    plan = mh.plan_mean(domain=bounds, n=4000, privacy=RHO)
    with pytest.raises(mh.InvalidInput, match="names its columns"):
        plan.release(frame, columns=["a", "c"])


def test_dropped_values_do_not_count_when_n_is_secret():
    data = X.copy()
    data[::2, 1] = np.nan
    release = mh.mean(data, domain=BOX, privacy=mh.GDP(mu=5), n=None, missing="drop")
    exact = [BOX.clip(rows)[:, j].mean() for j, rows in enumerate((data, data[1::2], data))]
    assert within(release, exact, 10)
    assert np.abs(release.recorded.value - [4000, 2000, 4000]).max() < 100


def test_dropped_records_do_not_count_in_a_ball_when_n_is_secret():
    data = X.copy()
    data[::2, 1] = np.nan
    ball = mh.Ball(radius=100, dim=3)
    release = mh.mean(data, domain=ball, privacy=mh.GDP(mu=5), n=None, missing="drop")
    assert within(release, ball.clip(data[1::2]).mean(axis=0), 10)
    assert abs(release.recorded.value[0] - 2000) < 100
    assert "Records with a missing value are left out." in repr(release)


def test_no_release_or_plan_carries_data():
    """A canary in the data is in no text, JSON, HTML or dict that comes out."""
    canary = 1234.5678
    data = np.full((50, 1), canary)
    release = mh.mean(data, domain=mh.Box([0], [10_000]), privacy=mh.PureDP(epsilon=1))
    texts = [repr(release), release.to_json(), release._repr_html_(), str(vars(release))]
    assert not any("1234.5678" in text for text in texts)


def test_huge_dimensions_release_without_a_matrix():
    data = RNG.normal(size=(3, 25_000))
    release = mh.mean(data, domain=mh.Ball(radius=1, dim=25_000), privacy=mh.GDP(mu=1))
    assert release.value.shape == release.standard_error.shape == (25_000,)
    with pytest.raises(mh.InvalidInput, match="standard_error"):
        _ = release.covariance
    assert math.isfinite(release.certificate.ratio)


def test_points_are_released_from_codes_and_from_coordinates():
    points = RNG.normal(size=(20, 3))
    codes = RNG.integers(0, 20, 4000)
    target = points[codes].mean(axis=0)
    for data in (codes, points[codes], {"code": codes}):
        release = mh.mean(data, domain=mh.Points(points), privacy=RHO)
        assert within(release, target)
        assert release.columns == ("0", "1", "2")
        assert mh.Release.from_json(release.to_json()).to_json() == release.to_json()
    with pytest.raises(mh.InvalidInput, match="one column of codes"):
        mh.mean(points[codes][:, :2], domain=mh.Points(points), privacy=RHO)
    strange = np.append(codes.astype(float), [np.nan, 77, -3, 1.5])
    assert np.isfinite(mh.mean(strange, domain=mh.Points(points), privacy=RHO).value).all()


def test_a_single_point_is_released_exactly_and_costs_nothing(tmp_path):
    ledger = mh.Ledger.create(tmp_path / "b.db", budget=mh.ZCDP(rho=1), neighbors="substitute")
    release = mh.mean(
        np.zeros(10), domain=mh.Points([[1.0, 2.0]]), privacy=mh.ZCDP(rho=1), ledger=ledger
    )
    assert release.value.tolist() == [1.0, 2.0]
    assert (release.standard_error == 0).all()
    assert ledger.spent == 0
    assert release.ledger_head is None


def test_a_projected_mean_lies_in_the_hull_of_the_points():
    square = mh.Points([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    release = mh.mean(np.zeros(3, int), domain=square, privacy=mh.ZCDP(rho=1e-3))
    inside = release.projected().value
    assert np.allclose(inside, np.clip(release.value, 0, 1), atol=1e-4)


@pytest.mark.parametrize("promise", [RHO, mh.PureDP(epsilon=1)], ids=["zcdp", "pure"])
@pytest.mark.parametrize("n", [4000, None], ids=["public", "secret"])
@pytest.mark.parametrize(
    "domain",
    [
        mh.Simplex(dim=3),
        mh.Simplex(dim=3, origin=True) + np.array([0.0, 1.0, 2.0]),
        mh.Points(np.eye(3)),
        mh.MomentTensor(order=2, dim=3),
        mh.Box([-4], [4]) * mh.Simplex(dim=2),
        mh.Ball(radius=1, dim=1) * mh.Points([[0.0, 0.0], [1.0, 0.0], [0.0, 3.0]]),
        mh.MomentTensor(order=2, dim=2) * mh.Box([0], [4]),
    ],
    ids=repr,
)
def test_every_domain_is_released_with_n_public_or_secret(domain, n, promise):
    clipped = domain.clip(X)
    mean = mh.mean(X, domain=domain, privacy=promise, n=n)
    assert within(mean, clipped.mean(axis=0), 20)
    lower, upper = mean.interval(1 - 1e-9)
    assert (lower <= clipped.mean(axis=0) + 1e-9).all()
    assert (clipped.mean(axis=0) <= upper + 1e-9).all()
    total = mh.sum(X, domain=domain, privacy=promise, n=n)
    assert within(total, clipped.sum(axis=0), 20)
    assert total.certificate.ratio >= 1
    for release in (mean, total):
        again = mh.Release.from_json(release.to_json())
        assert again.to_json() == release.to_json()
        assert (again.standard_error == release.standard_error).all()


def test_a_secret_n_of_points_takes_codes_too():
    points = RNG.normal(size=(20, 3))
    codes = RNG.integers(0, 20, 4000)
    release = mh.mean(codes, domain=mh.Points(points), privacy=RHO, n=None)
    assert within(release, points[codes].mean(axis=0))


def test_an_empty_secret_dataset_of_shares_says_nothing():
    shares = mh.Simplex(dim=3, origin=True)
    release = mh.mean(X[:0], domain=shares, privacy=mh.GDP(mu=0.1), n=None)
    # A noisy count above zero at this confidence is a false alarm, once in 2·10^7 runs.
    lower, upper = release.interval(1 - 1e-7)
    assert np.allclose(lower, 0)
    assert np.allclose(upper, 1)


def test_images_and_sums_take_records_in_the_coordinates_of_their_parts():
    T = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]])
    box, ball = mh.Box([0, 0, 0], [1, 2, 3]), mh.Ball(radius=1, dim=2)
    parts = np.hstack([X[:, :2], X])
    cases = [
        (T @ box, X, box.clip(X) @ T.T),
        (T @ mh.Ball(radius=2, dim=3), X, mh.Ball(radius=2, dim=3).clip(X) @ T.T),
        (ball * box, parts, (ball * box).clip(parts)),
        (ball + T @ box, parts, ball.clip(X[:, :2]) + box.clip(X) @ T.T),
    ]
    for domain, records, clipped in cases:
        release = mh.mean(records, domain=domain, privacy=mh.GDP(mu=2))
        assert within(release, clipped.mean(axis=0))
        assert release.certificate.ratio >= 1
        poisoned = records.copy()
        poisoned[:5] = [[np.nan], [np.inf], [1e308], [-1e308], [5e-324]]
        assert np.isfinite(mh.mean(poisoned, domain=domain, privacy=RHO).value).all()


@pytest.mark.parametrize("order", [1, 2, 3])
def test_moments_are_released_from_the_records_themselves(order):
    K = mh.MomentTensor(order=order, dim=3)
    release = mh.mean(X, domain=K, privacy=mh.GDP(mu=2))
    assert within(release, K.clip(X).mean(axis=0))
    assert len(release.columns) == K.dim


def test_an_inner_domain_clips_where_the_outer_one_cannot():
    zonotope, inner = mh.Zonotope([[2.0, 1.0, 0.0], [0.0, 1.0, 1.0]]), mh.Box([-1, -1], [1, 1])
    release = mh.mean(X[:, :2], domain=zonotope, clip=inner, privacy=mh.GDP(mu=2))
    assert within(release, inner.clip(X[:, :2]).mean(axis=0))
    assert "Box" in release.assumptions[0]
    for bad in (mh.Box([0, 0], [1, 1]), mh.Box([-9, -9], [9, 9]), mh.Ball(radius=1, dim=3), 3):
        with pytest.raises(mh.InvalidInput, match="clip"):
            mh.mean(X[:, :2], domain=zonotope, clip=bad, privacy=RHO)


@pytest.mark.parametrize(
    "promise", [mh.ZCDP(rho=0.02), mh.PureDP(epsilon=0.1)], ids=["zcdp", "pure"]
)
def test_the_gain_of_a_projection_is_predicted_from_above(promise):
    """The bound is far above: a mean of 200 squared errors cannot pass it by chance."""
    domain = mh.LpBall(p=1, dim=20)
    data = domain.clip(RNG.normal(size=(40, 20)))
    plan = mh.plan_mean(domain=domain, n=40, privacy=promise)
    assert plan.projected_error < plan.expected_error
    errors = [
        np.sum((plan.release(data).projected().value - data.mean(axis=0)) ** 2) for _ in range(200)
    ]
    assert np.mean(errors) < plan.projected_error**2
    assert "no longer unbiased" in plan.describe()
    assert mh.plan_sum(domain=domain, n=40, privacy=promise).projected_error is None


def test_a_certificate_is_printed_in_sentences_and_as_a_table():
    certificate = mh.mean(X, domain=BOX, privacy=RHO).certificate
    assert repr(certificate) == certificate.describe()
    assert certificate.verdict() in certificate._repr_html_()
    assert certificate._repr_html_().count("<tr>") == 1 + len(certificate.bounds)
    for bound in certificate.bounds:
        assert bound.theorem in certificate._repr_html_()


def test_what_a_missing_category_counts_as_is_said():
    data = np.full((40, 3), np.nan)
    release = mh.sum(data, domain=mh.Points(np.eye(3)), n=40, privacy=mh.PureDP(epsilon=60))
    assert release.value == pytest.approx([40, 0, 0], abs=0.5)
    assert "as the nearest of the listed points, the first at a tie: if many are" in repr(release)
    assert "at a tie" not in repr(mh.sum(data, domain=mh.Ball(1, 3), n=40, privacy=RHO))
    beside = mh.Points([[0.0], [1.0]]) * mh.Ball(1, 2)
    assert "at a tie" in repr(mh.sum(data, domain=beside, n=40, missing="center", privacy=RHO))


def test_a_count_says_nothing_of_missing_values():
    assert "missing value" not in repr(mh.count(X, privacy=RHO))
