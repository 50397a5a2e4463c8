"""Which tests rest on their key: those that draw, run on other keys.

    python scripts/fresh_keys.py --keys 20                       the default tests
    python scripts/fresh_keys.py --keys 5 -m slow tests/noise    slow ones of a room
    python scripts/fresh_keys.py --keys 40 --logs FOLDER         goes on with what is in FOLDER
    python scripts/fresh_keys.py -m slow --keys 20 --first 4 --write    from the fourth key on

A first run notes which tests draw: themselves, by a fixture that outlives them, by a helper that
draws once, or while they are collected. These are run on the keys fresh-01, fresh-02, …, so that
every test function has at least as many streams as there are keys: one of P parameters is run on a
P-th of the keys, or with `--every` on all. Those that compared no numbers on the first keys, two or
`--whole`, are left out of the others: what they draw decides nothing, or shows on every key.

Printed are the tests that failed, and on which keys. What fails once in a thousand runs is hardly
among them, so a second table has the comparisons whose numbers come near to their bounds: how many
standard deviations of what was seen the bound lies beyond its mean. Whether that is too near
depends on the law: a largest of many at 5.5 standard errors of its own shows as 4, and is fine.

`--write` puts what was run, at which commit, on tests/fresh_keys.md, beside what other runs put
there: a key takes the slow tests a quarter of an hour, and they need not all be run on one day.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import zlib
from collections import Counter, defaultdict
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "tests" / "fresh_keys.md"
NEAR = 6.0
"""Comparisons are shown whose bounds are nearer than so many deviations."""


# As a script: the runs, and their tables.


def run(folder: Path, name: str, asked: argparse.Namespace, **environment: str) -> str:
    """The output of one run of pytest, with this file as a plugin; a finished run is read again."""
    log = folder / f"{name}.log"
    if not log.exists():
        begun = folder / f"{name}.begun"
        path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        # Comparisons that hold are told to plugins by code of their own, kept apart.
        own = {"PYTHONPATH": path, "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
        command = [sys.executable, "-m", "pytest", "-p", "fresh_keys", "--entropy", name]
        command += ["-o", "enable_assertion_pass_hook=true", "-n", str(asked.workers)]
        command += ["-q", "-rfE", "--tb=short", "-m", asked.marked, *asked.paths]
        with begun.open("w") as output:
            ended = subprocess.run(
                command,
                cwd=ROOT,
                env=os.environ | own | environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        if ended.returncode not in (0, 1):  # tests were run, and passed or failed
            sys.exit(begun.read_text()[-2000:])
        begun.rename(log)
    return log.read_text()


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the tests that draw on other keys.")
    parser.add_argument("--keys", type=int, default=20)
    parser.add_argument("--first", type=int, default=1, help="the number of the first key")
    parser.add_argument("--write", action="store_true", help="note the keys on the page")
    parser.add_argument("--every", action="store_true", help="every parameter on every key")
    parser.add_argument("--whole", type=int, default=2, help="keys for all tests that draw")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--logs", type=Path, help="a folder for what pytest prints")
    parser.add_argument(
        "-m", dest="marked", default="not slow and not spark and not databases and not javascript"
    )
    parser.add_argument("paths", nargs="*")
    asked = parser.parse_args()
    folder = (asked.logs or Path(tempfile.mkdtemp(prefix="fresh-keys-"))).resolve()
    for name in ("drawn", "compared"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    run(folder, "drawing", asked, FRESH_KEYS_NOTE=str(folder / "drawn"))
    failures: dict[str, list[str]] = defaultdict(list)
    for number in range(asked.first - 1, asked.keys):
        key = f"fresh-{number + 1:02}"
        share = "0 1" if asked.every else f"{number} {asked.keys}"
        chosen = {"FRESH_KEYS_CHOOSE": str(folder), "FRESH_KEYS_SHARE": share}
        if number >= asked.first - 1 + asked.whole:
            chosen["FRESH_KEYS_COMPARING"] = "1"
        printed = run(folder, key, asked, **chosen)
        failed = re.findall(r"^(?:FAILED|ERROR) (\S+::.*?)(?: - .*)?$", printed, re.MULTILINE)
        for test in dict.fromkeys(failed):
            failures[test].append(key)
        tests = sum(map(len, re.findall(r"^([.sFE]+)(?: +\[ *\d+%\])?$", printed, re.MULTILINE)))
        print(f"{key}: {tests} tests, {len(failed)} failed", flush=True)
        if asked.write:
            note(" ".join([asked.marked, *asked.paths]), key, tests, failed)
    print(f"\n{len(failures)} tests failed on some of these keys (logs: {folder})")
    for test, keys in sorted(failures.items()):
        print(f"  {len(keys):3}  {test}  ({', '.join(keys)})")
    print(f"\ncomparisons within {NEAR:g} deviations of their bounds")
    print("\n".join(near(folder / "compared")))
    return 1 if failures else 0


HEADER = """\
# Tests on other keys

Which tests were run on streams of other keys, when, and what failed. A test of several parameters
is run with some of them on each key, so that every one is on as many streams as there are keys.
Written by `python scripts/fresh_keys.py --write`.

