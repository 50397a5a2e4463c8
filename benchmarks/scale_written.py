"""What benchmarks/scale.py found, as pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.pages import fenced, markdown, versions, with_table

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "scale.md"
PAGE = ROOT / "docs" / "scale.md"

ABOUT = """\
A pass opens the table, folds every record and returns exact sums; the domain is a ball to which
about half of the records are clipped. `CPU s` and `wall s` are the least of some passes, CPU of all
processes together, the driver's and the executors' Java and Python. `empty s` is the CPU time of a
pass over one record a file, which is in `CPU s` and `ns/number` too. Memory is the peak during the
passes: of the Python process that asks for the sums, of the driver's Java process (heap of at most
1 GB), and of the largest Python process on an executor. Starting Python and Spark is not counted.
Both engines gave the same sums, bit for bit, in every cell.

Each file is a partition of Spark's; row groups have 8 MB, those of more than 256 columns 4,096
records. Spark is a standalone master with two workers of one core each on the machine that also
runs the driver. The machine is shared: trust ratios and slopes, not seconds.
"""


def write_pages(
    parts: Sequence[tuple[str, Sequence[str]]],
    verdicts: Sequence[str],
    table: Sequence[Sequence[str]],
) -> None:
    """Write benchmarks/results/scale.md, and put the table into docs/scale.md."""
    made = f"Made by `python -m benchmarks.scale --write` with {versions()}."
    page = [
        "# What a pass costs as data grow\n",
        made + "\n",
        ABOUT,
        "\n".join(f"- {verdict}" for verdict in verdicts) + "\n",
        *(f"## Costs {title}\n\n" + fenced(text) for title, text in parts),
        "## Extrapolated\n",
        markdown(table),
    ]
    RESULTS.write_text("\n".join(page))
    PAGE.write_text(with_table(PAGE.read_text(), "benchmarks.scale", markdown(table)))
