"""A protocol as everybody sees it: one round, what each device is asked, and what is known so far.

A description is public and complete: a device needs nothing else to answer, and can check what it
is promised before it does. It is JSON for people, and deterministic CBOR for programs: the bytes
that are hashed, signed and sent (`muhat._cbor`, docs/wire.md), whichever form it came in.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

from muhat import _cbor, _check, privacy
from muhat._plain import MALFORMED, Plain
from muhat._text import joined
from muhat.errors import InvalidInput, MuhatError
from muhat.privacy import Neighbors, Privacy, cautions
from muhat.protocols.randomizers.randomizer import Randomizer, Received
from muhat.protocols.roles.client import Client
from muhat.protocols.roles.crowd import Crowd
from muhat.protocols.roles.device_account import AccountLike
from muhat.protocols.roles.messages import HEADER_BYTES, LONGEST, label
from muhat.protocols.roles.model import Model, Turnout
from muhat.protocols.roles.server import Server
from muhat.protocols.roles.shuffler import Shuffler
from muhat.protocols.roles.survey import Survey
from muhat.release.answer import Answer, read_fields, read_json
from muhat.release.release import Release

SCHEMA = "muhat.protocol/2"
"""The meaning of an existing field never changes; a new meaning is a new schema."""

MOST_ROUNDS = 250
MOST_USERS = 1 << 32


class Estimator(Plain, ABC, tag="kind"):
    """What is estimated over all rounds, and what follows a round; public, in JSON.

    A frozen dataclass that validates itself.
    """

    kind: ClassVar[str]
    model: ClassVar[Model]

    if TYPE_CHECKING:  # fields

        @property
        def privacy(self) -> Privacy:
            """What the whole protocol promises to everybody who takes part."""

        @property
        def n(self) -> int:
            """How many people are planned to take part in all."""

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """The estimator described; 500.0 people are 500."""
        return super().from_dict({**fields, "n": _check.count("n", fields["n"])})

    @abstractmethod
    def check_round(self, protocol: Protocol) -> None:
        """Refuse a round that it does not ask for, or not after what has been learnt.

        Whatever this raises, the round is refused: a description may say anything.
        """

    @abstractmethod
    def after(self, protocol: Protocol, received: Received) -> Protocol | Release:
        """The next round's description, or the result."""

    @abstractmethod
    def describe(self) -> str:
        """What is estimated, in a sentence."""

    @abstractmethod
    def false_answers(self, protocol: Protocol, people: int) -> str:
        """What one false message among those of so many people can do, and k of them."""


