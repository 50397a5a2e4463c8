"""The best purely private message about one number: of a few numbers, each likelier on a step.

A record becomes a point between −1 and 1 and is drawn to one of the K places beside it, without
bias. A message names one of m public numbers, which is g times likelier, g < e^ε, if the place is
between two places of that number's own. The numbers, their steps and how often they are sent
(`bounds/line_messages.py`) are part of the description: whoever chose them, a device computes the
chances of all messages in whole numbers and answers only if none is more than e^ε times another's.
docs/proofs/local.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muhat import _check
from muhat._arrays import Bytes, Floats, Integers
from muhat.bounds.line_messages import LARGEST_EPSILON, MOST_PLACES, line_messages
from muhat.domains import Domain
from muhat.domains.vectors import hexed, unhexed
from muhat.errors import InvalidInput
from muhat.noise.entropy import WORD_BITS, Words, system_words
from muhat.noise.laws import LAWS
from muhat.noise.spread import Spread
from muhat.privacy import PureDP
from muhat.protocols.encodings.ball_map import BallMap
from muhat.protocols.randomizers.cap_choice import gain
from muhat.protocols.randomizers.pure_randomizer import PureRandomizer
from muhat.protocols.randomizers.randomizer import check_shapes

MOST_NUMBERS = 256
"""A message is one byte."""

LARGEST_WEIGHT = 1 << 53

_SPARED = 1 - Fraction(1, 1 << 16)
"""Of g, which is that of ε = 10 beyond it: in floats places give numbers nearly the same weight."""

_MOST_BIAS = 1e-9
"""How far the mean of a message may be off, where the domain is from −1 to 1."""

_COIN_BITS = 53
_CHUNK = 1 << 14


@dataclass(frozen=True)
class _Table:
    """How likely every number is at every place: see the attributes of `IntervalRandomizer`."""

    epsilon: float
    places: int
    first: tuple[int, ...]
    last: tuple[int, ...]
    weights: tuple[int, ...]

    @cached_property
    def ends(self) -> list[list[int]]:
        """Below which random word a place sends one of the first numbers, for all but the last."""
        g = gain(min(self.epsilon, LARGEST_EPSILON)) * _SPARED
        found = []
        for place in range(self.places):
            steps = zip(self.first, self.last, self.weights, strict=True)
            parts = [
                weight * (g.numerator if low <= place <= high else g.denominator)
                for low, high, weight in steps
            ]
            sums = list(accumulate(parts))
            found.append([(each << WORD_BITS) // sums[-1] for each in sums[:-1]])
        return found

    @cached_property
    def chances(self) -> list[list[int]]:
        """In units of 2^−64, (K, m)."""
        return [
            [high - low for low, high in zip([0, *ends], [*ends, 1 << WORD_BITS], strict=True)]
            for ends in self.ends
        ]

    @cached_property
    def likely(self) -> Floats:
        """The chances as floats."""
        return np.array(self.chances, np.float64) * 2.0**-WORD_BITS

    @property
    def points(self) -> Floats:
        """The places between −1 and 1."""
        return np.linspace(-1, 1, self.places)

    def missed(self, values: Floats) -> Floats:
        """By how much the mean of the numbers is off at every place."""
        return np.asarray(self.points - self.likely @ values)

    def unbiased(self, values: Floats) -> Floats:
        """The numbers nearest to these that have the place as their mean."""
        # Rare numbers move as much as frequent ones: in units of their chance.
        often = np.sqrt(self.likely.mean(axis=0))
        for _ in range(3):
            moved = np.linalg.lstsq(self.likely * often, self.missed(values), rcond=None)[0]
            values = values + moved * often
        return values


@dataclass(frozen=True, eq=False, repr=False)
class IntervalRandomizer(PureRandomizer):
    """Which records, which promise, and what may be sent.

    Attributes:
        map: from the records to [−1, 1].
        epsilon: what every message promises, purely.
        places: K.
        first, last: the step of every number, places from 0 to K − 1, shape (m,).
        weights: how likely numbers are off their step, whole numbers of shape (m,).
        values: the numbers, shape (m,).

    >>> from muhat.domains import Box
    >>> found = IntervalRandomizer.of(Box([0], [100]), 2.0)
    >>> found.places, len(found.values) < 60  # how many exactly rests on how a solver rounds
    (17, True)
    """

    map: BallMap
    epsilon: float
    places: int
    first: tuple[int, ...]
    last: tuple[int, ...]
    weights: tuple[int, ...]
    values: Floats

    kind: ClassVar[str] = "interval"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", PureDP(epsilon=self.epsilon).epsilon)
        if self.map.rank != 1:
            raise InvalidInput("messages about one number are for domains of one dimension.")
        places = _check.count("places", self.places, least=2, most=MOST_PLACES)
        object.__setattr__(self, "places", places)
        sizes = {len(self.first), len(self.last), len(self.weights), len(self.values)}
        if len(sizes) != 1 or not 2 <= sizes.pop() <= MOST_NUMBERS:
            raise InvalidInput(f"a message is one of 2 to {MOST_NUMBERS} numbers.")
        for first, last, weight in zip(self.first, self.last, self.weights, strict=True):
            _check.count("first", first, least=0, most=last)
            _check.count("last", last, least=0, most=places - 1)
            _check.count("weights", weight, most=LARGEST_WEIGHT)
        if not np.isfinite(self.values).all():
            raise InvalidInput("the numbers of messages are finite.")
        # The proof: whatever the table is, no message is e^ε times likelier for another place.
        g = gain(self.epsilon)
        for chances in zip(*self.chances, strict=True):
            if max(chances) * g.denominator > min(chances) * g.numerator:
                raise InvalidInput("some message would say more than is promised.")
        if not (np.abs(self._table.missed(self.values)) <= _MOST_BIAS).all():
            raise InvalidInput("the numbers of messages do not have the record as their mean.")

    @classmethod
    def of(
        cls,
        domain: Domain,
        epsilon: float,
        p: float = 2,
        weights: ArrayLike | None = None,
    ) -> Self:
        """The messages of the least variance for the worst record."""
        found = line_messages(min(PureDP(epsilon=epsilon).epsilon, LARGEST_EPSILON))
        last = found.places - 1
        # Of every message its mirror image is one, too; their chances were those of both.
        columns = found.columns
        first = np.concatenate([columns.first, last - columns.last])
        upto = np.concatenate([columns.last, last - columns.first])
        values = np.concatenate([columns.values, -columns.values])
        likely = np.tile(found.weights, 2)
        whole = np.rint(likely / likely.max() * (LARGEST_WEIGHT >> 1)).astype(np.int64)
        kept = whole > 0
        table = _Table(
            PureDP(epsilon=epsilon).epsilon,
            found.places,
            tuple(first[kept].tolist()),
            tuple(upto[kept].tolist()),
            tuple(whole[kept].tolist()),
        )
        numbers = table.unbiased(values[kept])
        return cls(BallMap.around(domain, p, weights), **asdict(table), values=numbers)

    @property
    def domain(self) -> Domain:
        """Where records lie."""
        return self.map.domain

    @property
    def record_dim(self) -> int:
        return self.map.record_dim

    @property
    def payload_bytes(self) -> int:
        """One."""
        return 1

    @property
    def chances(self) -> list[list[int]]:
        """How likely every number is at every place, in 2^−64, exactly; (K, m)."""
        return self._table.chances

    @cached_property
    def _table(self) -> _Table:
        return _Table(self.epsilon, self.places, self.first, self.last, self.weights)

    @cached_property
    def _words(self) -> NDArray[np.uint64]:
        return np.array(self._table.ends, np.uint64)

    @property
    def _points(self) -> Floats:
        return self._table.points

    def randomize(self, records: Floats, nonces: Bytes, words: Words = system_words) -> Bytes:
        """The index of a number for every record: see `Randomizer`.

        The work is the same whatever the record and the words are.
        """
        count = check_shapes(records, nonces, self.record_dim)
        below, part = self._places(records)
        coin = words(count) >> np.uint64(WORD_BITS - _COIN_BITS)
        place = below + (coin < part)
        drawn = words(count)
        found = np.empty(count, np.uint8)
        for start in range(0, count, _CHUNK):
            rows = slice(start, start + _CHUNK)
            found[rows] = (drawn[rows, None] >= self._words[place[rows]]).sum(axis=1)
        return found[:, None]

    def law(self, record: ArrayLike) -> list[Fraction]:
        """The probability of every number, exactly: for audits, as it tells the record."""
        (below,), (part,) = self._places(np.atleast_2d(np.asarray(record, np.float64)))
        share = Fraction(int(part), 1 << _COIN_BITS)
        here, there = (self.chances[min(int(below) + k, self.places - 1)] for k in (0, 1))
        return [
            ((1 - share) * low + share * high) / (1 << WORD_BITS)
            for low, high in zip(here, there, strict=True)
        ]

    def valid(self, payloads: Bytes) -> NDArray[np.bool_]:
        """Those that name one of the numbers: see `Randomizer`."""
        return np.asarray(payloads[:, 0] < len(self.values))

    def mean(self, nonces: Bytes, payloads: Bytes) -> Floats:
        """center + axis·(mean of the numbers named), of shape (domain.dim,)."""
        if not len(payloads):
            raise InvalidInput("a mean needs one message at least.")
        counts = np.bincount(payloads[:, 0], minlength=len(self.values))
        return self.map.point(np.array([counts @ self.values / len(payloads)]))

    def estimates(self, nonces: Bytes, payloads: Bytes) -> Iterator[Floats]:
        """The numbers named, as parts of the largest: see `PureRandomizer`."""
        parts = self.values / np.abs(self.values).max()
        signs = np.sign(self._axis)
        for start in range(0, len(payloads), _CHUNK):
            yield parts[payloads[start : start + _CHUNK, 0]][:, None] * signs

    @property
    def longest(self) -> Floats:
        """The largest number, along the axis; 1 where that has no width: see `PureRandomizer`."""
        lengths = np.abs(self._axis) * np.abs(self.values).max()
        return np.where(lengths > 0, lengths, 1.0)

    @property
    def least_variance(self) -> float:
        """That of the place which has it: see `PureRandomizer`.

        Between two places second moments are straight, and squares of the mean are below that.
        """
        least = float((self._seconds - self._points**2).min())
        return max(least, 0.0) / float(np.abs(self.values).max()) ** 2

    def spread(self, n: int) -> Spread:
        """The variance at the worst record, divided by n, along the axis."""
        axis = self._axis * math.sqrt(self.worst / _check.count("n", n))
        return Spread(LAWS["normal"], 1, np.abs(axis), axis[:, None])

    @cached_property
    def worst(self) -> float:
        """The largest variance: between two places a straight line less a square."""
        x, second = self._points, self._seconds
        slopes = np.diff(second) / np.diff(x)
        at = np.clip(slopes / 2, x[:-1], x[1:])
        between = second[:-1] + slopes * (at - x[:-1]) - at**2
        return float(between.max()) * (1 + 1e-12)

    @cached_property
    def _seconds(self) -> Floats:
        """E y² at every place."""
        return np.asarray(self._table.likely @ self.values**2)

    @property
    def _axis(self) -> Floats:
        """From the middle of the domain to one end, of shape (domain.dim,)."""
        return self.map.axes if self.map.axes.ndim == 1 else self.map.axes[:, 0]

    def to_dict(self) -> dict[str, Any]:
        """The description: see `Randomizer`."""
        return {
            "kind": self.kind,
            **self.map.to_dict(),
            "epsilon": self.epsilon,
            "places": self.places,
            "first": list(self.first),
            "last": list(self.last),
            "weights": list(self.weights),
            "values": hexed(self.values),
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """The randomizer described; InvalidInput if it is not well described."""
        try:
            return cls(
                BallMap.from_dict(fields),
                fields["epsilon"],
                fields["places"],
                tuple(fields["first"]),
                tuple(fields["last"]),
                tuple(fields["weights"]),
                np.array(unhexed(fields["values"])),
            )
        except InvalidInput:
            raise
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError):
            raise InvalidInput("the description of an interval randomizer is malformed.") from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IntervalRandomizer) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.domain, self.epsilon, self.first, self.last, self.weights))

    def __repr__(self) -> str:
        numbers = len(self.values)
        return f"IntervalRandomizer({self.domain!r}, epsilon={self.epsilon:g}, {numbers} numbers)"

    def _places(self, records: Floats) -> tuple[Integers, NDArray[np.uint64]]:
        """The place below every record, and how often it is the next, in units of 2^−53.

        The promise rests on these being a place and a part of 2^53, and on no float before.
        """
        lengths, directions = self.map.polar(records)
        with np.errstate(all="ignore"):
            along = np.clip((lengths * directions[:, 0] + 1) / 2 * (self.places - 1), 0, None)
            below = np.clip(np.floor(along), 0, self.places - 2)
            part = np.rint(np.clip(along - below, 0, 1) * 2.0**_COIN_BITS)
        whole = np.clip(below, 0, self.places - 2).astype(np.int64)
        return whole, np.minimum(part.astype(np.uint64), np.uint64(1 << _COIN_BITS))
