"""The server's side of one round: takes messages, and closes the round.

In the local model a message is private as it stands; a server keeps no secret.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muhat.errors import InvalidInput
from muhat.protocols.randomizers.randomizer import Received
from muhat.protocols.roles.collector import Collector

if TYPE_CHECKING:
    from muhat.protocols.roles.protocol import Protocol
    from muhat.release.release import Release


class Server(Collector):
    """Takes messages, and turns them into the next round or the result."""

    _state_begins = b"MHSERVER1"

    @property
    def _holds_sum(self) -> bool:
        return self.protocol.randomizer.adds_up

    def finish(self) -> Protocol | Release:
        """Close the round: the next round's description, or the result.

        Below the stated minimum of users there is neither.
        """
        planned, least = self.protocol.users, self.protocol.minimum
        held = self._opened()
        if held.users < least:
            raise InvalidInput(
                f"{held.users} of {planned} planned users have answered, and at least {least} "
                "are needed: nothing is released. Collect more messages first."
            )
        return self.protocol.estimator.after(self.protocol, held)

    def _opened(self) -> Received:
        """The messages that count."""
        return self.received()
