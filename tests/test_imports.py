"""Imports point downwards only, and importing muhat costs next to nothing."""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

import muhat

SOURCE = Path(muhat.__file__).parent
FLOORS = [
    {
        "errors",
        "_arrays",
        "_cbor",
        "_check",
        "_delegation",
        "_files",
        "_integers",
        "_plain",
        "_progress",
        "_text",
        "_user_folder",
        "_words",
    },
    {"privacy", "ellipsoids", "records"},
    {"domains"},
    {"workloads"},
    {"bounds", "noise", "data"},
    {"mechanisms"},
    {"ledger", "release"},
    {"statistics"},
    {"planning"},
    {"stream", "protocols"},
    {"studies", "research"},
    {"demo"},
    {"cli"},
    {"__main__"},
]
"""Lowest first; a room may import rooms of its own floor and of floors below."""

STOREYS = {
    "mechanisms": ("arithmetic", "sums", "queries", "quantiles", "learning"),
    "protocols": ("encodings", "randomizers", "estimators", "roles", "means", "counts", "services"),
}
"""Within a room, lowest first; only what stands higher may import what stands lower."""

NUMERICAL = {"ellipsoids", "workloads", "bounds"}
HEAVY = (
    "scipy",
    "pyarrow",
    "click",
    "rich",
    "matplotlib",
    "pandas",
    "polars",
    "numba",
    "starlette",
    "uvicorn",
)


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> list[tuple[str, bool]]:
    """Every module imported, and whether at the top of the file (not under TYPE_CHECKING)."""
    tree = ast.parse(path.read_text())
    top = {id(node) for node in tree.body}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, id(node) in top) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names = (
                [f"{node.module}.{a.name}" for a in node.names] if node.module == "muhat" else []
            )
            found += [(name, id(node) in top) for name in names or [str(node.module)]]
    return found


FILES = sorted(
    path for path in SOURCE.rglob("*.py") if path.name != "__init__.py" or path.parent != SOURCE
)


def test_every_room_has_a_floor():
    rooms = {room_of(path) for path in FILES}
    assert rooms == set().union(*FLOORS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_downwards_only(path):
    floor = {room: height for height, rooms in enumerate(FLOORS) for room in rooms}
    for module, at_top in imports_of(path):
        if module.startswith("muhat."):
            target = module.split(".")[1]
            if target not in floor:  # a name of muhat/__init__.py, such as __version__
                continue
            assert floor[target] <= floor[room_of(path)], f"{module} is above {room_of(path)}"
        top = module.split(".")[0]
        if top in ("click", "rich"):
            assert room_of(path) in {"cli", "_progress"}, f"{module} belongs to the command line"
        if room_of(path) in NUMERICAL and not module.startswith("muhat"):
            allowed = {"numpy", "scipy", "threadpoolctl"} | set(sys.stdlib_module_names)
            assert top in allowed, f"{module} in a numerical room"
        if at_top and room_of(path) != "cli":
            assert top not in HEAVY, f"{module} must be imported where it is used"


@pytest.mark.parametrize("room", STOREYS)
def test_imports_point_downwards_within_a_room(room):
    storeys = {name: height for height, name in enumerate(STOREYS[room])}
    for path in (SOURCE / room).glob("*/*.py"):
        own = storeys[path.parent.name]
        for module, _ in imports_of(path):
            parts = module.split(".")
            if parts[:2] == ["muhat", room]:
                assert storeys[parts[2]] <= own, f"{module} is above {path}"


def test_no_random_numbers_but_exact_noise():
    """Studies may seed their data and compare with idealised baselines; nothing is released."""
    for path in FILES:
        if room_of(path) == "studies":
            continue
        text = path.read_text()
        assert "numpy.random" not in text, path
        assert "np.random" not in text, path
        assert "random" not in {module.split(".")[0] for module, _ in imports_of(path)}, path


def test_importing_muhat_loads_nothing_heavy():
    script = "import sys, muhat; dir(muhat); print([m for m in sys.modules])"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    for module in HEAVY:
        assert f"'{module}'" not in loaded


def test_a_first_mean_is_planned_and_described_without_scipy():
    script = (
        "import sys, muhat as mh; "
        "plan = mh.plan_mean(domain={'x': (0, 1)}, n=9, privacy=mh.ZCDP(rho=0.5)); "
        "print(plan.describe()); "
        "assert 'scipy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)


def test_importing_muhat_costs_at_most_twice_numpy():
    """CPU of whole interpreters, median of 7 interleaved runs, minus the bare interpreter."""

    def seconds(statement: str) -> float:
        script = (
            f"import time; t = time.process_time(); {statement}; print(time.process_time() - t)"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        return float(done.stdout)

    runs = [(seconds("import numpy"), seconds("import muhat")) for _ in range(7)]
    numpy_cost, muhat_cost = (statistics.median(column) for column in zip(*runs, strict=True))
    assert muhat_cost <= 2 * numpy_cost


def test_every_public_name_exists():
    for name in muhat.__all__:
        assert getattr(muhat, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = muhat.no_such_name
