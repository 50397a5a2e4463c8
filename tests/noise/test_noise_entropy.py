"""No seed, no state: forks, threads and pickles share nothing; the only source is the system."""

from __future__ import annotations

import ast
import importlib
import inspect
import pickle
import pkgutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import muhat.noise
from muhat.noise import entropy

pytestmark = pytest.mark.system_entropy

SAMPLERS = [
    muhat.noise.rounded_normal,
    muhat.noise.rounded_laplace,
    muhat.noise.rounded_euclidean,
    muhat.noise.rounded_maximum,
]

FORKS = """
import os, warnings
from muhat.noise import rounded_euclidean, rounded_laplace, rounded_maximum, rounded_normal
warnings.simplefilter("ignore", DeprecationWarning)
samplers = rounded_normal, rounded_laplace, rounded_euclidean, rounded_maximum
for sampler in samplers:
    sampler(3)
for _ in range(300):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, repr([int(v) for s in samplers for v in s(2)]).encode())
        os._exit(0)
    os.waitpid(child, 0)
    print(os.read(read, 4096).decode())
    os.close(read), os.close(write)
print([int(v) for s in samplers for v in s(2)])
"""


def modules() -> list[ModuleType]:
    names = [module.name for module in pkgutil.iter_modules(muhat.noise.__path__)]
    return [muhat.noise, *(importlib.import_module(f"muhat.noise.{name}") for name in names)]


def test_forked_children_and_their_parent_draw_different_values() -> None:
    run = subprocess.run(
        [sys.executable, "-c", FORKS], capture_output=True, text=True, check=True, timeout=120
    )
    values = [value for line in run.stdout.splitlines() for value in ast.literal_eval(line)]
    assert len(values) == 301 * 8
    assert len(set(values)) == len(values)


def test_threads_draw_different_values() -> None:
    with ThreadPoolExecutor(8) as pool:
        draws = list(pool.map(muhat.noise.rounded_normal, [2000] * 64))
    assert np.unique(np.concatenate(draws)).size == 64 * 2000


def test_nothing_in_the_room_changes_by_drawing() -> None:
    def snapshot() -> dict[str, bytes]:
        contents = {}
        for module in modules():
            for name, value in vars(module).items():
                if not name.startswith("__") and not isinstance(value, ModuleType):
                    contents[f"{module.__name__}.{name}"] = pickle.dumps(repr(value))
        return contents

    before = snapshot()
    for sampler in SAMPLERS:
        sampler(1000)
    assert snapshot() == before


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_pickled_sampler_is_only_its_name(sampler: object) -> None:
    pickled = pickle.dumps(sampler)
    assert len(pickled) < 80
    assert pickle.loads(pickled) is sampler


def test_no_public_signature_takes_a_seed_or_a_generator() -> None:
    assert set(muhat.noise.__all__) == {"FRACTION_BITS", *(s.__name__ for s in SAMPLERS)}
    assert muhat.noise.FRACTION_BITS == 54
    for sampler in SAMPLERS:
        assert list(inspect.signature(sampler).parameters) in (["size"], ["dim"])


def test_no_module_uses_a_pseudorandom_generator() -> None:
    for path in Path(muhat.noise.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                assert not any(alias.name.split(".")[0] == "random" for alias in node.names)
            if isinstance(node, ast.ImportFrom):
                assert "random" not in (node.module or "").split(".")
                assert "random" not in [alias.name for alias in node.names]
            if isinstance(node, ast.Attribute):
                assert node.attr not in ("random", "default_rng", "RandomState", "Generator")


def test_the_public_samplers_draw_from_the_operating_system_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = []

    def zeros(count: int) -> bytes:
        drawn.append(count)
        return bytes(count)

    monkeypatch.setattr(entropy.os, "urandom", zeros)
    assert muhat.noise.rounded_normal(3).tolist() == [0, 0, 0]
    assert muhat.noise.rounded_laplace(3).tolist() == [0, 0, 0]
    assert muhat.noise.rounded_euclidean(2).tolist() == [0, 0]
    assert muhat.noise.rounded_maximum(2).tolist() == [0, 0]
    assert sum(drawn) == 8 * (3 + 3 + 2 * 5 + 2 * 5)


def test_words_are_uniform_and_as_many_as_asked() -> None:
    words = entropy.system_words(100_000)
    assert words.shape == (100_000,)
    assert words.dtype == np.uint64
    ones = np.unpackbits(words.view(np.uint8)).reshape(-1, 64).mean(axis=0)
    assert np.all(np.abs(ones - 0.5) * 2 * np.sqrt(words.size) < 6)
    assert entropy.system_words(0).shape == (0,)
