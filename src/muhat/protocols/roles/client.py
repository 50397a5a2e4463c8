"""What runs on a person's device: a record in, a message out.

The record is neither kept nor logged, and no error quotes it. A device answers a round once, and
of a protocol with several rounds those that keep the promise together: what another answer would
reveal is not in the promise.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat.data.memory import real_number
from muhat.errors import InvalidInput
from muhat.protocols.encodings.encoding import fresh_nonces
from muhat.protocols.roles.messages import pack

if TYPE_CHECKING:
    from muhat.privacy import Privacy
    from muhat.protocols.roles.protocol import Protocol

MOST_VALUES = 1 << 20
"""Numbers randomised together: memory stays small however many records there are."""

_NUMBERS = Real | Decimal | np.bool_ | None


class Client:
    """A device's side of one round, after the rounds of the same protocol it has answered."""

    def __init__(self, protocol: Protocol, answered: Iterable[Protocol] = ()) -> None:
        protocol.estimator.model.check_answered(protocol, answered)
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
        dim = self.protocol.randomizer.record_dim
        values = _numbers(record)
        if values.ndim > 1 or values.size != dim:
            shape = _shape(values)
            wanted = _numbers_in_words(dim)
            raise InvalidInput(f"a record must be {wanted}, one a coordinate; got {shape}.")
        (message,) = self._messages(values.reshape(1, dim))
        return message

    def randomize_many(self, records: Any) -> list[bytes]:
        """The messages of many records, one a row: for simulations and for gateways."""
        dim = self.protocol.randomizer.record_dim
        rows = _numbers(records)
        if rows.ndim == 1 and dim == 1:
            rows = rows[:, None]
        if rows.ndim != 2 or rows.shape[1] != dim:
            shape = _shape(rows)
            wanted = _numbers_in_words(dim)
            raise InvalidInput(
                f"must be rows of {wanted}, one a person", parameter="records", value=str(shape)
            )
        return [message for part in self._parts(rows) for message in self._messages(part)]

    def _messages(self, rows: Floats) -> list[bytes]:
        nonces = fresh_nonces(len(rows))
        payloads = self.protocol.randomizer.randomize(rows, nonces)
        return pack(self.protocol.label, nonces, payloads)

    def _parts(self, rows: Floats) -> Iterable[Floats]:
        randomizer = self.protocol.randomizer
        size = max(1, MOST_VALUES // max(randomizer.payload_bytes, randomizer.record_dim))
        for start in range(0, len(rows), size):
            yield rows[start : start + size]

    def __repr__(self) -> str:
        return f"Client(round {self.protocol.round}, {self.privacy.describe()})"


def _numbers(values: Any) -> Floats:
    """Numbers of any size as floats; types decide what is refused, and nothing is quoted."""
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidInput("a record must not be a masked array. Fill it: .filled(numpy.nan).")
    array = _array(values)
    if array is None or array.dtype.kind not in "fiubO":
        raise InvalidInput(_NO_NUMBERS)
    if array.dtype.kind != "O":
        # A warning would depend on the record.
        with np.errstate(all="ignore"):
            return array.astype(np.float64, copy=False)
    if not all(isinstance(value, _NUMBERS) for value in array.flat):
        raise InvalidInput(_NO_NUMBERS)
    floats = [real_number(value) for value in array.flat]
    return np.array(floats, np.float64).reshape(array.shape)


def _array(values: Any) -> NDArray[Any] | None:
    """The values as an array, or None: errors of numpy, and of what makes an array itself, may
    quote them.

    What is no array yet becomes one of objects, whether a value is missing or not.
    """
    try:
        return np.asarray(values, None if isinstance(values, np.ndarray) else object)
    except Exception:
        return None


def _numbers_in_words(dim: int) -> str:
    return "1 number" if dim == 1 else f"{dim} numbers"


def _shape(array: Floats) -> str:
    return "a single number" if not array.ndim else f"shape {array.shape}"


_NO_NUMBERS = "a record must be made of numbers; None stands for a missing one."
