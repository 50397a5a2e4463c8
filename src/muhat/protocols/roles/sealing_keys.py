"""The server's key, to which devices seal what nobody else may read: HPKE, RFC 9180.

    X25519, HKDF-SHA256, AES-128-GCM      in base mode, a single shot a piece

all of it from pyca/cryptography (extra `protocol`). A key has an id, which is a digest of it, and
may have an end, from which on devices seal nothing to it; a server that has opened what was sealed
until then deletes it. A new round may have a new key.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from muhat._plain import MALFORMED
from muhat.errors import InvalidInput
from muhat.ledger.store import OWNERS
from muhat.protocols.roles.survey import moment, moment_text

KEY_BYTES = 32
ENCAPSULATED_BYTES = 32
OVERHEAD = ENCAPSULATED_BYTES + 16
"""What a sealed piece is longer than the piece: an encapsulated key before it, a tag after it."""

SCHEMA = "muhat.key/1"


@dataclass(frozen=True)
class SealingKey:
    """The public half, as descriptions carry it.

    `public` are the 32 bytes of X25519; `expires` is as in `Survey`.
    """

    public: bytes
    expires: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.public, bytes) or len(self.public) != KEY_BYTES:
            raise InvalidInput(f"a key must have {KEY_BYTES} bytes.")
        if self.expires is not None:
            object.__setattr__(self, "expires", moment_text(moment(self.expires)))

    @property
    def id(self) -> str:
        """The first bytes of the key's SHA-256."""
        return hashlib.sha256(self.public).hexdigest()[:16]

    def require_valid(self) -> None:
        """Refuse a key that has ended."""
        if self.expires is not None and time.time() >= moment(self.expires):
            raise InvalidInput(f"the key {self.id} ended at {self.expires}; ask for a new one.")

    def seal(self, piece: bytes, info: bytes) -> bytes:
        """The piece for the owner of the key alone, and for no other use than `info` says."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

        sealed: bytes = suite().encrypt(piece, X25519PublicKey.from_public_bytes(self.public), info)
        return sealed

    def to_dict(self) -> dict[str, Any]:
        """As JSON, in a signed description."""
        return {"public": self.public.hex(), "expires": self.expires}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> SealingKey:
        """The key described."""
        return cls(bytes.fromhex(fields["public"]), fields["expires"])


@dataclass(frozen=True, repr=False)
class ServerKey:
    """The private half, in a file of its owner's alone: `create`, `open`."""

    secret: bytes
    expires: str | None = None

    @classmethod
    def new(cls, expires: str | None = None) -> ServerKey:
        """A key that no file has."""
        suite()  # what is lacking is said in our words
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        return cls(X25519PrivateKey.generate().private_bytes_raw(), expires)

    @classmethod
    def create(cls, path: str | os.PathLike[str], *, expires: str | None = None) -> ServerKey:
        """A new key in a new file; an existing one is left alone."""
        made = cls.new(expires)
        _ = made.public  # what is wrong with `expires` is said before there is a file
        write_secret(Path(path), {"use": "seal", "secret": made.secret.hex(), "expires": expires})
        return made

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> ServerKey:
        """The key in a file."""
        fields = read_secret(Path(path), "seal")
        return cls(bytes.fromhex(fields["secret"]), fields["expires"])

    @cached_property
    def public(self) -> SealingKey:
        """What devices need."""
        return SealingKey(self._private.public_key().public_bytes_raw(), self.expires)

    def unseal(self, sealed: bytes, info: bytes) -> bytes | None:
        """The piece, or None if it is for another key or another use, or not what was sealed."""
        from cryptography.exceptions import InvalidTag

        try:
            piece: bytes = suite().decrypt(sealed, self._private, info)
        except (InvalidTag, ValueError):
            return None
        return piece

    @cached_property
    def _private(self) -> Any:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        return X25519PrivateKey.from_private_bytes(self.secret)

    def __repr__(self) -> str:
        return f"ServerKey({self.public.id})"


def suite() -> Any:
    """The one suite there is."""
    try:
        from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
    except ImportError:
        raise InvalidInput(
            "sealing and signing need cryptography 47 or newer: pip install 'muhat[protocol]'."
        ) from None
    return Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)


def write_secret(path: Path, fields: dict[str, Any]) -> None:
    """A secret in a new file for its owner alone, on the disk when this returns."""
    text = json.dumps({"schema": SCHEMA, **fields})
    try:
        opened = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNERS)
    except FileExistsError:
        raise InvalidInput(f"{path} exists already; a key is never overwritten.") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be created: {error.strerror}.") from None
    with os.fdopen(opened, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def read_secret(path: Path, use: str) -> dict[str, Any]:
    """What a file of `write_secret` says, if the key is for this use; nothing is quoted."""
    try:
        fields: dict[str, Any] = json.loads(path.read_text("utf-8"))
        whole = len(bytes.fromhex(fields["secret"])) == KEY_BYTES and "expires" in fields
        if fields["schema"] == SCHEMA and fields["use"] == use and whole:
            return fields
    except OSError:
        raise InvalidInput(f"{path} cannot be read.") from None
    except MALFORMED:
        pass
    raise InvalidInput(f"{path} is not the file of a key to {use} with.")
