"""The shuffler as a service: collects sealed reports, mixes them once, and hands them on.

Mixing is one transaction: the mixed batch is written, cut into parts and named, and the reports
that it was made of are erased. Nothing of a mix that was not written has left the process, so that
a shuffler that is killed before may mix again, and one that is killed after hands on what was
written. There is never a second order of the same reports that anybody has seen
(docs/proofs/services.md).

Parts are sent until the server has them, and again if it has lost them; then the server is told how
many reports there are, and answers with the next round, or that there is none.
"""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Iterable, Iterator

from muhat.errors import InvalidInput
from muhat.protocols.roles.collector import Collector
from muhat.protocols.roles.messages import write_messages
from muhat.protocols.roles.reading import read_round
from muhat.protocols.services.config import Setup, protocol_of
from muhat.protocols.services.sending import Response, Sender
from muhat.protocols.services.service import CLOSED, LOG, PAUSE, Reply, Service
from muhat.protocols.services.store import CLOSED as MIXED
from muhat.protocols.services.store import COLLECTING, FINISHED

PART_BYTES = 1 << 20
"""Of what is handed on at once, unless a single report is longer."""

LONGEST_PAUSE = 30.0


class ShufflerService(Service):
    """Between devices and server."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        config = setup.config
        assert config.forward_to is not None
        self._sender = Sender(config.forward_to, secret=setup.secret, ca=config.forward_ca)
        self._pause = PAUSE / 8

    async def stop(self) -> None:
        """End: see `Service`."""
        await super().stop()
        self._sender.close()

    def _collector(self) -> Collector:
        return self.round.shuffler()

    def _close(self, least: int) -> Reply:
        if self.kept.phase != COLLECTING:
            return CLOSED
        number, shuffler = self.kept.number, self.round.shuffler()
        shuffler.resume(self.store.reports(number))
        if self.users < least:
            return Reply(409, f"{self.users} of at least {least} users have answered")
        parts = list(parts_of(shuffler.mixed()))
        with self.store.transaction():
            self.store.keep_mixed(number, parts)
            self.store.mark(number, MIXED, batch=os.urandom(16).hex())
        self.store.tidy()
        self._reload()
        return Reply(200, f"closed with {self.users} users")

    async def _step(self) -> bool:
        if self.kept.phase == COLLECTING:
            if self.users < self.turnout:
                return False
            return (await self._do(self._close, self.turnout)).is_good
        return self.kept.phase == MIXED and await self._hand_on()

    async def _hand_on(self) -> bool:
        """The next part of the batch, or that these were all."""
        number, batch = self.kept.number, self.kept.batch
        part = await self._do(self.store.unsent, number)
        if part is not None:
            response = await self._post(f"/batches/{batch}/{part[0]}", part[1])
            if await self._is_good(response):
                await self._do(self.store.mark_sent, number, part[0], True)
            return True
        response = await self._post(f"/batches/{batch}/close", str(self.users).encode())
        if response is not None and response.status == 409:
            # The server has not got all of it, whatever it has said before.
            await self._do(self.store.mark_sent, number, None, False)
        if response is not None and response.status == 202:
            await asyncio.sleep(PAUSE / 8)
        elif await self._is_good(response):
            assert response is not None
            await self._do(self._follow, response.body)
        return True

    async def _post(self, path: str, body: bytes) -> Response | None:
        return await asyncio.to_thread(self._sender.once, "POST", path, body)

    async def _is_good(self, response: Response | None) -> bool:
        """Whether the server has it; if not, wait before it is tried again."""
        if response is not None and response.status < 300:
            self._pause = PAUSE / 8
            return True
        self.counts["not handed on"] += 1
        LOG.warning("the server %s", "is away" if response is None else f"says {response.status}")
        await asyncio.sleep(self._pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        return False

    def _follow(self, description: bytes) -> None:
        """What the server has after the round: another one, or nothing."""
        number = self.kept.number
        if description:
            following = protocol_of(read_round(description, signer=self.setup.config.signer))
            before = protocol_of(self.round)
            if (following.task, following.round) != (before.task, before.round + 1):
                raise InvalidInput("the server has another round than the next one.")
        with self.store.transaction():
            self.store.mark(number, FINISHED)
            self.store.erase_parts(number)
            if description:
                self.store.open_round(number + 1, description)
        self.store.tidy()
        self._reload()


def parts_of(messages: Iterable[bytes]) -> Iterator[bytes]:
    """Messages in their order, as in a file, some of them at a time."""
    part = io.BytesIO()
    for message in messages:
        if part.tell() and part.tell() + 4 + len(message) > PART_BYTES:
            yield part.getvalue()
            part = io.BytesIO()
        write_messages(part, [message])
    yield part.getvalue()
