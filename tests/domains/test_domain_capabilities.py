"""No other room asks which kind a domain or a lattice is: everybody asks what it can do."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import muhat
from muhat.domains.base import Domain
from muhat.domains.integers import Lattice

SOURCES = Path(muhat.__file__).parent
KNOWN = {
    "cli/bounds.py",  # a command for balls
    "mechanisms/learning/clipping_stage.py",  # its own stages: a ball, or a single point
}


def below(root: type) -> set[type]:
    return {root}.union(*(below(each) for each in root.__subclasses__()))


CLASSES = {each.__name__ for each in below(Domain) | below(Lattice)} - {"Domain", "Lattice"}


def asks(source: str) -> list[str]:
    """The kinds that a module asks for: `isinstance`, `match`, tables of types, dispatch.

    Assertions that tell the type checker what is known are none.
    """
    tree = ast.parse(source)
    asserted = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert)
        for part in ast.walk(node)
    }
    found = []
    for node in ast.walk(tree):
        parts: list[ast.AST] = []
        if isinstance(node, ast.Call) and id(node) not in asserted:
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            parts = node.args[1:] if name in ("isinstance", "issubclass") else []
        elif isinstance(node, ast.MatchClass):
            parts = [node.cls]
        elif isinstance(node, ast.Dict):
            parts = [key for key in node.keys if isinstance(key, ast.Name)]
        elif isinstance(node, ast.FunctionDef) and any(
            "register" in ast.dump(each) for each in node.decorator_list
        ):
            parts = [argument.annotation for argument in node.args.args if argument.annotation]
        names = [getattr(each, "id", "") for part in parts for each in ast.walk(part)]
        found += [name for name in names if name in CLASSES]
    return found


FILES = sorted(
    path for path in SOURCES.rglob("*.py") if path.relative_to(SOURCES).parts[0] != "domains"
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCES)))
def test_no_other_room_asks_which_kind_a_domain_is(path):
    if str(path.relative_to(SOURCES)) not in KNOWN:
        assert asks(path.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        "isinstance(K, Ball | Box)",
        "isinstance(lattice, (BoxLattice, int))",
        "match K:\n    case Simplex():\n        pass",
        "simple = {Box: 1}.get(type(K))",
        "@around.register\ndef _(K: Points, p: float): ...",
    ],
)
def test_the_reader_sees_such_a_question(source):
    assert asks(source)


def test_the_reader_lets_assertions_and_constructions_pass():
    assert asks("assert isinstance(K, Box)\nK = Ball(1, 2)\nisinstance(K, Domain)") == []
