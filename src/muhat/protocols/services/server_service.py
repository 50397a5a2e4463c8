"""The server as a service: collects messages, closes rounds, and publishes what comes of them.

In the local model devices send to it; in the shuffle model the shuffler does, part by part, and
says when these were all. A round that is closed stays closed, and its result follows from the
messages in the store alone: a server that is killed while it computes comes to the same one.

What comes after a round is the result, or another round. That one is published at once if it needs
no signature, or if the server has the signer (`sign_with`); else it waits for an operator to sign
it (`muhat protocol sign`, `muhat protocol publish`).
"""

from __future__ import annotations

import asyncio
import io

from muhat.errors import InvalidInput, MuhatError
from muhat.protocols.roles.collector import Collector
from muhat.protocols.roles.messages import Rejection, read_messages
from muhat.protocols.roles.protocol import Protocol
from muhat.protocols.roles.reading import read_round
from muhat.protocols.roles.sealed_protocol import SealedProtocol
from muhat.protocols.roles.server import Server
from muhat.protocols.services.config import Round, protocol_of
from muhat.protocols.services.service import CLOSED, KNOWN, TAKEN, Reply, Service
from muhat.protocols.services.store import CLOSED as COMPUTING
from muhat.protocols.services.store import COLLECTING, FAILED, FINISHED, UNSIGNED

WAIT = Reply(202, "the round is being computed, or waits for its signature")
OTHER_BATCH = Reply(403, "another batch of this round has begun")


class _Refused(Exception):
    """A part is not taken; nothing of it is."""


class ServerService(Service):
    """What publishes the result."""

    async def take(self, report: bytes) -> Reply:
        """Take a device's message, in the local model: see `Service`."""
        if self.setup.is_mixed:
            return Reply(404, "devices send to the shuffler")
        return await super().take(report)

    async def close(self) -> Reply:
        """Close a round of the local model: see `Service`."""
        if self.setup.is_mixed:
            return Reply(409, "the shuffler closes the round")
        return await super().close()

    async def take_part(self, batch: str, part: bytes) -> Reply:
        """Take a part of a mixed batch, from the shuffler."""
        answer = await self._do(self._take_part, batch, part)
        self.counts[f"part {answer.words}"] += 1
        return answer

    async def complete(self, batch: str, reports: int) -> tuple[Reply, bytes]:
        """The shuffler has handed on all of a batch: the next round, or empty bytes for none."""
        answer, following = await self._do(self._complete, batch, reports)
        self._due.set()
        return answer, following

    async def publish(self, description: bytes) -> Reply:
        """Open the next round, which an operator has signed."""
        try:
            return await self._do(self._publish, description)
        except InvalidInput as error:
            return Reply(409, str(error))

    def _collector(self) -> Collector:
        return self._server(self.round)

    def _server(self, round_: Round) -> Server:
        if not isinstance(round_, SealedProtocol):
            return round_.server()
        return self.setup.server(round_)

    def _close(self, least: int) -> Reply:
        if self.kept.phase != COLLECTING:
            return CLOSED
        if self.users < least:
            return Reply(409, f"{self.users} of at least {least} users have answered")
        with self.store.transaction():
            self.store.mark(self.kept.number, COMPUTING)
        self._reload()
        return Reply(200, f"closed with {self.users} users")

    async def _step(self) -> bool:
        if self.kept.phase == COLLECTING:
            if self.setup.is_mixed or self.users < self.turnout:
                return False
            return (await self._do(self._close, self.turnout)).is_good
        if self.kept.phase == COMPUTING:
            reports = await self._do(self.store.reports, self.kept.number)
            found = await asyncio.to_thread(self._result, reports)
            await self._do(self._keep, *found)
        return False

    def _result(self, reports: list[bytes]) -> tuple[str, bytes, bytes | None]:
        """What comes of a round: its phase, its result, and the next round for everybody."""
        server = self._server(self.round)
        server.resume(reports)
        try:
            result = server.finish()
        except MuhatError as error:
            return FAILED, str(error).encode(), None
        if not isinstance(result, Protocol):
            return FINISHED, result.to_json().encode(), None
        described = result.to_cbor()
        if not isinstance(self.round, SealedProtocol):
            return FINISHED, described, described
        if self.setup.signer is None:
            return UNSIGNED, described, None
        return FINISHED, described, self.setup.signer.signed(result, self.setup.keys[-1].public)

    def _keep(self, phase: str, result: bytes, following: bytes | None) -> None:
        with self.store.transaction():
            self.store.mark(self.kept.number, phase, result=result)
            if following is not None:
                self.store.open_round(self.kept.number + 1, following)
        self._reload()

    def _publish(self, description: bytes) -> Reply:
        if self.kept.phase != UNSIGNED:
            return Reply(409, "no round waits to be signed")
        following = read_round(description, signer=self.setup.config.signer)
        expected = read_round(self.kept.result or b"")
        if protocol_of(following).digest != protocol_of(expected).digest:
            return Reply(409, "this is not the round that comes next")
        self._server(following)
        self._keep(FINISHED, self.kept.result or b"", description)
        return Reply(200, f"round {self.kept.number} is open")

    def _take_part(self, batch: str, part: bytes) -> Reply:
        of_batch = self.store.of_batch(batch)
        if of_batch is not None and of_batch.phase != COLLECTING:
            return KNOWN
        if of_batch is None and self.kept.phase != COLLECTING:
            return CLOSED
        if of_batch is None and self.kept.batch is not None:
            return OTHER_BATCH
        try:
            with self.store.transaction():
                self.store.mark(self.kept.number, COLLECTING, batch=batch)
                for report in read_messages(io.BytesIO(part), self.round.bytes_per_user):
                    self._add(report)
        except _Refused as error:
            return Reply(400, str(error))
        finally:
            self._reload()
        return TAKEN

    def _add(self, report: bytes) -> None:
        """One report of a part; what is there already was sent again."""
        known = self.store.is_known(report)
        if known:
            return
        reason = self._judge.refusal(report)
        if reason is None and known is None:
            reason = Rejection.REPLAYED
        elif reason is None and self.users == self.protocol_users:
            reason = Rejection.FULL
        if reason is not None:
            raise _Refused(str(reason))
        self.store.add(self.kept.number, report)
        self.users += 1

    def _complete(self, batch: str, reports: int) -> tuple[Reply, bytes]:
        kept = self.store.of_batch(batch)
        if kept is None or (kept.phase == COLLECTING and self.users != reports):
            held = 0 if kept is None else self.users
            return Reply(409, f"{held} of {reports} reports are here"), b""
        if kept.phase == COLLECTING:
            answer = self._close(protocol_of(self.round).minimum)
            return (WAIT if answer.is_good else answer._replace(status=400)), b""
        if kept.phase in (COMPUTING, UNSIGNED):
            return WAIT, b""
        return Reply(200, "finished"), self.store.description(kept.number + 1)
