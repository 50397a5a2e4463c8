"""The best purely private message about a vector: one of a few public directions.

A record becomes a point y of the unit ball, by the smallest ellipsoid around its domain. The
nonce of the message gives M public unit vectors; S are the k of them nearest to y. With
probability ‖y‖·(g − 1)k/Z the device sends a vector of S, else any of the M, all alike: every
vector has a probability between 1/Z and g/Z, Z = M + (g − 1)k, whatever the record and however
its direction was rounded. So a message is exactly ln(g)-private, g ≤ e^ε. docs/proofs/local.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muhat import _check
from muhat._arrays import Bytes, Floats, Integers
from muhat.domains import Domain
from muhat.errors import InvalidInput
from muhat.noise.discrete import coins
from muhat.noise.entropy import WORD_BITS, Words, system_words
from muhat.noise.laws import LAWS
from muhat.noise.spread import Spread
from muhat.privacy import Privacy, PureDP
from muhat.privacy.amplification import amplified
from muhat.protocols.encodings.ball_map import BallMap
from muhat.protocols.encodings.encoding import NONCE_BYTES
from muhat.protocols.randomizers.cap_choice import CapMoments, best_cap, gain, moments
from muhat.protocols.randomizers.codebook import Codebook
from muhat.protocols.randomizers.randomizer import (
    MeanRandomizer,
    PrivateAlone,
    Received,
    uniform_numbers,
)

SURE = 1.645
"""Standard errors of S that are added to it: one in twenty samples has more."""

_COIN_BITS = 53
_CHUNK_NUMBERS = 1 << 20


@dataclass(frozen=True, eq=False, repr=False)
class CapRandomizer(PrivateAlone, MeanRandomizer):
    """Which records, which promise, and the public vectors of a message.

    Attributes:
        map: from the records to the unit ball of R^r.
        epsilon: what every message promises, purely.
        codebook: the public vectors of a message, in R^r.
        cap: how many of them are favoured.

    >>> from muhat.domains import Ball
    >>> CapRandomizer.of(Ball(1.0, dim=8), 1.0)
    CapRandomizer(Ball(radius=1, dim=8), epsilon=1, 46 of 128 vectors)
    """

    map: BallMap
    epsilon: float
    codebook: Codebook
    cap: int

    kind: ClassVar[str] = "cap"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", PureDP(epsilon=self.epsilon).epsilon)
        gain(self.epsilon)
        if self.map.rank != self.codebook.dim:
            raise InvalidInput(
                f"codebook must have the {self.map.rank} dimensions of the ball; "
                f"got {self.codebook.dim}."
            )
        object.__setattr__(self, "cap", _check.count("cap", self.cap, most=self.codebook.size // 2))

    @classmethod
    def of(
        cls,
        domain: Domain,
        epsilon: float,
        p: float = 2,
        weights: ArrayLike | None = None,
    ) -> Self:
        """The best one for errors ‖diag(weights)·error‖_p: smallest ellipsoid, best cap."""
        promised = PureDP(epsilon=epsilon).epsilon
        gain(promised)
        ball = BallMap.around(domain, p, weights)
        return cls(ball, promised, *best_cap(ball.rank, promised))

    @property
    def domain(self) -> Domain:
        """Where records lie."""
        return self.map.domain

    @property
    def record_dim(self) -> int:
        return self.map.record_dim

    @property
    def payload_bytes(self) -> int:
        """One for up to 256 vectors, else two."""
        return 1 if self.codebook.size <= 256 else 2

    @property
    def privacy(self) -> PureDP:
        """ε-differential privacy, exactly."""
        return PureDP(epsilon=self.epsilon)

    def keeps_mixed(self, promise: Privacy, users: int) -> bool:
        """More than one message alone, by hiding in the crowd. docs/proofs/amplification.md."""
        if not promise.spends_delta:
            return self.keeps(promise)
        assert promise.point is not None
        epsilon, delta = promise.point
        part = Fraction(self.cap, self.codebook.size)
        return amplified(self.epsilon, users, delta, share=part).epsilon <= epsilon

    @cached_property
    def moments(self) -> CapMoments:
        """γ, and the second moment of a message along its record."""
        return moments(self.codebook, self.cap, self.epsilon)

    @cached_property
    def favour(self) -> Fraction:
        """(g − 1)k/Z: how often a record on the ellipsoid's surface is heeded."""
        favoured = (gain(self.epsilon) - 1) * self.cap
        return favoured / (self.codebook.size + favoured)

    def randomize(self, records: Floats, nonces: Bytes, words: Words = system_words) -> Bytes:
        """The index of a vector for every record: see `Randomizer`.

        The work is the same whatever the coins say, so that its duration tells nothing.
        """
        count = self._checked(records, nonces)
        heeds, directions = self._points(records)
        ranks = uniform_numbers(self.cap, count, words)
        favoured = self.codebook.picked(directions, nonces, self.cap, ranks)
        anyone = uniform_numbers(self.codebook.size, count, words)
        coin = words(count) >> np.uint64(WORD_BITS - _COIN_BITS)
        heeded = coins(self.favour, count, words) & (coin < heeds)
        indices = np.where(heeded, favoured, anyone).astype(f"<u{self.payload_bytes}")
        return indices.view(np.uint8).reshape(count, self.payload_bytes)

    def law(self, record: ArrayLike, nonce: Bytes) -> list[Fraction]:
        """The probability of every payload, exactly: for audits, as it tells the record."""
        records, nonces = np.atleast_2d(np.asarray(record, np.float64)), np.atleast_2d(nonce)
        self._checked(records, nonces)
        heeds, directions = self._points(records)
        heeded = self.favour * Fraction(int(heeds[0]), 1 << _COIN_BITS)
        probabilities = [(1 - heeded) / self.codebook.size] * self.codebook.size
        for index in self.codebook.largest(directions, nonces, self.cap)[0].tolist():
            probabilities[index] += heeded / self.cap
        return probabilities

    def valid(self, payloads: Bytes) -> NDArray[np.bool_]:
        """Those that name one of the vectors: see `Randomizer`."""
        return np.asarray(_indices(payloads, self.payload_bytes) < self.codebook.size)

    def mean(self, nonces: Bytes, payloads: Bytes) -> Floats:
        """center + axes·(mean of the vectors named)/γ, of shape (domain.dim,)."""
        if not len(payloads):
            raise InvalidInput("a mean needs one message at least.")
        indices = _indices(payloads, self.payload_bytes)
        total = np.zeros(self.codebook.dim)
        step = max(1, _CHUNK_NUMBERS // self.codebook.dim)
        for start in range(0, len(indices), step):
            rows = slice(start, start + step)
            total += self.codebook.vectors(nonces[rows], indices[rows]).sum(axis=0)
        return self.map.point(total / (len(indices) * self.moments.shrinkage))

    def estimates(self, nonces: Bytes, payloads: Bytes) -> Iterator[Floats]:
        """What every message tells about its record, some thousand at a time, without bias.

        Of shape (rows, domain.dim): less the centre, and every coordinate in units of `longest`,
        so that none is beyond ±1 and powers of it are floats.
        """
        indices, axes = _indices(payloads, self.payload_bytes), self.map.axes
        step = max(1, _CHUNK_NUMBERS // max(axes.shape))
        for start in range(0, len(indices), step):
            rows = slice(start, start + step)
            found = self.codebook.vectors(nonces[rows], indices[rows])
            yield found if axes.ndim == 1 else found @ (axes / self._lengths[:, None]).T

    @property
    def longest(self) -> Floats:
        """What no coordinate of an estimate, less the centre, exceeds, of shape (domain.dim,)."""
        return np.asarray(self._lengths / self.moments.shrinkage)

    @property
    def least_variance(self) -> float:
        """What no coordinate of an estimate varies less than, in squares of `longest`.

        The covariance of `spread`, along the record and across, is least at t = 0 or t = 1.
        """
        base, excess = self._variances
        across = base - excess / (self.map.rank - 1) if self.map.rank > 1 else base
        return max(min(base, base + excess - 1, across), 0.0) * self.moments.shrinkage**2

    def shown_error(self, received: Received) -> Floats | None:
        """√(S/n), S raised by 1.645 of its standard errors: see `MeanRandomizer`.

        With z the estimates, S = Σ(z − z̄)²/(n − 1); it is never below the least variance of one.
        docs/proofs/local.md.
        """
        n = received.users
        if n < 2:
            return None
        sums = np.zeros((4, self.domain.dim))
        for estimates in self.estimates(received.nonces, received.payloads):
            power = np.ones_like(estimates)
            for total in sums:
                power = power * estimates
                total += power.sum(axis=0)
        mean, second, third, fourth = sums / n
        spread = np.maximum(second - mean**2, 0.0) * n / (n - 1)
        tail = fourth - 4 * mean * third + 6 * mean**2 * second - 3 * mean**4
        error = np.sqrt(np.maximum(tail - spread**2, 0.0) / n)
        variances = np.maximum(spread + SURE * error, self.least_variance)
        return np.asarray(np.sqrt(variances / n) * self.longest)

    @cached_property
    def _lengths(self) -> Floats:
        """Of the rows of the axes; 1 where the domain has no width."""
        axes = self.map.axes
        if axes.ndim == 1:
            return axes
        units = np.abs(axes).max(axis=1)
        units = np.where(units > 0, units, 1.0)
        lengths = units * np.linalg.norm(axes / units[:, None], axis=1)
        return np.where(lengths > 0, lengths, 1.0)

    def spread(self, n: int) -> Spread:
        """A bound in every direction on the covariance of the mean.

        With m = 1/(rγ²) and e = E s²/γ² − m, a record at distance t from the centre in the
        direction u has the covariance m·I + t·e·(uuᵀ − (I − uuᵀ)/(r − 1)) − t²·uuᵀ, mapped by
        the axes. It is at most m + max over t of (te − t²).
        """
        base, excess = self._variances
        largest = base + (excess * excess / 4 if excess < 2 else excess - 1)
        axes = self.map.axes * math.sqrt(largest / _check.count("n", n))
        if axes.ndim == 1:
            return Spread(LAWS["normal"], self.map.rank, axes)
        return Spread(LAWS["normal"], self.map.rank, np.linalg.norm(axes, axis=1), axes)

    def expected_error(self, n: int) -> float:
        """At most this root mean square ℓ₂ error, whatever the records; √tr covariance(n) is more.

        Records in the centre of a ball attain it: radius/(γ√n).
        """
        base, excess = self._variances
        squares = self.map.squares
        rank, total, longest = len(squares), math.fsum(squares.tolist()), float(squares.max())
        # Of tr = m·Σℓ² + t·e·(rΛ − Σℓ²)/(r − 1) − t²·Λ, Λ = Σ(ℓu)², the worst is the longest axis.
        slope = max(excess * (longest * rank - total) / max(rank - 1, 1), 0.0)
        t = min(slope / (2 * longest), 1.0)
        return math.sqrt((base * total + t * slope - t * t * longest) / _check.count("n", n))

    def to_dict(self) -> dict[str, Any]:
        """The description: see `Randomizer`."""
        return {
            "kind": self.kind,
            **self.map.to_dict(),
            "epsilon": self.epsilon,
            "codebook": self.codebook.kind,
            "size": self.codebook.size,
            "cap": self.cap,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """The randomizer described; InvalidInput if it is not well described."""
        try:
            ball = BallMap.from_dict(fields)
            codebook = Codebook(ball.rank, fields["size"])
            _check.one_of("codebook", fields["codebook"], [codebook.kind])
            return cls(ball, fields["epsilon"], codebook, fields["cap"])
        except InvalidInput:
            raise
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError):
            raise InvalidInput("the description of a cap randomizer is malformed.") from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CapRandomizer) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.domain, self.epsilon, self.codebook, self.cap))

    def __repr__(self) -> str:
        return (
            f"CapRandomizer({self.domain!r}, epsilon={self.epsilon:g}, "
            f"{self.cap} of {self.codebook.size} vectors)"
        )

    @cached_property
    def _variances(self) -> tuple[float, float]:
        """m and e of `spread`."""
        shrinkage, second = self.moments
        base = 1 / (self.codebook.dim * shrinkage**2)
        return base, second / shrinkage**2 - base

    def _checked(self, records: Floats, nonces: Bytes) -> int:
        """How many there are, if shapes and types are as they should be."""
        shape, width = np.shape(records), self.record_dim
        if np.ndim(nonces) != 2 or np.shape(nonces)[1] != NONCE_BYTES:
            raise InvalidInput(f"nonces must have shape (rows, {NONCE_BYTES}).")
        if shape != (len(nonces), width):
            raise InvalidInput(
                f"records must have shape ({len(nonces)}, {width}), one a nonce; got {shape}."
            )
        return len(nonces)

    def _points(self, records: Floats) -> tuple[NDArray[np.uint64], Floats]:
        """‖y‖ in units of 2^-53, from 0 to 2^53, and y/‖y‖, for the point y of every record."""
        lengths, directions = self.map.polar(records)
        with np.errstate(all="ignore"):
            steps = np.rint(lengths * 2.0**_COIN_BITS).astype(np.uint64)
        # The promise rests on this bound, and on no float before it.
        return np.minimum(steps, np.uint64(1 << _COIN_BITS)), directions


def _indices(payloads: Bytes, width: int) -> Integers:
    numbers = np.ascontiguousarray(payloads, np.uint8).view(f"<u{width}")
    return numbers.reshape(len(payloads)).astype(np.int64)
