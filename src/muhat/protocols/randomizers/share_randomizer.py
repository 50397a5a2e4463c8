"""Sums in the shuffle model: every number in shares that tell nothing unless all are added up.

A device turns its record into a few whole numbers (`share_encoding`), adds its part of the noise
(`share_noise`) and splits each of them into m shares modulo q = 2^k: m − 1 are uniform, the last
is what is missing. A shuffler mixes the shares of all people, and what is left for the server is
the sums, with the noise of a trusted curator. docs/proofs/shuffle-sums.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat._arrays import Floats
from muhat.domains import Domain
from muhat.errors import InvalidInput
from muhat.noise.entropy import Words, system_words
from muhat.noise.law import LAWS as SCALED
from muhat.noise.spread import Spread
from muhat.privacy import ApproxDP
from muhat.protocols.encodings.cut_encoding import CutEncoding, Look, Radius
from muhat.protocols.encodings.domain_encoding import DomainEncoding
from muhat.protocols.encodings.equal_cells import EqualCells
from muhat.protocols.encodings.modulus import check_modulus, signed
from muhat.protocols.encodings.share_encoding import FINEST, Encoding
from muhat.protocols.encodings.shell_encoding import ShellEncoding
from muhat.protocols.encodings.tree_encoding import TreeEncoding
from muhat.protocols.randomizers.allowance import Allowance
from muhat.protocols.randomizers.randomizer import Bytes
from muhat.protocols.randomizers.share_noise import LAWS, ShareNoise, fit

Shares = NDArray[np.uint64]

ENCODINGS: dict[str, type[Encoding]] = {
    DomainEncoding.kind: DomainEncoding,
    TreeEncoding.kind: TreeEncoding,
    CutEncoding.kind: CutEncoding,
    ShellEncoding.kind: ShellEncoding,
}

TOLERANCE = 1.02
"""A coarser grid may cost so much variance if it makes messages shorter."""

GAIN = 1.001
"""A finer grid is tried as long as the last one had so much less variance."""

_AT_ONCE = 1 << 22
"""Shares added up together: memory stays small however many people there are."""


@dataclass(frozen=True)
class ShareRandomizer:
    """Records as shares of whole numbers with noise.

    >>> import muhat as mh
    >>> promise = Allowance(mh.ApproxDP(epsilon=1.0, delta=1e-6))
    >>> mean = ShareRandomizer.of_domain(mh.Ball(1.0, dim=2), promise, honest=900, users=1000)
    >>> mean.noise.law, mean.messages, mean.payload_bytes
    ('laplace', 16, 48)
    """

    encoding: Encoding
    noise: ShareNoise

    kind: ClassVar[str] = "shares"

    def __post_init__(self) -> None:
        if self.noise.sensitivity != self.encoding.sensitivity:
            raise InvalidInput("the noise belongs to other numbers than those of the encoding.")

    @classmethod
    def of_domain(
        cls,
        domain: Domain,
        allowance: Allowance,
        *,
        honest: int,
        users: int,
        p: float = 2.0,
        weights: tuple[float, ...] | None = None,
    ) -> Self:
        """The mean of a domain's records, on the grid that is just fine enough.

        Args:
            domain: where records lie.
            allowance: the promise, or a round's part of it.
            honest: how many people at least follow the protocol and are not spied upon.
            users: how many take part at most.
            p: the norm of the error that is made small.
            weights: what errors of the coordinates are multiplied by.
        """
        return cls._best(
            lambda bits: DomainEncoding(domain, bits, p, weights), allowance, honest, users
        )

    @classmethod
    def of_tree(
        cls,
        cells: int,
        blocks: Iterable[int],
        allowance: Allowance,
        *,
        honest: int,
        users: int,
        dim: int = 1,
        look: EqualCells | None = None,
    ) -> Self:
        """Counts of blocks of cells, for every coordinate of a record: see `TreeEncoding`."""
        sizes = tuple(blocks)
        return cls._best(
            lambda bits: TreeEncoding(cells, sizes, dim, 1 << (bits - 1), look),
            allowance,
            honest,
            users,
        )

    @classmethod
    def of_cuts(
        cls, look: Look, cuts: Sequence[float], allowance: Allowance, *, honest: int, users: int
    ) -> Self:
        """How many people have a number below each of 2^h − 1 cuts: see `CutEncoding`."""
        ends = tuple(cuts)
        return cls._best(
            lambda bits: CutEncoding(look, ends, 1 << (bits - 1)), allowance, honest, users
        )

    @classmethod
    def of_shell(
        cls,
        look: Radius,
        inner: float,
        outer: float,
        allowance: Allowance,
        *,
        honest: int,
        users: int,
    ) -> Self:
        """The mean of what records have between two radii: see `ShellEncoding`."""
        return cls._best(
            lambda bits: ShellEncoding.between(look, inner, outer, bits), allowance, honest, users
        )

    @classmethod
    def _best(
        cls,
        encoding: Callable[[int], Encoding],
        allowance: Allowance,
        honest: int,
        users: int,
    ) -> Self:
        """The shortest messages of those whose variance is next to the least."""
        found = list(cls._resolutions(encoding, allowance, honest, users))
        if not found:
            raise InvalidInput("no modulus is large enough for so many people, or so much noise.")
        least = min(each._worth(users) for each in found)
        good = [each for each in found if each._worth(users) <= TOLERANCE * least]
        return min(good, key=lambda each: (each.payload_bytes, each._worth(users)))

    @classmethod
    def _resolutions(
        cls,
        encoding: Callable[[int], Encoding],
        allowance: Allowance,
        honest: int,
        users: int,
    ) -> Iterator[Self]:
        """From coarse to fine, as long as that helps and the modulus is large enough."""
        before = dict.fromkeys(LAWS, math.inf)
        for bits in range(1, FINEST + 1):
            made = encoding(bits)
            ends = made.low, made.high
            fitted = [fit(made.sensitivity, allowance, honest, users, ends, law) for law in LAWS]
            found = [cls(made, noise) for noise in fitted if noise is not None]
            yield from found
            worth = {each.noise.law: each._worth(users) for each in found}
            # What finer grids could still gain at least halves with every bit.
            if all(worth[law] * GAIN > before[law] for law in worth):
                return
            before.update(worth)

    def _worth(self, people: int) -> float:
        """The variance of a sum, in the same units for all resolutions."""
        return self.variance(people) * float(self.encoding.unit) ** 2

    @property
    def record_dim(self) -> int:
        """The number of coordinates of a record."""
        return self.encoding.record_dim

    @property
    def numbers(self) -> int:
        """How many sums there are."""
        return self.noise.sensitivity.numbers

    @property
    def messages(self) -> int:
        """The shares that a device sends."""
        return self.numbers * self.noise.shares

    @property
    def payload_bytes(self) -> int:
        """As many for each share as the modulus needs."""
        return self.messages * self._width

    @property
    def privacy(self) -> ApproxDP:
        """What the mixed messages of all promise about a record, together with other rounds.

        It holds if at least `noise.honest` people follow the protocol, and the shuffler does. A
        message by itself, before it is mixed, is not private.
        """
        return self.noise.allowance.promise

    def randomize(self, records: Floats, nonces: Bytes, words: Words = system_words) -> Bytes:
        """The shares of every record, those of the first number first: see `Randomizer`."""
        numbers = self.encoding.integers(records, words)
        numbers = numbers + self.noise.sample(len(records), words)
        return self.packed(self._split(numbers.view(np.uint64), words))

    def valid(self, payloads: Bytes) -> NDArray[np.bool_]:
        """Shares below the modulus: see `Randomizer`."""
        rows = payloads.reshape(len(payloads), -1, self._width)
        unused = 8 * self._width - self.noise.modulus_bits
        return np.asarray((rows[:, :, -1] <= 255 >> unused).all(axis=1))

    def packed(self, shares: Shares) -> Bytes:
        """Shares of shape (people, numbers, m) as payloads."""
        flat = np.ascontiguousarray(shares, "<u8").reshape(len(shares), self.messages, 1)
        return flat.view(np.uint8)[:, :, : self._width].reshape(len(shares), self.payload_bytes)

    def unpacked(self, payloads: Bytes) -> Shares:
        """The shares of these payloads, of shape (people, numbers, m)."""
        whole = np.zeros((len(payloads), self.messages, 8), np.uint8)
        whole[:, :, : self._width] = payloads.reshape(len(payloads), self.messages, self._width)
        shape = len(payloads), self.numbers, self.noise.shares
        return whole.view("<u8").astype(np.uint64, copy=False).reshape(shape)

    def sums(self, remainders: Shares, people: int) -> list[int]:
        """The sums of so many people's numbers, from the sums of their shares, (numbers,)."""
        low, high, bits = self.encoding.low, self.encoding.high, self.noise.modulus_bits
        check_modulus(bits, people, low, high, self.noise.reach(people))
        return signed(remainders, bits, people, low, high)

    def variance(self, people: int) -> float:
        """A bound on the variance of each of these sums, noise and rounding, in steps²."""
        return self.noise.variance(people) + people * self.encoding.rounding

    def mean(self, nonces: Bytes, payloads: Bytes) -> Floats:
        """The mean of the records, whether the payloads are mixed or not: see `MeanRandomizer`."""
        return self.mean_of(self.totals(payloads), len(payloads))

    def totals(self, payloads: Bytes) -> list[int]:
        """The sums of all people's numbers, whether the payloads are mixed or not."""
        return self.sums(self._remainders(payloads), len(payloads))

    def mean_of(self, sums: Sequence[int], people: int) -> Floats:
        """The mean of the records, from the sums of their numbers, of shape (d,)."""
        return self._domain.mean(sums, people)

    def spread(self, n: int) -> Spread:
        """A bound on the noise of the mean of n people's records; rounding is counted in full.

        Laplace noise on a coordinate has longer tails than normal noise of its variance. With more
        people than those counted on it is a little closer to normal.
        """
        found = self._domain.spread(self.variance(n), n)
        if self.noise.law != "laplace" or found.factor is not None:
            return found
        laplace = SCALED["laplace"]
        return Spread(laplace, found.rows, found.scales / math.sqrt(laplace.variance(found.rows)))

    def covariance(self, n: int) -> Floats:
        """That of `spread(n)`: see `MeanRandomizer`."""
        return self.spread(n).covariance

    def expected_error(self, n: int) -> float:
        """At most this root mean square ℓ₂ error of the mean of n people's records."""
        return float(np.linalg.norm(self.spread(n).standard_error))

    def to_dict(self) -> dict[str, Any]:
        """The description: see `Randomizer`."""
        return {
            "encoding": {"kind": self.encoding.kind, **self.encoding.to_dict()},
            "noise": self.noise.to_dict(),
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """The randomizer described; InvalidInput if it does not keep its promise."""
        described = dict(fields["encoding"])
        kind = _check.one_of("the kind of encoding", described.pop("kind"), ENCODINGS)
        encoding = ENCODINGS[kind].from_dict(described)
        return cls(encoding, ShareNoise.from_dict(fields["noise"], encoding.sensitivity))

    @property
    def _width(self) -> int:
        return -(-self.noise.modulus_bits // 8)

    @property
    def _domain(self) -> DomainEncoding:
        if isinstance(self.encoding, DomainEncoding):
            return self.encoding
        raise InvalidInput("these numbers are counts, which have no mean.")

    def _remainders(self, payloads: Bytes) -> Shares:
        """The sums of all shares modulo q, of shape (numbers,)."""
        step = max(1, _AT_ONCE // self.messages)
        found = np.zeros(self.numbers, np.uint64)
        for start in range(0, len(payloads), step):
            found += self.unpacked(payloads[start : start + step]).sum(axis=(0, 2))
        return np.asarray(found & self._mask)

    @property
    def _mask(self) -> np.uint64:
        return np.uint64(self.noise.modulus - 1)

    def _split(self, numbers: Shares, words: Words) -> Shares:
        """Uniform shares that add up to these numbers modulo q, of shape (people, numbers, m)."""
        m = self.noise.shares
        # 2^k divides 2^64: sums may overflow, and the lowest bits of uniform words are uniform.
        shares = np.empty((*numbers.shape, m), np.uint64)
        shares[..., 1:] = words(numbers.size * (m - 1)).reshape(*numbers.shape, m - 1)
        shares[..., 0] = numbers - shares[..., 1:].sum(axis=-1)
        return shares & self._mask
