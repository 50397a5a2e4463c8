"""What one person's device does with a record, as everybody sees it.

A randomizer is public: it can be written down in JSON and made again from it. It turns a record,
any record, into a payload of a fixed number of bytes, and keeps its promise about that record
alone, whatever everybody else does. What the payloads of many people tell together is for the
estimators that use it.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat.noise.entropy import Words, system_words
from muhat.noise.spread import Spread
from muhat.privacy import Privacy

Bytes = NDArray[np.uint8]

NONCE_BYTES = 16
"""Random bytes of a message that tell it from all others and say nothing about the record."""


class Randomizer(Protocol):
    """A frozen dataclass that validates itself; everything in it is public."""

    kind: ClassVar[str]
    """What JSON calls it."""

    @property
    def record_dim(self) -> int:
        """The number of coordinates of a record."""

    @property
    def payload_bytes(self) -> int:
        """How long a payload is."""

    @property
    def messages(self) -> int:
        """How many messages a payload is for the server: 1, or its shares if they are mixed."""

    @property
    def privacy(self) -> Privacy:
        """What a message promises about its record, against any other record in its place."""

    def randomize(self, records: Floats, nonces: Bytes, words: Words = system_words) -> Bytes:
        """The payloads of these records, one a person.

        Args:
            records: shape (rows, record_dim); a coordinate that is not finite is missing, and a
                record outside the domain is clipped to it.
            nonces: shape (rows, NONCE_BYTES): uniform, public, independent of the records.
            words: where the secret randomness comes from.

        Returns:
            Shape (rows, payload_bytes).
        """

    def valid(self, payloads: Bytes) -> NDArray[np.bool_]:
        """Which payloads, shape (rows, payload_bytes), this randomizer could have made."""

    def to_dict(self) -> dict[str, Any]:
        """The description, without its kind."""

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """The randomizer described; InvalidInput if it is not well described."""


class MeanRandomizer(Randomizer, Protocol):
    """A randomizer whose messages, together, estimate the mean of the records without bias."""

    def mean(self, nonces: Bytes, payloads: Bytes) -> Floats:
        """The estimate from valid messages, of shape (record_dim,)."""

    def spread(self, n: int) -> Spread:
        """A bound on the noise of the mean of n messages, known in advance; treated as normal.

        Every diagonal entry and the trace of its covariance bound those of the covariance given
        the records, whatever records of the domain they are.
        """

    def covariance(self, n: int) -> Floats:
        """That of `spread(n)`, of shape (d, d)."""

    def expected_error(self, n: int) -> float:
        """The square root of the trace of `covariance(n)`: at most this root mean square error."""
