"""Answers to linear queries, with their errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from muhat import _check, workloads
from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.release.answer import CONFIDENCE, Answer, interval_fields, read_common
from muhat.release.answer_noise import AnswerNoise
from muhat.release.display import MOST_ROWS, around, certificate_lines, rounded, significant
from muhat.release.query_table import Attributes, marginal_table, query_names, tidy_table
from muhat.workloads import Workload
from muhat.workloads.residuals import is_marginal

MISSING = {
    "drop": "A record whose {names} is missing or not declared is left out: the counts are of "
    "recorded values.",
    "other": 'A missing or undeclared {names} counts as "other".',
    "default": "A missing or undeclared {names} counts as the default that was declared.",
    "none": "No {names} is missing or undeclared, as was declared; one that is counts as the first "
    "category.",
}
"""What becomes of missing values, in words that follow every table."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class QueryAnswer(Answer):
    """Answers to a workload and everything that may be said about them.

    `value`, of shape (m,), holds the answers in the order of the workload's rows; `attributes`
    names the axes of the histogram and their categories, and `missing` says what became of missing
    and undeclared values, one rule an axis (none if counts were given). Where records were left out
    `recorded` is the noisy number of those that were not, if it follows from the answers. Nothing
    here depends on the data except through the noisy answers.
    """

    value: Floats
    workload: Workload
    attributes: Attributes
    missing: tuple[str, ...]
    recorded: float | None
    recorded_noise: AnswerNoise | None
    noise: AnswerNoise

    schema: ClassVar[str] = "muhat.queries/2"
    statistic: ClassVar[str] = "queries"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.value.shape != (self.workload.shape[0],) or not np.isfinite(self.value).all():
            raise InvalidInput("a release has one finite answer a query.")
        if self.noise.scales.shape != self.value.shape:
            raise InvalidInput("a release has one standard error an answer.")
        self.attributes.require(self.workload.cells)
        rules = {_check.one_of("missing", rule, tuple(MISSING)) for rule in self.missing}
        if self.missing and len(self.missing) != len(self.attributes.names):
            raise InvalidInput("a release has one rule for missing values an attribute.")
        if (self.recorded is None) != (self.recorded_noise is None) or (
            self.recorded is not None and "drop" not in rules
        ):
            raise InvalidInput("a release counts recorded values where some were left out.")
        if self.recorded_noise is not None and self.recorded_noise.scales.shape != (1,):
            raise InvalidInput("the number of recorded values has one error.")

    @property
    def standard_error(self) -> Floats:
        """The standard deviation of the noise on every answer, of shape (m,)."""
        return self.noise.standard_error

    def variances(self) -> Floats:
        """The variance of the noise on every answer, of shape (m,)."""
        return np.asarray(self.standard_error**2)

    @property
    def covariance(self) -> Floats:
        """The covariance of the noise, of shape (m, m)."""
        return self.noise.covariance

    def interval(
        self, confidence: float = 0.95, *, simultaneous: bool = False
    ) -> tuple[Floats, Floats]:
        """Lower and upper ends, each of shape (m,): one interval an answer, or all at once."""
        level = _check.probability("confidence", confidence)
        half = self.noise.half_widths(level, joint=simultaneous)
        # Answers without noise (a public total) may be off by what floats round, too.
        half = half + self.workload.shape[1] * 2.0**-52 * np.abs(self.value).max(initial=0.0)
        return self.value - half, self.value + half

    @property
    def recorded_error(self) -> float | None:
        """The standard deviation of `recorded`."""
        noise = self.recorded_noise
        return None if noise is None else float(noise.standard_error[0])

    def table(self, confidence: float = 0.95) -> dict[str, NDArray[Any]]:
        """A tidy table, a line an answer: what was asked, value, standard error, interval.

        A dict of columns, ready for a dataframe: `pandas.DataFrame(release.table())`.
        """
        lower, upper = self.interval(confidence)
        return {
            **tidy_table(self.workload, self.attributes),
            "value": self.value,
            "standard_error": self.standard_error,
            "lower": lower,
            "upper": upper,
        }

    def marginal(self, *names: str | int) -> Floats:
        """The table of one marginal, an axis an attribute in the order of the histogram."""
        return marginal_table(self.workload, self.attributes, names, self.value)

    def projected(self, onto: object = None) -> QueryAnswer:
        """The nearest answers that some histogram of non-negative counts could have given."""
        if onto is not None:
            raise InvalidInput("answers are made possible for a histogram: leave onto out.")
        from muhat.mechanisms.queries.marginal_projection import project_marginals
        from muhat.mechanisms.queries.nonnegative import project_answers

        note = "made non-negative and consistent, which may bias the answers"
        noisy = (self.value, self.standard_error, self.n)
        if is_marginal(self.workload):
            answers = project_marginals(self.workload, *noisy)
        else:
            answers, _ = project_answers(self.workload, *noisy)
        return replace(self, value=answers, certificate=None, assumptions=(*self.assumptions, note))

    @property
    def called(self) -> str:
        """What it is."""
        return "a table of answers"

    @property
    def heading(self) -> str:
        """What was asked."""
        return f"answers · {self.workload.describe()}"

    def rows(self, most: int = MOST_ROWS) -> list[list[str]]:
        """A line an answer, the first ones."""
        (lower, upper), errors = self.interval(), self.standard_error
        header, names = query_names(self.workload, self.attributes, most)
        rows = [[header, "value", "standard error", "95 % interval"]]
        for i, name in enumerate(names):
            ends = f"{rounded(lower[i], errors[i])} … {rounded(upper[i], errors[i])}"
            rows.append([name, rounded(self.value[i], errors[i]), significant(errors[i]), ends])
        if len(errors) > most:
            rows.append([f"… {len(errors) - most:,} more", "", "", ""])
        return rows

    def notes(self) -> list[str]:
        """What became of missing values, and how good the answers are."""
        return [*self._missing_lines(), *certificate_lines(self.certificate)]

    def _missing_lines(self) -> list[str]:
        """The rules for missing values that were used, and how many values are recorded."""
        lines = []
        for rule, said in MISSING.items():
            named = zip(self.attributes.names, self.missing, strict=False)
            names = [name for name, used in named if used == rule]
            if len(names) > MOST_ROWS:
                names = [*names[:MOST_ROWS], "…"]
            if names:
                lines.append(said.format(names=" or ".join(names)))
        if self.recorded is not None and self.recorded_noise is not None:
            (half,) = self.recorded_noise.half_widths(CONFIDENCE, joint=False)
            low, about, high = around(self.recorded, half, self.n)
            of_all = "" if self.n is None else f" of {self.n:,}"
            lines.append(f"Recorded: about {about} records (95 % interval {low} … {high}){of_all}.")
        return lines

    def to_dict(self) -> dict[str, Any]:
        return {
            "statistic": self.statistic,
            "workload": self.workload.to_dict(),
            "columns": list(self.attributes.names),
            "categories": [list(labels) for labels in self.attributes.labels],
            "value": self.value.tolist(),
            "standard_error": self.standard_error.tolist(),
            "interval": interval_fields(self.interval()),
            "missing": dict(zip(self.attributes.names, self.missing, strict=False)),
            "recorded": self._recorded_fields(),
            **self._common(),
            "noise": self.noise.to_dict(),
        }

    def _recorded_fields(self) -> dict[str, Any] | None:
        if self.recorded_noise is None:
            return None
        return {
            "value": self.recorded,
            "standard_error": self.recorded_error,
            "noise": self.recorded_noise.to_dict(),
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """The answer that `to_dict` described; the covariance is not kept, standard errors are."""
        recorded = fields.get("recorded")
        return cls(
            value=np.array(fields["value"], np.float64),
            workload=workloads.from_dict(fields["workload"]),
            attributes=Attributes(
                tuple(fields["columns"]), tuple(map(tuple, fields["categories"]))
            ),
            missing=tuple(fields.get("missing", {}).values()),
            recorded=None if recorded is None else _check.real("recorded", recorded["value"]),
            recorded_noise=None if recorded is None else AnswerNoise.from_dict(recorded["noise"]),
            noise=AnswerNoise.from_dict(fields["noise"]),
            **read_common(fields),
        )
