"""How other libraries are asked for counts and means by groups of people with several rows.

This file imports nothing of muhat and runs by itself, in an interpreter that has a library which
does not live beside the others:

    python peers_asked.py < jobs.json > answers.json

A job is a table (lists called person, region, sex and income), its public `groups` and `bounds`,
and a promise: ρ of zCDP, ε, or ε and δ. All rows of a person come or go together. At most `rows`
rows of a person enter; with `apart` at most one in each of so many regions.

Every library has public groups and the options of least error that it documents. Under (ε, δ) that
is Laplace noise, where two tables and few rows of a person are concerned.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

Job = dict[str, Any]
Answer = tuple[list[float], list[float]]
"""The counts and the means, in the order of the groups."""

Release = Callable[[], Answer]


def opendp(job: Job) -> Release:
    """Its Polars expressions: lengths, and sums about the middle of the bounds, equally noisy."""
    dp, pl = importlib.import_module("opendp.prelude"), importlib.import_module("polars")
    dp.enable_features("contrib")
    low, high = job["bounds"]
    middle = (low + high) // 2
    by, groups = ["region", "sex"], [tuple(group) for group in job["groups"]]
    table = pl.DataFrame(job["table"])
    query = dp.Context.compositor(
        data=table.lazy(),
        privacy_unit=dp.unit_of(contributions=1, identifier="person"),
        privacy_loss=dp.loss_of(**job["promise"]),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=by, max_length=10**6, max_groups=len(groups))],
    ).query()
    if job["apart"]:
        # Of k groups it keeps k - 1 (0.16.0), the first ones: a choice at random fails in Polars.
        query = query.truncate_per_group(1, by=by)
        query = query.truncate_num_groups(job["rows"] + 1, by=by, keep="first")
    else:
        query = query.truncate_per_group(job["rows"])
    total = (pl.col("income") - middle).dp.sum((low - middle, high - middle))
    keys = pl.DataFrame(groups, schema=by, orient="row")
    measurement = query.group_by(by).agg(dp.len(signed=True), total).with_keys(keys).resolve()

    def release() -> Answer:
        rows = measurement(table.lazy()).collect().select(*by, "len", "income").rows()
        found = {(region, sex): (count, total) for region, sex, count, total in rows}
        return [found[g][0] for g in groups], [
            middle + found[g][1] / max(1, found[g][0]) for g in groups
        ]

    return release


def diffprivlib(job: Job) -> Release | None:
    """Its sums and counts of every group, by hand.

    It knows no people: a promise for k rows is one of a k-th for each. Its mean takes the sizes of
    groups as public, so that a sum about the middle is divided by a count; the noise of its sums is
    for a row that is replaced.
    """
    if "rho" in job["promise"]:
        return None
    tools, np = importlib.import_module("diffprivlib.tools"), importlib.import_module("numpy")
    accountant = importlib.import_module("diffprivlib").BudgetAccountant()
    low, high = job["bounds"]
    middle, half = (low + high) / 2, (high - low) / 2
    each = job["promise"]["epsilon"] / job["rows"] / 2
    table = {name: np.asarray(values) for name, values in job["table"].items()}

    def of_group(region: str, sex: str) -> tuple[float, float]:
        inside = (table["region"] == region) & (table["sex"] == sex)
        values = np.where(inside, table["income"] - middle, 0.0)
        total = tools.sum(values, epsilon=each, bounds=(-half, half), accountant=accountant)
        count = tools.count_nonzero(inside, epsilon=each, accountant=accountant)
        return float(count), middle + float(total) / max(1.0, float(count))

    def release() -> Answer:
        counts, means = zip(*(of_group(*group) for group in job["groups"]), strict=True)
        return list(counts), list(means)

    return release


def pipeline_dp(job: Job) -> Release | None:
    """One aggregation of COUNT and MEAN: its mean is about the middle and divides by the count."""
    if "rho" in job["promise"]:
        return None
    library = importlib.import_module("pipeline_dp")
    columns = (job["table"][name] for name in ("person", "region", "sex", "income"))
    records = list(zip(*columns, strict=True))
    groups = [tuple(group) for group in job["groups"]]
    low, high = job["bounds"]
    limits = {"max_contributions": job["rows"]}
    if job["apart"]:
        limits = {"max_partitions_contributed": job["rows"], "max_contributions_per_partition": 1}
    asked = library.AggregateParams(
        metrics=[library.Metrics.COUNT, library.Metrics.MEAN],
        noise_kind=library.NoiseKind.LAPLACE,
        min_value=low,
        max_value=high,
        **limits,
    )
    extractors = library.DataExtractors(
        privacy_id_extractor=lambda record: record[0],
        partition_extractor=lambda record: (record[1], record[2]),
        value_extractor=lambda record: record[3],
    )

    def release() -> Answer:
        accountant = library.NaiveBudgetAccountant(job["promise"]["epsilon"], 0.0)
        engine = library.DPEngine(accountant, library.LocalBackend())
        answers = engine.aggregate(records, asked, extractors, public_partitions=groups)
        accountant.compute_budgets()
        found = dict(answers)
        return [found[g].count for g in groups], [found[g].mean for g in groups]

    return release


def tumult(job: Job) -> Release:
    """A session with a third of the promise for counts and the rest for averages, which count too.

    Spark runs on two cores of this machine with two partitions.
    """
    library, spark = importlib.import_module("tmlt.analytics"), _spark()
    pandas = importlib.import_module("pandas")
    data = spark.createDataFrame(pandas.DataFrame(job["table"]))
    groups = [tuple(group) for group in job["groups"]]
    keys = library.KeySet.from_tuples(groups, columns=["region", "sex"])
    low, high = job["bounds"]

    def budget(part: float) -> Any:
        shared = {name: amount * part for name, amount in job["promise"].items()}
        if "rho" in shared:
            return library.RhoZCDPBudget(shared["rho"])
        kind = library.ApproxDPBudget if "delta" in shared else library.PureDPBudget
        return kind(**shared)

    def release() -> Answer:
        session = library.Session.from_dataframe(
            budget(1.0), "people", data, protected_change=library.AddRowsWithID("person")
        )
        query = library.QueryBuilder("people")
        if job["apart"]:
            query = query.enforce(library.MaxGroupsPerID("region", job["rows"]))
            query = query.enforce(library.MaxRowsPerGroupPerID("region", 1))
        else:
            query = query.enforce(library.MaxRowsPerID(job["rows"]))
        grouped = query.groupby(keys)
        counted = session.evaluate(grouped.count(name="answer"), budget(1 / 3))
        averages = grouped.average("income", low, high, name="answer")
        averaged = session.evaluate(averages, session.remaining_privacy_budget)
        counts, means = (
            {(row["region"], row["sex"]): float(row["answer"]) for row in each.collect()}
            for each in (counted, averaged)
        )
        return [counts[g] for g in groups], [means[g] for g in groups]

    return release


def _spark() -> Any:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.default.parallelism": "2",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / "spark-warehouse"),
    }
    builder = importlib.import_module("pyspark.sql").SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


ASKED: dict[str, tuple[tuple[str, ...], Callable[[Job], Release | None]]] = {
    "opendp": (("opendp.prelude", "polars"), opendp),
    "diffprivlib": (("diffprivlib.tools",), diffprivlib),
    "pipeline-dp": (("pipeline_dp",), pipeline_dp),
    "tmlt.analytics": (("tmlt.analytics",), tumult),
}
"""Of every library, by the name of its distribution, what must be there and how it is asked."""


def installed(library: str) -> bool:
    """Whether this interpreter has all of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for module in ASKED[library][0]:
                importlib.import_module(module)
        except ImportError:
            return False
    return True


