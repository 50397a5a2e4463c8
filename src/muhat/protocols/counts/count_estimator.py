"""What quantiles and counts of ranges have in common, whoever is trusted with what."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from muhat import _check
from muhat.data.grids import UniformGrid
from muhat.privacy import Privacy
from muhat.protocols.encodings.equal_cells import EqualCells
from muhat.protocols.encodings.range_cells import Coordinates
from muhat.protocols.estimators.false_messages import FOLLOWED, moved_count, not_caught
from muhat.protocols.estimators.range_choice import best_ranges
from muhat.protocols.estimators.range_errors import prefix_variance
from muhat.protocols.randomizers.range_randomizer import RangeRandomizer
from muhat.protocols.roles.protocol import Estimator, Protocol
from muhat.release.quantile_grids import AnyGrid, words

MOST_QUANTILES = 16

LOCAL_CELLS = 1 << 10
"""Unless a step is given, the local model's grid has no more: finer ones would cost accuracy."""


class CountEstimator(Estimator):
    """Something about where n people's numbers lie on a public grid."""

    if TYPE_CHECKING:  # fields

        @property
        def column(self) -> str:
            """What the number is called."""

        @property
        def grid(self) -> AnyGrid | EqualCells:
            """Where numbers lie."""

    rounded: ClassVar[str]
    """What becomes of records before they are counted."""
    counted: ClassVar[str]
    """What a false message moves."""
    local: ClassVar[str]
    """What asks for it in the local model."""
    ends: ClassVar[int]
    """How many numbers of people up to some value that is the difference of."""
    about: ClassVar[str]
    """What the people who answer have to do with the result."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", _check.count("n", self.n))
        self.model.promise(self.privacy)

    def false_answers(self, protocol: Protocol, people: int) -> str:
        """Of the round's randomizer, an answer or fragments: see `Estimator`."""
        asked = protocol.randomizer
        if isinstance(asked, RangeRandomizer):
            return FOLLOWED + self._moved(asked, people)
        local = local_answers(min(self.grid.cells, LOCAL_CELLS), self.privacy)
        error = self.ends * ranks_off(local, people)
        off = f"({self.local}) its standard error is about {error:.3g} people"
        return not_caught(self.counted, f"{off}, and {self._moved(local, people)}")

    def _moved(self, asked: RangeRandomizer, people: int) -> str:
        return moved_count(self.ends * asked.false_step(people), people, self.counted)

    def account(
        self, protocol: Protocol, people: int, kind: str, *assumptions: str
    ) -> dict[str, Any]:
        """What every result says, of so many people."""
        turnout = f"{people} of {protocol.users} planned users have answered; {self.about}"
        late = () if people == protocol.users else (turnout,)
        followed = self.false_answers(protocol, people)
        assumed = (*self.model.assumed(protocol), self.rounded, followed, *assumptions, *late)
        return {
            "columns": (self.column,),
            "mechanism": f"{self.model.name}-{kind}",
            "n": people,
            "contributions": 1,
            "assumptions": assumed,
        }


@dataclass(frozen=True)
class QuantileEstimator(CountEstimator):
    """Which quantiles of a number over n people, on a public grid."""

    q: float | tuple[float, ...]
    grid: AnyGrid
    privacy: Privacy
    n: int
    column: str = "0"

    rounded: ClassVar[str] = (
        "records outside the bounds are clipped to them and all are rounded to the grid, a missing "
        "one to its middle; ranks are about these records"
    )
    counted: ClassVar[str] = "the number of people up to any value"
    local: ClassVar[str] = "local_quantile"
    ends: ClassVar[int] = 1
    about: ClassVar[str] = "ranks are among them"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "q", checked_quantiles(self.q))

    @property
    def fractions(self) -> tuple[float, ...]:
        """The quantiles that were asked for, one or more."""
        return self.q if isinstance(self.q, tuple) else (self.q,)

    def describe(self) -> str:
        asked = ", ".join(f"{fraction:g}" for fraction in self.fractions)
        several = "s" * (len(self.fractions) > 1)
        return f"the quantile{several} {asked} of {self.n} people's numbers, {words(self.grid)}"


@dataclass(frozen=True)
class RangesEstimator(CountEstimator):
    """The counts of equal cells, and of all ranges of them, over n people."""

    grid: EqualCells
    privacy: Privacy
    n: int
    column: str = "0"

    rounded: ClassVar[str] = (
        "records outside the bounds are clipped to them, a missing one counts as their middle; "
        "counts are about these records"
    )
    counted: ClassVar[str] = "the count of any range"
    local: ClassVar[str] = "local_ranges"
    ends: ClassVar[int] = 2
    about: ClassVar[str] = "counts are of them"

    def describe(self) -> str:
        return f"the counts of {self.n} people's numbers in {self.grid.describe()}"


@lru_cache(maxsize=64)
def local_answers(cells: int, promise: Privacy) -> RangeRandomizer:
    """What devices of the local model run for so many cells."""
    return best_ranges(Coordinates(1), UniformGrid(0.0, cells - 1.0, 1.0), promise)


def ranks_off(asked: RangeRandomizer, people: int) -> float:
    """The largest standard error of the number of people up to a cell, if they lie evenly."""
    cells, messages = asked.grid.cells, people * asked.mix.chances
    even = np.full(cells, 1 / cells)
    found = prefix_variance(asked.tree, asked.mix, asked.response, messages, even)
    return people * math.sqrt(found.max())


def checked_quantiles(q: float | Sequence[float]) -> float | tuple[float, ...]:
    """One quantile or several, each strictly between 0 and 1."""
    if isinstance(q, list | tuple | range) or (isinstance(q, np.ndarray) and q.ndim == 1):
        _check.count("the number of quantiles", len(q), most=MOST_QUANTILES)
        return tuple(_check.probability("q", one) for one in q)
    return _check.probability("q", q)
