"""Plans and releases of means that nobody has bounded."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import muhat as mh
from muhat.data import distances
from muhat.mechanisms.learning.recentring_schedule import LEAN_MANY

SPACE = mh.Reals(dim=3, magnitude=1e4)
RHO = mh.ZCDP(rho=0.5)


def plan(n: int | None = 2000, **options: Any) -> mh.Plan:
    return mh.plan_mean(**{"domain": SPACE, "n": n, "privacy": RHO, **options})


def records(n: int = 2000, dim: int = 3) -> np.ndarray:
    return np.random.default_rng(7).standard_normal((n, dim)) + 5.0


def ledger(folder: Path, rho: float = 1.0) -> mh.Ledger:
    return mh.Ledger.create(folder / "budget.db", budget=mh.ZCDP(rho=rho), neighbors="substitute")


def shares(release: mh.Release) -> list[Fraction]:
    (line,) = [text for text in release.assumptions if text.startswith("the steps taken")]
    return [Fraction(share) for share in re.findall(r"\d+/\d+", line)]


def test_a_plan_says_all_it_knows_before_any_data() -> None:
    made = plan()
    assert (made.mechanism, made.n, made.dim) == ("recentring", 2000, 3)
    assert made.expected_error is None
    assert made.standard_error is None
    assert made.covariance is None
    assert made.certificate is None
    assert made.error_at(2.0) == pytest.approx(2 * made.error_at(1.0))
    text = made.describe()
    for words in (
        "recentring",
        "most often in 2 rounds",
        "if 99 % of the records lie within",
        "±10000",
    ):
        assert words in text
    assert repr(made) == text
    assert "<table>" in made._repr_html_()
    assert json.loads(json.dumps(made.to_dict()))["least_n"] == made.least_n


def test_a_plan_is_drawn_over_the_radii() -> None:
    (axes,) = plan().plot().axes
    assert axes.get_xscale() == axes.get_yscale() == "log"


def test_the_digest_follows_everything_that_decides_the_release() -> None:
    digests = {
        made.digest
        for made in (
            plan(),
            plan(n=2001),
            plan(privacy=mh.ZCDP(rho=0.4)),
            plan(domain=mh.Reals(3, 1e5)),
            plan(domain=mh.Reals(4, 1e4)),
            plan(weights=[1, 2, 3]),
            plan(contributions=2),
            plan(p=4),
        )
    }
    assert len(digests) == 8
    assert plan().digest == plan().digest


def test_the_release_carries_the_last_ball_and_its_path() -> None:
    rows = records()
    release = plan().release(rows)
    assert isinstance(release.domain, mh.Ball)
    assert np.linalg.norm(release.value - rows.mean(axis=0)) < 0.5
    assert release.cost == RHO
    assert release.certificate is None
    assert sum(shares(release)) == 1
    assert release.covariance.shape == (3, 3)
    again = mh.Release.from_json(release.to_json())
    assert again.domain == release.domain
    assert shares(again) == shares(release)
    assert isinstance(release.projected(), mh.Release)


def test_a_release_with_a_shrunk_part_says_so_everywhere() -> None:
    release = plan(domain=mh.Reals(60, 1e4), n=4000).release(records(4000, 60))
    assert release.unshrunk is not None
    lower, upper = release.interval()
    assert (lower + upper) / 2 == pytest.approx(release.unshrunk)
    assert ((lower < release.value) & (release.value < upper)).all()
    assert "before that" in repr(release)
    assert "before that" in release._repr_html_()
    again = mh.Release.from_json(release.to_json())
    assert again.unshrunk.tolist() == release.unshrunk.tolist()
    assert np.array_equal(again.interval(), release.interval())
    onto = release.projected(onto=mh.Ball(radius=0.1, dim=60))
    assert np.array_equal(onto.interval(), release.interval())


def test_a_learnt_ball_bounds_no_population() -> None:
    release = plan().release(records())
    with pytest.raises(mh.InvalidInput, match="learnt"):
        release.interval(target="population")


def test_the_predicted_error_is_that_of_the_last_noise() -> None:
    made = plan(domain=mh.Reals(16, 1e4))
    release = made.release(records(dim=16))
    assert isinstance(release.domain, mh.Ball)
    noise = np.linalg.norm(release.standard_error)
    *_, shell, mean = map(float, shares(release))
    thickness = (
        shell / mean / LEAN_MANY
    )  # of the shell, in inner radii: this decided the two shares
    apart = np.sqrt(1 / mean + thickness**2 / shell) / (1 + thickness)
    likely = made.error_at(release.domain.radius) * np.sqrt(made.method.final_share)
    assert noise == pytest.approx(likely * apart, rel=1e-4)


@pytest.mark.parametrize("rho", [0.05, 0.5, 5.0])
def test_more_records_than_enough_are_enough(rho: float) -> None:
    privacy = mh.ZCDP(rho=rho)
    least = plan(n=10_000, privacy=privacy).least_n
    for step in range(80):
        made = plan(n=round(least * 1.2**step), privacy=privacy)
        assert made.least_n == least


@pytest.mark.parametrize(
    "promise",
    [mh.GDP(mu=1), mh.ApproxDP(epsilon=1, delta=1e-6), mh.PureDP(epsilon=3)],
)
def test_every_kind_of_promise_is_kept_by_noise_of_its_kind(promise: Any) -> None:
    release = plan(privacy=promise).release(records())
    # Under (ε, δ) pure noise is less in three dimensions.
    law = "euclidean-norm" if isinstance(promise, mh.PureDP | mh.ApproxDP) else "normal"
    assert release.noise.to_dict()["law"] == law
    assert np.linalg.norm(release.value - records().mean(axis=0)) < 30


def test_delta_is_left_unused_where_pure_noise_is_less() -> None:
    promise, pure = mh.ApproxDP(epsilon=1, delta=1e-6), mh.PureDP(epsilon=1)
    for dim, is_pure in ((2, True), (3, True), (10, False), (30, False)):
        for missing in ("drop", "none"):
            asked = {"domain": mh.Reals(dim, 1e4), "n": 20_000, "missing": missing}
            made = plan(**asked, privacy=promise)
            assert ("pure, which is less here" in made.describe()) == is_pure
            alone = plan(**asked, privacy=pure)
            # What δ adds to a pure ε is next to nothing.
            assert (made.error_at(1.0) == pytest.approx(alone.error_at(1.0), rel=1e-5)) == is_pure
            # The whole promise is charged, and said, all the same.
            assert made.privacy == promise
            assert "a smaller weight" not in alone.describe()
    released = mh.mean(records(5000), domain=SPACE, privacy=promise)
    assert np.abs(released.value - 5).max() < 0.5


def test_too_few_records_are_refused_by_how_many_unless_one_insists() -> None:
    least = plan().least_n
    with pytest.raises(mh.InvalidInput, match=rf"at least {least} .*{least - 20} more.*insist"):
        plan(n=20)
    made = plan(n=20, insist=True)
    assert "TOO FEW" in made.describe()
    assert np.isfinite(made.release(records(20)).value).all()
    assert plan(n=least).n == least


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n": None}, "n must be public"),
        ({"domain": mh.Reals(3)}, "magnitude must be given"),
        ({"missing": "drop", "mechanism": "clipped"}, "missing"),
        ({"missing": "left out"}, "missing"),
        ({"clip": mh.Ball(radius=1, dim=3)}, "clip"),
        ({"mechanism": "gaussian"}, "recentring"),
        ({"neighbors": "add-remove"}, "neighbors"),
        ({"weights": {"a": 1}}, "weights"),
        ({"weights": [1, 2]}, "weights"),
        ({"p": 1}, "p must be"),
        ({"contributions": 0}, "contributions"),
        ({"privacy": 0.5}, "privacy"),
        ({"privacy": mh.ZCDP(rho=1e-30), "insist": True}, "promise"),
    ],
)
def test_bad_arguments_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(mh.InvalidInput, match=words):
        plan(**options)


def test_insisting_is_for_reals_only() -> None:
    with pytest.raises(mh.InvalidInput, match="insist"):
        mh.plan_mean(domain=mh.Ball(radius=1, dim=3), n=5, privacy=RHO, insist=True)


def test_a_mean_without_a_domain_is_refused_with_the_call_that_works() -> None:
    with pytest.raises(mh.InvalidInput, match=r"domain=mh\.Reals\(dim=3, magnitude=1e6\)"):
        mh.mean(records(), privacy=RHO)


def test_rows_are_counted_and_declared_public_when_n_is_left_out() -> None:
    release = mh.mean(records(), domain=SPACE, privacy=RHO)
    assert release.n == 2000
    assert "n was counted from the data" in release.assumptions
    with pytest.raises(mh.InvalidInput, match="too small"):
        mh.mean(records(20), domain=SPACE, privacy=RHO)
    assert mh.mean(records(20), domain=SPACE, privacy=RHO, insist=True).n == 20
    with pytest.raises(mh.InvalidInput, match="no rows"):
        mh.mean(records(0), domain=SPACE, privacy=RHO)
    with pytest.raises(mh.InvalidInput, match="another number of rows"):
        mh.mean(records(1999), domain=SPACE, privacy=RHO, n=2000)


def test_values_beyond_the_magnitude_are_clipped_to_it() -> None:
    rows = np.full((2000, 3), 1e9)
    release = mh.mean(rows, domain=mh.Reals(3, 50.0), privacy=RHO)
    assert release.value == pytest.approx([50.0] * 3, abs=1e-3)
    assert "values beyond ±50 are clipped to that" in release.assumptions


def test_missing_values_count_as_the_learnt_centre() -> None:
    rows = records(4000)
    rows[::7, 1] = np.nan
    rows[5] = np.inf
    release = mh.mean(rows, domain=SPACE, privacy=RHO)
    assert release.value == pytest.approx([5.0] * 3, abs=0.3)
    release = mh.mean(np.full((2000, 3), np.nan), domain=SPACE, privacy=RHO)
    assert release.value == pytest.approx([0.0] * 3, abs=1e-3)


def test_one_column_and_integers_work(tmp_path: Path) -> None:
    release = mh.mean(np.arange(3000) % 7, domain=mh.Reals(1, 1e6), privacy=RHO)
    assert float(release) == pytest.approx(3, abs=0.1)
    file = tmp_path / "rows.csv"
    file.write_text("a,b\n" + "\n".join(f"{i % 7},{i % 3}" for i in range(3000)))
    release = mh.mean(file, columns=["b", "a"], domain=mh.Reals(2, 1e6), privacy=RHO)
    assert release.columns == ("b", "a")
    assert release.value == pytest.approx([1, 3], abs=0.2)


def test_the_whole_promise_is_charged_once_and_before_the_first_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = ledger(tmp_path)
    order: list[int] = []
    count = distances.distance_counts

    def watched(*args: Any, **options: Any) -> list[int]:
        order.append(len(list(account.entries())))
        return count(*args, **options)

    monkeypatch.setattr(distances, "distance_counts", watched)
    release = plan().release(records(), ledger=account)
    assert set(order) == {1}
    assert len(order) >= 3
    assert len(list(account.entries())) == 1
    assert account.spent == RHO
    assert release.ledger_head is not None


def test_an_empty_account_refuses_before_anything_is_read(tmp_path: Path) -> None:
    account = ledger(tmp_path, rho=0.4)
    with pytest.raises(mh.BudgetExceeded):
        plan().release(records(), ledger=account)
    assert not list(account.entries())


@pytest.mark.parametrize("passes", [0, 1, 3])
def test_a_pass_that_fails_keeps_the_charge(
    passes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = ledger(tmp_path)
    add, seen = distances.Records, [0]

    def failing(*args: Any) -> Any:
        seen[0] += 1
        if seen[0] > passes:
            raise OSError("cell 12345 is damaged")
        return add(*args)

    monkeypatch.setattr(distances, "Records", failing)
    with pytest.raises(mh.SourceFailed) as caught:
        plan().release(records(), ledger=account)
    assert "12345" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert account.spent == RHO


def test_data_that_grow_between_passes_are_noticed_and_the_charge_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("a\n" + "\n".join(str(i % 7) for i in range(2000)) + "\n")
    account = ledger(tmp_path)
    sums = distances.bounded_sums

    def growing(*args: Any) -> Any:
        with file.open("a") as handle:
            handle.write("3\n")
        return sums(*args)

    monkeypatch.setattr(distances, "bounded_sums", growing)
    with pytest.raises(mh.DataChanged):
        plan(domain=mh.Reals(1, 1e4)).release(file, ledger=account)
    assert account.spent == RHO


def test_no_value_of_the_data_appears_in_what_is_shown() -> None:
    canary = 4273.918273645
    rows = records()
    rows[3] = canary
    release = plan().release(rows)
    for text in (repr(release), release.to_json(), release._repr_html_()):
        assert "4273.91" not in text
