"""Several things asked of everybody in one round, each for its share of the promise.

Every part has fragments and noise of its own, and is mixed on its own; a device sends all parts in
one message. Parts compose as rounds do: their shares of the promise add up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Bytes, Floats
from muhat.errors import InvalidInput
from muhat.noise.entropy import Words, system_words
from muhat.privacy import ApproxDP
from muhat.protocols.randomizers.fragment_randomizer import FragmentRandomizer, Mixed

MOST_PARTS = 8


@dataclass(frozen=True)
class JointRandomizer(Mixed):
    """Sums of mixed fragments, a few of them at once."""

    parts: tuple[FragmentRandomizer, ...]

    kind: ClassVar[str] = "joint"

    def __post_init__(self) -> None:
        if not 1 <= len(self.parts) <= MOST_PARTS:
            raise InvalidInput(f"a round must have from 1 to {MOST_PARTS} parts.")
        if len({part.record_dim for part in self.parts}) > 1:
            raise InvalidInput("all parts of a round must be about records of the same dimension.")
        if len({part.privacy for part in self.parts}) > 1 or self.share > 1:
            raise InvalidInput("the parts of a round must share one promise.")

    @property
    def record_dim(self) -> int:
        return self.parts[0].record_dim

    @property
    def payload_bytes(self) -> int:
        """Those of all parts, one after the other."""
        return sum(part.payload_bytes for part in self.parts)

    @property
    def messages(self) -> int:
        """The fragments of all parts."""
        return sum(part.messages for part in self.parts)

    @property
    def privacy(self) -> ApproxDP:
        """What mixed messages promise, together with other rounds: see `FragmentRandomizer`."""
        return self.parts[0].privacy

    def randomize(self, records: Floats, nonces: Bytes, words: Words = system_words) -> Bytes:
        """The fragments of every part: see `Randomizer`."""
        return np.concatenate(
            [part.randomize(records, nonces, words) for part in self.parts], axis=1
        )

    def valid(self, payloads: Bytes) -> NDArray[np.bool_]:
        """Those that are valid in every part: see `Randomizer`."""
        found = [part.valid(payload) for part, payload in self.split(payloads)]
        return np.asarray(np.logical_and.reduce(found))

    def to_dict(self) -> dict[str, Any]:
        """The description: see `Randomizer`. All parts are of one kind, which is not repeated."""
        parts = [part.to_dict() for part in self.parts]
        for part in parts:
            del part["kind"]
        return {"kind": self.kind, "parts": parts}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """The randomizer described; InvalidInput if it does not keep its promise."""
        parts = ({**part, "kind": FragmentRandomizer.kind} for part in fields["parts"])
        return cls(tuple(FragmentRandomizer.from_dict(part) for part in parts))
