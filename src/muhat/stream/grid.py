"""A pushed number becomes an integer: clipped to public bounds, rounded to a public grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Complex, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat.domains.box_lattice import power_of_two, round_half_even
from muhat.errors import InvalidInput

Integers = NDArray[np.int64]

_MISSING = {"NAType", "NaTType"}
"""What dataframe libraries put where nothing is."""

_EXPONENTS = range(-1000, 1000)


@dataclass(frozen=True)
class Grid:
    """The integers lower, …, upper of one coordinate, in units of 2^exponent.

    `center` is what a missing or non-finite number becomes. Bounds off the grid are rounded to it.

    >>> Grid.between(Fraction(0), Fraction(1), -4).place(0.7)
    11
    """

    exponent: int
    lower: int
    upper: int
    center: int

    @classmethod
    def between(cls, lower: Fraction, upper: Fraction, exponent: int) -> Grid:
        """The grid of [lower, upper]."""
        if exponent not in _EXPONENTS:
            raise InvalidInput("lower and upper must be of a size between 1e-280 and 1e280.")
        low, high, middle = (
            round_half_even(scaled.numerator, scaled.denominator)
            for scaled in (
                bound / power_of_two(exponent) for bound in (lower, upper, (lower + upper) / 2)
            )
        )
        return cls(exponent, low, high, middle)

    @property
    def reach(self) -> int:
        """The most that one push adds or takes away, in units."""
        return max(abs(self.lower), abs(self.upper))

    def place(self, value: Any) -> int:
        """The integer of one pushed number; what is not a number at all is InvalidInput."""
        try:
            number = value if type(value) is float else as_float(value)
            if not math.isfinite(number):
                return self.center
            return min(max(round(math.ldexp(number, -self.exponent)), self.lower), self.upper)
        except OverflowError:
            return self.upper if value > 0 else self.lower

    def place_all(self, values: NDArray[np.float64]) -> Integers:
        """The integers of many floats at once, the same as `place` gives."""
        with np.errstate(all="ignore"):
            scaled = np.rint(np.ldexp(values, -self.exponent))
            clipped = np.clip(scaled, float(self.lower), float(self.upper))
            return np.where(np.isfinite(values), clipped, float(self.center)).astype(np.int64)


def as_float(value: Any) -> float:
    """A real number of any kind as a float, NaN for a missing one; else InvalidInput."""
    if value is None or type(value).__name__ in _MISSING:
        return math.nan
    if isinstance(value, str | bytes) or (
        isinstance(value, Complex) and not isinstance(value, Real)
    ):
        raise _not_a_number(value)
    if isinstance(value, np.ndarray) and value.ndim:
        raise _not_a_number(value)
    try:
        return float(value)
    except ValueError:
        return math.nan  # a signalling NaN of the decimal module
    except TypeError:
        raise _not_a_number(value) from None


def as_floats(values: Any, dim: int | None) -> NDArray[np.float64]:
    """Pushes as floats of shape (k,), or (k, dim); types are checked, values never.

    Integers beyond the floats become the largest float of their sign: they are clipped anyway.
    """
    try:
        masked = isinstance(values, np.ma.MaskedArray)
        array = values.astype(np.float64).filled(np.nan) if masked else np.asarray(values)
    except (TypeError, ValueError):
        raise InvalidInput("pushes must be numbers in rows of the same length.") from None
    shape = "(k,)" if dim is None else f"(k, {dim})"
    if array.ndim != (1 if dim is None else 2) or (dim is not None and array.shape[1] != dim):
        raise InvalidInput(f"pushes must have shape {shape}; got {array.shape}.")
    if array.dtype.kind in "biuf":
        with np.errstate(all="ignore"):
            return array.astype(np.float64)
    if array.dtype.kind != "O":
        raise InvalidInput(f"pushes must be numbers; got an array of {array.dtype}.")
    return np.array([_finite(value) for value in array.ravel()], np.float64).reshape(array.shape)


def _finite(value: Any) -> float:
    try:
        return as_float(value)
    except OverflowError:
        return math.copysign(np.finfo(np.float64).max, 1 if value > 0 else -1)


def _not_a_number(value: Any) -> InvalidInput:
    return InvalidInput(f"a push must be a number; got {type(value).__name__}.")


def bounds_of(lower: Any, upper: Any) -> tuple[Sequence[tuple[Fraction, Fraction]], bool]:
    """The bounds of every coordinate as exact rationals, and whether pushes are plain numbers."""
    scalar = np.ndim(lower) == 0 and np.ndim(upper) == 0
    from muhat.domains import Box

    return Box([lower], [upper]).bounds if scalar else Box(lower, upper).bounds, scalar
