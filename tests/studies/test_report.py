"""The files of a study and the page of all of them: self-contained, made from the numbers."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import json
import random
import re
import sys

import pytest

from muhat._files import put
from muhat.errors import InvalidInput
from muhat.studies import find, running
from muhat.studies.errata import MISTAKES
from muhat.studies.report import page_of, read, report
from muhat.studies.running import Outcome, run_all, run_study, write
from muhat.studies.study import Result, Verdict, rows_from_csv


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    for name in ("blog", "errata"):
        run_study(name, "quick", folder)
    return folder


@pytest.fixture(scope="module")
def page(results):
    return report(results).read_text()


@pytest.fixture
def copied(results, tmp_path):
    for path in results.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def test_a_study_leaves_a_table_a_figure_and_its_verdict(results):
    record = json.loads((results / "blog.json").read_text())
    assert record["reproduced"] in ("yes", "in part", "no")
    assert record["level"] == "quick"
    assert record["settings"]["epsilon"] == 1.0
    assert {"python", "muhat", "numpy"} <= set(record["versions"])
    rows = rows_from_csv((results / "blog.csv").read_text())
    assert record["rows"] == len(rows)
    assert (results / "blog.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (results / "blog.svg").read_text()
    text = (results / "blog.md").read_text()
    for words in (record["claim"], record["paragraph"], f"Reproduced: {record['reproduced']}"):
        assert words in text


def test_the_same_settings_give_the_same_files(results, tmp_path):
    run_study("blog", "quick", tmp_path)
    for kind in ("csv", "svg", "png", "md"):
        name = f"blog.{kind}"
        assert (tmp_path / name).read_bytes() == (results / name).read_bytes()


def test_infinity_is_a_word_in_json():
    study = find("zou-liu-upadhyay")
    assert running._plain({"ps": (2.0, float("inf"))}) == {"ps": [2.0, "inf"]}
    assert "Infinity" not in json.dumps(running._plain(study.settings["full"]))


def test_the_page_needs_no_network_and_no_script(page):
    assert "<script" not in page
    addresses = re.findall(r'(?:src|href)="([^"]{0,30})', page)
    assert all(a.startswith(("data:image/svg", "data:text/csv", "#")) for a in addresses)
    assert "http" not in re.sub(r'(src|href)="data:[^"]*"', "", page)
    assert 'name="viewport" content="width=device-width' in page
    assert "prefers-color-scheme: dark" in page


def test_the_page_has_every_study_with_claim_verdict_plots_and_rows(results, page):
    found = [result for result, _ in read(results)]
    for result in found:
        assert f'<a href="#{result.study.name}">' in page
        assert f'<section id="{result.study.name}">' in page
    assert page.count('alt="') == sum(len(result.panels()) for result in found)
    assert page.count('class="badge') == 4
    assert "The first 12 of" in page
    assert f"All {len(MISTAKES)} rows" in page
    assert "reproduced in part" in page


def test_the_page_holds_the_tables_themselves(results, page):
    held = re.findall(r'<a download="([^"]+)" href="data:text/csv;[^,]*,([^"]*)"', page)
    assert [name for name, _ in held] == ["blog.csv", "errata.csv"]
    for name, data in held:
        assert base64.b64decode(data) == (results / name).read_bytes()


def test_a_claim_that_could_not_be_tested_is_not_called_reproduced(results):
    result, about = read(results)[0]
    study = dataclasses.replace(result.study, verdict=lambda rows: Verdict("not tested", "No."))
    page = page_of([(Result(study, "quick", result.rows), about)])
    assert page.count(">not tested</span>") == 2
    assert ">reproduced" not in page


def test_paragraphs_come_from_the_table_not_from_the_record(copied):
    record = json.loads((copied / "blog.json").read_text())
    record["paragraph"] = "Written by hand."
    (copied / "blog.json").write_text(json.dumps(record))
    table = (copied / "blog.csv").read_text()
    (copied / "blog.csv").write_text(table.replace(",530,", ",531,"))
    (copied / "errata.csv").unlink()
    page = report(copied).read_text()
    assert "Written by hand" not in page
    assert "from d = 531" in page


def test_text_is_escaped(results):
    result, about = read(results)[0]
    study = result.study
    spiked = Result(study, "<b>quick</b>", result.rows)
    page = page_of([(spiked, {**about, "settings": "<i>", "versions": {"<u>": "1"}})])
    assert not {"<b>quick", "<i>", "<u>"} & set(re.findall("<b>quick|<i>|<u>", page))


def test_a_folder_without_results_or_with_damaged_ones_is_refused(tmp_path, copied):
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InvalidInput, match="no results"):
        report(empty)
    (copied / "blog.csv").write_text("promise,d\npure,1\n")
    with pytest.raises(InvalidInput, match="blog are damaged"):
        report(copied)


@pytest.mark.parametrize("name", ["blog", "errata"])
def test_no_damage_to_a_table_ends_in_anything_but_a_refusal(name, copied):
    path, choose = copied / f"{name}.csv", random.Random(0)
    head, *rows = path.read_text().splitlines()
    for _ in range(60):
        kept = [row for row in rows if choose.random() < 0.8]
        place = choose.randrange(len(head.split(",")))
        for number in choose.sample(range(len(kept)), 3):
            cells = kept[number].split(",")
            cells[place] = choose.choice(["", "x", "0", "-1", "1e308", "inf"])
            kept[number] = ",".join(cells)
        path.write_text("\n".join([head, *kept]))
        with contextlib.suppress(InvalidInput):
            read(copied)


def test_a_folder_that_cannot_be_written_is_refused_before_the_work(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(InvalidInput, match="can be written"):
        run_study("blog", "quick", blocked / "below", lambda part: pytest.fail("it ran"))
    with pytest.raises(InvalidInput, match="can be written"):
        run_all(["blog"], "quick", blocked, progress=lambda name, part: pytest.fail("it ran"))


def test_without_matplotlib_nothing_is_measured(tmp_path, results, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InvalidInput, match=r"muhat\[study\]"):
        run_study("blog", "quick", tmp_path, lambda part: pytest.fail("it ran"))
    with pytest.raises(InvalidInput, match=r"muhat\[study\]"):
        report(results)


def test_a_file_is_written_anew_or_named_if_it_cannot_be(tmp_path):
    for content in ("old", "ρ"):
        put(tmp_path / "blog.md", content)
    (tmp_path / "report.html").mkdir()
    with pytest.raises(InvalidInput, match=r"report.html' cannot be written: Is a directory"):
        put(tmp_path / "report.html", b"")
    assert (tmp_path / "blog.md").read_text(encoding="utf-8") == "ρ"
    assert {path.name for path in tmp_path.iterdir()} == {"blog.md", "report.html"}


def test_one_study_that_is_refused_does_not_stop_the_others(tmp_path):
    heard, parts = [], []
    outcomes = run_all(
        ["nobody's", "blog"],
        "quick",
        tmp_path,
        finished=heard.append,
        progress=lambda name, part: parts.append((name, part)),
    )
    assert outcomes == heard
    assert isinstance(outcomes[0], Outcome)
    assert "no study is called" in outcomes[0].refusal
    assert outcomes[1].record["name"] == "blog"
    assert parts[-1] == ("blog", 1.0)


@pytest.mark.slow
def test_studies_that_run_side_by_side_write_the_same_numbers(results, tmp_path):
    parts = []
    outcomes = run_all(
        ["blog", "nobody's", "errata"],
        "quick",
        tmp_path,
        jobs=2,
        progress=lambda name, part: parts.append((name, part)),
    )
    assert [outcome.name for outcome in outcomes] == ["blog", "nobody's", "errata"]
    assert "no study is called" in outcomes[1].refusal
    assert {("blog", 0.0), ("blog", 1.0), ("errata", 0.0), ("errata", 1.0)} <= set(parts)
    for name in ("blog.csv", "errata.csv"):
        assert (tmp_path / name).read_bytes() == (results / name).read_bytes()


def test_what_is_written_is_the_result_that_was_given(results, tmp_path):
    rows = rows_from_csv((results / "blog.csv").read_text())[:-3]
    record = write(Result(find("blog"), "quick", rows), tmp_path, 1.23456)
    assert record["seconds"] == 1.235
    assert rows_from_csv((tmp_path / "blog.csv").read_text()) == rows
