"""Means, sums and counts as people read them: the table, and what to know about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from muhat.release.display import MOST_ROWS, certificate_lines, rounded, shortened, significant
from muhat.release.population import shows_population, why_no_population

if TYPE_CHECKING:
    from muhat.release.vector_answer import VectorAnswer

NOTHING = "no recorded values"


def _counts_as(place: str, *, from_devices: bool = False) -> str:
    many, who = "if many are, the value is biased", "only people who have one should answer"
    return f"A missing value counts as {place}: {who if from_devices else many}."


CENTER = "the centre of the domain"
NEAREST = "the centre's, and its record as the nearest of the listed points, the first at a tie"

MISSING = {
    "drop": "Missing values are left out: the {0} of a column is that of its recorded values.",
    "records": "Records with a missing value are left out.",
    "center": _counts_as(CENTER),
    "none": "Nothing is missing, as was declared: every record counts in every column.",
}
"""What is printed of the rule for missing values."""


def vector_rows(answer: VectorAnswer, most: int = MOST_ROWS) -> list[list[str]]:
    """A header, then a line a column."""
    if answer.tells_population:
        return _assumed_rows(answer, most)
    interval = "95 % interval" + (" (clipped)" if _is_about_a_learnt_set(answer) else "")
    counts, wider = _recorded_cells(answer), _population_cells(answer)
    interval += ": records" * bool(wider)
    rows = [["column", "value", "standard error", interval, *wider[:1], *counts[:1]]]
    if answer.noise is None:
        for column, value in zip(answer.columns, answer.value, strict=True):
            shown = "none" if answer.failed else f"{value:.6g}"
            rows.append([column, shown, "unknown", "unknown"])
        return shortened(rows, most)
    lower, upper = answer.interval()
    errors, empty = answer.noise.standard_error, answer.empty
    for place, column in enumerate(answer.columns):
        value, error = answer.value[place], errors[place]
        cells = [NOTHING, "", ""]
        if not empty[place]:
            ends = f"{rounded(lower[place], error)} … {rounded(upper[place], error)}"
            cells = [rounded(value, error), significant(error), ends]
        beside = (wider[place + 1 : place + 2], counts[place + 1 : place + 2])
        rows.append([column, *cells, *beside[0], *beside[1]])
    return shortened(rows, most)


def vector_table(answer: VectorAnswer, confidence: float) -> dict[str, NDArray[Any]]:
    """What is known of every column, as numbers; where nothing is, not-a-number."""
    shape = answer.value.shape
    unknown = np.full(shape, np.nan)
    table: dict[str, NDArray[Any]] = {
        "column": np.array(answer.columns, dtype=object),
        "value": answer.value,
        **dict.fromkeys(("standard_error", "lower", "upper"), unknown),
    }
    if answer.noise is not None:
        table["standard_error"] = answer.noise.standard_error
        table["lower"], table["upper"] = answer.interval(confidence)
        if answer.tells_population or shows_population(answer):
            ends = answer.interval(confidence, target="population")
            table["population_lower"], table["population_upper"] = ends
    for name in table.keys() - {"column", "value", "standard_error"}:
        table[name] = np.where(answer.empty, np.nan, table[name])
    if answer.recorded is not None:
        table["recorded"] = np.broadcast_to(answer.recorded.value, shape)
        table["recorded_error"] = np.broadcast_to(answer.recorded.standard_error, shape)
    return table


def _population_cells(answer: VectorAnswer) -> list[str]:
    """A header and the interval of every column for its population; [] if there is none."""
    if not shows_population(answer):
        return []
    lower, upper = answer.interval(target="population")
    cells = []
    for low, high, empty in zip(lower, upper, answer.empty, strict=True):
        error = (high - low) / 4
        cells.append("" if empty else f"{rounded(low, error)} … {rounded(high, error)}")
    return ["95 % interval: population", *cells]


def _recorded_cells(answer: VectorAnswer) -> list[str]:
    """A header and the noisy number of recorded values of every column; [] if none is known."""
    if not _counts_columns(answer):
        return []
    recorded = answer.recorded
    assert recorded is not None
    pairs = zip(recorded.value, recorded.standard_error, strict=True)
    cells = [
        f"{rounded(max(value, 0.0), 10 * error)} ± {significant(error)}" for value, error in pairs
    ]
    return ["recorded ± s.e.", *cells]


def _counts_columns(answer: VectorAnswer) -> bool:
    """Whether every column is of its own recorded values."""
    recorded = answer.recorded
    of_columns = recorded is not None and len(recorded.value) == len(answer.columns)
    return of_columns and answer.missing == "drop"


def vector_notes(answer: VectorAnswer) -> list[str]:
    """How good the value is, or why that cannot be said."""
    if answer.failure is not None:
        return [f"No value came out; the promise is spent. The reason: {answer.failure}."]
    return [
        *_missing_lines(answer),
        *population_lines(answer),
        *_learnt_lines(answer),
        *_goodness(answer),
    ]


def population_lines(answer: VectorAnswer) -> list[str]:
    """What the two intervals are about, or the only one."""
    values = "recorded values" if _counts_columns(answer) else "records"
    if not shows_population(answer):
        return _only_line(answer, values)
    other = "the mean of the population that they are independent draws of"
    if answer.statistic == "sum":
        other = f"{answer.n} times {other}"
    lines = [
        f"The first interval is for the {answer.statistic} of these {values}, clipped to their "
        f"bounds: noise alone. The second is for {other}, clipped too."
    ]
    more = "population=True (--population) releases {}, at the price of more noise."
    if answer.squares is None:
        lines.append("No squares were released, so it allows for the largest sampling error.")
        if answer.domain is not None and answer.domain.has_squares:
            lines[-1] += f" {more.format('them')}"
    elif answer.squares.together:
        lines.append(
            "Squares were released of all columns together, so each is allowed the variance of "
            f"all. {more.format('those of each')}"
        )
    return lines


def _only_line(answer: VectorAnswer, values: str) -> list[str]:
    """That an interval is of these records alone; of a learnt set and a bias it is said there."""
    elsewhere = answer.domain_is_learnt or answer.bias is not None or answer.domain is None
    if elsewhere or answer.noise is None:
        return []
    told = f"The interval is for the {answer.statistic} of these {values}, clipped to their bounds"
    why = why_no_population(answer)
    none = "" if why is None else f" No interval for a population: {why}."
    return [f"{told}: noise alone.{none}"]


def _missing_lines(answer: VectorAnswer) -> list[str]:
    """What became of missing values, and how many records there were if that was secret."""
    recorded, by_column = answer.recorded, _counts_columns(answer)
    rule = "records" if answer.missing == "drop" and not by_column else answer.missing
    # Of a set that was found, `_learnt_lines` and `_assumed_lines` say it in their own words.
    # A count looks at no value.
    domain = answer.domain
    rule = None if rule == "center" and (answer.domain_is_learnt or domain is None) else rule
    lines = [MISSING[rule].format(answer.statistic)] if rule else []
    if rule == "center":
        place = NEAREST if domain is not None and domain.is_listed else CENTER
        lines = [_counts_as(place, from_devices=answer.from_devices)]
    if rule and domain is not None and not domain.half_widths.all():
        constant = (
            "A column whose bounds are equal has that value in every record, recorded or not."
        )
        lines = [*lines, constant] if domain.half_widths.any() else [constant]
    if recorded is not None and not by_column:
        count, error = recorded.value[0], recorded.standard_error[0]
        which = "Complete records" if answer.missing == "drop" else "Records"
        number = rounded(count, 10 * error)
        lines.append(f"{which}: about {number} (standard error {significant(error)}).")
    if answer.empty.any():
        lines.append(
            f"{NOTHING.capitalize()}: their noisy number cannot be told from 0. Are these columns "
            "numbers, and are they the columns that were meant?"
        )
    return lines


def _is_about_a_learnt_set(answer: VectorAnswer) -> bool:
    """Whether errors are about records clipped to what was learnt from them, and nothing more."""
    return answer.domain_is_learnt and answer.bias is None


def _learnt_lines(answer: VectorAnswer) -> list[str]:
    if not _is_about_a_learnt_set(answer):
        return []
    lines = [
        f"Clipped to {_learnt_set(answer)} that was found privately; errors are about the clipped "
        "mean.",
        "How many records lie outside is not known; what they add is not in the interval."
        if answer.outside is None
        else answer.outside.describe(),
        *_whole_lines(answer),
    ]
    if answer.missing in (None, "center"):
        lines.append(_counts_as("the centre that was found", from_devices=answer.from_devices))
    if answer.unshrunk is not None:
        lines.append(
            "The value is drawn towards the mean of a smaller ball, which helps where noise is all "
            "that is left out; errors and intervals are those of the mean before that."
        )
    return lines


def _whole_lines(answer: VectorAnswer) -> list[str]:
    """Where the mean of all records lies, if that is known."""
    whole = answer.record_mean
    if whole is None:
        return []
    ends = [rounded(end, whole.upper - whole.lower) for end in (whole.lower, whole.upper)]
    return [
        f"If no record lies beyond {whole.least:.6g} … {whole.most:.6g}, the mean of all records "
        f"is in {ends[0]} … {ends[1]} (95 %)."
    ]


def _learnt_set(answer: VectorAnswer) -> str:
    domain = answer.domain
    radius = getattr(domain, "radius", None)
    if domain is None or radius is None:
        return "a set"
    if domain.dim > 1:
        return f"a ball of radius {significant(radius)}"
    middle = float(domain.center[0])
    return f"the interval {middle - radius:.6g} … {middle + radius:.6g}"


def _goodness(answer: VectorAnswer) -> list[str]:
    if answer.unprojected is not None:
        return [
            "Projected onto a set where the exact value lies: free, and slightly biased, so no "
            "certificate. Errors and intervals are those before the projection."
        ]
    if answer.mechanism == "ratio" and answer.certificate is None:
        return ["A noisy sum divided by a noisy count: slightly biased, and no certificate."]
    if answer.bias is not None:
        return _assumed_lines(answer, answer.bias)
    return certificate_lines(answer.certificate)


def _assumed_rows(answer: VectorAnswer, most: int) -> list[list[str]]:
    """Where a moment is assumed: the interval for the population first, which most look for."""
    assert answer.noise is not None
    counts = _recorded_cells(answer)
    header = ["column", "value", "95 % interval: population", "noise", "95 % interval: records"]
    rows = [[*header, *counts[:1]]]
    errors = answer.noise.standard_error
    ends = (*answer.interval(target="population"), *answer.interval())
    for place, (column, value, error, *around) in enumerate(
        zip(answer.columns, answer.value, errors, *ends, strict=True), start=1
    ):
        low, high, least, largest = (rounded(end, error) for end in around)
        shown = [f"{low} … {high}", significant(error), f"{least} … {largest}"]
        rows.append([column, rounded(value, error), *shown, *counts[place : place + 1]])
    return shortened(rows, most)


def _assumed_lines(answer: VectorAnswer, bias: float) -> list[str]:
    """Bias and error, if the assumption holds, and what the intervals are about."""
    several = len(answer.columns) > 1
    most = f"at most {significant(bias)}" if bias else "0"
    sentence = f"The bias of a column is {most}" if several else f"The bias is {most}"
    if answer.rmse is not None:
        # Columns may have unlike units: what is added up is weighted, and is said to be.
        errors = "errors of all columns, weighted as planned, are" if several else "error is"
        sentence += f" and the root mean square {errors} at most {significant(answer.rmse)}"
    if answer.moment is None:
        return [f"{sentence} if the assumptions hold.", "Errors are about the noise alone."]
    symmetric = answer.mechanism.endswith(("symmetric", "karwa-vadhan"))
    sentence += f", if {answer.moment.describe()}" + ", it is symmetric" * symmetric
    drawn = "records" if answer.missing != "drop" else "complete records"
    drawn = "recorded values" if drawn != "records" and not several else drawn
    sentence += f" and the {drawn} are independent draws."
    missing = []
    if answer.missing in (None, "center"):
        missing.append(
            "A missing value counts as the middle of the interval that records are clipped to: if "
            "many are, value and intervals are not about the recorded ones."
        )
    if not answer.tells_population:
        return [sentence, "Errors are about the noise alone.", *missing]
    return [
        sentence,
        *missing,
        "The first interval is for the mean of the population: noise, sampling and bias. The "
        f"second is for the mean of the clipped {_averaged(answer)}: noise alone.",
    ]


def _averaged(answer: VectorAnswer) -> str:
    """Which records the value is the mean of."""
    if answer.averaged is None:
        return "records"
    return f"records that were averaged, {answer.averaged:,} drawn at random"
