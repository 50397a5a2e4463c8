"""What follows from an assumed moment, as people read it under a release and in its table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muhat.release.display import recorded_cells, rounded, shortened, significant

if TYPE_CHECKING:
    from muhat.release.release import Release


def population_rows(release: Release) -> list[list[str]]:
    """The table of a release, the interval for the population first: most look for that."""
    assert release.noise is not None
    counts = recorded_cells(release)
    header = ["column", "value", "95 % interval: population", "noise", "95 % interval: records"]
    rows = [[*header, *counts[:1]]]
    errors = release.noise.standard_error
    ends = (*release.interval(target="population"), *release.interval())
    for place, (column, value, error, *around) in enumerate(
        zip(release.columns, release.value, errors, *ends, strict=True), start=1
    ):
        low, high, least, most = (rounded(end, error) for end in around)
        shown = [f"{low} … {high}", significant(error), f"{least} … {most}"]
        rows.append([column, rounded(value, error), *shown, *counts[place : place + 1]])
    return shortened(rows)


def assumed_lines(release: Release, bias: float) -> list[str]:
    """Bias and error, if the assumption holds, and what the intervals are about."""
    several = len(release.columns) > 1
    most = f"at most {significant(bias)}" if bias else "0"
    sentence = f"The bias of a column is {most}" if several else f"The bias is {most}"
    if release.rmse is not None:
        # Columns may have unlike units: what is added up is weighted, and is said to be.
        errors = "errors of all columns, weighted as planned, are" if several else "error is"
        sentence += f" and the root mean square {errors} at most {significant(release.rmse)}"
    if release.moment is None:
        return [f"{sentence} if the assumptions hold.", "Errors are about the noise alone."]
    symmetric = release.mechanism.endswith(("symmetric", "karwa-vadhan"))
    sentence += f", if {release.moment.describe()}" + ", it is symmetric" * symmetric
    drawn = "records" if release.missing != "drop" else "complete records"
    drawn = "recorded values" if drawn != "records" and not several else drawn
    sentence += f" and the {drawn} are independent draws."
    missing = []
    if release.missing in (None, "center"):
        missing.append(
            "A missing value counts as the middle of the interval that records are clipped to: if "
            "many are, value and intervals are not about the recorded ones."
        )
    if not release.tells_population:
        return [sentence, "Errors are about the noise alone.", *missing]
    return [
        sentence,
        *missing,
        "The first interval is for the mean of the population: noise, sampling and bias. The "
        f"second is for the mean of the clipped {_averaged(release)}: noise alone.",
    ]


def _averaged(release: Release) -> str:
    """Which records the value is the mean of."""
    if release.averaged is None:
        return "records"
    return f"records that were averaged, {release.averaged:,} drawn at random"
