"""A round is closed once, whichever process does it.

Messages that are mixed twice tell what came in between; a server that closes a round twice, with
other messages, has two results or two next rounds. So who closes a round notes it first: a file
that names the role and the round is created exclusively, durably, in one folder a user. Of any
number of processes one succeeds. A server may come to the same result again.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from muhat._user_folder import user_folder
from muhat.errors import InvalidInput
from muhat.protocols.randomizers.randomizer import Received
from muhat.protocols.roles.server import Server
from muhat.protocols.roles.shuffler import Shuffler
from muhat.stream.state import create, sync_folder


def close_server(server: Server, claims: str | os.PathLike[str] | None = None) -> None:
    """Note that this server closes its round; InvalidInput if other messages closed it before."""
    content = _digest(server.received())
    claim = _claim("server", server.protocol.digest, claims)
    if not _created(claim, content) and claim.read_bytes() != content:
        raise InvalidInput(
            "this round was closed already, with other messages: it has one result and no other. "
            f"{_noted(claim)}"
        )


def close_shuffler(shuffler: Shuffler, claims: str | os.PathLike[str] | None = None) -> None:
    """Note that this shuffler hands its round on; InvalidInput if one did before."""
    claim = _claim("shuffler", shuffler.protocol.digest, claims)
    if not _created(claim, b""):
        raise InvalidInput(
            "the messages of this round were mixed and handed on already: mixed again, they would "
            f"tell what came in between. {_noted(claim)}"
        )


def _created(claim: Path, content: bytes) -> bool:
    try:
        create(claim, content)
    except FileExistsError:
        return False
    except OSError as error:
        raise InvalidInput(f"{claim} cannot be made: {error.strerror}.") from None
    sync_folder(claim.parent)
    return True


def _claim(role: str, digest: str, claims: str | os.PathLike[str] | None) -> Path:
    hint = "Name another folder, the same for all who close a round: --claims FOLDER."
    folder = user_folder("rounds", "closed rounds are noted", hint) if claims is None else claims
    return Path(folder) / f"{role}-{digest}"


def _noted(claim: Path) -> str:
    return f"(Noted in {claim}. To ask the same again, give it a --survey.)"


def _digest(held: Received) -> bytes:
    """Of the set of messages, whatever order they came in."""
    return hashlib.sha256(held.nonces.tobytes() + held.payloads.tobytes()).digest()
