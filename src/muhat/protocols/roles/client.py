"""What runs on a person's device: a record in, a message out, once.

The record is neither kept nor logged, and no error quotes it. A device answers a round once, and
of a protocol with several rounds those that keep the promise together: what another answer would
reveal is not in the promise. So a client has one message and no other, and the device's account
(`DeviceAccount`) has the messages of all clients there ever were on it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from muhat.protocols.roles.crowd import Seal, messages
from muhat.protocols.roles.device_account import AccountLike, as_account
from muhat.protocols.roles.record_values import one_record

if TYPE_CHECKING:
    from muhat.privacy import Privacy
    from muhat.protocols.roles.protocol import Protocol


class Client:
    """A device's side of one round, after the rounds of the same protocol it has answered.

    `account` is the device's: the user's own unless another is named. False keeps none, so that
    nothing but this object remembers what was answered. `sealed` is what becomes of a message
    before anybody else sees it, the account included.
    """

    def __init__(
        self,
        protocol: Protocol,
        answered: Iterable[Protocol] = (),
        account: AccountLike = None,
        sealed: Seal | None = None,
    ) -> None:
        before = tuple(answered)
        protocol.estimator.model.check_answered(protocol, before)
        self.protocol = protocol
        self._answered = {each.digest: each.randomizer.share for each in before}
        self._account = account
        self._sealed = sealed
        self._message: bytes | None = None

    @property
    def privacy(self) -> Privacy:
        """What a message promises about its record: see `Randomizer.privacy`."""
        return self.protocol.randomizer.privacy

    def randomize(self, record: Any) -> bytes:
        """The message of one record: a number, or one number a coordinate.

        A missing value (None, not-a-number, an infinity) becomes that coordinate of the domain's
        centre, and a record outside the domain is clipped to it.

        Asked again, for this record or another, by this client or by another one with the same
        account, it is the same message.
        """
        row = one_record(record, self.protocol.randomizer.record_dim)

        def make() -> bytes:
            (message,) = messages(self.protocol, row)
            return message if self._sealed is None else self._sealed(message)

        if self._message is None:
            account = as_account(self._account)
            if account is None and self.protocol.survey is not None:
                self.protocol.survey.require_open(time.time())
            self._message = (
                make() if account is None else account.answer(self.protocol, make, self._answered)
            )
        return self._message

    def __repr__(self) -> str:
        return f"Client(round {self.protocol.round}, {self.privacy.describe()})"
