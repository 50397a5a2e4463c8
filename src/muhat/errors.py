"""What can go wrong, as types. No message carries a data value, a secret count or cell text."""

from __future__ import annotations

from collections.abc import Callable

from muhat._text import printable
from muhat._words import Parameter, Part, Sentence, parts, written

LONGEST_VALUE = 80


class MuhatError(Exception):
    """The parent of every error that muhat raises on purpose.

    Its text is made of what it carries as fields: the name of the `parameter` that was refused,
    the `rule` that it breaks, the `value` that was given, as text, and a `hint`. What has nothing
    to say is None. Without `parameter=` the rule is whole sentences, and the parameter is the
    first that is marked in them.

    >>> error = InvalidInput("must be at least 1", parameter="n", value="0", hint="Leave it out.")
    >>> str(error)
    'n must be at least 1; got 0. Leave it out.'
    >>> error.parameter, error.rule, error.value, error.hint
    ('n', 'must be at least 1', '0', 'Leave it out.')
    """

    parameter: str | None
    rule: str
    value: str | None
    hint: str | None

    def __init__(
        self,
        *rule: Part,
        parameter: Parameter | str | None = None,
        value: str | None = None,
        hint: Sentence = (),
    ) -> None:
        self._subject = Parameter(parameter) if isinstance(parameter, str) else parameter
        self._rule = rule
        self._hint = parts(hint)
        self.value = None if value is None else printable(value)[:LONGEST_VALUE]
        said = self.fields()
        self.parameter, self.rule, self.hint = said["parameter"], written(rule), said["hint"]
        super().__init__(said["message"])

    def fields(self, word: Callable[[Parameter], str] = str) -> dict[str, str | None]:
        """The message and its fields, in anybody's words for parameters."""
        rule, hint = written(self._rule, word), written(self._hint, word)
        message, about = rule, self._subject
        if about is not None:
            got = "" if self.value is None else f"; got {self.value}"
            message = f"{written((about,), word)} {rule}{got}."
        marked = [about, *(each for each in self._rule if isinstance(each, Parameter))]
        names = [written((Parameter(each.name),), word) for each in marked if each is not None]
        return {
            "message": f"{message} {hint}" if hint else message,
            "parameter": names[0] if names else None,
            "rule": rule,
            "value": self.value,
            "hint": hint or None,
        }


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