| tests | key | commit | run | failed |
|---|---|---|--:|---|
"""


def note(asked: str, key: str, tests: int, failed: list[str]) -> None:
    """Put a key on the page, in place of what stood there of the same tests and key."""
    commit = ["git", "rev-parse", "--short", "HEAD"]
    at = subprocess.run(commit, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    start = f"| {asked} | {key} |"
    lines = PAGE.read_text().removeprefix(HEADER).splitlines() if PAGE.exists() else []
    kept = [line for line in lines if not line.startswith(start)]
    kept.append(f"{start} {at} | {tests} | {', '.join(failed) or '–'} |")
    PAGE.write_text(HEADER + "".join(f"{line}\n" for line in sorted(kept)))


def near(folder: Path) -> list[str]:
    """The comparisons whose numbers come near to their bounds, the nearest first.

    What a loop compares differs by itself, so each turn of it is held against the same turn on
    other keys.
    """
    seen = defaultdict(lambda: defaultdict(list))
    for path in folder.glob("*.jsonl"):  # of one run, and one test's lines are in order
        turns = Counter()
        for test, line, asserted, shown in map(json.loads, path.read_text().splitlines()):
            compared, part = (test, line, asserted), fraction_of_bound(shown)
            if part is not None:
                seen[compared][turns[compared]].append(part)
                turns[compared] += 1
    rows = []
    for (test, line, asserted), turns in seen.items():
        parts = [each for each in turns.values() if len(each) > 2]
        spread = math.sqrt(np.mean([np.var(each, ddof=1) for each in parts])) if parts else 0.0
        away = (1 - max(map(np.mean, parts))) / spread if spread > 1e-9 else math.inf
        if away < NEAR:
            rows.append((away, f"{away:6.1f}  {test}:{line}  {asserted}"))
    return [text for _, text in sorted(rows)]


def fraction_of_bound(shown: str) -> float | None:
    """What part of its bound a number is, at most 1, from `2.3 < (5.5 * 1.1)`; None if unknown."""
    match = re.fullmatch(r"(.+?) (<=|>=|<|>|==) (.+?)(?: ± (\S+))?", shown)
    if match is None or (match[2] == "==") != (match[4] is not None):
        return None
    names = {"np": np, "Fraction": Fraction, "__builtins__": {}}
    try:
        left, right, room = (float(eval(text or "0", names)) for text in match.group(1, 3, 4))
    except Exception:  # words, arrays, what has no such text
        return None
    if room:
        return abs(left - right) / room
    small, large = (left, right) if match[2][0] == "<" else (right, left)
    return small / large if small >= 0 and large > 0 else None


# As a plugin of pytest, in every worker: which streams are drawn from, and whose they are.

drawn: set[str] = set()


def pytest_configure() -> None:
    """Have every stream note its name when it is first drawn from."""
    if "FRESH_KEYS_NOTE" not in os.environ:
        return
    import keyed_entropy

    of = keyed_entropy.KeyedEntropy.of

    def noting(name: str) -> keyed_entropy.Entropy:
        stream = of(name)

        def urandom(size: int) -> bytes:
            drawn.add(name)
            return stream(size)

        return urandom

    keyed_entropy.KeyedEntropy.of = staticmethod(noting)


def pytest_sessionfinish() -> None:
    if drawn:
        path = Path(os.environ["FRESH_KEYS_NOTE"]) / f"{os.getpid()}.json"
        path.write_text(json.dumps(sorted(drawn), indent=0))


def pytest_collection_modifyitems(items) -> None:
    """Leave the tests that draw, or get something that was drawn, and of these this key's share."""
    if "FRESH_KEYS_CHOOSE" not in os.environ:
        return
    names = set()
    for path in Path(os.environ["FRESH_KEYS_CHOOSE"], "drawn").glob("*.json"):
        names |= set(json.loads(path.read_text()))
    fixtures = {re.sub(r"\[\d+\]$", "", name) for name in names}
    helpers = {match[1] for name in names if (match := re.match(r"[\w.]+\.(\w+)\(", name))}

    def draws(item) -> bool:
        wider = item._fixtureinfo.name2fixturedefs
        return (
            item.nodeid in names
            or any(f"collecting {node.nodeid}" in names for node in item.listchain())
            or any(f"{d.baseid}::{name}" in fixtures for name in wider for d in wider[name])
            or any(helper in vars(item.module) for helper in helpers)
        )

    families = defaultdict(list)
    for item in filter(draws, items):
        families[item.nodeid.partition("[")[0]].append(item)
    if "FRESH_KEYS_COMPARING" in os.environ:
        compared = compared_families()
        families = {name: family for name, family in families.items() if name in compared}
    number, keys = map(int, os.environ["FRESH_KEYS_SHARE"].split())
    items[:] = [
        item
        for name, family in families.items()
        for place, item in enumerate(family, zlib.crc32(name.encode()))
        if (number - place * (times := -(-keys // len(family)))) % keys < times
    ]


def compared_families() -> set[str]:
    """The test functions that have compared numbers so far."""
    paths = Path(os.environ["FRESH_KEYS_CHOOSE"], "compared").glob("*.jsonl")
    lines = (line for path in paths for line in path.read_text().splitlines())
    return {json.loads(line)[0].partition("[")[0] for line in lines}


@cache
def source(path: Path) -> str:
    return path.read_text()


def pytest_assertion_pass(item, lineno: int, orig: str, expl: str) -> None:
    """Note the numbers of comparisons that hold."""
    own = orig.partition("\n")[0] in source(item.path)  # Hypothesis's comparisons are told, too
    if own and "FRESH_KEYS_CHOOSE" in os.environ and re.search("[<>]|approx", orig):
        fields = [item.nodeid, lineno, " ".join(orig.split())[:90], expl.partition("\n")[0]]
        path = Path(os.environ["FRESH_KEYS_CHOOSE"], "compared", f"{os.getpid()}.jsonl")
        with path.open("a") as file:
            file.write(json.dumps(fields) + "\n")


if __name__ == "__main__":
    sys.exit(main())
