"""What both services do: take reports, each once, and move a round on when it is time.

A report waits in a queue of bounded length until one thread, which alone has the store, writes all
that have come meanwhile in one transaction; then their senders are told. Whatever was told is on
the disk, and whatever was not told may be sent again.

    taken         new, and written                                             201
    known         the same bytes were written before, in this round or another 200
    refused       no message of this round, or late: never, in this round      400, 409, 410
    busy          too many wait, or the disk is full: later                    503
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, TypeVar

from muhat.errors import InvalidInput
from muhat.protocols.roles.collector import Collector
from muhat.protocols.roles.messages import Rejection
from muhat.protocols.roles.reading import read_round
from muhat.protocols.roles.sealed_protocol import SealedProtocol
from muhat.protocols.roles.sealing_keys import read_secret, write_secret
from muhat.protocols.services.config import Setup, protocol_of
from muhat.protocols.services.store import COLLECTING, Store

LOG = logging.getLogger("muhat.protocols.services")

OPERATE = "operate a service"
AT_ONCE = 4096
"""Reports that are written together."""

PAUSE = 1.0
"""Before something that has failed is tried again, in seconds."""

Result = TypeVar("Result")


class Reply(NamedTuple):
    """What a sender is told: a status of HTTP, and the reason."""

    status: int
    words: str

    @property
    def is_good(self) -> bool:
        """Whether what was sent counts."""
        return self.status < 300


TAKEN = Reply(201, "taken")
KNOWN = Reply(200, "taken before")
BUSY = Reply(503, "too many reports wait to be written")
NOT_WRITTEN = Reply(503, "the report cannot be written now")
CLOSED = Reply(410, "the round is closed")
_OTHER_ROUND = (Rejection.PROTOCOL, Rejection.ROUND, Rejection.REPLAYED, Rejection.FULL)


def refused(reason: Rejection) -> Reply:
    """Why a report is not taken."""
    return Reply(409 if reason in _OTHER_ROUND else 400, str(reason))


class Service(ABC):
    """One role of one collection, with its store; opened by the constructor."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.limits = setup.config.limits
        folder = Path(setup.config.store)
        self.store = Store(folder, setup.role, setup.description)
        self.counts: Counter[str] = Counter()
        self._token = token_of(folder, setup.role, new=True)
        self._waiting: deque[tuple[bytes, asyncio.Future[Reply]]] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="muhat-store")
        self._tasks: list[asyncio.Task[None]] = []
        self.kept = self.store.current()
        self.users = self.store.users(self.kept.number)
        self._read_round()

    @property
    def protocol_users(self) -> int:
        """How many people the round is planned for."""
        return protocol_of(self.round).users

    @property
    def turnout(self) -> int:
        """With how many reports the round is closed."""
        return self.setup.turnout(self.round)

    @property
    def queued(self) -> int:
        """How many reports wait to be written."""
        return len(self._waiting)

    def is_operator(self, token: str) -> bool:
        """Whether somebody has shown what is in the store's folder."""
        return hmac.compare_digest(token.encode(), self._token.encode())

    def is_shuffler(self, secret: str) -> bool:
        """Whether somebody has shown what shuffler and server have in common."""
        known = self.setup.is_mixed and self.setup.secret
        return bool(known) and hmac.compare_digest(secret.encode(), str(known).encode())

    async def start(self) -> None:
        """Go on where the store is."""
        self._arrived, self._due = asyncio.Event(), asyncio.Event()
        self._due.set()
        self._tasks = [asyncio.create_task(self._write()), asyncio.create_task(self._work())]

    async def stop(self) -> None:
        """End; what was told is in the store."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._thread.shutdown()
        self.store.close()

    async def take(self, report: bytes) -> Reply:
        """Take a report; the answer comes when it is on the disk."""
        if len(self._waiting) >= self.limits.waiting:
            answer = BUSY
        else:
            future = asyncio.get_running_loop().create_future()
            self._waiting.append((report, future))
            self._arrived.set()
            answer = await future
        self.counts[answer.words] += 1
        return answer

    async def close(self) -> Reply:
        """Close the round now, for its operator; never below the minimum."""
        answer = await self._do(self._close, protocol_of(self.round).minimum)
        self._due.set()
        return answer

    @abstractmethod
    def _collector(self) -> Collector:
        """The role of the round, which has taken nothing yet."""

    @abstractmethod
    def _close(self, least: int) -> Reply:
        """Close the round if at least so many have answered; in the store's thread."""

    @abstractmethod
    async def _step(self) -> bool:
        """Do what the phase asks for; whether there is something left to do now."""

    async def _do(self, job: Callable[..., Result], *arguments: object) -> Result:
        """Run in the thread that has the store."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, job, *arguments)

    async def _write(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                # They stay in the queue while they are written: they wait until they are told.
                batch = [self._waiting[at] for at in range(min(AT_ONCE, len(self._waiting)))]
                answers = await self._do(self._take_all, [report for report, _ in batch])
                for (_, future), answer in zip(batch, answers, strict=True):
                    self._waiting.popleft()
                    if not future.done():
                        future.set_result(answer)
                if self.users >= self.turnout:
                    self._due.set()

    async def _work(self) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            try:
                if await self._step():
                    self._due.set()
            except Exception as error:  # what it says may quote what was sent
                LOG.error("%s: %s; tried again", self.setup.role, type(error).__name__)
                await asyncio.sleep(PAUSE)
                self._due.set()

    def _take_all(self, reports: list[bytes]) -> list[Reply]:
        before = self.users
        try:
            with self.store.transaction():
                return [self._take_one(report) for report in reports]
        except Exception as error:  # whatever it is, nobody was told yet
            LOG.error("%s: the store fails: %s", self.setup.role, type(error).__name__)
            self.users = before
            return [NOT_WRITTEN] * len(reports)

    def _take_one(self, report: bytes) -> Reply:
        known = self.store.is_known(report)
        if known:
            return KNOWN
        reason = self._judge.refusal(report)
        if reason is not None:
            return refused(reason)
        if known is None:
            return refused(Rejection.REPLAYED)
        if (late := self._late()) is not None:
            return late
        if self.users == self.protocol_users:
            return refused(Rejection.FULL)
        marks = self._judge.marks(report)
        if not self.store.are_new(marks):
            # Of copies the first counts: a changed one must not take the place of what it copies.
            return refused(Rejection.REPLAYED)
        self.store.add(self.kept.number, report, marks)
        self.users += 1
        return TAKEN

    def _late(self) -> Reply | None:
        """Why nothing new is taken any more, if so."""
        survey = protocol_of(self.round).survey
        try:
            if survey is not None:
                survey.require_open(time.time())
            if isinstance(self.round, SealedProtocol):
                self.round.key.require_valid()
        except InvalidInput as error:
            return Reply(410, str(error))
        return None if self.kept.phase == COLLECTING else CLOSED

    def _reload(self) -> None:
        """What the store says now."""
        before, self.kept = self.kept, self.store.current()
        self.users = self.store.users(self.kept.number)
        if before.description != self.kept.description:
            self._read_round()

    def _read_round(self) -> None:
        self.round = read_round(self.kept.description, signer=self.setup.config.signer)
        self._judge = self._collector()


def token_of(folder: Path, role: str, *, new: bool = False) -> str:
    """What an operator shows to a service, in the folder of its store; made if it may be."""
    path = folder / f"{role}.token"
    if new:
        try:
            return str(read_secret(path, OPERATE)["secret"])
        except InvalidInput:
            # There is none yet, or half of one that was being written when its service was killed.
            path.unlink(missing_ok=True)
        write_secret(path, {"use": OPERATE, "secret": os.urandom(32).hex(), "expires": None})
    return str(read_secret(path, OPERATE)["secret"])
