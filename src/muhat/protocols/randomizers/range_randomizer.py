"""One byte of a person about where a number of theirs lies on a public grid.

    number of the record → cell of the grid → leaf of the tree → bucket (public hash of the nonce)
        → set of buckets (`SubsetResponse`)

All but the last step are public functions of the record, found in floats or not; the last one is
exactly ε-DP about the bucket. docs/proofs/local-ranges.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from muhat import privacy
from muhat._arrays import Bytes, Floats, Integers
from muhat._plain import Key
from muhat.data.grids import UniformGrid
from muhat.errors import InvalidInput
from muhat.noise.entropy import Words, system_words
from muhat.privacy import Privacy
from muhat.protocols.encodings.range_cells import RangeLook, drawn_numbers
from muhat.protocols.encodings.range_levels import CellTree, LevelMix
from muhat.protocols.randomizers.frequency import SubsetResponse
from muhat.protocols.randomizers.randomizer import PrivateAlone
from muhat.protocols.randomizers.range_promise import kept
from muhat.release.quantile_grids import AnyGrid, RelativeGrid, read_grid

MOST_NODES = 1 << 26

UNLUCKY = 1e-9
"""How often the nonces of honest people speak of some level less than is counted on."""


@dataclass(frozen=True)
class RangeRandomizer(
    PrivateAlone,
    keys=(
        "look",
        "grid",
        "privacy",
        "mix",
        Key("chosen", "response.chosen"),
        Key("epsilon", "response.epsilon"),
    ),
):
    """Answers about the cells of `grid` that the numbers `look` of a record lie in.

    Numbers beyond the grid go to its ends; a missing coordinate goes to the middle cell, or counts
    as the public centre of `look`. `best_ranges` finds the mix of levels and the answers with the
    least error.
    """

    look: RangeLook
    grid: AnyGrid
    privacy: Privacy
    mix: LevelMix
    response: SubsetResponse

    kind: ClassVar[str] = "ranges"
    payload_bytes: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not isinstance(self.grid, UniformGrid | RelativeGrid):
            raise InvalidInput("grid must be a UniformGrid or a RelativeGrid.")
        if self.look.numbers << self.tree.levels > MOST_NODES:
            raise InvalidInput(
                f"{self.look.numbers} numbers on {self.grid.cells} cells are too many to estimate; "
                f"their product must be at most {MOST_NODES}."
            )
        if self.mix.levels != self.tree.levels:
            raise InvalidInput(
                f"the mix must be about the {self.tree.levels} levels of a tree of "
                f"{self.grid.cells} cells; got {self.mix.levels}."
            )
        if self.mix.bits != self.response.bits:
            raise InvalidInput("the sets of levels must be as large as the buckets have bits.")
        if not kept(self.privacy, self.mix, self.response):
            raise InvalidInput(
                f"epsilon {self.response.epsilon:g} is too large for {self.privacy.describe()}."
            )

    @cached_property
    def tree(self) -> CellTree:
        """The cells of the grid as leaves."""
        return CellTree(self.grid.cells)

    @property
    def record_dim(self) -> int:
        return self.look.dim

    def cells(self, records: Floats, nonces: Bytes) -> Integers:
        """The cell of the number that each message is about, of shape (rows,)."""
        numbers = self.look.values(records, drawn_numbers(self.look, nonces))
        return np.where(np.isnan(numbers), self.grid.middle, self.grid.codes(numbers))

    def randomize(self, records: Floats, nonces: Bytes, words: Words = system_words) -> Bytes:
        """One byte for each record: see `Randomizer`."""
        leaves = self.tree.leaves(self.cells(records, nonces))
        return self.response.respond(self.mix.buckets(leaves, nonces), words)[:, None]

    def false_step(self, n: int) -> float:
        """How many of n people one false message moves the number up to any value by at most.

        Nonces tell who speaks about which levels, so it rests on those of the others: in one round
        of a billion they are so uneven that it is more. Infinite if n is too small to say.
        """
        mix, response = self.mix, self.response
        square = mix.chances @ np.square(mix.characters)
        lack = np.sqrt(2 * (n - 1) * square * np.log(mix.levels / UNLUCKY))
        told = (n - 1) * mix.averages - lack
        if not (told > 0).all() or not response.attenuation > 0:
            return np.inf
        loudest = np.abs(response.characters[:, 1:]).max() / response.attenuation
        return float(2 * n * loudest * (mix.characters / told).sum(axis=1).max())

    def valid(self, payloads: Bytes) -> NDArray[np.bool_]:
        """Sets that there are: see `Randomizer`."""
        return np.asarray((payloads < self.response.answers).all(axis=1))

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """The randomizer described."""
        try:
            mix = LevelMix.from_dict(fields["mix"])
            return cls(
                RangeLook.from_dict(fields["look"]),
                read_grid(fields["grid"]),
                privacy.from_dict(fields["privacy"]),
                mix,
                SubsetResponse(mix.bits, fields["chosen"], fields["epsilon"]),
            )
        except (KeyError, TypeError, AttributeError, IndexError):
            raise InvalidInput("the randomizer is not well described.") from None
