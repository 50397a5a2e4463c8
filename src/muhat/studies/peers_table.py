"""The tables of the README beside other systems: what each does, and how it did in the study.

    python -m muhat.studies.peers_table peers.csv

prints both, the second from the rows of `muhat study run peers`. A test compares the README with
them. What a system does is read from its documentation and code, in the version that is named.
"""

from __future__ import annotations

import sys
from pathlib import Path

from muhat.studies.peers_set import NAMES, task_of
from muhat.studies.study import Rows, rows_from_csv, where

SYSTEMS = (
    "muhat",
    "OpenDP 0.16",
    "diffprivlib 0.6.6",
    "Tumult Analytics 0.21",
    "PipelineDP 0.3",
)

ABLE: dict[str, tuple[str, str, str, str, str]] = {
    "filters, new columns and the like before a statistic": (
        "no: prepare the table before",
        "yes (polars)",
        "no",
        "yes, conditions in SQL",
        "maps",
    ),
    "joins with private tables": ("no", "no", "no", "yes", "no"),
    "queries that a database runs": (
        "DuckDB, PostgreSQL, Spark; ibis",
        "a first version (ibis)",
        "no",
        "no",
        "no",
    ),
    "learning": (
        "least squares",
        "PCA, Theil–Sen regression",
        "regressions, trees, clusters, PCA",
        "no",
        "no",
    ),
    "synthetic tables": ("no", "yes (AIM, MST)", "no", "no", "no"),
    "numbers of different values": ("no", "yes", "no", "yes", "of people"),
    "mechanisms to build others of": ("no", "yes", "yes", "yes (Tumult Core)", "no"),
    "Spark; Beam": ("Spark", "no", "no", "Spark", "both"),
    "at most k rows of a person; at most m groups": ("rows", "both", "no", "both", "both"),
    "groups that nobody knows": ("yes", "yes", "no", "yes", "yes"),
    "bounds learnt privately": ("of vectors too", "no", "no", "of a column", "no"),
    "shares of a promise": (
        "least error, weights, targets",
        "even, or by weights",
        "even among columns",
        "by hand",
        "even, or by weights",
    ),
    "how far off a value may be": (
        "intervals for records and population",
        "accuracy of counts and sums",
        "no",
        "no",
        "the noise's deviation",
    ),
    "a certificate of optimality": ("yes", "no", "no", "no", "no"),
    "noise that is correlated between the columns of a mean": ("yes", "no", "no", "no", "no"),
}
"""What of it each system does, in the order of `SYSTEMS`."""


def abilities() -> str:
    """The table of what each system does."""
    return _table(["", *SYSTEMS], [[what, *how] for what, how in ABLE.items()])


def measured(rows: Rows) -> str:
    """The errors of counts and mean incomes by group, as parts of the truth, and the CPU time.

    >>> common = {"job": "set", "promise": "pure", "privacy": "1-DP (pure)", "apart": False}
    >>> own = {"library": "muhat", "relative": 0.0203, "seconds": 0.006}
    >>> print(measured([common | own, common | {"library": "opendp", "relative": None}]))
    | | muhat | OpenDP |
    |---|---|---|
    | 1-DP (pure), rows anywhere | 2.0 % | – |
    | CPU seconds of a release | 0.006 | – |
    """
    own = where(rows, job="set")
    libraries = list(dict.fromkeys(str(row["library"]) for row in own))
    lines, seconds = [], dict.fromkeys(libraries, 0.0)
    for mine in where(own, library="muhat"):
        cells = [task_of(mine)]
        for library in libraries:
            (row,) = where(own, library=library, promise=mine["promise"], apart=mine["apart"])
            known = row["relative"] is not None
            cells.append(f"{100 * row['relative']:.1f} %" if known else "–")
            seconds[library] = max(seconds[library], row["seconds"] if known else 0.0)
        lines.append(cells)
    times = [f"{seconds[library]:.2g}" if seconds[library] else "–" for library in libraries]
    lines.append(["CPU seconds of a release", *times])
    return _table(["", *(NAMES[library] for library in libraries)], lines)


def _table(header: list[str], lines: list[list[str]]) -> str:
    written = ["|" + "|".join(f" {cell} " if cell else " " for cell in header) + "|"]
    written.append("|---" * len(header) + "|")
    return "\n".join(written + ["| " + " | ".join(line) + " |" for line in lines])


if __name__ == "__main__":
    print(abilities(), measured(rows_from_csv(Path(sys.argv[1]).read_text())), sep="\n\n")
