"""Nobody outside the room asks which kind a promise is: everybody asks what it can do."""

from __future__ import annotations

import ast
from fractions import Fraction
from pathlib import Path

import pytest

import muhat
from muhat.errors import InvalidInput
from muhat.privacy import (
    GDP,
    KINDS,
    RDP,
    ZCDP,
    ApproxDP,
    ApproxZCDP,
    Privacy,
    PureDP,
    check_promise,
    flags,
    from_dict,
    from_flags,
    to_dict,
    with_delta,
)

SOURCES = Path(muhat.__file__).parent
CLASSES = {kind.__name__ for kind in KINDS.values()}
NUMBERS = {"epsilon", "delta", "rho", "mu", "alpha"}
PROMISES: list[Privacy] = [
    PureDP(epsilon=1.5),
    ApproxDP(epsilon=1.0, delta=1e-6),
    ZCDP(rho=0.3),
    GDP(mu=0.7),
    RDP(alpha=3.0, epsilon=0.4),
    ApproxZCDP(rho=0.3, delta=1e-6),
]


def _is_class(node: ast.AST) -> bool:
    """Whether an expression names a kind of promise, in the room or through it."""
    name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", None)
    return name in CLASSES


def _names_a_kind(node: ast.AST) -> bool:
    parts = list(ast.walk(node))
    words = {part.value for part in parts if isinstance(part, ast.Constant)}
    called = {id(part.func) for part in parts if isinstance(part, ast.Call)}
    named = any(_is_class(part) and id(part) not in called for part in parts)
    return named or bool(words & {*KINDS, *CLASSES})


def _is_kind_of_promise(node: ast.AST) -> bool:
    """promise.kind, self.privacy.kind, budget.kind."""
    if not isinstance(node, ast.Attribute) or node.attr not in ("kind", "__class__"):
        return False
    owner = node.value
    name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
    return name in ("privacy", "promise", "budget", "inner", "said", "given")


def _is_asked(node: ast.Call) -> bool:
    """isinstance(…, PureDP), hasattr(…, "delta")."""
    if not isinstance(node.func, ast.Name) or len(node.args) < 2:
        return False
    asked = node.args[1]
    if node.func.id in ("isinstance", "issubclass"):
        return any(map(_is_class, ast.walk(asked)))
    sniffs = node.func.id in ("hasattr", "getattr") and isinstance(asked, ast.Constant)
    return sniffs and asked.value in NUMBERS


def _is_table(node: ast.Dict) -> bool:
    """{PureDP: …}, {"pure": …, "zcdp": …}."""
    keys = [key for key in node.keys if key is not None]
    words = {key.value for key in keys if isinstance(key, ast.Constant)}
    return any(map(_is_class, keys)) or len(words & set(KINDS)) > 1


def _branches(node: ast.AST) -> bool:
    match node:
        case ast.Call():
            return _is_asked(node)
        case ast.MatchClass():
            return _is_class(node.cls)
        case ast.MatchValue():
            return _names_a_kind(node)
        case ast.Compare():
            sides = [node.left, *node.comparators]
            return any(_names_a_kind(side) or _is_kind_of_promise(side) for side in sides)
        case ast.Dict():
            return _is_table(node)
        case ast.Subscript():
            return _is_kind_of_promise(node.slice)
    return False


def branches(tree: ast.AST) -> list[int]:
    """The lines that branch on a promise's class or kind."""
    return [node.lineno for node in ast.walk(tree) if _branches(node)]


@pytest.mark.parametrize(
    "code",
    [
        "isinstance(privacy, PureDP)",
        "isinstance(privacy, (mh.ZCDP, int))",
        "isinstance(privacy, ZCDP | GDP)",
        'kind == "zcdp"',
        'kind in ("approx", "gdp")',
        "type(promise) is PureDP",
        'type(promise).__name__ == "PureDP"',
        "TABLE[promise.kind]",
        "promise.kind != other",
        "self.privacy.kind in TABLE",
        '{"pure": 1, "zcdp": 2}',
        "{PureDP: 1}",
        'hasattr(promise, "delta")',
        "match promise:\n    case ZCDP():\n        pass",
        'match kind:\n    case "gdp":\n        pass',
    ],
)
def test_a_branch_on_a_kind_is_found(code):
    assert branches(ast.parse(code))


@pytest.mark.parametrize(
    "code",
    ["PureDP(epsilon=1.0)", 'f"for {privacy.kind}"', "said == promise", "isinstance(x, Privacy)"],
)
def test_what_is_no_branch_is_left_alone(code):
    assert not branches(ast.parse(code))


def test_no_module_outside_the_room_branches_on_a_promise_class_or_kind():
    found = [
        f"{path.relative_to(SOURCES)}:{line}"
        for path in sorted(SOURCES.rglob("*.py"))
        if path.parent.name != "privacy"
        for line in branches(ast.parse(path.read_text()))
    ]
    assert found == []


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.kind)
def test_every_promise_answers_everything(promise):
    assert from_dict(to_dict(promise)) == promise
    assert promise.written(promise.currency, ["1"] * len(promise.numbers)).endswith(promise.suffix)
    assert promise.with_amounts(promise.amounts) == promise
    halves = [promise.part(Fraction(1, 2))] * 2
    together = (sum(amounts) for amounts in zip(*(half.amounts for half in halves), strict=True))
    assert all(part <= whole for part, whole in zip(together, promise.amounts, strict=True))
    assert promise.admits_normal or promise.admits_pure
    assert 0 <= promise.certain_error() <= promise.least_error() <= 0.5
    assert from_flags(vars(promise)) == promise
    assert eval(promise.example, {"mh": muhat}).kind == promise.kind


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.kind)
def test_what_is_implied_follows_from_what_is_enough(promise):
    if promise.implied_epsilon is not None:
        assert promise.follows_from_pure(promise.implied_epsilon)
    if promise.simple_pure is not None:
        assert promise.follows_from_pure(float(promise.simple_pure) * (1 - 1e-12))
    if promise.implied_rho is not None and promise.rho_within is not None:
        assert promise.rho_within <= promise.implied_rho
    if promise.renyi(Fraction(2)) is not None:
        assert promise.renyi(Fraction(1)) <= promise.renyi(Fraction(2))


def test_flags_of_every_kind_are_told_apart():
    assert set(flags()) >= {"epsilon", "delta", "rho", "mu"}
    sets = [frozenset(kind.flags) for kind in KINDS.values()]
    assert len(set(sets)) == len(sets)
    for given in ({}, {"rho": 1.0, "mu": 1.0}, {"delta": 0.1}, {"epsilon": 1.0, "rho": 1.0}):
        with pytest.raises(InvalidInput, match=r"exactly one of --epsilon, --epsilon with --delta"):
            from_flags(given)


def test_a_class_is_no_promise():
    with pytest.raises(InvalidInput, match=r"got the class ZCDP\."):
        check_promise(ZCDP)
    assert with_delta(None) is None
    assert with_delta(PROMISES[1]) is PROMISES[1]
    assert not any(map(with_delta, (PROMISES[0], *PROMISES[2:])))
