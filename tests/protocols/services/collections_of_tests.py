"""Collections that several tests set up: descriptions, keys and configurations in a folder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

import muhat as mh
from muhat import protocols
from muhat.protocols import Protocol, SealedProtocol, ServerKey, Signer
from muhat.protocols.roles.sealing_keys import write_secret
from muhat.protocols.services.config import SECRET_USE, ServiceConfig
from muhat.protocols.services.loopback import UNLIMITED

N = 20
PURE, APPROX = mh.PureDP(epsilon=1.0), mh.ApproxDP(epsilon=1.0, delta=1e-6)
BALL = mh.Ball(1.0, dim=2)
KEY = ServerKey(bytes(range(32)), "2999-01-01")
SIGNER = Signer(bytes(range(2, 34)))
KINDS = ("local", "single", "fragments")


@cache
def described(kind: str, n: int = N) -> Protocol:
    """A round of a few people: in the local model, of single messages, or of fragments."""
    asked = {"domain": BALL, "n": n, "minimum": n * 3 // 4}
    if kind == "local":
        return protocols.local_mean(**asked, privacy=PURE)
    most = 60 if kind == "single" else None
    return protocols.shuffle_mean(**asked, privacy=APPROX, most_bytes=most)


def reports_of(round_: Protocol | SealedProtocol, people: int) -> list[bytes]:
    dim = (round_.protocol if isinstance(round_, SealedProtocol) else round_).randomizer.record_dim
    return round_.crowd().randomize_many(np.full((people, dim), 0.3))


@dataclass(frozen=True)
class Collection:
    """The files of a collection, and its configurations."""

    folder: Path
    round: Protocol | SealedProtocol
    server: ServiceConfig
    shuffler: ServiceConfig | None

    @classmethod
    def of(cls, folder: Path, protocol: Protocol, *, sealed: bool = True, **changes):
        """Sealed in the shuffle model; `sealed=False` is for the local one."""
        folder.mkdir(exist_ok=True)
        config = ServiceConfig(
            description=str(folder / "description"),
            store=str(folder / "server"),
            limits=UNLIMITED,
            access_log=False,
        )
        if not sealed:
            (folder / "description").write_bytes(protocol.to_cbor())
            return cls(folder, protocol, replace(config, **changes), None)
        (folder / "description").write_bytes(SIGNER.signed(protocol, KEY.public))
        secrets = {"server.key": ("seal", KEY), "signer.key": ("sign", SIGNER)}
        for name, (use, secret) in secrets.items():
            fields = {"use": use, "secret": secret.secret.hex(), "expires": None}
            write_secret(
                folder / name, fields | ({"expires": KEY.expires} if use == "seal" else {})
            )
        config = replace(config, signer=SIGNER.public, key=str(folder / "server.key"))
        round_ = SealedProtocol(protocol, KEY.public)
        if not protocol.estimator.model.is_mixed:
            return cls(folder, round_, replace(config, **changes), None)
        write_secret(folder / "secret", {"use": SECRET_USE, "secret": "5e" * 32, "expires": None})
        config = replace(config, secret=str(folder / "secret"))
        shuffler = replace(
            config, store=str(folder / "shuffler"), key=None, forward_to="http://127.0.0.1:1"
        )
        return cls(folder, round_, config, replace(shuffler, **changes))
