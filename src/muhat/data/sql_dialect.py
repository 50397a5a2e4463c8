"""What engines write differently in SQL, and what a column of theirs is."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

LARGEST = sys.float_info.max


class CannotPush(Exception):
    """There is no SQL that makes the same numbers of these values."""


@dataclass(frozen=True)
class SqlColumn:
    """A column: an expression for its value, and what that is.

    `kind` is "float" (a float of 64 bits), "integer" (of 64 bits, `signed` or not), "decimal" (a
    whole number of units of 10^−scale) or "text". `real` is the nearest float of a decimal, where
    the engine is known to find it. Whole numbers that are `narrow` are BIGINT, and divided as such
    where that is exact.
    """

    value: str
    kind: str
    signed: bool = True
    scale: int = 0
    real: str | None = None
    narrow: bool = False


class Dialect(ABC):
    """An engine's words."""

    real_type: str
    wide_type: str
    """What holds whole numbers of 127 bits."""

    most_names: int | None = None
    """How many numbers of a record a query may make; None for any number."""

    def real(self, value: float) -> str:
        """A float, all its bits."""
        return f"CAST('{value!r}' AS {self.real_type})"

    def wide(self, value: int) -> str:
        """A whole number of up to 127 bits."""
        return f"CAST({value} AS {self.wide_type})"

    def text(self, value: str) -> str:
        """A text."""
        return "'" + value.replace("'", "''") + "'"

    def as_real(self, value: str) -> str:
        """A number as the nearest float."""
        return f"CAST({value} AS {self.real_type})"

    def is_there(self, column: SqlColumn) -> str:
        """Whether a value is there, and finite."""
        if column.kind == "float":
            return f"({column.value} BETWEEN {self.real(-LARGEST)} AND {self.real(LARGEST)})"
        return f"({column.value} IS NOT NULL)"

    def clip(self, whole: str, lower: int, upper: int) -> str:
        """A whole number that is there, or the nearer one of two integers that it is not between.

        Integers are compared, and whatever the number is, it is one from the first to the second.
        """
        return f"LEAST(GREATEST({whole}, {lower}), {upper})"

    def total(self, whole: str, counted: str) -> str:
        """The exact sum of whole numbers of at most 2^45; `counted` says of which records."""
        return f"sum({whole}){counted}"

    @abstractmethod
    def quotient(self, value: str, divisor: int) -> str:
        """⌊value/divisor⌋ of whole numbers that are not negative."""

    @abstractmethod
    def remainder(self, value: str, divisor: int) -> str:
        """What the quotient leaves."""

    @abstractmethod
    def same_bytes(self, text: str) -> str:
        """A text that is compared byte by byte, whatever its column compares by."""

    @abstractmethod
    def whole(self, value: str, near: tuple[float, float], scaled: Callable[[str], str]) -> str:
        """scaled(value), a float that is whole, as BIGINT, if `value` lies between two floats.

        For others nothing, or an integer of the same sign and beyond 2^46. It must never raise.
        """
