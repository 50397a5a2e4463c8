"""How a service is set up: a file in TOML, all of which is checked before anything is opened.

    description = "signed.json"     # the first round, as everybody gets it
    signer = "signer.pub"           # whose signature is trusted, if it is signed: 64 hexadecimal
                                    # digits, or a file that has them
    store = "collected"             # a folder of the service's own
    host = "0.0.0.0"
    port = 8443
    turnout = 9500                  # when the round is closed; all planned users unless stated
    key = "server.key"              # the server, if reports are sealed
    further_keys = ["second.key"]   # the server: of rounds after the first; it signs with the last
    sign_with = "signer.key"        # the server, if it may sign further rounds itself
    secret = "forward.key"          # what shuffler and server know each other by
    forward_to = "https://…"        # the shuffler: where the server is
    forward_ca = "ca.pem"           # … and who vouches for it, if not the system's authorities
    origins = ["https://…"]         # of web pages whose devices may answer
    access_log = true

    [tls]
    certificate = "certificate.pem"
    key = "private.pem"

    [limits]
    waiting = 1000                  # reports that wait to be written; beyond that: 503
    per_second = 2000               # requests of all together; beyond that: 429
    per_minute_and_address = 120    # 0 is no limit, for a service behind a proxy
    seconds = 10                    # for a request to arrive; then 408

Files are found from the folder of the configuration.
"""

from __future__ import annotations

import os
import re
import ssl
import tomllib
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from muhat import _check
from muhat._plain import Plain
from muhat.errors import InvalidInput
from muhat.protocols.roles.messages import LONGEST
from muhat.protocols.roles.protocol import Protocol
from muhat.protocols.roles.reading import read_round
from muhat.protocols.roles.sealed_protocol import SealedProtocol, Signer
from muhat.protocols.roles.sealed_roles import SealedServer
from muhat.protocols.roles.sealing_keys import ServerKey, read_secret, write_secret

Role = Literal["shuffler", "server"]
Round = Protocol | SealedProtocol

SECRET_USE = "know a shuffler by"
MOST_WAITING = 1 << 20
_HEX = re.compile("[0-9a-fA-F]{64}")


@dataclass(frozen=True)
class Tls(Plain):
    """Files in PEM."""

    certificate: str
    key: str


@dataclass(frozen=True)
class ServiceLimits(Plain):
    """What a service takes at most."""

    waiting: int = 1000
    per_second: int = 2000
    per_minute_and_address: int = 120
    seconds: int = 10

    def __post_init__(self) -> None:
        for name in ("waiting", "per_second", "seconds"):
            _check.count(name, getattr(self, name), most=MOST_WAITING)
        if self.per_minute_and_address:
            _check.count("per_minute_and_address", self.per_minute_and_address, most=MOST_WAITING)


@dataclass(frozen=True)
class ServiceConfig(Plain):
    """What a service is told; `checked` looks at all of it."""

    description: str
    store: str
    signer: str | None = None
    host: str = "127.0.0.1"
    port: int = 0
    turnout: int | None = None
    key: str | None = None
    further_keys: tuple[str, ...] = ()
    sign_with: str | None = None
    secret: str | None = None
    forward_to: str | None = None
    forward_ca: str | None = None
    origins: tuple[str, ...] = ()
    access_log: bool = True
    tls: Tls | None = None
    limits: ServiceLimits = field(default_factory=ServiceLimits)

    @classmethod
    def read(cls, path: str | Path) -> ServiceConfig:
        """The configuration in a file, with files found from its folder."""
        try:
            fields = tomllib.loads(Path(path).read_text("utf-8"))
        except (OSError, UnicodeDecodeError):
            raise InvalidInput(f"{path} cannot be read.") from None
        except tomllib.TOMLDecodeError as error:
            raise InvalidInput(f"{path} is not TOML: {error}.") from None
        try:
            found = cls.from_dict(fields)
        except InvalidInput as error:
            raise InvalidInput(f"{path}: {error}") from None
        return found._from(Path(path).absolute().parent)

    def _from(self, folder: Path) -> ServiceConfig:
        def place(name: str | None) -> str | None:
            return None if name is None else str(folder / name)

        signer = self.signer
        if signer is not None and not _HEX.fullmatch(signer):
            try:
                signer = (folder / signer).read_text("utf-8").strip()
            except (OSError, UnicodeDecodeError):
                raise InvalidInput(f"{folder / signer} cannot be read.") from None
        tls = self.tls and Tls(str(folder / self.tls.certificate), str(folder / self.tls.key))
        named = ("description", "store", "key", "sign_with", "secret", "forward_ca")
        placed: dict[str, Any] = {name: place(getattr(self, name)) for name in named}
        further = tuple(str(folder / name) for name in self.further_keys)
        return replace(self, tls=tls, signer=signer, further_keys=further, **placed)

    def checked(self, role: Role) -> Setup:
        """Everything that the files hold; InvalidInput for what is missing or too much."""
        try:
            with open(self.description, "rb") as file:
                description = file.read(LONGEST + 1)
        except OSError:
            raise InvalidInput(f"{self.description} cannot be read.") from None
        round_ = read_round(description, signer=self.signer)
        setup = Setup(role, self, description, round_)
        setup.check()
        return setup


