"""A statistic by groups that nobody knew, of which none was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat.release.answer import CONFIDENCE, Answer, read_common
from muhat.release.display import MOST_ROWS


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NoGroups(Answer):
    """What was asked for by the columns `by`, for which no groups came out: `failure` says why."""

    statistic: str
    name: str
    by: tuple[str, ...]

    schema: ClassVar[str] = "muhat.no-groups/1"
    groups: ClassVar[tuple[()]] = ()

    @property
    def value(self) -> Floats:
        """None, of shape (0,)."""
        return np.zeros(0)

    @property
    def called(self) -> str:
        """What it is."""
        return f"a {self.statistic} of no groups"

    @property
    def heading(self) -> str:
        """The words that it was asked in."""
        return self.name

    def rows(self, most: int = MOST_ROWS) -> list[list[str]]:
        """A header."""
        return [[*self.by, "value"]]

    def table(self, confidence: float = CONFIDENCE) -> dict[str, NDArray[Any]]:
        """The columns of the groups, without a line."""
        return {**{name: np.zeros(0, object) for name in self.by}, "value": self.value}

    def notes(self) -> list[str]:
        """Why there are none."""
        return [f"There are no groups; the promise is spent. The reason: {self.failure}."]

    def to_dict(self) -> dict[str, Any]:
        return {
            "statistic": self.statistic,
            "name": self.name,
            "by": list(self.by),
            "value": [],
            "failure": self.failure,
            **self._common(),
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        return cls(
            statistic=str(fields["statistic"]),
            name=str(fields["name"]),
            by=tuple(map(str, fields["by"])),
            failure=str(fields["failure"]),
            **read_common(fields),
        )
