"""A round whose reports are sealed, as devices get it: a description and a key, signed.

The signature (Ed25519) is over

    "muhat.signed/2\n" and the CBOR of {"description": …, "key": …},

where the description is the bytes of the protocol and the key the server's, and what is sent is the
CBOR of both, the schema and the signature (docs/wire.md). A device is given the signer beforehand
(it pins it), and takes nothing that somebody else has signed: nobody on the way can put another
key, another promise or another number of people in its place.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from muhat import _cbor
from muhat.errors import InvalidInput
from muhat.protocols.roles.client import Client
from muhat.protocols.roles.crowd import Crowd
from muhat.protocols.roles.device_account import AccountLike
from muhat.protocols.roles.protocol import Protocol, require_short
from muhat.protocols.roles.sealed_reports import Reports
from muhat.protocols.roles.sealed_roles import SealedServer, SealedShuffler
from muhat.protocols.roles.sealing_keys import (
    SealingKey,
    ServerKey,
    read_secret,
    suite,
    write_secret,
)
from muhat.release.answer import read_fields

SCHEMA = "muhat.signed/2"


@dataclass(frozen=True)
class SealedProtocol:
    """One round, and the key that its reports are sealed to.

    >>> import muhat as mh
    >>> from muhat import protocols
    >>> ball, promise = mh.Ball(1.0, dim=2), mh.ApproxDP(1.0, 1e-6)
    >>> round1 = protocols.shuffle_mean(domain=ball, n=20, privacy=promise)
    >>> key, signer = ServerKey.new(), Signer.new()
    >>> public = signer.signed(round1, key.public)         # for everybody
    >>> sealed = SealedProtocol.from_signed(public, signer=signer.public)
    >>> shuffler, server = sealed.shuffler(), sealed.server(key)
    >>> _ = shuffler.take(sealed.crowd().randomize_many([[0.1, 0.2]] * 20))
    >>> _ = server.take(shuffler.mixed())
    >>> server.finish().n
    20
    """

    protocol: Protocol
    key: SealingKey

    @classmethod
    def from_signed(cls, data: bytes, *, signer: str) -> SealedProtocol:
        """What signed bytes say, if they were signed by `signer`, in hexadecimal: InvalidInput."""
        pinned = _public_key(signer)
        require_short(data)

        def build(fields: dict[str, Any]) -> SealedProtocol:
            from cryptography.exceptions import InvalidSignature

            try:
                if fields.keys() != _FIELDS:
                    raise InvalidInput("a signed description has four fields and no others.")
                signed = _signed_bytes(fields["description"], fields["key"])
                pinned.verify(fields["signature"], signed)
            except InvalidSignature:
                raise InvalidInput(
                    f"the description was not signed by {signer[:16]}…, or was changed since."
                ) from None
            key = SealingKey.from_dict(fields["key"])
            return cls(Protocol.from_cbor(fields["description"]), key)

        return read_fields(_cbor.read(data), [SCHEMA], "the CBOR of a signed protocol", build)

    @cached_property
    def reports(self) -> Reports:
        """What devices send."""
        return Reports(self.protocol, self.key)

    @property
    def bytes_per_user(self) -> int:
        """What a device sends in this round."""
        return self.reports.report_bytes

    def client(self, answered: Iterable[Protocol] = (), *, account: AccountLike = None) -> Client:
        """A device whose message is a sealed report: see `Protocol.client`."""
        self.key.require_valid()
        return Client(self.protocol, answered, account, self.reports.seal)

    def crowd(self, answered: Iterable[Protocol] = ()) -> Crowd:
        """Many devices: see `Protocol.crowd`."""
        self.key.require_valid()
        return Crowd(self.protocol, answered, self.reports.seal)

    def shuffler(self) -> SealedShuffler:
        """What mixes reports that it cannot read."""
        return SealedShuffler(self.reports)

    def server(self, key: ServerKey, state: bytes | None = None) -> SealedServer:
        """What opens them, from the beginning or from a saved state."""
        made = SealedServer(self.reports, key)
        return made if state is None else made.restore(state)

    def describe(self) -> str:
        """The round in words, and what is sealed."""
        until = "" if self.key.expires is None else f", until {self.key.expires}"
        sent = f"{self.reports.report_bytes} bytes, each piece for key {self.key.id} alone{until}"
        return f"{self.protocol.describe()}\n  sealed       {sent}"


@dataclass(frozen=True, repr=False)
class Signer:
    """Who vouches for descriptions; the secret is in a file of its owner's alone."""

    secret: bytes

    @classmethod
    def new(cls) -> Signer:
        """A signer that no file has."""
        suite()
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return cls(Ed25519PrivateKey.generate().private_bytes_raw())

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> Signer:
        """A new signer in a new file; an existing one is left alone."""
        made = cls.new()
        write_secret(Path(path), {"use": "sign", "secret": made.secret.hex(), "expires": None})
        return made

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Signer:
        """The signer in a file."""
        return cls(bytes.fromhex(read_secret(Path(path), "sign")["secret"]))

    @property
    def public(self) -> str:
        """What devices pin, in hexadecimal."""
        return str(self._private.public_key().public_bytes_raw().hex())

    def signed(self, protocol: Protocol, key: SealingKey) -> bytes:
        """A round and its key for everybody; what was answered is the same task as before."""
        description, said = protocol.to_cbor(), key.to_dict()
        signature = self._private.sign(_signed_bytes(description, said))
        fields = {"schema": SCHEMA, "description": description, "key": said}
        return _cbor.written({**fields, "signature": signature})

    @cached_property
    def _private(self) -> Any:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self.secret)

    def __repr__(self) -> str:
        return f"Signer({self.public[:16]}…)"


_FIELDS = {"schema", "description", "key", "signature"}


def is_signed(fields: object) -> bool:
    """Whether what was read says that it is signed; by whom is another question."""
    return isinstance(fields, dict) and fields.get("schema") == SCHEMA


def _signed_bytes(description: object, key: object) -> bytes:
    return f"{SCHEMA}\n".encode() + _cbor.written({"description": description, "key": key})


def _public_key(signer: str) -> Any:
    suite()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        return Ed25519PublicKey.from_public_bytes(bytes.fromhex(signer))
    except (TypeError, ValueError):
        raise InvalidInput(
            "must be the 64 hexadecimal digits of a signer's public key", parameter="signer"
        ) from None
