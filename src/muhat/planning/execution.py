"""How a plan for sums of bounded records is carried out: open, count, read, add the noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muhat._words import SECRET_N
from muhat.domains.lattice import ColumnsLattice, Lattice, PointsLattice
from muhat.errors import DataChanged, InvalidInput, SourceFailed
from muhat.planning.answers import Answer, answer
from muhat.planning.run import COUNT_THEM, Columns, account_of, check_rows, chosen_columns, note_of
from muhat.release.certificate import Certificate
from muhat.release.release import Release

if TYPE_CHECKING:
    from muhat.data import Source
    from muhat.planning.plan import Plan


@dataclass(frozen=True)
class SumsWork:
    """The work of a plan for bounded records.

    `planned`, if given, makes the plan for what is known of a source without its values.
    """

    plan: Plan
    planned: Callable[[Source], Plan] | None = None

    def open(self, data: Any, columns: Columns) -> Source:
        """The data as records of the plan."""
        from muhat.data import open_source

        lattice = self.plan.recipe.query.lattice
        any_width = lattice is None or isinstance(lattice, PointsLattice)
        dim = None if lattice is None or any_width else lattice.record_dim
        source = open_source(data, chosen_columns(self.plan.columns, columns), dim)
        _lattice_for(self.plan, source)
        return source

    def counted(self, source: Source) -> Plan:
        """The plan for these records; a public n is compared with the data."""
        plan = self.plan if self.planned is None else self.planned(source)
        if plan.n is not None:
            hint = (*COUNT_THEM, ", or use ", SECRET_N, " to keep it secret.")
            check_rows(plan.n, source, hint)
        return plan

    def admit(self, plan: Plan, source: Source) -> None:
        """Refuse errors without bound."""
        certificate = plan.certificate
        if certificate is not None and not math.isfinite(certificate.error):
            raise InvalidInput("the expected error is not finite; nothing was spent.")

    def note(self, plan: Plan, source: Source) -> str | None:
        """A domain of one point has one answer, which costs nothing."""
        return note_of(plan.statistic, source.columns) if plan.recipe.query.rows else None

    def read(self, plan: Plan, source: Source, head: dict[str, Any] | None) -> Release:
        """One pass over the records."""
        totals, rows = _sums(plan, source)
        if plan.n is not None and rows != plan.n:
            raise DataChanged("the number of rows changed between counting and reading.")
        found = answer(plan, plan.recipe.run(totals, rows))
        return released(plan, found, _names(plan, source), plan.certificate, head)


def released(
    plan: Plan,
    found: Answer,
    columns: tuple[str, ...],
    certificate: Certificate | None,
    head: dict[str, Any] | None,
    *said: str,
) -> Release:
    """An answer, and what may be said about it."""
    return Release(
        statistic=plan.statistic,
        value=found.value,
        columns=columns,
        domain=plan.domain,
        noise=found.noise,
        recorded=found.recorded,
        squares=found.squares,
        missing=plan.missing,
        certificate=certificate,
        **account_of(plan, head, *said),
    )


def _lattice_for(plan: Plan, source: Source) -> Lattice | None:
    """The lattice for this source: of points, one column of codes or all their coordinates."""
    lattice = plan.recipe.query.lattice
    if not isinstance(lattice, PointsLattice) or source.dim == lattice.record_dim:
        return lattice
    if source.dim != 1:
        raise InvalidInput(
            f"records of points are one column of codes, or {lattice.record_dim} columns of "
            f"coordinates; got {source.dim} columns."
        )
    return PointsLattice.of(lattice.size)


def _sums(plan: Plan, source: Source) -> tuple[tuple[int, ...], int]:
    """The exact integer sums and the number of records."""
    from muhat.data import exact_sums

    lattice = _lattice_for(plan, source)
    if lattice is None:
        return (), _count(source)
    # Columns are dropped one by one, and count what is recorded themselves.
    whole_records = plan.missing == "drop" and not isinstance(lattice, ColumnsLattice)
    sums = exact_sums(source, lattice, missing="drop" if whole_records else "center")
    return sums.total, sums.rows


def _count(source: Source) -> int:
    """The number of records, when it is itself what is released."""
    try:
        rows: int | None = source.rows()
    except DataChanged:
        raise
    except Exception:
        rows = None
    if rows is None:
        # Raised outside the handler: a reader's exception may quote what it read.
        raise SourceFailed("the records could not be counted to the end. The charge stays.")
    return rows


def _names(plan: Plan, source: Source) -> tuple[str, ...]:
    """What the values are called: the columns, if there is one for each."""
    if plan.domain is None:
        return ("count",)
    if source.dim == plan.dim:
        return source.columns
    return tuple(str(index) for index in range(plan.dim))
