"""From a record to the whole numbers whose sums are wanted.

    domain   a point of a domain, in the coordinates in which noise has the same size everywhere,
             on a coarse grid: rounded up or down at random, so that sums of many have no bias
    tree     cells of a line: for every level of a tree, a one in the block that holds the cell

An encoding is public. What it proves is how far its numbers move if the record is replaced;
everything that happens before is exact arithmetic of integers. docs/proofs/shuffle-sums.md.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar, Protocol, Self

from muhat._arrays import Floats, Integers
from muhat.noise.entropy import Words, system_words
from muhat.protocols.randomizers.share_noise import Sensitivity

FINEST = 44
"""A record moves its numbers by at most so many binary digits: finer than any noise."""


class Encoding(Protocol):
    """A frozen dataclass that validates itself."""

    kind: ClassVar[str]

    @property
    def record_dim(self) -> int:
        """The number of coordinates of a record."""

    @property
    def sensitivity(self) -> Sensitivity:
        """How many numbers there are, and how far they move if a record is replaced."""

    @property
    def low(self) -> int:
        """The least that a number can be."""

    @property
    def high(self) -> int:
        """The largest that a number can be."""

    @property
    def unit(self) -> Fraction:
        """What a step is worth; the same whatever the resolution."""

    @property
    def rounding(self) -> float:
        """A bound on the variance that rounding adds to a person's number, in steps²."""

    def integers(self, records: Floats, words: Words = system_words) -> Integers:
        """The numbers of these records, of shape (people, numbers)."""

    def to_dict(self) -> dict[str, Any]:
        """The description, without its kind."""

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """The encoding described."""
