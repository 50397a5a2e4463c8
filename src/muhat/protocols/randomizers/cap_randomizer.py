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
from muhat.privacy import PureDP
from muhat.protocols.encodings.ball_map import BallMap
from muhat.protocols.encodings.corners import Corners
from muhat.protocols.randomizers.cap_choice import CapMoments, best_cap, gain, moments
from muhat.protocols.randomizers.codebook import Codebook
from muhat.protocols.randomizers.pure_randomizer import HidingRandomizer
from muhat.protocols.randomizers.randomizer import check_shapes, uniform_numbers

_COIN_BITS = 53
_CHUNK_NUMBERS = 1 << 20


@dataclass(frozen=True, eq=False, repr=False)
class CapRandomizer(HidingRandomizer):
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
    def favoured(self) -> Fraction:
        """k/M."""
        return Fraction(self.cap, self.codebook.size)

    def at(self, epsilon: float, weights: tuple[float, ...] | None = None) -> Self:
        """In the same ball: see `PureRandomizer`."""
        return type(self)(self.map, epsilon, *best_cap(self.map.rank, epsilon))

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
        count = check_shapes(records, nonces, self.record_dim)
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
        check_shapes(records, nonces, self.record_dim)
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
        """The vectors named, mapped to the ellipsoid: see `PureRandomizer`."""
        indices, axes = _indices(payloads, self.payload_bytes), self.map.axes
        step = max(1, _CHUNK_NUMBERS // max(axes.shape))
        for start in range(0, len(indices), step):
            rows = slice(start, start + step)
            found = self.codebook.vectors(nonces[rows], indices[rows])
            yield found if axes.ndim == 1 else found @ (axes / self._lengths[:, None]).T

    @property
    def longest(self) -> Floats:
        """A row of the axes, over γ: see `PureRandomizer`."""
        return np.asarray(self._lengths / self.moments.shrinkage)

    @property
    def least_variance(self) -> float:
        """The same for all: see `PureRandomizer`.

        The covariance of `spread`, along the record and across, is least at t = 0 or t = 1.
        """
        base, excess = self._variances
        across = base - excess / (self.map.rank - 1) if self.map.rank > 1 else base
        return max(min(base, base + excess - 1, across), 0.0) * self.moments.shrinkage**2

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

    def expected_error(self, n: int, weights: tuple[float, ...] | None = None) -> float:
        """At most this error, whatever the records; that of covariance(n) is more.

        Records in the centre of a ball attain it: radius/(γ√n). Of listed points the worst is
        taken, not of the ball around them.
        """
        base, excess = self._variances
        squares = self.map.squares(weights)
        rank, total, longest = len(squares), math.fsum(squares.tolist()), float(squares.max())

        # The trace is m·Σℓ² + t·e·(rΛ − Σℓ²)/(r − 1) − t²·Λ, Λ = Σ(ℓu)².
        def slope(along: Any) -> Any:
            return excess * (along * rank - total) / max(rank - 1, 1)

        corners = Corners.of(self.domain)
        if corners is not None and corners.are_records:
            lengths, along = self.map.stretched(corners.points, weights)
            worst = float(np.max(lengths * slope(along) - lengths**2 * along))
        else:
            # The worst is the longest axis.
            steep = max(slope(longest), 0.0)
            t = min(steep / (2 * longest), 1.0)
            worst = t * steep - t * t * longest
        return math.sqrt((base * total + worst) / _check.count("n", n))

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