@dataclass(frozen=True)
class Setup:
    """A configuration whose files were read."""

    role: Role
    config: ServiceConfig
    description: bytes
    first: Round

    @property
    def is_mixed(self) -> bool:
        """Whether there is a shuffler."""
        return protocol_of(self.first).estimator.model.is_mixed

    @cached_property
    def keys(self) -> tuple[ServerKey, ...]:
        """The server's, if reports are sealed: that of the first round, and further ones."""
        first = () if self.config.key is None else (self.config.key,)
        return tuple(map(ServerKey.open, (*first, *self.config.further_keys)))

    def server(self, round_: SealedProtocol) -> SealedServer:
        """What opens the reports of a round, with the key that they are sealed to."""
        fitting = (each for each in self.keys if each.public.public == round_.key.public)
        return round_.server(next(fitting, self.keys[0]))

    @cached_property
    def signer(self) -> Signer | None:
        """Who signs further rounds, if the server may."""
        return None if self.config.sign_with is None else Signer.open(self.config.sign_with)

    @cached_property
    def secret(self) -> str:
        """What the shuffler shows to the server."""
        assert self.config.secret is not None
        return str(read_secret(Path(self.config.secret), SECRET_USE)["secret"])

    def turnout(self, round_: Round) -> int:
        """When a round is closed: of later ones the same part as of the first, rounded up."""
        first, users = protocol_of(self.first), protocol_of(round_).users
        wanted = first.users if self.config.turnout is None else self.config.turnout
        return max(-(-wanted * users // first.users), protocol_of(round_).minimum)

    def describe(self) -> str:
        """What the service is for, in a line."""
        first = protocol_of(self.first)
        closed = f"closed at {self.turnout(self.first)} of {first.users} users"
        if self.is_mixed and self.role == "server":
            closed = f"at most {first.users} users, closed by the shuffler"
        return (
            f"A {self.role} in the {first.model} model: {self.first.bytes_per_user} bytes a "
            f"report, {closed}, never below {first.minimum}."
        )

    def check(self) -> None:
        """Refuse what does not fit together."""
        config, protocol = self.config, protocol_of(self.first)
        if protocol.round != 1:
            raise InvalidInput("a collection begins with a first round, and this is another one.")
        if self.is_mixed and not isinstance(self.first, SealedProtocol):
            raise InvalidInput(
                "in the shuffle model reports must be sealed, or the shuffler reads the records: "
                "sign the description and a key (muhat protocol sign)."
            )
        if not 0 <= config.port < 1 << 16:
            raise InvalidInput("must be between 0 and 65535", parameter="port")
        if config.turnout is not None:
            _check.count("turnout", config.turnout, most=protocol.users)
            if config.turnout < protocol.minimum:
                raise InvalidInput(
                    f"must be at least the minimum of users, {protocol.minimum}",
                    parameter="turnout",
                    value=str(config.turnout),
                )
        if config.tls is not None:
            self.tls_context()
        self._check_role()

    def _check_role(self) -> None:
        config, shuffles = self.config, self.role == "shuffler"
        if shuffles and not self.is_mixed:
            raise InvalidInput("the local model has no shuffler: devices speak to the server.")
        needed = {
            "forward_to": shuffles,
            "secret": self.is_mixed,
            "key": not shuffles and isinstance(self.first, SealedProtocol),
        }
        idle = {
            "forward_ca": not shuffles,
            "sign_with": not needed["key"],
            "further_keys": not needed["key"],
            "turnout": self.is_mixed and not shuffles,
        }
        for name, wanted in needed.items():
            if (getattr(config, name) is not None) != wanted:
                rule = "is needed" if wanted else "must be left out"
                raise InvalidInput(f"{name} {rule} for this {self.role}.")
        for name, useless in idle.items():
            if useless and getattr(config, name):
                raise InvalidInput(f"{name} must be left out for this {self.role}.")
        if self.is_mixed:
            _ = self.secret
        if isinstance(self.first, SealedProtocol) and self.keys:
            self.server(self.first)
        if self.signer is not None and self.signer.public != config.signer:
            raise InvalidInput("sign_with must be the file of the signer that devices trust.")

    def tls_context(self) -> ssl.SSLContext:
        """What the service shows to devices."""
        assert self.config.tls is not None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.config.tls.certificate, self.config.tls.key)
        except (OSError, ssl.SSLError):
            raise InvalidInput(
                "the certificate and the key of [tls] cannot be read, or do not belong together."
            ) from None
        return context


def protocol_of(round_: Round) -> Protocol:
    """The round as it is without seals."""
    return round_.protocol if isinstance(round_, SealedProtocol) else round_


def new_secret(path: str | os.PathLike[str]) -> None:
    """What a shuffler and a server know each other by, in a new file."""
    fields = {"use": SECRET_USE, "secret": os.urandom(32).hex(), "expires": None}
    write_secret(Path(path), fields)
