"""The studies of Huang, Liang and Yi: formulas known otherwise, verdicts that notice a change."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from muhat.errors import InvalidInput
from muhat.studies import (
    huang_covariance,
    huang_digits,
    huang_gaussian,
    huang_quantiles,
    huang_rate,
)
from muhat.studies.drawing import figure_of
from muhat.studies.huang_digits import MNIST, Images, images
from muhat.studies.huang_trials import (
    CLIPPED,
    KNOWN,
    LEARNT,
    MUHAT,
    PLAIN,
    SHIFTED,
    TOLD,
    TrialCell,
    _estimator,
    best,
    by_cell,
    ratios,
    trials,
)
from muhat.studies.samples import IMAGES, LABELS, normal
from muhat.studies.study import Result, rows_from_csv, rows_to_csv, where

GAUSSIAN = {
    "seed": 1,
    "trials": 2,
    "n": 2000,
    "dim": 64,
    "rho": 0.5,
    "means": (0.0, 10.0),
    "dims": (16, 64),
    "rhos": (0.4, 2.0),
    "bounds": (50.0, 1e4),
}
COVARIANCE = {
    "seed": 1,
    "trials": 2,
    "n": 2000,
    "rho": 0.5,
    "bound": 100.0,
    "kappas": (100.0, 1000.0),
    "dims": (32, 64),
}
DIGITS = {
    "seed": 1,
    "trials": 2,
    "covariance_trials": 1,
    "digits": (0,),
    "printed": 50,
    "rhos": (0.5, 1.0),
}
QUANTILES = {
    "seed": 1,
    "trials": 3,
    "n": 500,
    "quantiles": (0.5, 0.9),
    "rhos": (0.1, 1.0),
    "dims": (4, 256),
}
RATE = {
    "seed": 1,
    "trials": 2,
    "n": 4000,
    "dim": 32,
    "rho": 0.5,
    "ns": (2000, 8000),
    "dims": (16, 64),
    "rhos": (0.4, 2.0),
}
STUDIES = {
    module.STUDY.name: (module, settings)
    for module, settings in (
        (huang_gaussian, GAUSSIAN),
        (huang_covariance, COVARIANCE),
        (huang_digits, DIGITS),
        (huang_quantiles, QUANTILES),
        (huang_rate, RATE),
    )
}


def small_images(wanted, seed, *, printed_of_each):
    rows = np.random.default_rng(seed).gamma(1.0, 1.0, (1500, 64))
    return Images("small images", {f"digit {k}": rows for k in wanted})


@pytest.fixture(scope="module")
def measured():
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(huang_digits, "images", small_images)
        for module in (huang_gaussian, huang_covariance, huang_quantiles):
            patch.setattr(module, "runs_of", lambda least, dim: least)
        for name, (module, settings) in STUDIES.items():
            rows = module.STUDY.measure(settings, lambda part: None)
            found[name] = rows_from_csv(rows_to_csv(rows))
    return found


def scaled(rows, factor, *kinds, columns=("error", "rms", "private", "private_rms")):
    """The rows with the errors of some estimators multiplied."""
    return [
        {**row, **{c: row[c] * factor for c in columns}}
        if row["estimator"].startswith(kinds)
        else row
        for row in rows
    ]


@pytest.mark.parametrize("name", STUDIES)
def test_every_panel_of_the_figures_has_lines_and_labels(name, measured):
    result = Result(STUDIES[name][0].STUDY, "quick", measured[name])
    panels = result.panels()
    figure = figure_of(panels)
    assert len(figure.axes) == len(panels)
    for axes in figure.axes:
        assert axes.get_xlabel()
        assert axes.get_ylabel()
        assert axes.get_legend() is not None
        for line in axes.lines:
            assert np.isfinite(np.asarray(line.get_ydata(), float)).all()


@pytest.mark.parametrize("name", STUDIES)
def test_the_paragraph_has_no_number_that_is_none(name, measured):
    paragraph = STUDIES[name][0].STUDY.verdict(measured[name]).paragraph
    assert "nan" not in paragraph
    assert "inf" not in paragraph.replace("information", "")


def test_errors_against_both_means_are_what_they_say(measured):
    rows = where(measured["huang-gaussian"], figure="Figure 1", d=64, mu=10.0)
    table = {row["estimator"]: row for row in rows}
    plain = table[PLAIN]
    assert plain["private"] == plain["private_rms"] == 0
    assert plain["error"] == pytest.approx(np.sqrt(64 / 2000), rel=0.4)
    for row in table.values():
        assert row["error"] <= row["private_rms"] * 2 + plain["rms"] * 2
    assert table[MUHAT]["error"] < table[f"{KNOWN}1"]["error"]


def test_records_are_the_same_whatever_is_compared_and_however_far_they_are_moved():
    def cell(mu):
        return TrialCell(
            {"mu": mu}, lambda g: normal(mu).draw(g, 200, 3), 200, 3, 1.0, 50.0, mean=mu
        )

    near, far = trials(cell(0.0), (PLAIN,), 4, 7), trials(cell(8.0), (PLAIN, f"{KNOWN}2"), 4, 7)
    assert near[0]["error"] == pytest.approx(far[0]["error"], rel=1e-9)
    assert trials(cell(0.0), (PLAIN,), 4, 8)[0]["error"] != near[0]["error"]


def test_a_records_bound_is_the_papers():
    cell = TrialCell({}, lambda g: np.zeros((1, 4)), 4000, 4, 0.5, 50.0, mean=0.0)
    assert cell.magnitude == pytest.approx(100 + 100 * np.sqrt(4 + np.log(4 * 4000 / 0.05)))
    assert TrialCell({}, lambda g: np.zeros((1, 4)), 4000, 4, 0.5, 50.0).magnitude == 50


def test_the_best_in_hindsight_is_found_by_kind():
    rows = [
        {"cell": "a", "estimator": name, "error": error}
        for name, error in {SHIFTED: 2.0, f"{KNOWN}1": 4.0, f"{KNOWN}10": 1.0}.items()
    ]
    assert best(by_cell(rows)["a"], KNOWN) == 1.0
    assert ratios(rows, "error", SHIFTED, KNOWN) == [2.0]


def steady(rows):
    """The rows with errors of Shifted-CM that are all alike, and of CM that grow with μ."""
    found = []
    for row in rows:
        if row["estimator"] == SHIFTED:
            row = {**row, "error": 1e-3, "private": 1e-3}
        elif row["estimator"] == CLIPPED:
            row = {**row, "error": 1 + row["mu"]}
        found.append(row)
    return found


def test_the_verdict_on_gaussian_records_follows_the_rows(measured):
    rows = steady(measured["huang-gaussian"])
    verdict = huang_gaussian.verdict
    assert verdict(rows).reproduced == "yes"
    assert verdict(scaled(rows, 1e6, SHIFTED)).reproduced == "in part"
    unmoved = [{**row, "error": 1.0} if row["estimator"] == CLIPPED else row for row in rows]
    assert verdict(unmoved).reproduced == "in part"
    assert verdict(scaled(unmoved, 1e6, SHIFTED)).reproduced == "no"


def test_the_verdict_on_the_rate_follows_the_rows(measured):
    def with_errors(rows, error):
        columns = ("n", "d", "rho")
        return [row | {"private_rms": error(*map(row.get, columns))} for row in rows]

    rows, verdict = measured["huang-rate"], huang_rate.verdict
    as_printed = with_errors(rows, lambda n, d, rho: d / (n * rho**0.5))
    assert verdict(as_printed).reproduced == "yes"
    assert "-1.00 in n" in verdict(as_printed).paragraph
    slower = with_errors(rows, lambda n, d, rho: d / (n * rho) ** 0.5)
    assert verdict(slower).reproduced == "in part"
    assert "-0.50 in n" in verdict(slower).paragraph
    assert verdict(with_errors(rows, lambda n, d, rho: n * rho / d)).reproduced == "no"


def test_cells_with_too_few_records_are_named_and_left_out(measured):
    rows = [dict(row) for row in measured["huang-gaussian"]]
    failed = next(
        row for row in rows if row["estimator"] == SHIFTED and row["figure"] == "Figure 2"
    )
    assert failed["enough"]
    failed |= {"enough": False, "error": 1e9}
    paragraph = huang_gaussian.verdict(rows).paragraph
    assert failed["cell"] in paragraph
    assert "1000000000" not in paragraph


def test_the_verdict_on_unknown_covariances_follows_the_rows(measured):
    rows = measured["huang-covariance"]
    columns = ("error", "rms", "private", "private_rms", "mahalanobis")

    def said(changed):
        return huang_covariance.verdict(changed).paragraph

    assert "(2) Shifted-CM is never worse: yes" in said(rows)
    assert "(5) nor does it help the Mahalanobis error: yes" in said(rows)
    bad = said(scaled(rows, 100.0, SHIFTED, columns=columns))
    assert "(2) Shifted-CM is never worse: no" in bad
    assert "(3) it beats MVMRec and is close to non-private: no" in bad
    assert "(5) nor does it help the Mahalanobis error: no" in bad
    few = where(rows, d=32)
    helped = scaled(few, 1e-3, LEARNT, columns=columns) + where(rows, d=64)
    assert "(4) learning Σ helps in few dimensions only, beside the same t: yes" in said(helped)
    assert "(4) beside the best t: yes" in said(helped)
    alike = [{**row, "private": 1.0} if row["estimator"].startswith(KNOWN) else row for row in rows]
    assert "(1) the best t depends on Σ: no" in said(alike)


def test_the_verdict_on_images_needs_mnist_for_a_yes(measured):
    rows = scaled(measured["huang-digits"], 1e-3, SHIFTED)
    verdict = huang_digits.verdict
    assert verdict(rows).reproduced == "in part"
    assert "small images" in verdict(rows).paragraph
    real = [{**row, "data": MNIST} for row in rows]
    assert verdict(real).reproduced == "yes"
    assert verdict(scaled(real, 1e6, SHIFTED)).reproduced == "no"


def test_the_verdict_on_images_follows_a_baseline_that_is_told_the_scale(measured):
    rows = [{**row, "data": MNIST} for row in measured["huang-digits"]]
    winning = scaled(scaled(rows, 1e-3, SHIFTED), 1e-3, MUHAT)
    verdict = huang_digits.verdict
    assert verdict(winning).reproduced == "yes"
    assert "Shifted-CM wins" in verdict(winning).paragraph
    informed = scaled(winning, 1e-6, TOLD)
    assert verdict(informed).reproduced == "in part"
    assert "outperforms COINPRESS as it comes at every privacy level" in verdict(informed).paragraph
    assert "Shifted-CM loses" in verdict(informed).paragraph
    assert "muhat's default loses" in verdict(informed).paragraph
    assert "muhat's default wins" in verdict(scaled(informed, 1e-6, MUHAT)).paragraph


def test_the_scale_that_is_told_is_that_of_the_pixels(monkeypatch):
    monkeypatch.setattr(huang_digits, "images", small_images)
    (cell, _) = huang_digits.cells(DIGITS)
    rows = small_images((0,), DIGITS["seed"], printed_of_each=50).rows["digit 0"]
    assert cell.scale == pytest.approx(np.sqrt(rows.var(axis=0).mean()))
    told, blind = (
        np.linalg.norm(_estimator(f"{kind}4", cell)(rows, np.random.default_rng(1)) - rows.mean(0))
        for kind in (TOLD, KNOWN)
    )
    assert told != blind


def test_clipping_errors_are_those_of_clipped_records():
    n, dim, rho = 40, 3, 0.25
    records = np.arange(1.0, n + 1)[:, None] * np.ones(dim)
    norms = np.linalg.norm(records, axis=1)
    found = huang_quantiles.errors(n, dim, rho)
    for k in (0, 1, 7, n - 1):
        radius = norms[n - 1 - k]
        kept = records * np.minimum(1, radius / norms)[:, None]
        bias = np.linalg.norm(kept.mean(axis=0) - records.mean(axis=0))
        noise = dim * (2 * radius / n) ** 2 / (2 * rho)
        assert found[k] == pytest.approx(np.sqrt(bias**2 + noise))


def test_the_papers_quantile_is_near_the_best_one_and_a_change_is_noticed(measured):
    rows = measured["huang-quantiles"]
    assert huang_quantiles.verdict(rows).reproduced == "in part"
    least = {row["cell"]: row["rms"] for row in where(rows, estimator=huang_quantiles.BEST)}
    attained = [
        {**row, "rms": least[row["cell"]]} if row["estimator"] == huang_quantiles.PAPERS else row
        for row in rows
    ]
    assert huang_quantiles.verdict(attained).reproduced == "yes"
    still = [
        {**row, "clipped": 5} if row["estimator"] == huang_quantiles.BEST else row for row in rows
    ]
    assert huang_quantiles.verdict(still).reproduced == "no"


def test_images_come_from_the_folder_that_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv(huang_digits.FOLDER, str(tmp_path))
    with pytest.raises(InvalidInput, match="train-images"):
        images((0,), 0)
    for names, shape in ((IMAGES, (4, 2, 2)), (LABELS, (4,))):
        header = b"\0\0\x08" + bytes([len(shape)]) + np.array(shape, ">u4").tobytes()
        body = np.arange(np.prod(shape), dtype=np.uint8).tobytes()
        for name in names:
            (tmp_path / name).write_bytes(header + body)
    found = images((1, 3), 0)
    assert found.source == MNIST
    assert {name: rows.shape for name, rows in found.rows.items()} == {
        "digit 1": (2, 4),
        "digit 3": (2, 4),
    }


def test_images_of_scikit_learn_stand_in_and_say_so(monkeypatch):
    monkeypatch.delenv(huang_digits.FOLDER, raising=False)
    package = ModuleType("sklearn.datasets")
    package.load_digits = lambda: SimpleNamespace(data=np.full((5, 64), 16.0))
    monkeypatch.setitem(sys.modules, "sklearn", ModuleType("sklearn"))
    monkeypatch.setitem(sys.modules, "sklearn.datasets", package)
    found = images((0,), 0)
    assert "scikit-learn" in found.source
    assert found.rows["all digits"].max() == 1.0


def test_printed_digits_are_there_without_any_data(monkeypatch):
    monkeypatch.delenv(huang_digits.FOLDER, raising=False)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    found = images((0, 1), 3, printed_of_each=20)
    assert "printed" in found.source
    zeros, ones = found.rows.values()
    assert zeros.shape == ones.shape == (20, 784)
    assert 0 <= zeros.min() < zeros.max() <= 1
    # A nought is empty in the middle where a one is not.
    middle = [rows.mean(axis=0).reshape(28, 28)[13:15, 13:15].mean() for rows in (zeros, ones)]
    assert middle[0] < middle[1] / 2
    again = images((0, 1), 3, printed_of_each=20)
    assert np.array_equal(again.rows["printed 0"], zeros)


def quick(module, **changes):
    settings = {**module.STUDY.settings["quick"], **changes}
    rows = rows_from_csv(rows_to_csv(module.STUDY.measure(settings, lambda part: None)))
    return module.STUDY.verdict(rows)


@pytest.mark.slow
def test_shifting_helps_and_coinpress_is_better_on_round_gaussians():
    found = quick(huang_gaussian, dims=(512,), rhos=(0.5,))
    assert found.reproduced == "in part"
    assert "This reproduced." in found.paragraph


@pytest.mark.slow
def test_shifted_means_win_when_the_covariance_is_unknown():
    found = quick(huang_covariance, dims=(2, 128))
    assert found.reproduced == "in part"
    assert "(4) beside the best t: no" in found.paragraph
    for claim in ("depends on Σ", "close to non-private", "beside the same t", "Mahalanobis error"):
        assert f"{claim}: yes" in found.paragraph


@pytest.mark.slow
def test_the_papers_quantile_is_near_the_best_one_in_every_dimension():
    assert quick(huang_quantiles).reproduced == "in part"
