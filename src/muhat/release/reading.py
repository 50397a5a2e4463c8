"""Reads the JSON of releases: what is no release is refused in one way."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from muhat._plain import MALFORMED
from muhat.errors import InvalidInput

Read = TypeVar("Read")


def read_json(
    text: str, schemas: Collection[str], what: str, build: Callable[[dict[str, Any]], Read]
) -> Read:
    """What `build` makes of the fields of a text of these schemas, or InvalidInput."""
    try:
        fields = json.loads(text, parse_constant=_refuse)
        if fields["schema"] not in schemas:
            found, read = fields["schema"], ", ".join(schemas)
            raise InvalidInput(f"the text has schema {found!r:.40}; {read} is read.")
        return build(fields)
    except MALFORMED as error:
        if isinstance(error, InvalidInput):
            raise
    raise InvalidInput(f"the text is not the JSON of {what}.")


def _refuse(name: str) -> None:
    """NaN and infinities are not JSON, although Python would read them."""
    raise ValueError(name)
