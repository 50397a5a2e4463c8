"""Formulas of a regression: a response, and the predictors that explain it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from muhat.errors import InvalidInput

_SIGNS = r"*:^/|()\-"
"""What means something in other languages of formulas, and nothing here."""

_NAME = rf"`([^`]+)`|([^`~+{_SIGNS}]*[^`~+{_SIGNS}\s])"

_EXAMPLE = 'as "salary ~ age + tenure"'


def variables(formula: object) -> tuple[str, ...]:
    """The response, then the predictors; or InvalidInput.

    >>> variables("salary ~ age + tenure"), variables("`log-wage` ~ years of school")
    (('salary', 'age', 'tenure'), ('log-wage', 'years of school'))
    """
    if not isinstance(formula, str):
        got = type(formula).__name__
        raise InvalidInput(f"must be text, {_EXAMPLE}", parameter="formula", value=got)
    name = rf"\s*(?:{_NAME})\s*"
    if not re.fullmatch(rf"{name}~{name}(?:\+{name})*", formula):
        raise InvalidInput(
            f"must be a column, ~, and columns joined by +, {_EXAMPLE}",
            parameter="formula",
            value=f"{formula!r:.60}",
            hint=_fix(formula),
        )
    names = tuple(quoted or plain.strip() for quoted, plain in re.findall(_NAME, formula))
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(
                "must not name a column twice", parameter="formula", value=f"{name!r:.60}"
            )
        if name in ("0", "1"):
            raise InvalidInput(
                "must have columns only",
                parameter="formula",
                value=f"{name!r:.60}",
                hint="An intercept is always there.",
            )
    return names


def written(names: Sequence[str]) -> str:
    """The formula of a response and its predictors.

    >>> written(["log-wage", "age", "tenure"])
    '`log-wage` ~ age + tenure'
    """
    response, *predictors = map(_quoted, names)
    return f"{response} ~ {' + '.join(predictors)}"


def _quoted(name: str) -> str:
    return name if re.fullmatch(rf"[^`~+{_SIGNS}]+", name) else f"`{name}`"


def _fix(formula: str) -> str:
    outside = re.sub(r"`[^`]*`", "", formula)
    if outside.count("~") != 1:
        return "One ~ stands between what is explained and what explains it."
    if re.search(rf"[{_SIGNS}]", outside):
        return (
            "Products, powers and functions of columns are columns of their own: make them in the "
            "data, and declare them in the schema. A name with such a sign stands in `backquotes`."
        )
    return ""
