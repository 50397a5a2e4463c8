"""What stands between devices and server in the shuffle model, and is trusted to mix.

A shuffler takes people's messages, each once, and hands all of them on in random order, once. Of
shares it mixes each number's apart; a message of one piece keeps its nonce, which is public. It
must not work together with the server, and it sees what people send: seal messages for the server
if it may not (threats.md).
"""

from __future__ import annotations

from collections.abc import Iterable

from muhat.errors import InvalidInput
from muhat.protocols.collector import Collector, Intake
from muhat.protocols.messages import fresh_nonces, pack
from muhat.protocols.mixing import mix, random_order, repacked
from muhat.protocols.share_randomizer import ShareRandomizer


class Shuffler(Collector):
    """Takes messages, and hands them on when nobody can tell any more whose is whose."""

    _closed = False

    def take(self, messages: Iterable[bytes] | bytes) -> Intake:
        """Take messages, one or many; none after they were mixed."""
        self._require_open()
        return super().take(messages)

    def mixed(self) -> list[bytes]:
        """All messages in random order, for the server: once, and not below the minimum of users.

        The promise counts on that many people. Twice would tell what came in between.
        """
        self._require_open()
        planned, least = self.protocol.users, self.protocol.minimum
        if self.users < least:
            raise InvalidInput(
                f"{self.users} of {planned} planned users have answered, and at least {least} "
                "are needed to hide among: nothing is handed on."
            )
        self._closed = True
        held, randomizer = self.received(), self.protocol.randomizer
        if isinstance(randomizer, ShareRandomizer):
            payloads = repacked(mix(held.payloads, randomizer), randomizer)
            return pack(self.protocol.label, fresh_nonces(held.users), payloads)
        order = random_order(held.users)
        return pack(self.protocol.label, held.nonces[order], held.payloads[order])

    def _require_open(self) -> None:
        if self._closed:
            raise InvalidInput("the messages of this round were mixed and handed on already.")
