"""Argument checks, so that every error reads the same: parameter, rule, value, hint.

Only public arguments come here, never data: the offending value may be shown.
"""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Iterable
from numbers import Complex, Real

from muhat._words import Parameter
from muhat.errors import InvalidInput

Name = Parameter | str
"""How a refusal names what is checked; a plain text is the name of the parameter."""

LARGEST_COUNT = (1 << 53) - 1
"""Beyond it n would no longer be exact as a float, and no dataset is that long."""


def real(name: Name, value: object) -> float:
    """A finite float, or InvalidInput."""
    number = _float(name, value)
    if not math.isfinite(number):
        raise InvalidInput("must be finite", parameter=name, value=str(number))
    return number


def positive(name: Name, value: object) -> float:
    """A finite float above zero, or InvalidInput."""
    number = real(name, value)
    if number <= 0:
        raise InvalidInput("must be greater than 0", parameter=name, value=f"{number:g}")
    return number


def not_negative(name: Name, value: object) -> float:
    """A finite float of at least zero, or InvalidInput."""
    number = real(name, value)
    if number < 0:
        raise InvalidInput("must be at least 0", parameter=name, value=f"{number:g}")
    return number


def probability(name: Name, value: object) -> float:
    """A float strictly between 0 and 1, or InvalidInput."""
    number = real(name, value)
    if not 0 < number < 1:
        rule = "must lie strictly between 0 and 1"
        raise InvalidInput(rule, parameter=name, value=f"{number:g}")
    return number


def fraction(name: Name, value: object) -> float:
    """A float from 0 to 1, both allowed, or InvalidInput."""
    number = real(name, value)
    if not 0 <= number <= 1:
        raise InvalidInput("must lie between 0 and 1", parameter=name, value=f"{number:g}")
    return number


def count(name: Name, value: object, *, least: int = 1, most: int = LARGEST_COUNT) -> int:
    """A whole number between `least` and `most`, or InvalidInput."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        if not (isinstance(value, float) and value.is_integer()):
            # A number may be shown; an array may be data.
            shown = repr(value) if isinstance(value, float) else type(value).__name__
            raise InvalidInput("must be a whole number", parameter=name, value=shown) from None
        number = int(value)
    if isinstance(value, bool) or number < least:
        rule = f"must be a whole number of at least {least}"
        raise InvalidInput(rule, parameter=name, value=_shown(number))
    if number > most:
        raise InvalidInput(f"must be at most {most}", parameter=name, value=_shown(number))
    return number


def norm_order(value: object) -> float:
    """p in [2, ∞], or InvalidInput."""
    p = _float("p", value)
    if not p >= 2:
        raise InvalidInput(
            "must be at least 2 (2, 4, ... or inf)",
            parameter="p",
            value=f"{p:g}",
            hint="Below 2 the smallest ellipsoid is no longer a convex problem.",
        )
    return p


def one_of(name: Name, value: object, allowed: Iterable[str]) -> str:
    """One of the allowed names, or InvalidInput with the nearest one as a hint."""
    choices = list(allowed)
    if isinstance(value, str) and value in choices:
        return value
    rule = f"must be one of {', '.join(map(repr, choices))}"
    if not isinstance(value, str):
        raise InvalidInput(rule, parameter=name, value=type(value).__name__)
    hint = did_you_mean(value, choices).strip()
    raise InvalidInput(rule, parameter=name, value=f"{value!r:.60}", hint=hint)


def optional_flag(name: Name, value: object) -> bool | None:
    """True, False or None for "whichever is best", or InvalidInput."""
    if value is None or isinstance(value, bool):
        return value
    rule = "must be True, False or None"
    raise InvalidInput(rule, parameter=name, value=type(value).__name__)


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """A hint with the nearest of the choices, or an empty string."""
    near = difflib.get_close_matches(name, list(choices), n=1, cutoff=0.5)
    return f" Did you mean {near[0]!r}?" if near else ""


def _float(name: Name, value: object) -> float:
    """Numbers of any kind as a float; text and complex numbers are not numbers here."""
    is_complex = isinstance(value, Complex) and not isinstance(value, Real)
    try:
        if is_complex or isinstance(value, str | bytes):
            raise TypeError
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        raise InvalidInput("must be within the range of floats", parameter=name) from None
    except (TypeError, ValueError):
        got = type(value).__name__
        raise InvalidInput("must be a number", parameter=name, value=got) from None


def _shown(number: int) -> str:
    return str(number) if abs(number) < 10**30 else f"a number of {number.bit_length()} bits"
