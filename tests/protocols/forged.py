"""Where a description can be changed, and a copy of it to be changed there."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

Place = tuple[Any, ...]


def places(value: Any, here: Place = ()) -> Iterator[Place]:
    """Every field, and the first entries of every list."""
    if here:
        yield here
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*here, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value[:2]):
            yield from places(inner, (*here, index))


def copied(fields: dict[str, Any], place: Place) -> tuple[dict[str, Any], Any]:
    """A copy of the description, and what of it holds the place's last step."""
    made = copy.deepcopy(fields)
    inside: Any = made
    for step in place[:-1]:
        inside = inside[step]
    return made, inside
