"""Sizes of histograms and answers: what is a size, and what is too large to write out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from muhat import _check
from muhat.errors import InvalidInput

LARGEST_CELLS = 1 << 62
"""The most cells of a histogram: their numbers must fit in 64-bit integers."""

LARGEST_VECTOR = 1 << 28
"""The most numbers in a vector that a workload reads or writes."""

MOST_AXES = 4096
"""The most attributes of a histogram: 128 of them can have two categories or more."""


def size(name: str, value: object) -> int:
    """A number of cells, or InvalidInput."""
    return _check.count(name, value, most=LARGEST_CELLS)


def sizes(name: str, values: object, *, most: int = LARGEST_CELLS) -> tuple[int, ...]:
    """The shape of a histogram of at most `most` cells, or InvalidInput."""
    checked = tuple(
        _check.count(f"{name}[{axis}]", value, most=LARGEST_CELLS)
        for axis, value in enumerate(items(name, "a sequence of sizes, as (2, 3, 5)", values))
    )
    if not checked:
        raise InvalidInput("must have at least one size", parameter=name, value="none")
    if len(checked) > MOST_AXES:
        raise InvalidInput(
            f"must have at most {MOST_AXES:,} sizes", parameter=name, value=f"{len(checked):,}"
        )
    product(name, checked, most=most)
    return checked


def items(name: str, rule: str, values: object) -> Iterator[Any]:
    """The items of a sequence, or InvalidInput; text is none, nor is an array of no dimension."""
    if not isinstance(values, str | bytes):
        with contextlib.suppress(TypeError):
            return iter(values)  # type: ignore[call-overload, no-any-return]
    raise InvalidInput(f"must be {rule}", parameter=name, value=type(values).__name__)


def product(name: str, factors: Iterable[int], *, most: int = LARGEST_CELLS) -> int:
    """The product of sizes, or InvalidInput where it overflows."""
    cells = 1
    for factor in factors:
        cells *= factor
        if cells > most:
            raise InvalidInput(
                f"{name} overflows: its product must be at most 2^{most.bit_length() - 1}. "
                "Leave out or coarsen some of the attributes."
            )
    return cells


def writable(what: str, count: int) -> None:
    """Refuse to write out more numbers than fit."""
    if count > LARGEST_VECTOR:
        raise InvalidInput(
            f"{what} would be {count:,} numbers, and at most {LARGEST_VECTOR:,} are written out."
        )


def width_of(x: object) -> int:
    """k for an array of shape (N, k), 1 for (N,)."""
    shape: tuple[int, ...] = getattr(x, "shape", ())
    return shape[1] if len(shape) == 2 else 1
