"""Argument checks, so that every error reads the same: parameter, rule, value, hint.

Only public arguments come here, never data: the offending value may be shown.
"""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Iterable

from muhat.errors import InvalidInput


def real(name: str, value: object) -> float:
    """A finite float, or InvalidInput."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} must be a number; got {type(value).__name__}.") from None
    if not math.isfinite(number):
        raise InvalidInput(f"{name} must be finite; got {number}.")
    return number


def positive(name: str, value: object) -> float:
    """A finite float above zero, or InvalidInput."""
    number = real(name, value)
    if number <= 0:
        raise InvalidInput(f"{name} must be greater than 0; got {number:g}.")
    return number


def probability(name: str, value: object) -> float:
    """A float strictly between 0 and 1, or InvalidInput."""
    number = real(name, value)
    if not 0 < number < 1:
        raise InvalidInput(f"{name} must lie strictly between 0 and 1; got {number:g}.")
    return number


def count(name: str, value: object, *, least: int = 1) -> int:
    """A whole number that is at least `least`, or InvalidInput."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        if not (isinstance(value, float) and value.is_integer()):
            raise InvalidInput(f"{name} must be a whole number; got {value!r:.40}.") from None
        number = int(value)
    if isinstance(value, bool) or number < least:
        raise InvalidInput(f"{name} must be a whole number of at least {least}; got {value}.")
    return number


def norm_order(value: object) -> float:
    """p in [2, ∞], or InvalidInput."""
    try:
        p = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidInput(f"p must be a number; got {type(value).__name__}.") from None
    if not p >= 2:
        raise InvalidInput(
            f"p must be at least 2 (2, 4, ... or inf); got {p:g}. "
            "Below 2 the smallest ellipsoid is no longer a convex problem."
        )
    return p


def one_of(name: str, value: str, allowed: Iterable[str]) -> str:
    """One of the allowed names, or InvalidInput with the nearest one as a hint."""
    choices = list(allowed)
    if value in choices:
        return value
    raise InvalidInput(
        f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r:.60}."
        + did_you_mean(str(value), choices)
    )


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """A hint with the nearest of the choices, or an empty string."""
    near = difflib.get_close_matches(name, list(choices), n=1, cutoff=0.5)
    return f" Did you mean {near[0]!r}?" if near else ""
