"""What engines write differently in SQL, and what a column of theirs is."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass

LARGEST = sys.float_info.max
MAGIC = 1.5 * 2.0**52
"""A float that is added, and taken away, to round to the nearest whole number."""

EXACT_DIGITS = 15
"""So many digits are exact in a float, and their quotient by a power of ten is the nearest."""


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

    units: tuple[int, ...] = (1,)
    """What each of the parts counts that a whole number is added up by; the last counts 1."""

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

    def parts(self, whole: str) -> tuple[str, ...]:
        """A whole number of at most 2^45, in parts of `units` whose sums are exact."""
        return (whole,)

    def total(self, whole: str, condition: str | None) -> str:
        """The sum of whole numbers, or of those of the records for which a condition holds."""
        return f"sum({whole}){_of(condition)}"

    def count(self, condition: str | None) -> str:
        """The number of records, or of those for which a condition holds."""
        return f"count(*){_of(condition)}"

    def upper(self, value: str, bits: int) -> str:
        """⌊value/2^bits⌋ of a whole number that is not negative."""
        return f"({value} >> {bits})"

    def lower(self, value: str, bits: int) -> str:
        """What is left of it."""
        return f"({value} & {(1 << bits) - 1})"

    @abstractmethod
    def quotient(self, value: str, divisor: int) -> str:
        """⌊value/divisor⌋ of whole numbers that are not negative."""

    @abstractmethod
    def remainder(self, value: str, divisor: int) -> str:
        """What the quotient leaves."""

    @abstractmethod
    def same_bytes(self, text: str) -> str:
        """A text that is compared byte by byte, whatever its column compares by."""

    def whole(self, value: str) -> str:
        """A number that is whole, and of fewer than 63 bits, as an integer of 64 bits."""
        return f"CAST({value} AS BIGINT)"

    def short_decimal(self, name: str, scale: int) -> SqlColumn:
        """A column of decimals of at most 15 digits, which floats tell apart.

        The product of the nearest float is nearer than ¼ to the whole number that it stands for.
        """
        real = self.as_real(name)
        product = f"{real} * {self.real(10.0**scale)} + {self.real(MAGIC)}"
        units = self.whole(f"{product} - {self.real(MAGIC)}")
        return SqlColumn(units, "decimal", scale=scale, real=real, narrow=True)

    def near(self, value: str, low: str, high: str) -> str:
        """The nearest number between two, one of these for all that are no numbers.

        What is made of it does not overflow, and is an integer of 64 bits where it is whole.
        """
        inside = f"{value} BETWEEN {low} AND {high}"
        return f"CASE WHEN {inside} THEN {value} WHEN {value} < {low} THEN {low} ELSE {high} END"

    def clip(self, whole: str, low: int, high: int) -> str:
        """The nearest integer between two.

        Integers are compared, and whatever the number is, this is one from the first to the second.
        """
        return f"LEAST(GREATEST({whole}, {low}), {high})"


def _of(condition: str | None) -> str:
    return "" if condition is None else f" FILTER (WHERE {condition})"
