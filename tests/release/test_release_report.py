"""The page of a release: whole, safe, self-contained, and with the numbers of the release."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from drawn_releases import HOSTILE, MANY, MEAN, RELEASES, SET, STRANGE

import muhat as mh
from muhat._text import printable

ALONE = {"meta", "br", "line", "circle", "path", "rect"}
HEADINGS = ["What it cost", "What is assumed", "How to read this page", "Digests"]


class Page(HTMLParser):
    """Tags, attributes and texts; every tag is closed in its order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.cells: list[str] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ALONE:
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
        if self.open[-1:] in (["td"], ["th"]):
            self.cells[-1] += data


@pytest.mark.parametrize("name", RELEASES)
def test_a_report_is_one_page_that_needs_nothing_else(name):
    text = RELEASES[name].report()
    page = Page(text)
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert not re.search(r"https?:|url\(|@import|//[a-z]", text)
    sources = [value for key, value in page.attributes if key in ("src", "href", "xlink:href")]
    assert all(value.startswith("#") for value in sources)
    assert not [key for key, _ in page.attributes if key.startswith("on")]
    for heading in HEADINGS:
        assert f"<h2>{heading}</h2>" in text
    assert RELEASES[name].privacy.describe() in text
    assert RELEASES[name].plan_digest in text


def test_it_follows_the_reader_in_light_dark_and_width():
    text = MEAN.report()
    assert "@media (prefers-color-scheme: dark)" in text
    assert "@media (max-width" in text
    assert 'name="viewport"' in text
    assert "default-src 'none'" in text


@pytest.mark.parametrize("name", ["mean", "quantiles", "tables", "set"])
def test_the_tables_are_those_of_the_release(name):
    cells = Page(RELEASES[name].report()).cells
    for answer in RELEASES[name].answers:
        for row in answer.rows():
            start = next(i for i in range(len(cells)) if cells[i : i + len(row)] == row)
            assert start >= 0


def test_every_statistic_has_its_place_and_its_chart():
    text = SET.report()
    page = Page(text)
    for number, name in enumerate(SET.names, start=1):
        assert f'id="s{number}"' in text
        assert name in page.texts
    assert text.count("<figure>") == len(SET.names)
    assert text.count('class="few"') == 1
    assert "noise and sampling" in text
    strips = sum(len(each.table()["value"]) for each in SET.answers)
    assert text.count('class="strip"') == strips


def test_of_many_groups_lines_are_folded_and_pictures_cut():
    text = MANY.report()
    assert text.count('class="strip"') == 40
    assert "The first 40 of 200; all are in the table." in text
    assert "<summary>180 more lines</summary>" in text
    assert "town 199" in Page(text).cells
    assert len(text) < 100_000


def test_names_that_others_chose_do_no_harm():
    text = STRANGE.report(title="<h1>\x1b", specification="<i>\n\tx = '\u202e'\n")
    page = Page(text)
    assert "script" not in page.tags
    assert not {"b", "i"} & set(page.tags)
    for label in HOSTILE:
        assert printable(label) in page.cells
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "&lt;h1&gt;\\x1b" in text
    assert "<pre" in text
    assert "    x = " in text


def test_the_promise_is_said_in_plain_words():
    said = replace(MEAN, privacy=mh.PureDP(epsilon=1.0)).report()
    # A guess is wrong in 1/(1 + e) = 26.9 % of cases at the least.
    assert "at least 26 of 100 still are" in said
    assert "which of two possible records a certain person has" in said
    assert "As (ε, δ)" not in said
    secret = SET.report()
    assert "whether a certain person is in these data" in secret
    assert "number kept secret" in secret
    assert "ε = 5.2" in secret
    weak = replace(MEAN, privacy=mh.PureDP(epsilon=50.0)).report()
    assert "Caution: 50-DP (pure) promises next to nothing" in weak
    assert "perhaps less than one of 100" in weak


def test_certificate_specification_and_account_are_there_if_they_are():
    head = {"count": 3, "hash": "ab" * 32}
    text = replace(MEAN, ledger_head=head).report(specification="rho = 0.5")
    assert MEAN.certificate.verdict() in text
    assert "ab" * 32 in text
    assert "charged to an account" in text
    assert "The specification" in text
    bare = MEAN.report()
    assert "The specification" not in bare
    assert "No account was kept" in bare


def test_no_value_is_said_so():
    (answer,) = MEAN.answers
    failed = replace(
        answer,
        value=np.full(2, np.nan),
        noise=None,
        certificate=None,
        squares=None,
        recorded=None,
        failure="no bin had enough records",
    )
    text = replace(MEAN, answers=(failed,)).report()
    assert "No value came out; the promise is spent. The reason: no bin had enough records." in text


def test_a_report_is_written_whole_and_replaces_an_earlier_one(tmp_path):
    path = tmp_path / "report.html"
    before = os.umask(0o022)
    try:
        assert MEAN.report(path) == path
    finally:
        os.umask(before)
    assert path.read_text(encoding="utf-8") == MEAN.report()
    assert path.stat().st_mode & 0o777 == 0o644
    assert SET.report(str(path)) == path
    assert path.read_text(encoding="utf-8") == SET.report()
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_else_is_written_over(tmp_path):
    data = tmp_path / "people.csv"
    data.write_text("age\n1\n")
    link = tmp_path / "link.html"
    link.symlink_to(data)
    for path, words in {
        data: "is no report of a release",
        link: "is a link",
        tmp_path: "is a folder",
        tmp_path / "nowhere" / "report.html": "cannot be written",
        Path(os.devnull): "is no report of a release",
    }.items():
        with pytest.raises(mh.InvalidInput, match=words):
            MEAN.report(path)
    assert data.read_text() == "age\n1\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.html", "people.csv"]
