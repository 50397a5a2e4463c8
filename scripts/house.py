"""The measure of the house: what a change touches, and what is there twice.

    python scripts/house.py                        prints the table
    python scripts/house.py --write docs/architecture.md   puts it between the markers of that page

Run from a clone with its history; muhat must be installed.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "muhat"
START, END = "<!-- house: start -->", "<!-- house: end -->"

ADDED = {
    "a promise": "src/muhat/privacy/renyi.py",
    "a domain": "src/muhat/domains/choices.py",
    "an input format": "src/muhat/data/orc.py",
}
"""The last addition of each kind: the file that it is about."""

PUBLIC = {
    *("mean", "sum", "plan_mean", "plan_sum", "quantile", "plan_quantile", "plan_queries"),
    *("privacy_for", "prefix_counter", "plan_prefix_counter"),
}
"""One-line calls keep the words of the user; their signatures are long by intent."""

VISIT = """
import sys, pathlib, tempfile
from click.testing import CliRunner
from muhat.cli import main
path = pathlib.Path(tempfile.mkdtemp()) / "data.csv"
path.write_text("age\\n" + "\\n".join(map(str, range(20, 60))) + "\\n")
seen = set()
def watch(frame, event, argument):
    if event == "call" and "/muhat/" in frame.f_code.co_filename:
        seen.add(frame.f_code.co_filename)
asked = ["mean", str(path), "--bounds", "age=0:100", "--rho", "0.5"]
CliRunner().invoke(main, asked)  # imports what there is to import
sys.setprofile(watch)
result = CliRunner().invoke(main, asked)
sys.setprofile(None)
assert result.exit_code == 0, result.output
print(len(seen))
"""


def trees() -> dict[str, ast.Module]:
    """Every module by its dotted name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text())
    return found


def files_touched(path: str) -> int:
    """The source files of the commit that added a file."""
    command = ["git", "log", "--follow", "--diff-filter=A", "--format=%H", "--", path]
    commits = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    command = ["git", "show", "--name-only", "--format=", commits.split()[-1], "--", "src"]
    named = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return len(named.split())


def classes(modules: dict[str, ast.Module]) -> list[tuple[str, ast.ClassDef]]:
    """Every class at the top of a module, and where it is."""
    return [
        (name, node)
        for name, tree in modules.items()
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    ]


def plan_classes(modules: dict[str, ast.Module]) -> int:
    """Classes that are called plans."""
    return sum(node.name.endswith("Plan") for _, node in classes(modules))


def names_used_twice(modules: dict[str, ast.Module]) -> int:
    """Names that more than one class has."""
    counts = Counter(node.name for _, node in classes(modules))
    return sum(count > 1 for count in counts.values())


def charge_sites(modules: dict[str, ast.Module]) -> int:
    """Places that charge an account."""
    return sum(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "charge"
        and any(keyword.arg == "neighbors" for keyword in node.keywords)
        for tree in modules.values()
        for node in ast.walk(tree)
    )


def longest_signature(modules: dict[str, ast.Module]) -> int:
    """Parameters of the longest function that is no public one-line call."""
    return max(
        len(node.args.args) + len(node.args.kwonlyargs)
        for name, tree in modules.items()
        if not name.startswith("muhat.cli")
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name not in PUBLIC
    )


def hidden_cycles(modules: dict[str, ast.Module]) -> int:
    """Groups of modules that import each other, inside functions too."""
    edges: dict[str, set[str]] = defaultdict(set)
    for name, tree in modules.items():
        typed = {
            id(inner)
            for node in tree.body
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and id(node) not in typed:
                targets = [f"{node.module}.{alias.name}" for alias in node.names]
                for target in targets:
                    known = target if target in modules else node.module
                    if known in modules and known != name:
                        edges[name].add(known)
    return sum(len(group) > 1 for group in _components(list(modules), edges))


def _components(nodes: list[str], edges: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected components, by Kosaraju."""
    order: list[str] = []
    seen: set[str] = set()
    for start in nodes:
        stack = [(start, iter(edges[start]))] if start not in seen else []
        seen.add(start)
        while stack:
            node, rest = stack[-1]
            following = next((each for each in rest if each not in seen), None)
            if following is None:
                order.append(node)
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(edges[following])))
    backwards: dict[str, set[str]] = defaultdict(set)
    for node, targets in edges.items():
        for target in targets:
            backwards[target].add(node)
    groups, taken = [], set()
    for root in reversed(order):
        group, waiting = [], [root] if root not in taken else []
        taken.add(root)
        while waiting:
            node = waiting.pop()
            group.append(node)
            waiting += [each for each in backwards[node] if each not in taken]
            taken.update(backwards[node])
        groups.append(group)
    return groups


def modules_visited() -> int:
    """Modules whose functions run in `muhat mean` on a CSV file."""
    done = subprocess.run(
        [sys.executable, "-c", VISIT], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def rows() -> list[tuple[str, int, str]]:
    """What is measured, its value, and its goal."""
    modules = trees()
    lines = sum(len(path.read_text().splitlines()) for path in SOURCE.rglob("*.py"))
    goals = {"a promise": "≤ 3", "a domain": "≤ 4", "an input format": "2"}
    touched = [
        (f"files of src in the commit that added {name}", files_touched(path), goals[name])
        for name, path in ADDED.items()
    ]
    return [
        *touched,
        ("plan classes", plan_classes(modules), "1"),
        ("places that charge a ledger", charge_sites(modules), "1"),
        ("class names used twice", names_used_twice(modules), "0"),
        ("modules visited by `muhat mean` on a CSV file", modules_visited(), "≤ 45"),
        ("parameters of the longest signature inside", longest_signature(modules), "≤ 10"),
        ("groups of modules that import each other", hidden_cycles(modules), "0"),
        ("lines of src", lines, "fewer than 62,500"),
    ]


def table() -> str:
    """The rows as Markdown."""
    lines = ["| measure | now | goal |", "|---|---|---|"]
    return "\n".join(lines + [f"| {name} | {value:,} | {goal} |" for name, value, goal in rows()])


def main(arguments: list[str]) -> None:
    """Print the table, or write it into a page."""
    if arguments[:1] != ["--write"]:
        print(table())
        return
    page = ROOT / arguments[1]
    text = page.read_text()
    before, rest = text.split(START)
    after = rest.split(END)[1]
    page.write_text(f"{before}{START}\n{table()}\n{END}{after}")


if __name__ == "__main__":
    main(sys.argv[1:])
