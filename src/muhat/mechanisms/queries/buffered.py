"""Running sums with a few buffers: the noise of a block of answers at a time, in integers.

The strategy is C·D⁻¹ of `workloads.buffered`, in units of 2^−g. With H = A·C⁻¹ the noise on the
t-th sum would be M_t = D_t·U_t + Σ_{s<t} (D_s − D_{s+1})·U_s, U = H·z, as for the square root.
Added is

    N_t = ⌊D_t·z_t + ½⌋ + f_t(z_0, …, z_{t−1}),

where f_t is a whole number that comes near to M_t − D_t·z_t: within a `band` that does not depend
on z. The first part is rounded as if it had been computed exactly; f_t may be any function of the
past. So y_t = z_t + ((A·q)_t + f_t)/D_t is one step of an adaptive composition of Gaussian
mechanisms, and A·q + N = ⌊D·y + ½⌋. Neighbours' y_t lie apart by what C·D⁻¹ makes of the event and
by at most 2·band/D_t more, for which room is left in D. docs/proofs/streams.md has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats, Integers
from muhat.errors import InvalidInput
from muhat.mechanisms.arithmetic.exponential_filter import COLUMN, inverse_filter
from muhat.mechanisms.queries.streaming import RunningNoise
from muhat.noise.entropy import Words, system_words
from muhat.noise.real_normal import FIRST_BITS, RealNormals
from muhat.workloads.buffered import INVERSE_BITS, SCALE_BITS, BufferedRoot, buffered_root

BLOCK = 32 * COLUMN
"""Answers whose noise is made together."""

WEIGHT_BITS = 42
"""The noise on one term is between 2^42 and 2^43 units of 2^−g."""

LARGEST_WEIGHT = 1 << 51
"""D_0 is at most this: then no sum of products below leaves 64 bits."""

MOST_ROOM = 2.0**-8
"""How much more noise there may be for the band."""

_LIMB = 11
_LIMBS = FIRST_BITS // _LIMB
_MASK = np.int64((1 << _LIMB) - 1)


class BufferedNoise:
    """The noise of one coordinate: a dozen integers, and how far it is.

    They are as secret as the noise that was drawn, and follow from it.
    """

    def __init__(
        self,
        plan: RunningNoise,
        coordinate: int,
        state: dict[str, Any] | None = None,
        source: Words = system_words,
    ) -> None:
        self.root = buffered_root(plan.size)
        self.filter = inverse_filter(self.root)
        self.guard = guard_bits(plan, coordinate)
        self._scale = math.ldexp(plan.factor(coordinate) * inflation(plan, coordinate), self.guard)
        if self._scale * float(self.root.lengths(0, 1)[0]) > LARGEST_WEIGHT:
            raise _too_strong()
        self._source = source
        self.drawn = 0
        self.sums = [0] * len(self.filter.weights)
        self.weight, self.reading, self.carried = LARGEST_WEIGHT, 0, 0
        if state is not None:
            self.drawn = int(state["drawn"])
            self.sums = [int(x) for x in state["sums"]]
            self.weight, self.reading, self.carried = (
                int(state[key]) for key in ("weight", "reading", "carried")
            )
            if len(self.sums) != len(self.filter.weights) or not 0 <= self.drawn <= plan.size:
                raise ValueError

    def to_dict(self) -> dict[str, Any]:
        """The state after the noise that was drawn, as JSON."""
        return {
            "drawn": self.drawn,
            "sums": [str(x) for x in self.sums],
            "weight": self.weight,
            "reading": str(self.reading),
            "carried": str(self.carried),
        }

    def draw(self) -> Integers:
        """The noise of the next answers, at least one of which is left, in units of terms."""
        stop = min(self.drawn + BLOCK, self.root.size)
        # Whole columns are drawn; what is beyond the horizon means nothing.
        steps = -(-(stop - self.drawn) // COLUMN) * COLUMN
        normals = RealNormals.draw(steps, self._source)
        weights = self.weights(steps)
        noise = self.foreseen(weights, normals.floors) + rounded_products(weights, normals)
        kept = noise[: stop - self.drawn]
        self.drawn = stop
        return (kept + np.int64(1 << self.guard >> 1)) >> np.int64(self.guard)

    def foreseen(self, weights: Integers, floors: Integers) -> Integers:
        """The next f_t, in units of 2^−g, from the next D and floor(2^55·z)."""
        past, self.sums = self.filter.after(self.sums, floors)
        reading = past + floors
        falls = np.append(self.weight if self.drawn else weights[0], weights[:-1]) - weights
        kept, places = [self.carried], np.flatnonzero(falls)
        for place in places.tolist():
            before = int(reading[place - 1]) if place else self.reading
            self.carried += int(falls[place]) * before
            kept.append(self.carried)
        runs = np.diff([0, *places, len(weights)])
        shared = np.array([_limbs_of(carried) for carried in kept], np.int64)
        parts = zip(_limbs(past), shared.T, strict=True)
        found, _ = _carry([weights * limb + np.repeat(more, runs) for limb, more in parts])
        self.weight, self.reading = int(weights[-1]), int(reading[-1])
        return found

    def weights(self, count: int) -> Integers:
        """The next integers D; they do not increase, as the lengths of columns do not."""
        stop = min(self.drawn + count, self.root.size)
        lengths = self.root.lengths(self.drawn, stop)
        found = np.minimum(np.ceil(self._scale * lengths).astype(np.int64), self.weight)
        padded = np.append(found, np.full(count - len(found), found[-1]))
        return np.asarray(np.minimum.accumulate(padded))


def guard_bits(plan: RunningNoise, coordinate: int) -> int:
    """g: how much finer than terms the noise is made."""
    return max(0, WEIGHT_BITS + 1 - math.frexp(plan.factor(coordinate))[1])


def band(root: BufferedRoot, largest: float) -> float:
    """How far f_t − (M_t − D_t·z_t) may reach over all z, in units; D is at most `largest`.

    1 for rounding down, and D_0 times what the filter is off: twice 2^−48 + 2^−56·Σ, 2^−55·Σ for
    the bits of z that it does not see, Σ = Σ_i w_i·(1 + ρ_i + …), and 2^10·n·ē for H, whose product
    with C is off by ē.
    """
    if sum(x * y for x, y in zip(root.weights, root.decays, strict=True)) >> (2 * SCALE_BITS):
        raise ArithmeticError("the strategy must fall")
    lasting = math.fsum(
        math.ldexp(weight, -INVERSE_BITS) * min(root.size, (1 << INVERSE_BITS) / max(rest, 1))
        for rest, weight in zip(*root.inverse, strict=True)
    )
    inexact = math.ldexp(root.size, 10) * float(root.discrepancy)
    return 1 + largest * (2.0**-47 + 2.0**-54 * lasting + inexact) * (1 + 2.0**-20)


def inflation(plan: RunningNoise, coordinate: int) -> float:
    """1 + κ with κ ≥ 2·band·√n/(c·Q): by how much the noise is larger, for the band."""
    root, guard = buffered_root(plan.size), guard_bits(plan, coordinate)
    largest = math.ldexp(plan.factor(coordinate) * (1 + MOST_ROOM), guard)
    loose = 2 * band(root, largest * float(root.lengths(0, 1)[0])) * math.sqrt(plan.size)
    room = loose / math.ldexp(plan.contributions * plan.reaches[coordinate], guard)
    if room > MOST_ROOM:
        raise _too_strong()
    return 1 + room * (1 + 2.0**-20) + 2.0**-40


def rounded_products(weights: Integers, normals: RealNormals) -> Integers:
    """⌊D_t·z_t + ½⌋ for real z, with as many of their bits as that takes."""
    parts = [weights * limb for limb in _limbs(normals.floors)]
    parts[1] = parts[1] + np.int64(1 << (_LIMB - 1))
    found, fraction = _carry(parts)
    undecided = np.flatnonzero((fraction + weights) >> np.int64(FIRST_BITS)).tolist()
    while undecided:
        normals.refine()
        left = []
        for index in undecided:
            value, weight = int(normals.floors[index]), int(weights[index])
            for word in normals.words:
                value = value << 64 | int(word[index])
            low = value * weight + (1 << (normals.bits - 1))
            found[index] = low >> normals.bits
            if (low + weight) >> normals.bits != found[index]:
                left.append(index)
        undecided = left
    return found


def _limbs(values: Integers) -> list[Integers]:
    """Numbers in units of 2^−55 as whole numbers and five times 11 bits."""
    shifts = range(FIRST_BITS - _LIMB, -1, -_LIMB)
    return [values >> np.int64(FIRST_BITS), *(values >> np.int64(s) & _MASK for s in shifts)]


def _limbs_of(value: int) -> list[int]:
    """The same of one number of any size."""
    shifts = range(FIRST_BITS - _LIMB, -1, -_LIMB)
    return [value >> FIRST_BITS, *(value >> s & int(_MASK) for s in shifts)]


def _carry(parts: Sequence[NDArray[np.int64]]) -> tuple[Integers, Integers]:
    """What such limbs, grown beyond 11 bits, add up to: rounded down, and the rest over 2^55."""
    carry = rest = np.zeros_like(parts[0])
    for place, part in enumerate(parts[:0:-1]):
        total = part + carry
        rest = rest + ((total & _MASK) << np.int64(_LIMB * place))
        carry = total >> np.int64(_LIMB)
    return parts[0] + carry, rest


def _too_strong() -> InvalidInput:
    return InvalidInput(
        "the promise is too strong for exact arithmetic. Choose a larger epsilon, rho or mu."
    )


def buffered_deviations(plan: RunningNoise) -> Floats:
    """The standard deviations of every sum, of shape (n, d)."""
    rows = buffered_root(plan.size).standard_deviations
    scales = [
        math.ldexp(plan.factor(j) * inflation(plan, j), e) for j, e in enumerate(plan.exponents)
    ]
    return np.multiply.outer(rows, np.array(scales) * (1 + 2.0**-30))
