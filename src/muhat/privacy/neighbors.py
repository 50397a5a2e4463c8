"""Which datasets a promise is about."""

from __future__ import annotations

import enum

from muhat import _check
from muhat.errors import InvalidInput


class Neighbors(enum.Enum):
    """Which datasets must look alike: one record replaced, or one record added or removed."""

    SUBSTITUTE = "substitute"
    ADD_REMOVE = "add-remove"

    @classmethod
    def parse(cls, value: Neighbors | str) -> Neighbors:
        """The relation itself, from the enum or its name."""
        if isinstance(value, cls):
            return value
        if not isinstance(value, str):
            raise InvalidInput("must be a name", parameter="neighbors", value=type(value).__name__)
        return cls(_check.one_of("neighbors", value, [relation.value for relation in cls]))
