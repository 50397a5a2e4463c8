"""`muhat bounds`: what no private mean can beat, from the shell."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import muhat as mh
from muhat.cli import main

ROWS = ("--n", "1000")
RHO = ("--rho", "0.1")


def run(*arguments, code=0):
    result = CliRunner().invoke(main, ["bounds", *map(str, arguments)])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    if code:
        assert result.stdout == ""
    return result


def fields_of(*arguments):
    fields = json.loads(run(*arguments, "--json").stdout)
    assert fields["schema"] == "muhat.bounds/1"
    return fields


def values(bounds):
    return [bound.value for bound in bounds]


def test_a_ball_shows_what_is_achieved_and_what_nobody_can_beat():
    expected = mh.bounds.ball(n=1000, dim=10, radius=1.0, privacy=mh.ZCDP(rho=0.1))
    fields = fields_of("--ball", "1", "--dim", "10", *ROWS, *RHO)
    assert [bound["value"] for bound in fields["bounds"]] == values(expected.bounds)
    assert [entry["error"] for entry in fields["achieved"]] == [expected.upper, 1.0]
    text = run("--ball", "1", "--dim", "10", *ROWS, *RHO).stdout
    assert text.rstrip() == expected.describe()
    assert "0.01102" in text
    moved = fields_of("--ball", "1@5,5,5,5,5,5,5,5,5,5", *ROWS, *RHO)
    assert moved == fields


def test_another_norm_has_the_bounds_of_all_classes():
    space = mh.Ball(radius=2, dim=3)
    expected = mh.bounds.mean(space, n=1000, privacy=mh.ZCDP(rho=0.1), p=4)
    fields = fields_of("--ball", "2", "--dim", "3", "--p", "4", *ROWS, *RHO)
    assert [bound["value"] for bound in fields["bounds"]] == values(expected)
    assert "achieved" not in fields
    assert "ℓ_4" in run("--ball", "2", "--dim", "3", "--p", "4", *ROWS, *RHO).stdout


@pytest.mark.parametrize(
    ("options", "privacy"),
    [
        (RHO, mh.ZCDP(rho=0.1)),
        (("--epsilon", "1"), mh.PureDP(epsilon=1)),
        (("--epsilon", "1", "--delta", "1e-6"), mh.ApproxDP(epsilon=1, delta=1e-6)),
        (("--mu", "0.5"), mh.GDP(mu=0.5)),
    ],
)
@pytest.mark.parametrize("p", ["2", "inf"])
def test_a_box_has_the_bounds_of_the_plan_with_the_same_options(options, privacy, p):
    named = ("--bounds", "salary=0:200000", "--bounds", "age=16:90")
    fields = fields_of(*named, *ROWS, "--p", p, *options)
    plan = mh.plan_mean(
        domain={"salary": (0, 200_000), "age": (16, 90)},
        n=1000,
        privacy=privacy,
        p=float(p),
        missing="none",
    )
    ours = [bound for bound in fields["bounds"] if bound["source"] == "derived"]
    planned = [bound for bound in plan.certificate.bounds if bound.source == "derived"]
    assert [bound["theorem"] for bound in ours] == [bound.theorem for bound in planned]
    for bound, other in zip(ours, planned, strict=True):
        assert bound["value"] == pytest.approx(other.value, rel=1e-6)
    assert fields["columns"] == {"salary": [0, 200_000], "age": [16, 90]}
    text = run(*named, *ROWS, "--p", p, *options).stdout
    assert "widths" in text
    assert "on some dataset." in text


def test_too_few_rows_are_said_not_to_meet_a_condition():
    named = [part for name in "abcdef" for part in ("--bounds", f"{name}=0:1")]
    text = run(*named, "--n", "1", "--epsilon", "1", "--delta", "1e-6").stdout
    assert "not applicable" in text
    assert "rate only" in text
    assert text.count("has error at least") == 1
    assert "Every additive-noise (1, 1e-06)-DP mechanism has error at least" in text


def test_the_trilemma_is_printed_for_a_bias():
    asked = ("--bias", "0.001", *ROWS, "--epsilon", "1")
    expected = mh.bounds.trilemma(1000, epsilon=1, bias=0.001)
    assert run(*asked).stdout.rstrip() == expected.describe()
    assert fields_of(*asked)["value"] == expected.value
    other = fields_of(*asked, "--moment", "3,2", "--interval", "50")
    wide = mh.bounds.trilemma(1000, epsilon=1, bias=0.001, moment_order=3, scale=2, interval=50)
    assert other["value"] == wide.value
    assert fields_of(*asked, "--moment", "inf,1")["moment_order"] == "inf"
    none = fields_of("--bias", "0", *ROWS, "--epsilon", "1")
    assert (none["impossible"], none["value"]) == (True, None)


def test_a_quantile_has_bounds_in_ranks():
    asked = ("--cells", "1000000", *ROWS, "--epsilon", "1")
    text = run(*asked).stdout
    assert text.startswith("Quantile 0.5 among 1,000,000 values · 1-DP (pure) · n = 1000")
    values = [bound["value"] for bound in fields_of(*asked)["bounds"]]
    assert values[1] == mh.bounds.rank_error(10**6, privacy=mh.PureDP(epsilon=1), n=1000).value
    assert fields_of(*asked, "--q", "0.001")["bounds"][1]["value"] <= 1
    assert "no use" in run("--bounds", "a=0:1", *ROWS, "--q", "0.5", *RHO, code=2).stderr


BALL = ("--ball", "1", "--dim", "3")
REFUSALS = {
    "nothing": ((*ROWS, *RHO), "in one way: --bounds COLUMN=LOW:HIGH"),
    "two ways": ((*BALL, "--bias", "0.1", *ROWS, *RHO), "in one way"),
    "no rows": ((*BALL, *RHO), "--n"),
    "rows of zero": ((*BALL, "--n", "0", *RHO), "at least 1"),
    "no promise": ((*BALL, *ROWS), "exactly one of --epsilon"),
    "two promises": ((*BALL, *ROWS, *RHO, "--mu", "1"), "exactly one of --epsilon"),
    "ball without columns": (("--ball", "1", *ROWS, *RHO), "--dim D"),
    "ball of nothing": (("--ball", "x", "--dim", "2", *ROWS, *RHO), "not a number"),
    "ball of no size": (("--ball", "0", "--dim", "2", *ROWS, *RHO), "greater than 0"),
    "dim of a box": (("--bounds", "a=0:1", "--dim", "1", *ROWS, *RHO), "--dim has no use"),
    "reversed": (("--bounds", "a=1:0", *ROWS, *RHO), "above its upper bound"),
    "twice": (("--bounds", "a=0:1", "--bounds", "a=0:2", *ROWS, *RHO), "twice"),
    "p": ((*BALL, "--p", "1", *ROWS, *RHO), "at least 2"),
    "p with a bias": (("--bias", "0.1", "--p", "2", *ROWS, *RHO), "--p has no use"),
    "moment of a ball": ((*BALL, "--moment", "2,1", *ROWS, *RHO), "--moment has no use"),
    "interval of a box": (("--bounds", "a=0:1", "--interval", "1", *ROWS, *RHO), "with --bounds"),
    "negative bias": (("--bias", "-1", *ROWS, *RHO), "at least 0"),
    "no number": (("--bias", "nan", *ROWS, *RHO), "finite"),
    "half a moment": (("--bias", "0.1", "--moment", "2", *ROWS, *RHO), "K,SIZE"),
    "no moment": (("--bias", "0.1", "--moment", "1,1", *ROWS, *RHO), "greater than 1"),
    "no interval": (("--bias", "0.1", "--interval", "0", *ROWS, *RHO), "greater than 0"),
    "other code": (("--domain", "__import__('os').getcwd()", *ROWS, *RHO), "as in Python"),
    "an attribute": (("--domain", "Simplex.__init__", *ROWS, *RHO), "as in Python"),
    "stars": (("--domain", "Simplex(**{'dim': 3})", *ROWS, *RHO), "as in Python"),
    "half a domain": (("--domain", "Simplex(5", *ROWS, *RHO), "as in Python"),
    "no bounds at all": (("--domain", "Reals(3)", *ROWS, *RHO), "as in Python"),
    "deep": (("--domain", "[" * 5000, *ROWS, *RHO), "as in Python"),
    "what the domain refuses": (("--domain", "Simplex(-1)", *ROWS, *RHO), "at least 1"),
    "dim of a domain": (("--domain", "Simplex(5)", "--dim", "5", *ROWS, *RHO), "--dim has no use"),
}


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("Simplex(5)", mh.Simplex(5)),
        ("LpBall(1, dim=4)", mh.LpBall(1, dim=4)),
        ("LpBall(inf, dim=2)", mh.LpBall(float("inf"), dim=2)),
        ("Ball(1, 3) * Simplex(dim=2)", mh.Ball(1, 3) * mh.Simplex(2)),
        ("[[2, 0], [1, 1]] @ Ball(1, 2) + [1, 2]", [[2, 0], [1, 1]] @ mh.Ball(1, 2) + [1, 2]),
        ("Points([[0, 0], [1, 0], [0, -1]])", mh.Points([[0, 0], [1, 0], [0, -1]])),
        ("SchattenBall(1, (2, 2))", mh.SchattenBall(1, (2, 2))),
    ],
)
def test_any_domain_on_a_line(text, domain):
    fields = fields_of("--domain", text, *ROWS, *RHO)
    found = mh.bounds.mean(domain, n=1000, privacy=mh.ZCDP(rho=0.1))
    assert fields["domain"] == domain.to_dict()
    assert [one["value"] for one in fields["bounds"]] == [one.value for one in found]


@pytest.mark.parametrize("case", REFUSALS)
def test_what_makes_no_sense_is_one_sentence(case):
    arguments, expected = REFUSALS[case]
    (error,) = [
        line for line in run(*arguments, code=2).stderr.splitlines() if line.startswith("Error: ")
    ]
    assert expected in error
    assert "mh." not in error


def test_the_help_ends_with_an_example_and_the_command_is_listed():
    text = " ".join(run("--help").stdout.split())
    assert "Example: muhat bounds --ball 1 --dim 10 --n 1000 --rho 0.1" in text
    assert "bounds" in CliRunner().invoke(main, ["--help"]).stdout
