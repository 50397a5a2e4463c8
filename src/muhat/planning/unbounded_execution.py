"""Carries a recentring plan out: check, count, charge once, then read a few times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from muhat.domains.lattice import Lattice
from muhat.domains.reals import Reals
from muhat.errors import DataChanged, InvalidInput
from muhat.ledger import Ledger, charged
from muhat.mechanisms.recentring import Recentred, recentred_mean
from muhat.mechanisms.recentring_schedule import Floats, Schedule
from muhat.planning.execution import note_of
from muhat.planning.unbounded import UnboundedPlan
from muhat.release.release import Release

if TYPE_CHECKING:
    from muhat.data import Source
    from muhat.data.distances import Frame


def open_records(domain: Reals, data: Any, columns: Sequence[str] | Sequence[int] | None) -> Source:
    """The data as records; arguments and metadata are checked, nothing is read."""
    from muhat.data import open_source
    from muhat.data.selection import column_names

    return open_source(data, column_names(columns), domain.dim)


def check_count(plan: UnboundedPlan, source: Source) -> None:
    """Compare n with the data; how far they are apart is not told."""
    if source.rows() != plan.n:
        raise InvalidInput(
            f"n = {plan.n}, but the data have another number of rows. "
            "Leave n out to have the rows counted."
        )


def carry_out(plan: UnboundedPlan, source: Source, ledger: Ledger | None) -> Release:
    """Charge the whole promise, then learn the ball and release the mean."""
    digest, note = plan.digest, note_of(plan.statistic, source.columns)
    head = charged(ledger, plan.privacy, plan.neighbors, digest, note)
    found = recentred_mean(plan.schedule, SourceReader(source, plan.schedule))
    return Release(
        statistic=plan.statistic,
        value=found.value,
        columns=source.columns,
        mechanism=plan.mechanism,
        privacy=plan.privacy,
        neighbors=plan.neighbors,
        n=plan.n,
        contributions=plan.contributions,
        domain=found.ball,
        noise=found.noise,
        certificate=None,
        assumptions=(*plan.assumptions, transcript(found)),
        plan_digest=digest,
        ledger_head=head,
    )


def transcript(found: Recentred) -> str:
    """The steps and their exact shares of the promise, which add up to 1."""
    steps = ", ".join(f"{step.name} {step.share}" for step in found.steps)
    return f"the steps taken and their shares of the promise: {steps}"


class SourceReader:
    """Passes over a source; the number of rows must be the same in each."""

    def __init__(self, source: Source, schedule: Schedule) -> None:
        self._source = source
        self._schedule = schedule

    def distance_counts(self, center: Floats, edges: Floats) -> list[int]:
        """How many records have their distance from the centre in each cell."""
        from muhat.data.distances import distance_counts

        counts = distance_counts(self._source, self._frame(center), edges)
        self._check_rows(sum(counts))
        return counts

    def excess(self, center: Floats, inner: float, lattice: Lattice) -> Sequence[int]:
        """The exact sums, in weighted coordinates, of what lies beyond an inner radius."""
        from muhat.data.distances import excess_sums

        sums = excess_sums(self._source, self._frame(center), inner, lattice)
        self._check_rows(sums.rows)
        return sums.total

    def sums(self, lattice: Lattice) -> Sequence[int]:
        """The exact sums of the records' integers."""
        from muhat.data.distances import bounded_sums

        sums = bounded_sums(self._source, lattice, self._schedule.magnitude)
        self._check_rows(sums.rows)
        return sums.total

    def _frame(self, center: Floats) -> Frame:
        from muhat.data.distances import Frame

        return Frame(center, self._schedule.weights, self._schedule.magnitude)

    def _check_rows(self, rows: int) -> None:
        if rows != self._schedule.n:
            raise DataChanged("the number of rows changed between two passes.")
