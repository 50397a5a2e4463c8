"""What a pass adds up, in words that an engine of another language can follow.

An accumulator that adds whole numbers of single records, by cells of single records, can say so:
its `tallies` list the tables it holds, and `tallied` makes its state of what was found for them.
Where records are in a database, these sums are made there (`sql.py`). Every number below is the one
that the kernels make of the same value, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from muhat.data.coding import Coder
from muhat.data.grids import UniformGrid
from muhat.data.states import Numbers
from muhat.domains.box_kernel import BoxKernel, Coordinate
from muhat.domains.integers import Lattice


@dataclass(frozen=True)
class BoxStep:
    """q of a column on a coordinate of a box lattice; a missing value is `coordinate.absent`."""

    column: int
    coordinate: Coordinate

    def moved(self, places: Sequence[int]) -> BoxStep:
        """The same of a source that has its columns elsewhere."""
        return BoxStep(places[self.column], self.coordinate)


@dataclass(frozen=True)
class BoxSquare:
    """s: q² rounded to a float, in units of 2^45, rounded to the nearest, ties to even."""

    step: BoxStep

    def moved(self, places: Sequence[int]) -> BoxSquare:
        """The same of a source that has its columns elsewhere."""
        return BoxSquare(self.step.moved(places))


@dataclass(frozen=True)
class MomentStep:
    """k: q in units of 2^21, rounded to the nearest, ties to even."""

    step: BoxStep

    def moved(self, places: Sequence[int]) -> MomentStep:
        """The same of a source that has its columns elsewhere."""
        return MomentStep(self.step.moved(places))


@dataclass(frozen=True)
class MomentSquare:
    """l = ⌊(m² − k²)/m⌋."""

    step: MomentStep
    reach: int

    def moved(self, places: Sequence[int]) -> MomentSquare:
        """The same of a source that has its columns elsewhere."""
        return MomentSquare(self.step.moved(places), self.reach)


@dataclass(frozen=True)
class MomentProduct:
    """p: k·k′ in units of 2^24, rounded to the nearest, ties to even."""

    first: MomentStep
    second: MomentStep

    def moved(self, places: Sequence[int]) -> MomentProduct:
        """The same of a source that has its columns elsewhere."""
        return MomentProduct(self.first.moved(places), self.second.moved(places))


Whole = BoxStep | BoxSquare | MomentStep | MomentSquare | MomentProduct


@dataclass(frozen=True)
class Summand:
    """What a record adds: a whole number (None: 1) if it has a value in all columns `recorded`."""

    number: Whole | None = None
    recorded: tuple[int, ...] = ()

    def moved(self, places: Sequence[int]) -> Summand:
        """The same of a source that has its columns elsewhere."""
        number = None if self.number is None else self.number.moved(places)
        return Summand(number, tuple(places[column] for column in self.recorded))


@dataclass(frozen=True, eq=False)
class CoderCell:
    """The code that a coder gives a column's value."""

    column: int
    coder: Coder

    @property
    def cells(self) -> int:
        """How many codes there are, with that of values in no cell."""
        return max(self.coder.size, self.coder.absent + 1)

    def moved(self, places: Sequence[int]) -> CoderCell:
        """The same of a source that has its columns elsewhere."""
        return CoderCell(places[self.column], self.coder)


@dataclass(frozen=True, eq=False)
class KeptCell:
    """1 if a record has a cell in each of some columns, else 0."""

    axes: tuple[CoderCell, ...]
    cells = 2

    def moved(self, places: Sequence[int]) -> KeptCell:
        """The same of a source that has its columns elsewhere."""
        return KeptCell(tuple(axis.moved(places) for axis in self.axes))


@dataclass(frozen=True)
class BlockCell:
    """Where a value lies in a window of a grid: 0 before it, then its blocks, then what is behind.

    A missing value lies at the grid's centre, or, with `drop`, in one more cell, the last.
    """

    column: int
    grid: UniformGrid
    first: int
    block_bits: int
    blocks: int
    drop: bool

    @property
    def cells(self) -> int:
        """How many there are."""
        return self.blocks + 2 + self.drop

    def place(self, code: int) -> int:
        """Where a cell of the grid lies."""
        return min(max(((code - self.first) >> self.block_bits) + 1, 0), self.blocks + 1)

    def moved(self, places: Sequence[int]) -> BlockCell:
        """The same of a source that has its columns elsewhere."""
        window = (self.first, self.block_bits, self.blocks)
        return BlockCell(places[self.column], self.grid, *window, self.drop)


RecordCell = CoderCell | KeptCell | BlockCell


class SumTable(NamedTuple):
    """Records by cells: how many there are in each, and what they add."""

    by: tuple[RecordCell, ...]
    sums: tuple[Summand, ...]

    def halves(self) -> tuple[SumTable, SumTable]:
        """Two tables of the same cells, each with half of the sums; `one_table` joins them."""
        middle = len(self.sums) // 2
        return SumTable(self.by, self.sums[:middle]), SumTable(self.by, self.sums[middle:])

    def moved(self, places: Sequence[int]) -> SumTable:
        """The same of a source that has its columns elsewhere."""
        return SumTable(
            tuple(cell.moved(places) for cell in self.by),
            tuple(each.moved(places) for each in self.sums),
        )


Tallied = dict[tuple[int, ...], tuple[int, ...]]
"""For the cells that have records: their number, and then the sums. It is data: never show it."""


@runtime_checkable
class Tallies(Protocol):
    """An accumulator whose work can be done by another engine."""

    def tallies(self) -> list[SumTable] | None:
        """What is to be added up, at least one; None if it cannot be said so."""

    def tallied(self, found: Sequence[Tallied]) -> Numbers:
        """The state of an accumulator for which that was found, as `absorb` takes it."""

    def absorb(self, state: Numbers) -> None:
        """Add what another one made alike held."""


def tallies_of(accumulator: object) -> list[SumTable] | None:
    """What an accumulator adds up, None if it does not say."""
    return accumulator.tallies() if isinstance(accumulator, Tallies) else None


def rows_of(found: Tallied) -> int:
    """All records of a table: each is in exactly one cell."""
    return sum(sums[0] for sums in found.values())


def one_table(parts: Sequence[Tallied]) -> Tallied:
    """What was found for the parts of a table; ValueError if they did not see the same records."""
    first, *others = parts
    for each in others:
        if {cell: sums[0] for cell, sums in each.items()} != {
            cell: sums[0] for cell, sums in first.items()
        }:
            raise ValueError("other records")
    return {
        cell: sum((each[cell][1:] for each in others), start=sums) for cell, sums in first.items()
    }


def box_summands(lattice: Lattice, drop: bool) -> tuple[Summand, ...] | None:
    """How many records count, and what they add to the sums of a box; None for other lattices.

    With `drop` only complete records count.
    """
    kernel, box = lattice.kernel(), lattice.plain_box
    if not isinstance(kernel, BoxKernel) or box is None or (drop and box.absent is not None):
        return None
    every = tuple(range(box.dim)) if drop else ()
    steps = [BoxStep(column, each) for column, each in enumerate(kernel.coordinates)]
    return (
        Summand(None, every),
        *(Summand(step, every) for step in steps),
        *(Summand(BoxSquare(step), every) for step in steps if kernel.squares),
        *(Summand(None, every or (step.column,)) for step in steps if kernel.counts),
    )
