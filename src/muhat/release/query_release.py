"""Answers to linear queries, with their errors, their certificate and their cost."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat import _check, workloads
from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.privacy import Neighbors, Privacy
from muhat.release.answer_noise import AnswerNoise
from muhat.release.certificate import Certificate
from muhat.release.fields import account_fields, interval_fields, read_account, read_certificate
from muhat.release.query_display import MISSING
from muhat.release.query_table import Attributes, marginal_table, tidy_table
from muhat.release.reading import read_json
from muhat.workloads import Workload
from muhat.workloads.residuals import is_marginal

SCHEMA = "muhat.queries/2"
"""The meaning of an existing field never changes; a new meaning is a new schema."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class QueryRelease:
    """Private answers to a workload and everything that may be said about them.

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
    mechanism: str
    privacy: Privacy
    neighbors: Neighbors
    n: int | None
    contributions: int
    noise: AnswerNoise
    certificate: Certificate | None
    assumptions: tuple[str, ...]
    plan_digest: str
    ledger_head: dict[str, Any] | None

    def __post_init__(self) -> None:
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
        _check.count("contributions", self.contributions)
        if self.n is not None:
            _check.count("n", self.n, least=0)

    @property
    def cost(self) -> Privacy:
        """The promise this release was charged with."""
        return self.privacy

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

    def projected(self) -> QueryRelease:
        """The nearest answers that some histogram of non-negative counts could have given.

        Free of privacy cost, no longer unbiased. The certificate is dropped, because its bounds
        speak of unbiased mechanisms.
        """
        from muhat.mechanisms.queries.marginal_projection import project_marginals
        from muhat.mechanisms.queries.nonnegative import project_answers

        note = "made non-negative and consistent, which may bias the answers"
        noisy = (self.value, self.standard_error, self.n)
        if is_marginal(self.workload):
            answers = project_marginals(self.workload, *noisy)
        else:
            answers, _ = project_answers(self.workload, *noisy)
        return replace(self, value=answers, certificate=None, assumptions=(*self.assumptions, note))

    def to_dict(self) -> dict[str, Any]:
        """The release as plain data, ready for JSON."""
        return {
            "schema": SCHEMA,
            "statistic": "queries",
            "workload": self.workload.to_dict(),
            "columns": list(self.attributes.names),
            "categories": [list(labels) for labels in self.attributes.labels],
            "value": self.value.tolist(),
            "standard_error": self.standard_error.tolist(),
            "interval": interval_fields(self.interval()),
            "missing": dict(zip(self.attributes.names, self.missing, strict=False)),
            "recorded": self._recorded_fields(),
            **account_fields(self, self.certificate),
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

    def to_json(self, indent: int | None = 2) -> str:
        """The release as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> QueryRelease:
        """The release that `to_json` wrote; the covariance is not kept, standard errors are."""
        return read_json(text, SCHEMA, "muhat's answers to queries", cls._of)

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> QueryRelease:
        recorded = fields["recorded"]
        return cls(
            value=np.array(fields["value"], np.float64),
            workload=workloads.from_dict(fields["workload"]),
            attributes=Attributes(
                tuple(fields["columns"]), tuple(map(tuple, fields["categories"]))
            ),
            missing=tuple(fields["missing"].values()),
            recorded=None if recorded is None else _check.real("recorded", recorded["value"]),
            recorded_noise=None if recorded is None else AnswerNoise.from_dict(recorded["noise"]),
            mechanism=str(fields["mechanism"]),
            noise=AnswerNoise.from_dict(fields["noise"]),
            certificate=read_certificate(fields),
            **read_account(fields),
        )

    def __repr__(self) -> str:
        from muhat.release.query_display import release_text

        return release_text(self)

    def _repr_html_(self) -> str:
        from muhat.release.query_display import release_html

        return release_html(self)
