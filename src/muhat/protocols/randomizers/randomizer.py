"""What one person's device does with a record, as everybody sees it.

A randomizer is public: it can be written down in JSON and made again from it. It turns a record,
any record, into a payload of a fixed number of bytes, and says itself what its messages keep: each
as it stands (`PrivateAlone`), or all of them when they are mixed. What the payloads of many people
tell together is for the estimators that use it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Bytes, Floats, Integers
from muhat._plain import Plain
from muhat.errors import InvalidInput
from muhat.noise.entropy import WORD_BITS, Words, system_words
from muhat.noise.spread import Spread
from muhat.privacy import Privacy, pure_within
from muhat.protocols.encodings.encoding import NONCE_BYTES


@dataclass(frozen=True, eq=False)
class Received:
    """The messages of a round, ordered by nonce: shapes (users, 16) and (users, payload).

    Where a randomizer's payloads add up there may be one of all users together.
    """

    nonces: Bytes
    payloads: Bytes

    @property
    def users(self) -> int:
        """How many people have answered."""
        return len(self.nonces)


class Randomizer(Plain, ABC, tag="kind"):
    """A frozen dataclass that validates itself; everything in it is public."""

    kind: ClassVar[str]
    """What JSON calls it."""

    adds_up: ClassVar[bool] = False
    """Whether one payload can say of many people what all of theirs do: see `added`."""

    if TYPE_CHECKING:  # a field of some

        @property
        def privacy(self) -> Privacy:
            """What a message promises about its record, against any other record in its place."""

    @property
    @abstractmethod
    def record_dim(self) -> int:
        """The number of coordinates of a record."""

    @property
    @abstractmethod
    def payload_bytes(self) -> int:
        """How long a payload is."""

    @property
    @abstractmethod
    def messages(self) -> int:
        """How many messages a payload is for the server: 1, or its fragments if they are mixed."""

    @property
    @abstractmethod
    def share(self) -> Fraction:
        """The part that a round takes of a promise over all rounds."""

    @abstractmethod
    def keeps(self, promise: Privacy) -> bool:
        """Whether a message by itself keeps the promise."""

    @abstractmethod
    def keeps_mixed(self, promise: Privacy, users: int) -> bool:
        """Whether the mixed messages of so many honest users do, together with other rounds."""

    @abstractmethod
    def mixed(
        self, nonces: Bytes, payloads: Bytes, words: Words = system_words
    ) -> tuple[Bytes, Bytes]:
        """The messages as a shuffler hands them on, in an order that says nothing of theirs."""

    def added(self, payloads: Bytes) -> Bytes:
        """These payloads, or one that says as much, of shape (1, payload), where they add up."""
        return payloads

    @property
    @abstractmethod
    def groups(self) -> tuple[int, ...]:
        """How many pieces of a message are mixed with one another, group by group."""

    @abstractmethod
    def pieces(self, nonces: Bytes, payloads: Bytes) -> Bytes:
        """What is sealed each by itself, all of one length: (rows, pieces, bytes)."""

    @abstractmethod
    def joined(self, pieces: Bytes) -> tuple[Bytes, Bytes]:
        """Nonces and payloads of pieces, mixed or not; what cannot be a piece is read as one."""

    @abstractmethod
    def randomize(self, records: Floats, nonces: Bytes, words: Words = system_words) -> Bytes:
        """The payloads of these records, one a person.

        Args:
            records: shape (rows, record_dim); a coordinate that is not finite is missing, and a
                record outside the domain is clipped to it.
            nonces: shape (rows, NONCE_BYTES): uniform, public, independent of the records.
            words: where the secret randomness comes from.

        Returns:
            Shape (rows, payload_bytes).
        """

    @abstractmethod
    def valid(self, payloads: Bytes) -> NDArray[np.bool_]:
        """Which payloads, shape (rows, payload_bytes), this randomizer could have made."""


class PrivateAlone(Randomizer):
    """One whose every message keeps `privacy` as it stands, whatever everybody else does."""

    messages: ClassVar[int] = 1
    share: ClassVar[Fraction] = Fraction(1)

    def keeps(self, promise: Privacy) -> bool:
        """The same promise, or one that its ε implies: see `Randomizer`."""
        epsilon = self.privacy.implied_epsilon
        return self.privacy == promise or (epsilon is not None and epsilon <= pure_within(promise))

    def keeps_mixed(self, promise: Privacy, users: int) -> bool:
        """What each of them keeps: see `Randomizer`."""
        return self.keeps(promise)

    def mixed(
        self, nonces: Bytes, payloads: Bytes, words: Words = system_words
    ) -> tuple[Bytes, Bytes]:
        """Whole messages, each with its nonce, which is public: see `Randomizer`."""
        order = random_order(len(nonces), words)
        return nonces[order], payloads[order]

    groups: ClassVar[tuple[int, ...]] = (1,)

    def pieces(self, nonces: Bytes, payloads: Bytes) -> Bytes:
        """The whole message: see `Randomizer`."""
        return np.concatenate([nonces, payloads], axis=1)[:, None, :]

    def joined(self, pieces: Bytes) -> tuple[Bytes, Bytes]:
        """The message with its own nonce: see `Randomizer`."""
        return pieces[:, 0, :NONCE_BYTES], pieces[:, 0, NONCE_BYTES:]


class MeanRandomizer(Randomizer):
    """A randomizer whose messages, together, estimate the mean of the records without bias."""

    @abstractmethod
    def mean(self, nonces: Bytes, payloads: Bytes) -> Floats:
        """The estimate from valid messages, of shape (record_dim,)."""

    @abstractmethod
    def spread(self, n: int) -> Spread:
        """A bound on the noise of the mean of n messages, known in advance; treated as normal.

        Every diagonal entry and the trace of its covariance bound those of the covariance given
        the records, whatever records of the domain they are.
        """

    def covariance(self, n: int) -> Floats:
        """That of `spread(n)`, of shape (d, d)."""
        return self.spread(n).covariance

    def expected_error(self, n: int, weights: tuple[float, ...] | None = None) -> float:
        """At most this root mean square of ‖diag(weights)·error‖₂ of the mean of n messages."""
        errors = self.spread(n).standard_error
        return float(np.linalg.norm(errors if weights is None else np.array(weights) * errors))

    def false_step(self, n: int) -> Floats | None:
        """How far one false message moves each coordinate of the mean of n at most, (d,).

        Against any message in its place. None where nothing bounds it.
        """
        return None

    def shown_error(self, received: Received) -> Floats | None:
        """The standard error of the mean as the messages show it by their own spread, (d,).

        None where nothing is known but `spread`.
        """
        return None


def uniform_numbers(bound: int, size: int, words: Words) -> Integers:
    """Independent uniform whole numbers below the bound, by rejection."""
    if bound == 1:
        return np.zeros(size, np.int64)
    unused = np.uint64(WORD_BITS - (bound - 1).bit_length())
    found = words(size) >> unused
    while len(again := np.flatnonzero(found >= bound)):
        found[again] = words(len(again)) >> unused
    return found.astype(np.int64)


def random_order(size: int, words: Words = system_words) -> NDArray[np.intp]:
    """A uniformly random order of `size` things."""
    return np.asarray(random_orders(1, size, words)[0])


def random_orders(rows: int, size: int, words: Words = system_words) -> NDArray[np.intp]:
    """Independent uniformly random orders of `size` things, of shape (rows, size).

    Those of random keys: given that no two of a row are equal, all orders are equally likely.
    """
    keys = words(rows * size).reshape(rows, size)
    while True:
        orders = np.argsort(keys, axis=1)
        ranked = np.take_along_axis(keys, orders, axis=1)
        again = np.flatnonzero((ranked[:, 1:] == ranked[:, :-1]).any(axis=1))
        if not len(again):
            return orders
        keys[again] = words(len(again) * size).reshape(len(again), size)


def check_shapes(records: Floats, nonces: Bytes, width: int) -> int:
    """How many there are, if shapes are as they should be."""
    shape = np.shape(records)
    if np.ndim(nonces) != 2 or np.shape(nonces)[1] != NONCE_BYTES:
        raise InvalidInput(f"nonces must have shape (rows, {NONCE_BYTES}).")
    if shape != (len(nonces), width):
        raise InvalidInput(
            f"records must have shape ({len(nonces)}, {width}), one a nonce; got {shape}."
        )
    return len(nonces)
