"""Errors carry fields, and their text is made of them, in anybody's words for parameters."""

from __future__ import annotations

import copy
import multiprocessing
import pickle

import pytest

import muhat as mh
from muhat import _check, errors
from muhat._words import SECRET_N, Parameter, given
from muhat.errors import InvalidInput

KINDS = [mh.InvalidInput, mh.BudgetExceeded, mh.Impossible, mh.DataChanged, mh.SourceFailed]


def shell(parameter):
    return "--" + parameter.name.replace("_", "-") if parameter.shell is None else parameter.shell


def fields(error):
    return error.parameter, error.rule, error.value, error.hint


@pytest.mark.parametrize("kind", KINDS)
def test_a_plain_sentence_is_its_own_rule(kind):
    error = kind("the data have no rows.")
    assert str(error) == "the data have no rows."
    assert error.args == ("the data have no rows.",)
    assert fields(error) == (None, "the data have no rows.", None, None)


def test_a_sentence_is_made_of_its_fields():
    error = InvalidInput("must be at least 1", parameter="n_min", value="0", hint="Leave it out.")
    assert str(error) == "n_min must be at least 1; got 0. Leave it out."
    assert fields(error) == ("n_min", "must be at least 1", "0", "Leave it out.")
    assert str(InvalidInput("must be finite", parameter="n")) == "n must be finite."
    assert str(InvalidInput("must be finite", parameter="n", value="inf")) == (
        "n must be finite; got inf."
    )


def test_the_first_parameter_of_a_sentence_is_the_one_that_was_refused():
    error = InvalidInput(given("population", True), " needs ", given("contributions", 1), ".")
    assert str(error) == "population=True needs contributions=1."
    assert error.parameter == "population"
    assert InvalidInput("no parameter.", hint=("Use ", SECRET_N, ".")).parameter is None


def test_others_write_their_own_words_for_parameters_and_for_nothing_else():
    error = InvalidInput(
        "a column n_min, and n=None, needs ", Parameter("n_min"), ".", hint=("Or ", SECRET_N, ".")
    )
    assert str(error) == "a column n_min, and n=None, needs n_min. Or n=None."
    assert error.fields(shell) == {
        "message": "a column n_min, and n=None, needs --n-min. Or --secret-n.",
        "parameter": "--n-min",
        "rule": "a column n_min, and n=None, needs --n-min.",
        "value": None,
        "hint": "Or --secret-n.",
    }


def test_what_could_steer_a_terminal_is_escaped_everywhere_and_values_are_cut():
    hostile = "\x1b[2J\u202e\n"
    error = InvalidInput(
        f"must be {hostile}", parameter=hostile, value=hostile + "x" * 500, hint=f"Not {hostile}."
    )
    for text in (str(error), *fields(error), *error.fields(shell).values()):
        assert text.isprintable()
    assert len(error.value) == errors.LONGEST_VALUE


@pytest.mark.parametrize(
    ("check", "rule", "value"),
    [
        (lambda: _check.real("x", float("nan")), "must be finite", "nan"),
        (lambda: _check.real("x", "1"), "must be a number", "str"),
        (lambda: _check.real("x", 10**999), "must be within the range of floats", None),
        (lambda: _check.positive("x", -1), "must be greater than 0", "-1"),
        (lambda: _check.probability("x", 2), "must lie strictly between 0 and 1", "2"),
        (lambda: _check.count("x", 1.5), "must be a whole number", "1.5"),
        (lambda: _check.count("x", [1]), "must be a whole number", "list"),
        (lambda: _check.count("x", 0), "must be a whole number of at least 1", "0"),
        (lambda: _check.count("x", 9, most=8), "must be at most 8", "9"),
        (lambda: _check.count("x", 10**999), "must be at most 9007199254740991", "a number of"),
        (lambda: _check.one_of("x", 1, ["a"]), "must be one of 'a'", "int"),
        (lambda: _check.optional_flag("x", "yes"), "must be True, False or None", "str"),
    ],
)
def test_every_check_has_fields(check, rule, value):
    with pytest.raises(InvalidInput) as caught:
        check()
    error = caught.value
    assert (error.parameter, error.rule, error.hint) == ("x", rule, None)
    assert error.value == value if value is None else error.value.startswith(value)
    assert str(error).startswith(f"x {rule}")


def test_checks_have_hints():
    with pytest.raises(InvalidInput) as caught:
        _check.one_of("missing", "dorp", ["drop", "center"])
    assert fields(caught.value) == (
        "missing",
        "must be one of 'drop', 'center'",
        "'dorp'",
        "Did you mean 'drop'?",
    )
    with pytest.raises(InvalidInput) as caught:
        _check.norm_order(1)
    assert fields(caught.value)[::2] == ("p", "1")
    assert "convex" in caught.value.hint


def test_a_users_code_reads_what_was_refused():
    with pytest.raises(ValueError) as caught:
        mh.plan_mean(domain=mh.Ball(radius=1, dim=2), n=0, privacy=mh.ZCDP(rho=1))
    assert fields(caught.value) == ("n", "must be a whole number of at least 1", "0", None)
    with pytest.raises(mh.Impossible) as caught:
        mh.plan_mean(
            domain=mh.Reals(dim=1, magnitude=9), n=9, privacy=mh.ZCDP(rho=1), unbiased=True
        )
    assert "Theorem D.5" in caught.value.rule
    assert caught.value.hint.startswith("Three ways out: allow a little bias (max_bias=0.01")


@pytest.mark.parametrize("kind", KINDS)
def test_errors_go_through_pickle_whole(kind):
    error = kind("must be ", SECRET_N, parameter="n_min", value="0", hint=("Or ", SECRET_N, "."))
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is kind
        assert (str(other), fields(other)) == (str(error), fields(error))
        assert other.fields(shell) == error.fields(shell)


def test_an_error_of_another_process_has_its_fields():
    with (
        multiprocessing.get_context("spawn").Pool(1) as pool,
        pytest.raises(InvalidInput) as caught,
    ):
        pool.apply(_check.positive, ("rho", -1))
    assert fields(caught.value) == ("rho", "must be greater than 0", "-1", None)
