"""What a test draws depends on its name and the key of the run, and on nothing else."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis.internal.conjecture.providers import HypothesisProvider

from keyed_entropy import drawn_once, stream
from muhat.noise.entropy import system_words

TESTS = """
import pytest
from keyed_entropy import drawn_once
from muhat.noise import rounded_normal

COLLECTED = rounded_normal(1)[0]

@pytest.fixture(scope="module")
def shared():
    return rounded_normal(1)[0]

@drawn_once
def cached(size):
    return rounded_normal(size)[0]

@pytest.mark.parametrize("name", ["one", "two", "three"])
def test_draws(name, shared, pytestconfig):
    with open(pytestconfig.rootpath / f"{name}.txt", "x") as file:
        print(COLLECTED, shared, cached(1), rounded_normal(1)[0], file=file)
"""


def drawn(folder: Path, *arguments: str) -> dict[str, str]:
    """What each of the tests above draws, run with these arguments."""
    folder.mkdir()
    (folder / "test_it.py").write_text(TESTS)
    (folder / "conftest.py").write_text(Path(__file__).with_name("conftest.py").read_text())
    (folder / "pytest.ini").write_text("[pytest]\n")
    subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sys.path))},
        check=True,
        capture_output=True,
    )
    return {path.stem: path.read_text() for path in folder.glob("*.txt")}


@pytest.mark.slow
def test_order_and_workers_do_not_change_what_is_drawn(tmp_path):
    plain = drawn(tmp_path / "plain", "-n0")
    backwards = [f"test_it.py::test_draws[{name}]" for name in ("three", "two", "one")]
    assert drawn(tmp_path / "backwards", "-n0", *backwards) == plain
    assert drawn(tmp_path / "workers", "-n2") == plain
    fourth = [line.split()[3] for line in plain.values()]
    assert len(set(fourth)) == len(plain) == 3
    other = drawn(tmp_path / "other", "-n0", "--entropy", "other")
    words = [set(" ".join(run.values()).split()) for run in (plain, other)]
    assert not words[0] & words[1]


def test_the_product_and_secrets_draw_from_the_stream(request):
    key = request.config.getoption("--entropy")
    same = stream(f"{key}\0{request.node.nodeid}")
    assert system_words(3).tobytes() == same(24)
    assert secrets.token_bytes(16) == same(16)


@pytest.mark.system_entropy
def test_a_test_of_the_source_itself_draws_from_the_system():
    assert os.urandom.__module__ == "posix"


@drawn_once
def words(count: int) -> bytes:
    return system_words(count).tobytes()


def test_what_is_drawn_once_differs_by_its_arguments():
    assert words(2) == words(2)
    assert words(2) != words(3)[:16]


def test_a_child_draws_from_the_system():
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.write(write, os.urandom.__module__.encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 100) == b"posix"


def test_examples_do_not_depend_on_the_modules_that_are_imported():
    found = HypothesisProvider(None)._local_constants
    assert not any(found.set_for_type(kind) for kind in ("integer", "float", "bytes", "string"))
