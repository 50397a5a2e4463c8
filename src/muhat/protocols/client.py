"""What runs on a person's device: a record in, a message out.

The record is neither kept nor logged, and no error quotes it. A device answers a round once: what
a second answer would reveal is not in the promise.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from muhat.errors import InvalidInput
from muhat.protocols.messages import fresh_nonces, pack
from muhat.protocols.randomizer import Floats

if TYPE_CHECKING:
    from muhat.privacy import Privacy
    from muhat.protocols.protocol import Protocol

MOST_VALUES = 1 << 20
"""Numbers randomised together: memory stays small however many records there are."""


class Client:
    """A device's side of one round."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol

    @property
    def privacy(self) -> Privacy:
        """What a message promises about its record: see `Randomizer.privacy`."""
        return self.protocol.randomizer.privacy

    def randomize(self, record: Any) -> bytes:
        """The message of one record: a number, or one number a coordinate.

        A missing value (None, not-a-number, an infinity) becomes that coordinate of the domain's
        centre, and a record outside the domain is clipped to it.
        """
        (message,) = self.randomize_many(_one(record))
        return message

    def randomize_many(self, records: Any) -> list[bytes]:
        """The messages of many records, one a row: for simulations and for gateways."""
        rows = _matrix(records, self.protocol.randomizer.record_dim)
        return [message for part in self._parts(rows) for message in self._messages(part)]

    def _messages(self, rows: Floats) -> list[bytes]:
        nonces = fresh_nonces(len(rows))
        payloads = self.protocol.randomizer.randomize(rows, nonces)
        return pack(self.protocol.label, nonces, payloads)

    def _parts(self, rows: Floats) -> Iterable[Floats]:
        size = max(1, MOST_VALUES // max(self.protocol.randomizer.payload_bytes, 1))
        for start in range(0, len(rows), size):
            yield rows[start : start + size]

    def __repr__(self) -> str:
        return f"Client(round {self.protocol.round}, {self.privacy.describe()})"


def _one(record: Any) -> Any:
    try:
        array = np.asarray(record, dtype=object)
    except ValueError:
        array = np.empty(0, object)
    if array.ndim > 1 or not array.size:
        raise InvalidInput("a record is a number, or a list with one number a coordinate.")
    return array.reshape(1, -1)


def _matrix(records: Any, dim: int) -> Floats:
    """The records as floats of shape (rows, dim); nothing of them is said if they are not."""
    try:
        rows = np.asarray(records, np.float64)
    except (TypeError, ValueError, OverflowError):
        rows = None
    if rows is None:
        # Raised outside the handler: numpy's message quotes the value.
        raise InvalidInput("a record is made of numbers; None stands for a missing one.")
    if rows.ndim == 1 and dim == 1:
        rows = rows[:, None]
    if rows.ndim != 2 or rows.shape[1] != dim:
        found = f"{rows.shape[1]} coordinates" if rows.ndim == 2 else f"{rows.ndim} dimensions"
        raise InvalidInput(f"a record must have {dim} coordinates; got records of {found}.")
    return rows
