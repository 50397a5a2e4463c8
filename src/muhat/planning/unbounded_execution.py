"""How a plan for unbounded records is carried out: open, count, then read a few times."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from muhat.domains.reals import Reals
from muhat.mechanisms.learning.learning import Learnt
from muhat.mechanisms.sums.ratio import Ratio
from muhat.planning.run import Columns, account_of, check_rows, note_of
from muhat.release.outside import CONFIDENCE, Outside
from muhat.release.record_mean import BOTH, RecordMean, record_mean
from muhat.release.recorded import Recorded
from muhat.release.release import Release

if TYPE_CHECKING:
    from muhat.data import Source
    from muhat.planning.reals_plan import RealsPlan
    from muhat.planning.unknown_number import UnknownNumberPlan


@dataclass(frozen=True)
class RealsWork:
    """The work of a plan for records that nobody has bounded, of which there are n.

    `planned`, if given, makes the plan for what is known of a source without its values.
    """

    plan: RealsPlan
    planned: Callable[[Source], RealsPlan] | None = None

    def open(self, data: Any, columns: Columns) -> Source:
        """The data as records."""
        return open_records(self.plan.domain, data, columns)

    def counted(self, source: Source) -> RealsPlan:
        """The plan for these records; n is compared with the data."""
        plan = self.plan if self.planned is None else self.planned(source)
        check_rows(plan.n, source)
        return plan

    def admit(self, plan: RealsPlan, source: Source) -> None:
        """Refuse what the method cannot read."""
        plan.method.admit(source)

    def note(self, plan: RealsPlan, source: Source) -> str:
        """The statistic and the columns."""
        return note_of(plan.statistic, source.columns)

    def read(self, plan: RealsPlan, source: Source, head: dict[str, Any] | None) -> Release:
        """Learn where the records lie, in a few passes, and release their mean."""
        found = plan.method.run(source)
        averaged = None if found.part is None else found.part.averaged
        return learnt(plan, source, found, head, averaged, transcript(found))


def open_records(domain: Reals, data: Any, columns: Columns) -> Source:
    """The data as records; arguments and metadata are checked, nothing is read."""
    from muhat.data import open_source
    from muhat.data.selection import column_names

    return open_source(data, column_names(columns), domain.dim)


def learnt(
    plan: RealsPlan | UnknownNumberPlan,
    source: Source,
    found: Learnt,
    head: dict[str, Any] | None,
    averaged: int | None,
    *said: str,
) -> Release:
    """What came out, as a release of the plan; of a part of the records, if n is secret."""
    return Release(
        statistic=plan.statistic,
        value=found.value,
        columns=source.columns,
        domain=found.ball,
        noise=found.noise,
        certificate=None,
        **account_of(plan, head, *said),
        bias=None if found.failure else _bias(plan, found),
        unshrunk=found.unshrunk,
        outside=_outside(found, plan.n if averaged is None else averaged),
        record_mean=_record_mean(plan, found),
        averaged=averaged,
        missing=plan.missing,
        recorded=_recorded(found),
        moment_error=found.error,
        rmse=None if found.rmse is None or not math.isfinite(found.rmse) else found.rmse,
        failure=found.failure,
    )


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


def _bias(plan: RealsPlan | UnknownNumberPlan, found: Learnt) -> float | None:
    """The plan's bound on the bias, or that for as many records as were averaged."""
    if found.part is None:
        return plan.bias
    return found.part.bias if math.isfinite(found.part.bias) else None


def _record_mean(plan: RealsPlan | UnknownNumberPlan, found: Learnt) -> RecordMean | None:
    """Where the mean of all records lies: of one column, if few of them are outside."""
    outside, few = found.outside, _outside(found, plan.n)
    if plan.dim != 1 or plan.n is None or outside is None or few is None or not few.is_small:
        return None
    noise, ball, size = found.noise, found.ball, plan.domain.magnitude
    if noise is None or ball is None or size is None:
        return None
    if isinstance(noise, Ratio):
        spread, center = noise.sum_spread, float(ball.center[0])
        lower, upper = (center + float(end[0]) for end in noise.interval(BOTH, joint=False))
        reach = spread.law.quantile(BOTH, spread.rows) * float(noise.count_scale[0])
        return record_mean((lower, upper), ball, outside, float(noise.count[0]) - reach, size)
    middle = float((found.value if found.unshrunk is None else found.unshrunk)[0])
    half = float(noise.half_widths(BOTH, joint=False)[0])
    return record_mean((middle - half, middle + half), ball, outside, plan.n, size)


def transcript(found: Learnt) -> str:
    """The steps and their exact shares of the promise."""
    steps = ", ".join(f"{step.name} {step.share}" for step in found.steps)
    return f"the steps taken and their shares of the promise: {steps}"
