"""Sets that an answer is publicly known to lie in: a domain, or intervals by column."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from muhat import _check
from muhat._arrays import Floats
from muhat.domains import Domain
from muhat.errors import InvalidInput

Intervals = Mapping[str, tuple[float, float]]


def nearest(onto: Domain | Intervals, value: Floats, columns: Sequence[str]) -> tuple[Floats, str]:
    """The point of the convex set nearest to the value, and the set in words.

    Of a domain it is the convex hull. Intervals are closed, may have infinite ends, and leave
    columns alone that have none.
    """
    if isinstance(onto, Domain):
        if onto.dim != len(value):
            raise InvalidInput(
                f"must have {len(value)} coordinates, one a column",
                parameter="onto",
                value=str(onto.dim),
            )
        return onto.nearest_in_hull(value), repr(onto)
    if not isinstance(onto, Mapping) or not onto:
        raise InvalidInput(
            "must be a muhat domain such as mh.Box(lower=[0], upper=[1]), or intervals by "
            f"column such as {{{columns[0]!r:.40}: (0, math.inf)}}",
            parameter="onto",
        )
    intervals = checked_intervals(onto, columns)
    ends = [intervals.get(name, (-math.inf, math.inf)) for name in columns]
    lower, upper = np.array(ends, np.float64).T
    words = [_words(name, *pair) for name, pair in intervals.items()]
    return np.clip(value, lower, upper), ", ".join(words)


def checked_intervals(
    intervals: Intervals, columns: Sequence[str]
) -> dict[str, tuple[float, float]]:
    """The intervals by column, or InvalidInput."""
    checked = {}
    for key, pair in intervals.items():
        name = str(key)
        if name not in columns:
            hint = _check.did_you_mean(name, columns)
            raise InvalidInput(f"{name!r:.60} is not one of the columns.{hint}")
        try:
            low, high = (float(end) for end in pair)
        except (TypeError, ValueError, OverflowError):
            raise InvalidInput(
                f"the interval of {name!r:.60} must be two numbers, for instance (0, math.inf)."
            ) from None
        if not low < high:
            raise InvalidInput(
                f"the lower end of {name!r:.60} must be below its upper end; "
                f"got {low:g} and {high:g}."
            )
        checked[name] = (low, high)
    return checked


def _words(name: str, low: float, high: float) -> str:
    if math.isinf(high):
        return f"{name} ≥ {low:g}" if math.isfinite(low) else f"any {name}"
    return f"{low:g} ≤ {name} ≤ {high:g}" if math.isfinite(low) else f"{name} ≤ {high:g}"
