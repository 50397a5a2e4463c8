"""What a type checker is told of muhat is true: of its names, its arguments and what comes back."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
import types
import typing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import muhat

SOURCE = Path(muhat.__file__).parent
ROOT = Path(__file__).parent.parent
RIGHT, WRONG = "tests/typed/right_uses.py", "tests/typed/wrong_uses.py"


def named_for_checkers() -> dict[str, str]:
    """The homes of the names that `muhat/__init__.py` imports for type checkers alone."""
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    (block,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    found = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            assert alias.asname == alias.name, f"only `import {alias.name} as …` exports it"
            assert alias.name not in found
            found[alias.name] = str(node.module)
    return found


def test_checkers_and_python_find_the_same_names_in_the_same_homes():
    rooms = dict.fromkeys(muhat._ROOMS, "muhat")
    assert named_for_checkers() == muhat._HOMES | rooms
    assert sorted(named_for_checkers()) == muhat.__all__


def test_the_package_says_that_it_is_typed():
    assert (SOURCE / "py.typed").exists()


def errors_of_mypy(*paths: str) -> set[tuple[str, int, str]]:
    """File, line and code of every error, with a cache of its own: other runs may be at work."""
    options = ["--no-error-summary", "--cache-dir", ".mypy_cache/typed"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *paths], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode <= 1, done.stdout + done.stderr
    pattern = re.compile(r"^(\S+\.py):(\d+): error: .*\[([a-z-]+)\]$", re.MULTILINE)
    return {(path, int(line), code) for path, line, code in pattern.findall(done.stdout)}


@pytest.mark.slow
def test_every_wrong_use_is_an_error_and_no_right_one():
    lines = (ROOT / WRONG).read_text().splitlines()
    expected = {
        (WRONG, number, line.split("  # error: ")[1])
        for number, line in enumerate(lines, 1)
        if "  # error: " in line
    }
    assert len(expected) > 50
    assert errors_of_mypy(RIGHT, WRONG) == expected


def is_of(value: object, said: Any) -> bool:
    """Whether the value is of the type; of lists and open tuples the first item is looked at."""
    if said is None or said is types.NoneType:
        return value is None
    origin, arguments = typing.get_origin(said), typing.get_args(said)
    if origin in (types.UnionType, typing.Union):
        return any(is_of(value, each) for each in arguments)
    if origin is tuple and arguments[-1] is not Ellipsis:
        return isinstance(value, tuple) and all(map(is_of, value, arguments))
    if origin in (tuple, list):
        return isinstance(value, origin) and all(is_of(each, arguments[0]) for each in value[:1])
    if origin is np.ndarray:
        (kind,) = typing.get_args(arguments[1])
        return isinstance(value, np.ndarray) and value.dtype == kind
    return isinstance(value, origin or said)


def looking(value: object, said: Any) -> object:
    """What `assert_type` asserts, looked at while the file runs."""
    assert is_of(value, said), f"{type(value)} is not {said}"
    return value


@pytest.mark.slow
def test_what_comes_back_is_what_its_type_says(monkeypatch, tmp_path):
    monkeypatch.setattr(typing, "assert_type", looking)
    uses = runpy.run_path(str(ROOT / RIGHT))
    uses["account"](str(tmp_path / "budget.db"))


def test_another_type_than_said_is_noticed():
    assert is_of((np.zeros(2), np.zeros(2)), tuple[np.typing.NDArray[np.float64], np.ndarray])
    assert not is_of(np.zeros(2, np.float32), np.typing.NDArray[np.float64])
    assert not is_of(1.0, str | None)
    assert not is_of([1.0], list[str])
    with pytest.raises(AssertionError, match="is not"):
        looking(muhat.ZCDP(0.5), muhat.PureDP)


def test_promises_are_positional_too():
    assert muhat.ZCDP(0.5) == muhat.ZCDP(rho=0.5)
    assert muhat.PureDP(1.0) == muhat.PureDP(epsilon=1.0)
    assert muhat.ApproxDP(1.0, 1e-6) == muhat.ApproxDP(epsilon=1.0, delta=1e-6)
    assert muhat.GDP(1.0) == muhat.GDP(mu=1.0)
