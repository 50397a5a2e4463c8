"""A whole protocol over HTTP on this machine: the services as they are, at ports of the loopback.

For trying a deployment out: whoever runs it sees all records.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from muhat._arrays import Floats
from muhat._progress import Progress
from muhat.errors import InvalidInput
from muhat.protocols.roles.protocol import Protocol
from muhat.protocols.roles.reading import read_round
from muhat.protocols.roles.sealed_protocol import Signer
from muhat.protocols.roles.sealing_keys import ServerKey
from muhat.protocols.roles.simulation import parts
from muhat.protocols.services.config import (
    MOST_WAITING,
    Round,
    ServiceConfig,
    ServiceLimits,
    new_secret,
    protocol_of,
)
from muhat.protocols.services.running import running
from muhat.protocols.services.sending import Sender, send_all
from muhat.protocols.services.service import token_of
from muhat.release.release import Release

POLL = 0.02
UNLIMITED = ServiceLimits(per_second=MOST_WAITING, per_minute_and_address=0)


class Loopback:
    """Services of one protocol, each in a thread; `round` runs a round through them."""

    def __init__(self, folder: Path, collects: str, server: str, role: str) -> None:
        """For `opened`."""
        self._collects, self._server = collects, server
        self._signer: str | None = None
        self._operator = Sender(collects, secret=token_of(folder / role, role))
        self._reader = Sender(server)

    @classmethod
    @contextlib.contextmanager
    def opened(cls, protocol: Protocol) -> Iterator[Loopback]:
        """The services of a protocol's rounds, and keys for them, as long as this lasts."""
        with TemporaryDirectory(prefix="muhat-loopback-") as name, contextlib.ExitStack() as stack:
            folder, mixed = Path(name), protocol.estimator.model.is_mixed
            written = folder / "description"
            common: dict[str, Any] = {
                "description": str(written),
                "limits": UNLIMITED,
                "access_log": False,
            }
            server: dict[str, Any] = {}
            if mixed:
                key = ServerKey.create(folder / "server.key")
                signer = Signer.create(folder / "signer.key")
                new_secret(folder / "secret")
                written.write_bytes(signer.signed(protocol, key.public))
                common |= {"signer": signer.public, "secret": str(folder / "secret")}
                server = {
                    "key": str(folder / "server.key"),
                    "sign_with": str(folder / "signer.key"),
                }
            else:
                written.write_bytes(protocol.to_cbor())
            config = ServiceConfig(store=str(folder / "server"), **common, **server)
            address = collects = stack.enter_context(running("server", config))
            if mixed:
                config = ServiceConfig(store=str(folder / "shuffler"), forward_to=address, **common)
                collects = stack.enter_context(running("shuffler", config))
            made = cls(folder, collects, address, "shuffler" if mixed else "server")
            made._signer = common.get("signer")
            stack.callback(made._operator.close)
            stack.callback(made._reader.close)
            yield made

    def round(
        self, protocol: Protocol, people: Floats, group: Any, answered: list[Protocol]
    ) -> Protocol | Release:
        """Ask the people of a group; what the server makes of it."""
        crowd = self._awaited(protocol).crowd(answered)
        with Progress(len(group)) as progress:
            for part in parts(len(group)):
                send_all(self._collects, crowd.randomize_many(people[group[part]]))
                progress.advance(part.stop - part.start)
        # Who was planned may not be there; a round that is closed already stays so.
        self._operator.request("POST", "/close")
        while True:
            current = read_round(self._reader.description(), signer=self._signer)
            if protocol_of(current).round > protocol.round:
                return protocol_of(current)
            release = self._reader.request("GET", "/release")
            if release.status == 200:
                return Release.from_json(release.body.decode())
            if release.status == 409:
                raise InvalidInput(release.words)
            time.sleep(POLL)

    def _awaited(self, protocol: Protocol) -> Round:
        """The round as devices get it, as soon as it is open."""
        with Sender(self._collects) as sender:
            while True:
                round_ = read_round(sender.description(), signer=self._signer)
                if protocol_of(round_).digest == protocol.digest:
                    return round_
                time.sleep(POLL)