def answered(library: str, job: Job) -> dict[str, Any]:
    """Releases of a job, and the CPU seconds of one from the question to the answer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {"version": version(library), **timed(ASKED[library][1], job)}


def timed(ask: Callable[[Job], Release | None], job: Job) -> dict[str, Any]:
    """As many releases as the job wants, after one that warms up, and the median time of some."""
    release = ask(job)
    if release is None:
        return {"missing": "no such promise"}
    release()
    seconds = []
    for _ in range(job["repeats"]):
        start = _cpu()
        again = ask(job)
        assert again is not None
        again()
        seconds.append(_cpu() - start)
    releases = [release() for _ in range(job["trials"])]
    return {"releases": releases, "seconds": statistics.median(seconds)}


def _cpu() -> float:
    """CPU seconds of this process and of those below it (the JVM), which Linux knows."""
    return time.process_time() + sum(map(_cpu_of, _below(os.getpid())))


def _below(process: int) -> list[int]:
    try:
        tasks = Path(f"/proc/{process}/task").iterdir()
        children = [int(each) for task in tasks for each in (task / "children").read_text().split()]
    except OSError:
        return []
    return children + [other for child in children for other in _below(child)]


def _cpu_of(process: int) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main(asked: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The answers to jobs for libraries; without a job, only whether one is there."""
    logging.disable(logging.WARNING)
    found = []
    for library, job in ((each["library"], each["job"]) for each in asked):
        if not installed(library):
            found.append({"missing": "not installed"})
        else:
            found.append(answered(library, job) if job else {})
    return found


if __name__ == "__main__":
    out = os.dup(1)
    os.dup2(2, 1)  # what libraries print is no answer
    found = main(json.load(sys.stdin))
    with os.fdopen(out, "w") as stream:
        json.dump(found, stream)
