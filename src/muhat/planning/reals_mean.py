"""Means of records in `Reals` with a public n: what is the same by whatever method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from muhat._arrays import Floats
from muhat._words import given
from muhat.data.base import PartitionedSource, Source
from muhat.domains.reals import Reals
from muhat.errors import InvalidInput
from muhat.mechanisms.learning.learning import Learnt, Method
from muhat.mechanisms.sums.ratio import Ratio
from muhat.planning.low_bias_method import LowBiasMethod, finite
from muhat.planning.mechanism import Columns, Mechanism, Rows
from muhat.planning.run import COUNT_THEM, counted_terms, note_of
from muhat.release.beside import Recorded
from muhat.release.outside import BOTH, CONFIDENCE, Outside, RecordMean, record_mean
from muhat.release.vector_answer import VectorAnswer
from muhat.statistics.reals import open_records

if TYPE_CHECKING:
    from muhat.data import Source


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MeanInReals(Mechanism):
    """A private mean of records in `Reals`."""

    domain: Reals
    missing: str

    @property
    def dim(self) -> int:
        """The number of values released."""
        return self.domain.dim

    def open(self, data: Any, columns: Columns) -> Source:
        """The data as records."""
        return open_records(self.domain, data, columns)

    def note(self, source: Source) -> str:
        """The statistic and the columns."""
        return note_of(self.statistic, source.columns)

    def answer(
        self, source: Source, found: Learnt, averaged: int | None, *said: str
    ) -> VectorAnswer:
        """What came out; of a part of the records, if n is secret."""
        return VectorAnswer(
            statistic=self.statistic,
            value=found.value,
            columns=source.columns,
            domain=found.ball,
            noise=found.noise,
            **self.basis(*said),
            bias=None if found.failure else self._bias_of(found),
            unshrunk=found.unshrunk,
            outside=_outside(found, self.n if averaged is None else averaged),
            record_mean=self._record_mean(found),
            averaged=averaged,
            missing=self.missing,
            recorded=_recorded(found),
            moment_error=found.error,
            rmse=None if found.rmse is None else finite(found.rmse),
            failure=found.failure,
            learnt=True,
        )

    def _bias_of(self, found: Learnt) -> float | None:
        """The bound on the bias, or that for as many records as were averaged."""
        return self.bias if found.part is None else finite(found.part.bias)

    def _record_mean(self, found: Learnt) -> RecordMean | None:
        """Where the mean of all records lies: of one column, if few of them are outside."""
        outside, few, n = found.outside, _outside(found, self.n), self.n
        if self.dim != 1 or n is None or outside is None or few is None or not few.is_small:
            return None
        noise, ball, size = found.noise, found.ball, self.domain.magnitude
        if noise is None or ball is None or size is None:
            return None
        if isinstance(noise, Ratio):
            spread, center = noise.sum_spread, float(ball.center[0])
            lower, upper = (center + float(end[0]) for end in noise.interval(BOTH, joint=False))
            reach = spread.law.quantile(BOTH, spread.rows) * float(noise.count_scale[0])
            return record_mean((lower, upper), ball, outside, float(noise.count[0]) - reach, size)
        middle = float((found.value if found.unshrunk is None else found.unshrunk)[0])
        half = float(noise.half_widths(BOTH, joint=False)[0])
        return record_mean((middle - half, middle + half), ball, outside, n, size)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RealsMean(MeanInReals):
    """A private mean of n records in `Reals` by some method."""

    weights: Floats
    method: Method | LowBiasMethod

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.method.name

    def decisive(self) -> dict[str, Any]:
        """The domain, the rule for missing values, and the method."""
        return {
            "domain": self.domain.to_dict(),
            "missing": self.missing,
            "method": self.method.to_dict(),
        }

    def details(self) -> dict[str, Any]:
        """Where records are looked for, and how errors are measured."""
        return {
            "weights": self.weights.tolist(),
            "missing": self.missing,
            "domain": self.domain.to_dict(),
        }

    def facts(self) -> Rows:
        """The domain and the method."""
        return [
            ["domain", repr(self.domain)],
            ["mechanism", f"{self.name}: {self.method.summary}"],
        ]

    def counted(self, source: Source) -> RealsMean:
        """The same: n is compared with the data."""
        counted_terms(self.terms, source, hint=COUNT_THEM)
        return self

    def admit(self, source: Source) -> None:
        """Refuse what the method cannot read."""
        self.method.admit(source)

    def read(self, source: Source) -> VectorAnswer:
        """Learn where the records lie, in a few passes, and release their mean."""
        source.keep()
        found = self.method.run(source)
        averaged = None if found.part is None else found.part.averaged
        return self.answer(source, found, averaged, transcript(found))


def _outside(found: Learnt, n: int | None) -> Outside | None:
    count, noise = found.outside, found.noise
    if count is None:
        return None
    if isinstance(noise, Ratio):
        n = max(round(float(noise.count[0])), 0)
    half_width = count.half_width(CONFIDENCE)
    return Outside.of(count.value, half_width, n, noisy=isinstance(noise, Ratio))


def _recorded(found: Learnt) -> Recorded | None:
    """How many complete records there are, where some may be missing."""
    if isinstance(found.noise, Ratio):
        return Recorded(found.noise.count, found.noise.count_error)
    part = found.part
    if part is None:
        return None
    return Recorded(np.array([part.number]), np.array([part.standard_error]))


def transcript(found: Learnt) -> str:
    """The steps and their exact shares of the promise."""
    steps = ", ".join(f"{step.name} {step.share}" for step in found.steps)
    return f"the steps taken and their shares of the promise: {steps}"


DROPPED = {
    True: "a missing or non-finite value is left out: the mean is that of the recorded values",
    False: "records with a missing or non-finite value are left out",
}
"""What is said of "drop", of one column and of several: a ball needs every coordinate."""


def missing_line(missing: str, dim: int, centre: str) -> str:
    """The rule in a sentence; `centre` is what a missing value counts as, if it does."""
    if missing == "drop":
        return DROPPED[dim == 1]
    if missing == "none":
        return f"nothing is missing, as was declared; a value that is counts as {centre}"
    return f"a missing or non-finite value counts as {centre}"


def require_to_draw(source: Source) -> None:
    """Refuse a source elsewhere: complete records are drawn at random, and never fetched."""
    if not isinstance(source, PartitionedSource):
        raise InvalidInput(
            "must be on this machine to leave missing values out here: some of the other records "
            "are drawn at random",
            parameter="data",
            hint=(
                "Use ",
                given("missing", "none"),
                " if nothing is missing, or ",
                given("missing", "center"),
                ".",
            ),
        )
