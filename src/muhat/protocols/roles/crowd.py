"""Many people's devices in one process, one a record: for simulations, and for gateways.

None of them keeps an account. Whoever stands in for people's devices must see to it that nobody
is asked twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from muhat._arrays import Floats
from muhat.protocols.encodings.encoding import fresh_nonces
from muhat.protocols.roles.messages import pack
from muhat.protocols.roles.record_values import many_records

if TYPE_CHECKING:
    from muhat.privacy import Privacy
    from muhat.protocols.roles.protocol import Protocol

MOST_VALUES = 1 << 21
"""Numbers randomised together: memory stays small however many records there are."""


Seal = Callable[[bytes], bytes]


class Crowd:
    """The devices of many people in one round, all of which have answered the same rounds."""

    def __init__(
        self,
        protocol: Protocol,
        answered: Iterable[Protocol] = (),
        sealed: Seal | None = None,
    ) -> None:
        protocol.estimator.model.check_answered(protocol, answered)
        self.protocol = protocol
        self._sealed = sealed

    @property
    def privacy(self) -> Privacy:
        """What a message promises about its record: see `Randomizer.privacy`."""
        return self.protocol.randomizer.privacy

    def randomize_many(self, records: Any) -> list[bytes]:
        """The messages of many people's records, one a row; of each as `Client.randomize`."""
        rows = many_records(records, self.protocol.randomizer.record_dim)
        made = (message for part in self._parts(rows) for message in messages(self.protocol, part))
        return list(made if self._sealed is None else map(self._sealed, made))

    def _parts(self, rows: Floats) -> Iterator[Floats]:
        randomizer = self.protocol.randomizer
        size = max(1, MOST_VALUES // max(randomizer.payload_bytes, randomizer.record_dim))
        for start in range(0, len(rows), size):
            yield rows[start : start + size]

    def __repr__(self) -> str:
        return f"Crowd(round {self.protocol.round}, {self.privacy.describe()})"


def messages(protocol: Protocol, rows: Floats) -> list[bytes]:
    """New messages of these records, one a row of shape (people, record_dim)."""
    nonces = fresh_nonces(len(rows))
    payloads = protocol.randomizer.randomize(rows, nonces)
    return pack(protocol.label, nonces, payloads)
