"""Carries a plan out: check, count, charge, read, add the noise, and say what came out.

The order is the point. The ledger approves first, from the promise alone; then metadata are
checked; if n is public the rows are counted, and the only outcome is equal or not; then the ledger
is charged; then values are read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from muhat.domains.lattice import ColumnsLattice, Lattice, PointsLattice
from muhat.errors import DataChanged, InvalidInput, SourceFailed
from muhat.ledger import Approval, charged
from muhat.planning.answers import answer
from muhat.planning.plan import Plan
from muhat.release.release import Release

if TYPE_CHECKING:
    from muhat.data import Source


def open_records(plan: Plan, data: Any, columns: Sequence[str] | Sequence[int] | None) -> Source:
    """The data as records of the plan; arguments and metadata are checked, nothing is read."""
    from muhat.data import open_source

    lattice = plan.recipe.query.lattice
    any_width = lattice is None or isinstance(lattice, PointsLattice)
    dim = None if lattice is None or any_width else lattice.record_dim
    source = open_source(data, chosen_columns(plan.columns, columns), dim)
    _lattice_for(plan, source)
    return source


def chosen_columns(
    named: tuple[str, ...] | None, columns: Sequence[str] | Sequence[int] | None
) -> Sequence[str] | Sequence[int] | None:
    """The columns that were asked for, or those that the plan names: never others than these."""
    from muhat.data.selection import column_names

    chosen = column_names(columns)
    if named and chosen and tuple(map(str, chosen)) != named:
        raise InvalidInput(
            f"the plan names its columns already: {', '.join(named)}; leave columns out."
        )
    return named if chosen is None else chosen


def check_count(plan: Plan, source: Source) -> None:
    """Compare a public n with the data; how far they are apart is not told."""
    if plan.n is not None and source.rows() != plan.n:
        raise InvalidInput(
            f"n = {plan.n}, but the data have another number of rows. "
            "Leave n out to have the rows counted, or use n=None to keep it secret."
        )


def carry_out(plan: Plan, source: Source, approval: Approval | None) -> Release:
    """Charge, read, add the noise. A failure after the charge keeps the charge."""
    # Whatever can fail without the data fails before the charge.
    certificate, digest = plan.certificate, plan.digest
    if certificate is not None and not math.isfinite(certificate.error):
        raise InvalidInput("the expected error is not finite; nothing was spent.")
    # A domain of one point has one answer, which costs nothing.
    paid = approval if plan.recipe.query.rows else None
    note = note_of(plan.statistic, source.columns)
    head = charged(paid, digest, note)
    totals, rows = _sums(plan, source)
    if plan.n is not None and rows != plan.n:
        raise DataChanged("the number of rows changed between counting and reading.")
    found = answer(plan, plan.recipe.run(totals, rows))
    return Release(
        statistic=plan.statistic,
        value=found.value,
        columns=_names(plan, source),
        mechanism=plan.mechanism,
        privacy=plan.privacy,
        neighbors=plan.neighbors,
        n=plan.n,
        contributions=plan.contributions,
        domain=plan.domain,
        noise=found.noise,
        recorded=found.recorded,
        squares=found.squares,
        missing=plan.missing,
        certificate=certificate,
        assumptions=plan.assumptions,
        plan_digest=digest,
        ledger_head=head,
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


def note_of(statistic: str, columns: Sequence[str]) -> str:
    """What the ledger's entry says."""
    return f"{statistic} of {', '.join(columns)}" if columns else statistic


def _names(plan: Plan, source: Source) -> tuple[str, ...]:
    """What the values are called: the columns, if there is one for each."""
    if plan.domain is None:
        return ("count",)
    if source.dim == plan.dim:
        return source.columns
    return tuple(str(index) for index in range(plan.dim))
