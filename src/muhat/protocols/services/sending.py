"""What devices, shufflers and operators send with: HTTP of the standard library, and patience.

Whatever is sent may be sent again: services know the same bytes when they see them. So a request
that nobody has answered, or that a busy service put off, is repeated until its time is over.
"""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import os
import ssl
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import local
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from muhat._text import printable
from muhat.errors import InvalidInput
from muhat.protocols.roles.messages import LONGEST

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 5.0
TIMEOUT = 30.0
LONGEST_REASON = 200
BUSY = (408, 429, 500, 502, 503, 504)
"""What passes."""

TAKEN, KNOWN = 201, 200

CONNECTIONS = 16


@dataclass(frozen=True)
class Response:
    """What a service has answered."""

    status: int
    body: bytes
    retry_after: float = 0.0

    @property
    def words(self) -> str:
        """Its reason, for people."""
        said = self.body[: 4 * LONGEST_REASON].decode(errors="replace").strip()
        return printable(said)[:LONGEST_REASON]


class Sender:
    """One connection to a service at `to`, opened when it is needed; not for several threads.

    `ca` is a file of the authorities that vouch for the service, in place of the system's; with
    `pinned` it is the service's own certificate, whatever name it is for.
    """

    def __init__(
        self,
        to: str,
        *,
        secret: str | None = None,
        ca: str | None = None,
        pinned: bool = False,
        patience: float = 60.0,
    ) -> None:
        parts = urlsplit(to)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInput(f"{to} is not the address of a service: https://…")
        self.to, self._path = to, parts.path.rstrip("/")
        self._host = parts.hostname
        self._port = _port(to)
        self._secret = secret
        self._patience = patience
        self._context = _context(ca, pinned) if parts.scheme == "https" else None
        self._connection: http.client.HTTPConnection | None = None
        self._is_stranger = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def is_hidden(self) -> bool:
        """Whether nobody on the way reads along: TLS, or no way at all."""
        with contextlib.suppress(ValueError):
            if ipaddress.ip_address(self._host).is_loopback:
                return True
        return self._context is not None or self._host == "localhost"

    def description(self) -> bytes:
        """The round that the service collects now."""
        return self._expect(self.request("GET", "/round"), (200,)).body

    def send(self, report: bytes) -> bool:
        """A device's message or report, until it is on the service's disk; whether it was new."""
        if not self.is_hidden:
            raise InvalidInput(
                f"{self.to} is read by whoever is on the way, and a message that nobody has mixed "
                "must not be: use https://…"
            )
        response = self._expect(self.request("POST", "/reports", report), (TAKEN, KNOWN))
        return response.status == TAKEN

    def request(self, method: str, path: str, body: bytes = b"") -> Response:
        """What is answered in the end; InvalidInput if nobody answers for as long as is patient."""
        until, pause = time.monotonic() + self._patience, FIRST_PAUSE
        while True:
            response = self.once(method, path, body)
            if response is not None and response.status not in BUSY:
                return response
            if response is None and self._is_stranger:
                raise InvalidInput(
                    f"{self.to} shows a certificate for which nobody vouches whom this machine "
                    "knows; nothing was sent. Name its authority: --ca FILE"
                )
            # Those who were refused together do not come back together.
            wait = pause * (1 + os.urandom(1)[0] / 255) + (response.retry_after if response else 0)
            if time.monotonic() + wait > until:
                said = "does not answer" if response is None else f"says: {response.words}"
                raise InvalidInput(
                    f"{self.to} {said}. What was made is kept in the device's account, if it has "
                    "one; send it again later."
                )
            time.sleep(wait)
            pause = min(2 * pause, LONGEST_PAUSE)

    def once(self, method: str, path: str, body: bytes = b"") -> Response | None:
        """What is answered now; None if nothing is, or half of it."""
        headers = {"Content-Type": "application/octet-stream"}
        if self._secret is not None:
            headers["Authorization"] = f"Bearer {self._secret}"
        try:
            connection = self._connected()
            connection.request(method, self._path + path, body, headers)
            answer = connection.getresponse()
            found = answer.read(LONGEST + 1)
            if answer.will_close or not answer.isclosed():
                self.close()
            return Response(answer.status, found, _seconds(answer.getheader("Retry-After")))
        except (OSError, http.client.HTTPException) as error:
            self._is_stranger = isinstance(error, ssl.SSLCertVerificationError)
            self.close()
            return None

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is None:
            self._connection = (
                http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT)
                if self._context is None
                else http.client.HTTPSConnection(
                    self._host, self._port, timeout=TIMEOUT, context=self._context
                )
            )
        return self._connection

    def _expect(self, response: Response, statuses: tuple[int, ...]) -> Response:
        if response.status not in statuses:
            raise InvalidInput(f"{self.to} refuses ({response.status}): {response.words}")
        return response


def send_all(
    to: str, messages: Iterable[bytes], connections: int = CONNECTIONS, *, ca: str | None = None
) -> tuple[int, int]:
    """Send many people's messages, over several connections: how many are there, and were new."""
    own = local()
    opened: list[Sender] = []

    def send(message: bytes) -> bool:
        if not hasattr(own, "sender"):
            own.sender = Sender(to, ca=ca)
            opened.append(own.sender)
        return bool(own.sender.send(message))

    try:
        with ThreadPoolExecutor(connections) as pool:
            new = list(pool.map(send, messages))
    finally:
        for sender in opened:
            sender.close()
    return len(new), sum(new)


def _port(to: str) -> int | None:
    try:
        return urlsplit(to).port
    except ValueError:
        raise InvalidInput(f"{to} has no port that could be one.") from None


def _seconds(text: str | None) -> float:
    return min(float(text), LONGEST_PAUSE) if text is not None and text.isdecimal() else 0.0


def _context(ca: str | None, pinned: bool) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError):
        raise InvalidInput(f"{ca} is not a file of certificates.") from None
    if pinned:
        context.check_hostname = False
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context
