"""What stands between devices and server in the shuffle model, and is trusted to mix.

A shuffler takes people's messages, each once, and hands all of them on, once, in an order that
says nothing of whose is whose. Of fragments it mixes each number's apart; a message of one piece
keeps its nonce, which is public. It must not work together with the server, and it sees what people
send, unless that is sealed for the server (`sealed_roles.py`).
"""

from __future__ import annotations

from collections import Counter

from muhat._arrays import Bytes
from muhat.errors import InvalidInput
from muhat.protocols.randomizers.randomizer import Received
from muhat.protocols.roles.collector import Collector
from muhat.protocols.roles.messages import Rejection, pack


class Shuffler(Collector):
    """Takes messages, and hands them on when nobody can tell any more whose is whose."""

    _state_begins = b"MHSHUFFLER1"
    _closed = False

    def mixed(self) -> list[bytes]:
        """All messages, mixed, for the server: once, and not below the minimum of users.

        The promise counts on that many people. Twice would tell what came in between: nothing is
        taken, saved or merged any more, and a state that was saved before must not be used again.
        """
        held = self._to_mix()
        planned, least = self.protocol.users, self.protocol.minimum
        if held.users < least:
            raise InvalidInput(
                f"{held.users} of {planned} planned users have answered, and at least {least} "
                "are needed to hide among: nothing is handed on."
            )
        self._closed = True
        self._nonces.clear()
        self._payloads.clear()
        nonces, payloads = self._mix(held)
        del held
        return pack(self._label, nonces, payloads)

    def _to_mix(self) -> Received:
        """The messages that count."""
        return self.received()

    def _mix(self, held: Received) -> tuple[Bytes, Bytes]:
        """Nonces and payloads in an order that says nothing of theirs."""
        return self.protocol.randomizer.mixed(held.nonces, held.payloads)

    def received(self) -> Received:
        """The messages, ordered by nonce, as long as they were not handed on."""
        self._require_open()
        return super().received()

    def _add(self, nonces: Bytes, payloads: Bytes, rejected: Counter[Rejection]) -> None:
        self._require_open()
        super()._add(nonces, payloads, rejected)

    def _require_open(self) -> None:
        if self._closed:
            raise InvalidInput("the messages of this round were mixed and handed on already.")