@dataclass(frozen=True, repr=False)
class Protocol:
    """One round: `users` devices run `randomizer`, and at least `minimum` of them must answer.

    The promise of the shuffle model is stated for `honest` people among those who answer, all of
    the minimum unless it says otherwise. `learnt` is what earlier rounds have published, one entry
    a round; `survey` names the asking.
    """

    estimator: Estimator
    randomizer: Randomizer
    users: int
    minimum: int
    round: int = 1
    learnt: tuple[dict[str, Any], ...] = ()
    survey: Survey | None = None
    honest: int | None = None

    def __post_init__(self) -> None:
        for name, most in (("users", MOST_USERS), ("minimum", MOST_USERS), ("round", MOST_ROUNDS)):
            object.__setattr__(self, name, _check.count(name, getattr(self, name), most=most))
        if self.minimum > self.users:
            raise InvalidInput(
                f"must be at most the number of users, {self.users}",
                parameter="minimum",
                value=str(self.minimum),
            )
        if self.honest is not None:
            self._check_honest(self.honest)
        if len(self.learnt) != self.round - 1:
            raise InvalidInput(
                f"must have an entry for each of the {self.round - 1} rounds before",
                parameter="learnt",
                value=str(len(self.learnt)),
            )
        if self.bytes_per_user > LONGEST:
            raise InvalidInput(
                f"a message must be at most {LONGEST} bytes long; this one would have "
                f"{self.bytes_per_user}."
            )
        self.estimator.model.check_promise(self)
        self._check_round()

    def _check_round(self) -> None:
        try:
            self.estimator.check_round(self)
        except MALFORMED as error:
            if isinstance(error, MuhatError):
                raise
            raise InvalidInput(
                "what earlier rounds have learnt, as the description says, is malformed, or "
                "contradicts itself."
            ) from None

    def _check_honest(self, honest: int) -> None:
        if not self.estimator.model.is_mixed:
            raise InvalidInput(
                "must be left out in the local model, whose promise counts on nobody",
                parameter="honest",
            )
        honest = _check.count("honest", honest, most=MOST_USERS)
        if honest > self.minimum:
            raise InvalidInput(
                f"must be at most the minimum of users, {self.minimum}: they are among those who "
                "answer",
                parameter="honest",
                value=str(honest),
            )
        object.__setattr__(self, "honest", honest)

    @property
    def counted_on(self) -> int:
        """How many people's honesty the promise rests on, in the shuffle model."""
        return Turnout(self.minimum, self.honest).counted_on

    @property
    def model(self) -> str:
        """ "local" or "shuffle"."""
        return self.estimator.model.name

    @property
    def privacy(self) -> Privacy:
        """What the whole protocol promises to everybody who takes part."""
        return self.estimator.privacy

    @property
    def messages_per_user(self) -> int:
        """How many messages of a device the server sees in this round, told apart or not."""
        return self.randomizer.messages

    @property
    def bytes_per_user(self) -> int:
        """What a device sends in this round."""
        return HEADER_BYTES + self.randomizer.payload_bytes

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the description; every message carries the first bytes of it."""
        return hashlib.sha256(self.to_cbor()).hexdigest()

    @cached_property
    def task(self) -> str:
        """SHA-256 of what all rounds have in common: what a device answers and pays for once.

        Whatever differs, another number of people too, is another task.
        """
        fields = self.to_dict()
        common = {name: fields[name] for name in _TASK if name in fields}
        return hashlib.sha256(_cbor.written(common)).hexdigest()

    @cached_property
    def label(self) -> bytes:
        """What every message of this round begins with."""
        return label(self.round, bytes.fromhex(self.digest))

    def client(self, answered: Iterable[Protocol] = (), *, account: AccountLike = None) -> Client:
        """What runs on a person's device, which has answered these rounds before.

        Rounds that are in the device's account need not be named; the promise holds whatever a
        server says. `account` is an account or its file, None for the user's own, and False for
        none: see `DeviceAccount`.
        """
        return Client(self, answered, account)

    def crowd(self, answered: Iterable[Protocol] = ()) -> Crowd:
        """Many people's devices at once, without accounts: for simulations and gateways."""
        return Crowd(self, answered)

    def surveyed(self, name: str, *, version: int = 1, expires: str | None = None) -> Protocol:
        """The same round as that of a survey: see `Survey`."""
        return replace(self, survey=Survey(name, version, expires))

    def server(self, state: bytes | None = None) -> Server:
        """What collects the messages, from the beginning or from a saved state."""
        return Server(self) if state is None else Server(self).restore(state)

    def shuffler(self) -> Shuffler:
        """What stands between devices and server in the shuffle model."""
        return Shuffler(self)

    def following(self, randomizer: Randomizer, users: int, learnt: dict[str, Any]) -> Protocol:
        """The next round, with what this one has told; the turnout stays the same part."""
        least = -(-self.minimum * users // self.users)
        honest = None if self.honest is None else -(-self.honest * users // self.users)
        return replace(
            self,
            randomizer=randomizer,
            users=users,
            minimum=least,
            honest=honest,
            round=self.round + 1,
            learnt=(*self.learnt, learnt),
        )

    def require_only(self) -> None:
        """Refuse a later round of an estimator that has one alone."""
        if self.round != 1:
            raise InvalidInput("must be 1: there is one round", parameter="round")

    def released(self, answer: Answer) -> Release:
        """What came out of the last round, this one."""
        return Release(
            answers=(answer,),
            privacy=self.privacy,
            neighbors=Neighbors.SUBSTITUTE,
            plan_digest=self.digest,
        )

    def to_dict(self) -> dict[str, Any]:
        """The description as plain data."""
        said: dict[str, Any] = {
            "schema": SCHEMA,
            "model": self.model,
            "privacy": privacy.to_dict(self.privacy),
            "estimator": self.estimator.to_dict(),
            "round": self.round,
            "users": self.users,
            "minimum": self.minimum,
            "randomizer": self.randomizer.to_dict(),
            "learnt": list(self.learnt),
        }
        # What is not stated is not written: descriptions without it are what they have always been.
        if self.survey is not None:
            said["survey"] = self.survey.to_dict()
        if self.honest is not None:
            said["honest"] = self.honest
        return said

    def to_cbor(self) -> bytes:
        """The description as everybody gets it, written in one way only."""
        data = _cbor.written(self.to_dict())
        require_short(data)
        return data

    @classmethod
    def from_cbor(cls, data: bytes) -> Protocol:
        """The protocol described; InvalidInput if the bytes are no description, contradict
        themselves, or are not written in the one way, so that their digest is its own."""
        require_short(data)
        found = read_fields(_cbor.read(data), [SCHEMA], "the CBOR of a protocol", cls._of)
        if found.to_cbor() != data:
            raise InvalidInput("the description is not written as its own fields are.")
        return found

    def to_json(self) -> str:
        """The description for people to read."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        require_short(text)
        return text

    @classmethod
    def from_json(cls, text: str) -> Protocol:
        """The protocol described; InvalidInput if the text is no description, or contradicts
        itself."""
        if isinstance(text, str):
            require_short(text)
            require_few_parts(text)
        return read_json(text, [SCHEMA], "a protocol", cls._of)

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> Protocol:
        found = cls(
            estimator=Estimator.from_dict(fields["estimator"]),
            randomizer=Randomizer.from_dict(fields["randomizer"]),
            users=fields["users"],
            minimum=fields["minimum"],
            round=fields["round"],
            learnt=tuple(dict(entry) for entry in fields["learnt"]),
            survey=Survey.from_dict(fields["survey"]) if "survey" in fields else None,
            honest=fields.get("honest"),
        )
        said = (fields["model"], privacy.from_dict(fields["privacy"]))
        if said != (found.model, found.privacy):
            raise InvalidInput("the description contradicts itself about its model or its promise.")
        # What cannot be written again is refused here, where it is read.
        _ = found.digest
        return found

    def describe(self) -> str:
        """The round in words."""
        share, promise = self.randomizer.share, self.privacy.describe()
        if share != 1:
            promise += f", of which this round takes {float(share):.2g}"
        count = self.messages_per_user
        messages = "one message" if count == 1 else f"{count} messages"
        rows = [
            *([] if self.survey is None else [("survey", str(self.survey))]),
            ("estimates", self.estimator.describe()),
            ("promise", promise),
            *(("caution", sentence) for sentence in cautions(self.privacy, self.users)),
            ("trust", self.estimator.model.trust(self)),
            ("users", f"{self.users}, and at least {self.minimum}"),
            ("supposes", self.estimator.false_answers(self, self.users)),
            ("each sends", f"{messages}, {self.bytes_per_user} bytes in all"),
            ("randomizer", self.randomizer.kind),
            ("description", f"sha256 {self.digest[:16]}…, task {self.task[:16]}…"),
        ]
        width = max(len(name) for name, _ in rows)
        head = f"Round {self.round}, {self.model} model"
        return joined([head, *(f"  {name:<{width}}  {text}" for name, text in rows)])

    def __repr__(self) -> str:
        return self.describe()


_TASK = ("schema", "model", "privacy", "estimator", "survey")


def require_short(said: str | bytes) -> None:
    """Refuse what no description is as long as, before anything is made of it."""
    if len(said) > LONGEST:
        unit = "characters" if isinstance(said, str) else "bytes"
        raise InvalidInput(f"a description must be at most {LONGEST} {unit} long; got {len(said)}.")


def require_few_parts(text: str) -> None:
    """Refuse what is made of brackets alone: in memory it is thirty times as long."""
    if sum(map(text.count, ",[{")) > _cbor.MOST_PARTS:
        raise InvalidInput(f"a description must have at most {_cbor.MOST_PARTS} numbers and lists.")
