"""A pushed number becomes an integer: clipped to public bounds, rounded to a public grid."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Complex, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Integers
from muhat._integers import power_of_two, round_half_even
from muhat._words import Parameter
from muhat.errors import InvalidInput

_MISSING = {"NAType", "NaTType"}
"""What dataframe libraries put where nothing is."""

_EXPONENTS = range(-1000, 1000)


@dataclass(frozen=True)
class EventGrid:
    """The integers lower, …, upper of one coordinate, in units of 2^exponent.

    `center` is what a missing or non-finite number becomes. Bounds off the grid are rounded to it.
    Events that are replaced, and never missing from a step, are counted from an `origin`; it is
    public, and so is what it adds to a sum.

    >>> EventGrid.between(Fraction(0), Fraction(1), -4).place(0.7)
    11
    """

    exponent: int
    lower: int
    upper: int
    center: int
    origin: float | None = None

    @classmethod
    def between(
        cls, lower: Fraction, upper: Fraction, exponent: int, *, replaced: bool = False
    ) -> EventGrid:
        """The grid of [lower, upper], from the middle where events are replaced."""
        if exponent not in _EXPONENTS:
            raise InvalidInput("lower and upper must be of a size between 1e-280 and 1e280.")
        origin = float((lower + upper) / 2) if replaced else None
        low, high, middle = (
            round_half_even(scaled.numerator, scaled.denominator)
            for scaled in (
                (bound - Fraction(origin or 0)) / power_of_two(exponent)
                for bound in (lower, upper, (lower + upper) / 2)
            )
        )
        return cls(exponent, low, high, middle, origin)

    @property
    def reach(self) -> int:
        """The most by which one event moves a sum, in units: there or not, or replaced."""
        if self.origin is not None:
            return self.upper - self.lower
        return max(abs(self.lower), abs(self.upper))

    def place(self, value: Any) -> int:
        """The integer of one pushed number; what is not a number at all is InvalidInput."""
        number = value if type(value) is float else as_float(value)
        moved = number if self.origin is None else number - self.origin
        try:
            step = round(moved * self._steps)
        except ValueError:
            return self.center
        except OverflowError:
            if math.isinf(number):
                return self.center
            return self.upper if moved > 0 else self.lower
        if step < self.lower:
            return self.lower
        return step if step < self.upper else self.upper

    @cached_property
    def _steps(self) -> float:
        """How many units there are in 1; a power of two, by which products are exact."""
        return math.ldexp(1.0, -self.exponent)

    def place_all(self, values: NDArray[np.float64]) -> Integers:
        """The integers of many floats at once, the same as `place` gives."""
        with np.errstate(all="ignore"):
            moved = values if self.origin is None else values - self.origin
            scaled = np.rint(np.ldexp(moved, -self.exponent))
            clipped = np.clip(scaled, float(self.lower), float(self.upper))
            return np.where(np.isfinite(values), clipped, float(self.center)).astype(np.int64)

    def answer(self, total: int, counted: float) -> float:
        """A sum of so many events, in the unit of the events."""
        found = math.ldexp(total, self.exponent)
        return found if self.origin is None else found + self.origin * counted

    def answers(self, totals: Integers, counted: NDArray[Any]) -> NDArray[np.float64]:
        """The same of many sums at once."""
        found = np.ldexp(totals.astype(np.float64), self.exponent)
        return found if self.origin is None else found + self.origin * counted

    def to_list(self) -> list[int | float]:
        """The numbers, as JSON has them."""
        numbers: list[int | float] = [self.exponent, self.lower, self.upper, self.center]
        return numbers if self.origin is None else [*numbers, self.origin]

    @classmethod
    def from_list(cls, numbers: Sequence[Any]) -> EventGrid:
        """The grid that `to_list` wrote."""
        return cls(*map(int, numbers[:4]), *map(float, numbers[4:]))


def as_float(value: Any) -> float:
    """A real number of any kind as the nearest float, NaN for a missing one; else InvalidInput.

    The type alone decides what is refused: a number that cannot be read is a missing one.
    """
    if value is None or type(value).__name__ in _MISSING:
        return math.nan
    if not _is_number(value):
        raise InvalidInput(f"a push must be a number; got {type(value).__name__}.")
    if isinstance(value, np.ma.MaskedArray):
        value = np.nan if np.ma.getmaskarray(value)[()] else value.data
    try:
        return float(value)
    except Exception as error:  # of whatever the object does; it may quote the number
        if isinstance(error, OverflowError) and isinstance(value, Real):
            return math.copysign(sys.float_info.max, 1 if value > 0 else -1)  # type: ignore[operator]
        return math.nan


def _is_number(value: Any) -> bool:
    """Whether a type is one of real numbers; text and times have floats of their own."""
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "biuf"
    if isinstance(value, str | bytes | bytearray | np.datetime64 | np.timedelta64):
        return False
    if isinstance(value, Complex) and not isinstance(value, Real):
        return False
    return hasattr(type(value), "__float__")


def as_floats(values: Any, dim: int | None) -> NDArray[np.float64]:
    """Pushes as floats of shape (k,), or (k, dim); types are checked, values never.

    Integers beyond the floats become the largest float of their sign: they are clipped anyway.
    """
    array = None
    for dtype in (None, object):
        if array is None:
            with contextlib.suppress(Exception):  # of numpy, or of an object among the values
                array = np.asarray(_without_masks(values), dtype)
    if array is None:
        raise InvalidInput("must be numbers in rows of the same length", parameter="pushes")
    shape = "(k,)" if dim is None else f"(k, {dim})"
    if array.ndim != (1 if dim is None else 2) or (dim is not None and array.shape[1] != dim):
        raise InvalidInput(f"must have shape {shape}", parameter="pushes", value=str(array.shape))
    if array.dtype.kind in "biuf":
        with np.errstate(all="ignore"):
            return array.astype(np.float64)
    if array.dtype.kind != "O":
        raise InvalidInput(
            "must be numbers", parameter="pushes", value=f"an array of {array.dtype}"
        )
    return np.array([as_float(value) for value in array.ravel()], np.float64).reshape(array.shape)


def _without_masks(values: Any) -> Any:
    """The same with NaN where numpy's masks say that nothing is: it would warn of each."""
    if isinstance(values, list | tuple):
        return [_without_masks(value) for value in values]
    if isinstance(values, np.ma.MaskedArray) and values.dtype.kind in "biufO":
        return np.ma.filled(values.astype(object), np.nan)[()]
    return values


def bounds_of(lower: Any, upper: Any) -> tuple[Sequence[tuple[Fraction, Fraction]], bool]:
    """The bounds of every coordinate as exact rationals, and whether pushes are plain numbers."""
    scalar = np.ndim(lower) == 0 and np.ndim(upper) == 0
    from muhat.domains import Box

    bounds = Box([lower], [upper]).bounds if scalar else Box(lower, upper).bounds
    if any(least == most for least, most in bounds):
        raise InvalidInput(
            *("events must be able to differ: ", Parameter("lower"), " must be below "),
            *(Parameter("upper"), "."),
        )
    return bounds, scalar
