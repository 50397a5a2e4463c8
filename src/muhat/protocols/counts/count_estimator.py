"""What quantiles and counts of ranges have in common, whoever is trusted with what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from muhat import _check
from muhat.privacy import Privacy
from muhat.protocols.encodings.equal_cells import EqualCells
from muhat.protocols.roles.protocol import Estimator, Protocol
from muhat.release.quantile_grids import AnyGrid, words

MOST_QUANTILES = 16


class CountEstimator(Estimator):
    """Something about where n people's numbers lie on a public grid."""

    if TYPE_CHECKING:  # fields

        @property
        def column(self) -> str:
            """What the number is called."""

    rounded: ClassVar[str]
    """What becomes of records before they are counted."""
    followed: ClassVar[str]
    """What a false message can do."""
    about: ClassVar[str]
    """What the people who answer have to do with the result."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", _check.count("n", self.n))
        self.model.promise(self.privacy)

    def false_answers(self, protocol: Protocol, people: int) -> str:
        """In words: see `Estimator`."""
        return self.followed

    def account(
        self, protocol: Protocol, people: int, kind: str, *assumptions: str
    ) -> dict[str, Any]:
        """What every result says, of so many people."""
        turnout = f"{people} of {protocol.users} planned users have answered; {self.about}"
        late = () if people == protocol.users else (turnout,)
        assumed = (*self.model.assumed(protocol), self.rounded, self.followed, *assumptions, *late)
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
    followed: ClassVar[str] = (
        "people follow the protocol: a false message can move a quantile further than a false "
        "record"
    )
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
    followed: ClassVar[str] = (
        "people follow the protocol: a false message can move a count further than a false record"
    )
    about: ClassVar[str] = "counts are of them"

    def describe(self) -> str:
        return f"the counts of {self.n} people's numbers in {self.grid.describe()}"


def checked_quantiles(q: float | Sequence[float]) -> float | tuple[float, ...]:
    """One quantile or several, each strictly between 0 and 1."""
    if isinstance(q, list | tuple | range) or (isinstance(q, np.ndarray) and q.ndim == 1):
        _check.count("the number of quantiles", len(q), most=MOST_QUANTILES)
        return tuple(_check.probability("q", one) for one in q)
    return _check.probability("q", q)
