"""What can go wrong, as types. No message carries a data value, a secret count or cell text."""

from __future__ import annotations

from muhat._text import printable


class MuhatError(Exception):
    """The parent of every error that muhat raises on purpose.

    Its sentence may name a column or a file, so that what could steer a terminal is escaped.
    """

    def __init__(self, *arguments: object) -> None:
        super().__init__(
            *(printable(each) if isinstance(each, str) else each for each in arguments)
        )


class InvalidInput(MuhatError, ValueError):
    """The caller's mistake, found before anything is charged."""


class BudgetExceeded(MuhatError):
    """The ledger has less left than the release costs; nothing was spent."""


class Impossible(MuhatError):
    """A theorem forbids what was asked; the message names it and the nearest possible thing."""


class DataChanged(MuhatError):
    """The data differ between two passes, so the two passes cannot be trusted together."""


class SourceFailed(MuhatError):
    """Reading failed after the ledger was charged; the charge stays."""
