"""How far off the estimated number of people in a range of cells is, for any range.

    answers   the local model: everybody's answer is about some levels of a tree of cells
    blocks    the shuffle model: noisy counts of blocks of cells, put together by least squares

A spread is public, and complete: whoever has it and the counts can say how good every range is.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from muhat import _check
from muhat._arrays import Floats, Integers
from muhat._plain import Key, Plain
from muhat.errors import InvalidInput
from muhat.protocols.encodings.range_levels import CellTree, LevelMix
from muhat.protocols.estimators.block_tree import BlockTree
from muhat.protocols.estimators.range_errors import range_variance
from muhat.protocols.randomizers.fragment_noise import LAWS
from muhat.protocols.randomizers.frequency import SubsetResponse


class RangeSpread(Plain, ABC, tag="kind"):
    """What is known about the errors of the counts of ranges."""

    kind: ClassVar[str]

    if TYPE_CHECKING:  # a field of some

        @property
        def law(self) -> str:
            """That of the noise of a count."""

    @property
    @abstractmethod
    def cells(self) -> int:
        """How many there are."""

    @abstractmethod
    def errors(self, starts: Integers, ends: Integers) -> Floats:
        """The standard error of the number of people in the cells from starts to ends − 1."""


@dataclass(frozen=True)
class AnswerSpread(
    RangeSpread,
    keys=(
        "mix",
        Key("chosen", "response.chosen"),
        Key("epsilon", "response.epsilon"),
        "messages",
        Key("shares", "density"),
    ),
):
    """Answers about sets of levels, and the parts of the people that they are taken to be about.

    `messages` is how many there are about each set of the mix. The variance is exact for the
    `density`, one a cell; those in a result are estimates themselves.
    """

    mix: LevelMix
    response: SubsetResponse
    messages: tuple[float, ...]
    density: tuple[float, ...]

    kind: ClassVar[str] = "answers"
    law: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        fits = self.tree.levels == self.mix.levels and self.mix.bits == self.response.bits
        if not fits or len(self.messages) != len(self.mix.sets):
            raise InvalidInput("the answers' levels, sets and cells do not belong together.")
        if not min(*self.messages, *self.density) >= 0:
            raise InvalidInput("messages and density must not be below 0.")

    @property
    def tree(self) -> CellTree:
        """The cells as leaves."""
        return CellTree(len(self.density))

    @property
    def cells(self) -> int:
        return len(self.density)

    def errors(self, starts: Integers, ends: Integers) -> Floats:
        """The standard error of the number of people in the cells from starts to ends − 1.

        Where nobody has told anything it is everybody.
        """
        messages, density = np.array(self.messages), np.array(self.density)
        variance = range_variance(
            self.tree, self.mix, self.response, messages, density, starts, ends
        )
        parts_off = np.where(np.isfinite(variance), np.sqrt(variance), 1.0)
        return np.asarray(messages.sum() * parts_off)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """The spread described."""
        mix = LevelMix.from_dict(fields["mix"])
        return cls(
            mix,
            SubsetResponse(mix.bits, fields["chosen"], fields["epsilon"]),
            tuple(_check.real("messages", each) for each in fields["messages"]),
            tuple(_check.real("a part of the people", each) for each in fields["shares"]),
        )


@dataclass(frozen=True)
class BlockSpread(
    RangeSpread,
    keys=(Key("cells", "tree.cells"), Key("sizes", "tree.sizes"), "variance", "law"),
):
    """Blocks of several sizes, each count of which has noise of this law and this variance."""

    tree: BlockTree
    variance: float
    law: str

    kind: ClassVar[str] = "blocks"

    def __post_init__(self) -> None:
        _check.one_of("law", self.law, LAWS)
        _check.positive("variance", self.variance)

    @property
    def cells(self) -> int:
        return self.tree.cells

    def errors(self, starts: Integers, ends: Integers) -> Floats:
        return np.sqrt(self.variance * self.tree.variance(starts, ends))

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """The spread described."""
        cells = _check.count("cells", fields["cells"], least=2)
        sizes = tuple(_check.count("a size", size, most=cells) for size in fields["sizes"])
        return cls(BlockTree(cells, sizes), fields["variance"], fields["law"])


COARSE = 1.25
"""Standard errors, in people, below which noise is mostly none or one person."""


def reach(law: str, confidence: float, errors: Floats) -> Floats:
    """How far estimates with these standard errors are off with this probability, at most.

    Sums of many people's noise are normal. Laplace noise is one draw for a count, and its tails
    are longer: a sum of several such draws is between the two, so the longer reach is taken. It is
    of whole people: half a person is allowed for that, and a whole one if most of it is none.
    """
    outside = 1 - _check.probability("confidence", confidence)
    normal = NormalDist().inv_cdf(1 - outside / 2)
    if law != "laplace":
        return normal * errors
    longer = max(normal, -math.log(outside) / math.sqrt(2))
    return longer * errors + np.where(errors < COARSE, 1.0, 0.5)
