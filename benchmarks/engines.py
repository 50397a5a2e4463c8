"""What one answer costs beside the same query without privacy: DuckDB, polars, pyarrow.

    python -m benchmarks.engines [--rows N] [--quick] [--write]

Two million rows of six columns. muhat's is the whole release, plan, pass and noise, by the embedded
engine and by DuckDB at muhat's sums; the others' is the exact number. One thread each, CPU time, in
turns, the median of five. Libraries that are not installed are left out. Then the mean of two
columns as rows grow, 10⁵ to 10⁸ (1.6 GB in a temporary folder, if it has room; `--quick`: to 10⁷),
and the peak of memory above that of an interpreter that has released one of 10⁵ rows, and what the
compiled loops of the extra `fast` save. `--write` writes benchmarks/results/engines.md and the
table of the README.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

# Before any of them is imported.
for variable in ("POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import muhat as mh  # noqa: E402
from benchmarks import engines_compiled  # noqa: E402
from benchmarks.engines_asked import (  # noqa: E402
    BOTH,
    PROMISE,
    RELATION,
    Work,
    installed,
    questions,
    write_quoted,
    write_rows,
    write_text,
)
from benchmarks.pages import fenced, markdown, shown, versions, with_table  # noqa: E402
from benchmarks.scale import slope  # noqa: E402
from muhat.data.base import paced  # noqa: E402

ROWS, REPEATS = 2_000_000, 15
GROWING, LARGE = (10**5, 10**6, 10**7), 10**8
BYTES_A_ROW = 20
"""Of two columns in Parquet, generously."""

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "benchmarks" / "results" / "engines.md"
PEERS = ("DuckDB", "polars", "pyarrow")
GOALS = {
    "Parquet, mean of two columns": ("DuckDB", 1.5),
    "Parquet, sum of two columns": ("DuckDB", 1.5),
    "Parquet, histogram": ("DuckDB", 1.5),
    "Parquet, mean by group": ("DuckDB", 2.0),
    "CSV, mean of two columns": ("pyarrow", 1.5),
    "CSV with quoted line breaks, the same": ("pyarrow", 1.5),
}
"""How many times a library's CPU time a release may take."""

CHILD = """
import muhat as mh

def peak():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

def release(path):
    mh.mean(path, domain={both!r}, privacy=mh.ZCDP(rho=0.1))

release({small!r})
before = peak()
release({path!r})
print((peak() - before) / 1024)
"""

Seconds = dict[str, float]
Turns = dict[str, list[float]]


def main(rows: int = ROWS, quick: bool = False, written: bool = False) -> None:
    """Print both tables, and write them if asked to."""
    load = os.getloadavg()[0]
    found: dict[str, Turns] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        roomy = shutil.disk_usage(folder).free > LARGE * BYTES_A_ROW
        growing = (*GROWING, LARGE) if roomy and not quick else GROWING
        parquet, text = folder / "rows.parquet", folder / "rows.csv"
        quoted_text = folder / "quoted.csv"
        write_rows(parquet, rows)
        write_text(parquet, text)
        write_quoted(parquet, quoted_text)
        header = f"{'':<38}{'muhat':>9}{'relation':>9}{'':>7}" + "".join(
            f"{peer:>10}{'':>7}" for peer in PEERS
        )
        asked = shown(
            f"{rows:,} rows: CPU ms, and how many times what others take",
            header,
            _lines(questions(parquet, text, quoted_text), found),
        )
        grown = shown(
            "the mean of two columns of Parquet",
            f"{'rows':>12}{'CPU ms':>10}{'ns a number':>13}{'peak MiB':>10}",
            _growth(folder, growing),
        )
        compiled = shown(
            "in numpy's steps and in compiled loops, CPU ms",
            engines_compiled.HEADER,
            engines_compiled.lines(parquet),
        )
    missing = _missing()
    if missing:
        print(missing)
    if written and not missing:
        _write(rows, load, asked, [grown, compiled], found)


def measured(works: dict[str, Work]) -> Turns:
    """The CPU seconds of each in every turn, after a first one that imports and opens.

    Every turn has an order of its own: what comes behind a reader of the same file, by the same
    library, finds it in the caches.
    """
    taken: Turns = {name: [] for name in works}
    order = random.Random(20)
    with paced(threads=1, show_progress=False), engines_compiled.in_steps_of_numpy():
        for turn in range(REPEATS + 1):
            for name, work in order.sample([*works.items()], len(works)):
                start = time.process_time()
                work()
                if turn:
                    taken[name].append(time.process_time() - start)
    return taken


def _medians(taken: Turns) -> Seconds:
    return {name: statistics.median(times) for name, times in taken.items()}


def _lines(asked: dict[str, dict[str, Work]], found: dict[str, Turns]) -> Iterator[str]:
    for question, works in asked.items():
        found[question] = measured(works)
        seconds = _medians(found[question])
        cells = [f"{question:<38}{1e3 * seconds['muhat']:>9.1f}"]
        cells.append(_cell(seconds, RELATION, 9, seconds.get(RELATION), seconds.get("DuckDB")))
        cells += [_cell(seconds, peer, 10, seconds["muhat"], seconds.get(peer)) for peer in PEERS]
        yield "".join(cells)


