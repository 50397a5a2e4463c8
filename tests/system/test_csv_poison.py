"""CSV lines of any bytes: each is one record by itself, whatever is in it."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hostile import CANARY_NUMBER, CANARY_TEXT, assert_no_canary, ledger_in, outcome, silence
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import muhat as mh
from muhat.data import exact_sums, open_source
from muhat.domains.lattice import BoxLattice

LATTICE = BoxLattice.around([0.0, 0.0], [8.0, 8.0])
GOOD = [b"1,2", b"3,4", b"0.5,7"]
MISSING_BOTH = [
    b"",
    b" ",
    b",",
    b"x,y",
    b"5",
    b"5,5,5",
    b",,,,,,",
    b'"5,5',
    b'5",5',
    b'"5"5,5',
    b'"""",""""',
    b"5\r5,5",
    b"\x005,\x005",
    b"\xff\xfe,\xc3\x28",
    b"\xef\xbb\xbf,\xe2\x80\xa8",
    b"nan,NaN",
    b"inf,-Infinity",
    b"NULL,N/A",
    b"0x10,1_000",
    b"=1+1,@SUM(A1)",
    b"1;5,1 5",
    b"1e,--1",
    b"'5','5'",
    CANARY_TEXT.encode() + b"," + CANARY_TEXT.encode(),
    b"9" * 100_000,
    b"," * 100_000,
    b'"' * 100_000,
]
VALUES = {
    b"-0.0,0": (0, 0),
    b"5e-324,1e-400": (0, 0),
    b"1e308,-1e308": (8, 0),
    b"1e999,1e999": (None, None),
    b' 1 ,"2"': (1, 2),
    b'\t1," 2 "': (1, 2),
    b"1.,.5": (1, 0.5),
    b"0.1e1,10E-1": (1, 1),
    b"1,x": (1, None),
    b'"1",""': (1, None),
    b"9" * 300 + b"," + b"0" * 300 + b"1": (8, 1),
    repr(CANARY_NUMBER).encode() + b"," + repr(-CANARY_NUMBER).encode(): (8, 0),
}


def written(folder, lines, *, end=b"\n", last=True, mark=b"", name="d.csv"):
    data = mark + end.join([b"a,b", *lines]) + (end if last else b"")
    path = folder / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def sums(path, missing="center"):
    found = exact_sums(open_source(path, dim=2), LATTICE, missing=missing)
    return np.array([*found.total, found.rows], object)


def mean_of(path, **options):
    box = mh.Box([0, 0], [8, 8])
    return mh.mean(path, domain=box, privacy=mh.ZCDP(rho=1), **options)


@pytest.mark.parametrize("options", [{}, {"n": 4}, {"n": None}, {"n": None, "missing": "drop"}])
@pytest.mark.parametrize("name", ["d.csv", "d.csv.gz"])
def test_a_poison_line_has_the_outcome_and_charge_of_its_neighbour(tmp_path, name, options):
    secret = options.get("n", 0) is None
    ledger = ledger_in(tmp_path, "add-remove" if secret else "substitute")
    expected = outcome(lambda: mean_of(written(tmp_path, [*GOOD, b"5,5"], name=name), **options))
    for place, line in enumerate([*MISSING_BOTH, *VALUES]):
        lines = [*GOOD[: place % 4], line, *GOOD[place % 4 :]]
        path = written(tmp_path, lines, name=name)
        assert outcome(lambda path=path: mean_of(path, ledger=ledger, **options)) == expected
    charges = {(e.charged.amounts, e.plan_digest, e.note) for e in ledger.entries()}
    assert len(ledger.entries()) == len(MISSING_BOTH) + len(VALUES)
    assert len(charges) == 1
    assert_no_canary(ledger.path.read_bytes())


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_malformed_line_is_a_record_of_missing_values(tmp_path, monkeypatch, end):
    silence(monkeypatch)
    for line in MISSING_BOTH:
        release = mean_of(written(tmp_path, [line, b"8,8"], end=end))
        assert release.value.tolist() == [6.0, 6.0], line[:40]
        dropped = sums(written(tmp_path, [line, b"8,8"], end=end), "drop")
        assert (dropped == sums(written(tmp_path, [b"8,8"]), "drop")).all(), line[:40]


def test_cells_are_read_alike_whatever_else_is_in_the_file(tmp_path, monkeypatch):
    silence(monkeypatch)
    for line, expected in VALUES.items():
        filled = [4.0 if x is None else float(x) for x in expected]
        for company in ([], [b"x,x"], [b"4,4", b"nan,"]):
            for order in ([line, *company], [*company, line]):
                value = mean_of(written(tmp_path, order)).value
                assert np.allclose(value * len(order), np.add(filled, 4.0 * len(company)))


@given(
    line=st.lists(
        st.sampled_from(
            [*b'",\r\0 \t12.-+e\xff\x85', b"nan", b"inf", b"0x", b"1e308", b'""', b'","', b"N/A"]
        ),
        max_size=9,
    ).map(lambda parts: b"".join(bytes([p]) if isinstance(p, int) else p for p in parts))
    | st.binary(max_size=30).map(lambda data: data.replace(b"\n", b"")),
    place=st.integers(0, 3),
    end=st.sampled_from([b"\n", b"\r\n"]),
    missing=st.sampled_from(["center", "drop"]),
)
@settings(
    max_examples=150,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_line_of_any_bytes_adds_what_it_adds_alone(tmp_path, line, place, end, missing):
    alone = sums(written(tmp_path, [line], end=end), missing)
    rest = sums(written(tmp_path, GOOD, end=end), missing)
    together = [*GOOD[:place], line, *GOOD[place:]]
    assert (sums(written(tmp_path, together, end=end), missing) == alone + rest).all()
    assert alone[-1] == 1 or missing == "drop"


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_marks_and_line_ends_make_no_difference(tmp_path, mark, last, end):
    plain = sums(written(tmp_path, GOOD))
    assert (sums(written(tmp_path, GOOD, end=end, last=last, mark=mark)) == plain).all()


def test_a_line_longer_than_memory_should_hold_is_one_missing_record(tmp_path):
    path = written(tmp_path, [GOOD[0], b"7" * ((1 << 24) + 9), *GOOD[1:]])
    assert outcome(lambda: mean_of(path)) == outcome(
        lambda: mean_of(written(tmp_path, [*GOOD, b"5,5"]))
    )


def test_a_hundred_thousand_columns_are_read_and_a_zip_bomb_stays_small(tmp_path):
    wide = tmp_path / "wide.csv"
    names = ",".join(f"c{j}" for j in range(100_000))
    wide.write_text(f"{names}\n{','.join(['1'] * 100_000)}\n")
    release = mh.mean(wide, domain={"c99999": (0, 2)}, privacy=mh.ZCDP(rho=1e6))
    assert float(release) == pytest.approx(1, abs=0.1)
    bomb = tmp_path / "bomb.csv.gz"
    with gzip.open(bomb, "wb", compresslevel=1) as file:
        file.write(b"a,b\n1,2\n")
        for _ in range(64):
            file.write(b"\0" * (1 << 20))
        file.write(b"\n3,4\n")
    assert mean_of(bomb).n == 3


def test_a_first_line_that_looks_like_data_is_never_quoted(tmp_path):
    path = tmp_path / "headless.csv"
    path.write_text(f"{CANARY_NUMBER},1\n2,3\n")
    for options in ({"columns": ["a", "b"]}, {}, {"columns": ["a", "1"]}):
        with pytest.raises(mh.InvalidInput, match="looks like data") as refusal:
            mean_of(path, **options)
        assert_no_canary(str(refusal.value))


def test_formulas_and_shell_words_in_names_are_only_names(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("=cmd|' /C calc'!A0,\"a, b\",$(rm -rf ~)\n1,2,3\n")
    names = ["=cmd|' /C calc'!A0", "a, b", "$(rm -rf ~)"]
    domain = dict.fromkeys(names, (0, 8))
    release = mh.mean(path, domain=domain, privacy=mh.ZCDP(rho=1), ledger=ledger_in(tmp_path))
    assert list(release.columns) == names
