"""A domain written on a line, as in Python: `Simplex(5)`, `Ball(1, 3) * LpBall(1, dim=2)`."""

from __future__ import annotations

import ast
import operator
from typing import Any

from muhat import domains
from muhat.domains import Domain
from muhat.errors import InvalidInput

LONGEST = 100_000

NAMES = (
    *("Ball", "Box", "Choices", "Ellipsoid", "LpBall"),
    *("MomentTensor", "Points", "SchattenBall", "Simplex", "Zonotope"),
)
"""What may be written."""

OPERATORS = {ast.Mult: operator.mul, ast.Add: operator.add, ast.MatMult: operator.matmul}
"""Of domains: products, Minkowski sums and translations, linear images."""


def domain_from(text: str) -> Domain:
    """The domain that a line describes; nothing else of Python is read.

    >>> domain_from("Ball(1, 3) * Simplex(2)")
    Ball(radius=1, dim=3) * Simplex(dim=2)
    """
    try:
        if len(text) <= LONGEST:
            found = _read(ast.parse(text.strip(), mode="eval").body)
            if isinstance(found, Domain):
                return found
    except InvalidInput:
        raise  # what the domain itself does not like
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        pass
    raise InvalidInput(
        "must be a domain as in Python, such as 'Simplex(5)', 'LpBall(1, dim=10)' or 'Ball(1, 3) * "
        f"Simplex(2)'; there are {', '.join(NAMES)}",
        parameter="domain",
        value=repr(text)[:60],
    )


def _read(node: ast.expr) -> Any:
    """A number, a list, a domain: whatever else is written raises ValueError or TypeError."""
    match node:
        case ast.List(elts) | ast.Tuple(elts):
            return [_read(one) for one in elts]
        case ast.Call(ast.Name(name), values, named) if name in NAMES:
            given = {str(one.arg): _read(one.value) for one in named}
            return getattr(domains, name)(*map(_read, values), **given)
        case ast.BinOp(left, sign, right) if type(sign) in OPERATORS:
            sides = _read(left), _read(right)
            if any(isinstance(side, Domain) for side in sides):
                return OPERATORS[type(sign)](*sides)
        case ast.Name("inf"):
            return float("inf")
    return ast.literal_eval(node)