def _cell(seconds: Seconds, name: str, width: int, ours: float | None, theirs: float | None) -> str:
    """The milliseconds of a library, and one time as a multiple of another."""
    if name not in seconds or ours is None or theirs is None:
        return f"{'–':>{width}}{'':>7}"
    return f"{1e3 * seconds[name]:>{width}.1f}{ours / theirs:>6.2f}×"


def _growth(folder: Path, growing: tuple[int, ...]) -> Iterator[str]:
    """CPU time and peak of memory for more and more rows, and the slope of log time."""
    points = []
    small = folder / f"{growing[0]}.parquet"
    for rows in growing:
        path = folder / f"{rows}.parquet"
        write_rows(path, rows, [*BOTH])
        seconds = statistics.median(measured({"muhat": _release(path)})["muhat"])
        points.append((float(rows), seconds))
        script = CHILD.format(both=BOTH, small=str(small), path=str(path))
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        if path != small:
            path.unlink()
        each = seconds / rows / len(BOTH) * 1e9
        yield f"{rows:>12,}{1e3 * seconds:>10.1f}{each:>13.2f}{float(done.stdout):>10.1f}"
    yield (
        f"slope of log CPU time against log rows: {slope(points):.2f}, from {growing[1]:,} rows on "
        f"{slope(points[1:]):.2f}"
    )


def _release(path: Path) -> Callable[[], object]:
    return lambda: mh.mean(str(path), domain=BOTH, privacy=PROMISE)


def _missing() -> str:
    names = [name for name in PEERS if installed(name.lower()) is None]
    return f"Not installed, so left out, and nothing is written: {', '.join(names)}." * bool(names)


def _write(
    rows: int, load: float, asked: list[str], others: list[list[str]], found: dict[str, Turns]
) -> None:
    grown, compiled = others
    libraries = [f"{name} {installed(name.lower()).__version__}" for name in PEERS]
    PAGE.write_text(
        "# One answer beside the query without privacy\n\n"
        f"Made by `python -m benchmarks.engines --write` with {versions()}, "
        f"{', '.join(libraries)}; one thread each.\n\n"
        f"{rows:,} rows of six columns. muhat's is the whole release, plan, pass and noise, with "
        "intervals; the others give the exact number. CPU milliseconds, the median of "
        f"{REPEATS} in turns, each in an order of its own. Behind a peer's time: how many times as "
        "much the embedded engine takes. “Relation” is muhat at a relation of DuckDB's over the "
        "file, as a multiple of DuckDB's own time: with so few threads DuckDB reads it, and muhat "
        "adds up. The extra `fast` is not used here. The machine "
        f"was shared, {load:.0f} processes waiting for {os.cpu_count()} cores: the ratios are what "
        "counts, and they differ from run to run.\n\n"
        f"{fenced(asked)}\n{_verdicts(found)}\n{quoted(found)}\n"
        "## As rows grow\n\nOne release of the mean of two columns; the peak of memory is above "
        f"that of a process that has released one of {GROWING[0]:,} rows. The extra "
        f"`fast` is not used here, either.\n\n{fenced(grown)}\n"
        "## With the extra `fast`\n\nA process that has added up many values has numba compile the "
        "loop that touches each once, to the same bits. Whole releases, CPU milliseconds with "
        "squares and counts; the table in Parquet is the one above. “Plain” is the mean without "
        f"privacy, and beside the pass what pyarrow takes to decode it.\n\n{fenced(compiled)}"
    )
    readme = ROOT / "README.md"
    readme.write_text(with_table(readme.read_text(), "benchmarks.engines", quoted(found)))


def _verdicts(found: dict[str, Turns]) -> str:
    lines = []
    for question, (peer, most) in GOALS.items():
        ours, theirs = found[question]["muhat"], found[question][peer]
        ratio = statistics.median(ours) / statistics.median(theirs)
        turns = sorted(one / other for one, other in zip(ours, theirs, strict=True))
        met = "yes" if ratio <= most else "no"
        lines.append(
            f"- {question}: {ratio:.2f} times {peer}'s, {turns[0]:.2f} to {turns[-1]:.2f} in "
            f"single turns; at most {most}: {met}\n"
        )
    return "".join(lines)


def quoted(found: dict[str, Turns]) -> str:
    """The table of the README: a release's CPU time as a multiple of every library's."""
    table = [["CPU time of a release ÷", *PEERS, "of its relation ÷ DuckDB"]]
    for question, taken in found.items():
        seconds = _medians(taken)
        ratios = [f"{seconds['muhat'] / seconds[peer]:.1f}" for peer in PEERS]
        pushed = f"{seconds[RELATION] / seconds['DuckDB']:.1f}" if RELATION in seconds else "–"
        table.append([question, *ratios, pushed])
    return markdown(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    main(given.rows, given.quick, given.write)
