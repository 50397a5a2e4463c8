"""Running sums with a few buffers: noise on the strategy's answers, in integers.

The strategy is R = C·D⁻¹ of `workloads.buffered`. Here nothing is computed ahead: a term q_t is
multiplied by an integer K_t ≈ 2^114·μω/(c·Q·‖column t of C‖), C is applied in fixed point with
114 fractional bits, rounded to 54, and the integer noise round(2^54·z_t) is added. What comes out
is inverted, C⁻¹ and K⁻¹, and summed: post-processing, in fixed point too.

Sensitivity. In exact arithmetic c terms move the vector by at most c·Q·K_j·‖column j of C‖ in
units of 2^−114. The buffers are rounded down at every step, which moves what they add up to by less
than 1 + n·Σω units of 2^−114, and the last rounding by half a unit of 2^−54; so two streams differ
by at most that and √n·(1 + 2^−30) units of 2^−54 more, for which room is left in K.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import mul
from typing import Any

import numpy as np

from muhat._arrays import Floats
from muhat._integers import whole_root_down
from muhat.errors import InvalidInput
from muhat.mechanisms.queries.streaming import RunningNoise
from muhat.noise import FRACTION_BITS, rounded_normal
from muhat.noise.integers import Integers
from muhat.workloads.buffered import SCALE_BITS, buffered_root

STATE_BITS = 114
"""Fractional bits of the buffers."""

ANSWER_BITS = 24
"""Fractional bits of the sum of the decoded terms, in units."""

BLOCK = 512
"""How many multipliers and noises are made at a time."""

_GUARD = STATE_BITS - FRACTION_BITS
_LENGTH_BITS = 40


class BufferedSum:
    """One coordinate: its state is 2·(number of buffers) + 1 integers, and how far it is.

    `encoder` is as secret as the data; the rest follows from what was released.
    """

    def __init__(
        self,
        plan: RunningNoise,
        coordinate: int,
        state: dict[str, Any] | None = None,
        normals: Callable[[int], Integers] = rounded_normal,
    ) -> None:
        self.root = buffered_root(plan.size)
        self._weights, self._decays = self.root.weights, self.root.decays
        count = len(self._decays)
        self.index = 0
        self.encoder = [0] * count
        self.decoder = [0] * count
        self.answer = 0
        if state is not None:
            self.index, self.answer = int(state["index"]), int(state["answer"])
            self.encoder = [int(x) for x in state["encoder"]]
            self.decoder = [int(x) for x in state["decoder"]]
            if len(self.encoder) != count or len(self.decoder) != count:
                raise ValueError
        self._room = term_room(plan, coordinate)
        self._normals = normals
        self._multipliers: list[int] = []
        self._noise: list[int] = []

    def to_dict(self) -> dict[str, Any]:
        """The state as JSON; noise that was drawn and not used is forgotten."""
        return {
            "index": self.index,
            "answer": str(self.answer),
            "encoder": [str(x) for x in self.encoder],
            "decoder": [str(x) for x in self.decoder],
        }

    def push(self, term: int) -> int:
        """Add a term; the running sum with its noise, in units."""
        if not self._noise:
            self._prepare()
        multiplier = self._multipliers.pop()
        released = self.measure(term, multiplier) + self._noise.pop()
        self.index += 1
        return self.decode(released, multiplier)

    def measure(self, term: int, multiplier: int) -> int:
        """The integer to which noise is added: an entry of C·D⁻¹·q, in units of 2^−54."""
        scaled = term * multiplier
        exact: int = scaled + (sum(map(mul, self._weights, self.encoder)) >> SCALE_BITS)
        # A strict zip takes a fifth longer; both are as long as the constructor made them.
        self.encoder = [
            (x + scaled) * decay >> SCALE_BITS
            for x, decay in zip(self.encoder, self._decays)  # noqa: B905
        ]
        return (exact + (1 << (_GUARD - 1))) >> _GUARD

    def decode(self, released: int, multiplier: int) -> int:
        """The running sum from what is released, in units: post-processing."""
        undone = (released << _GUARD) - (sum(map(mul, self._weights, self.decoder)) >> SCALE_BITS)
        self.decoder = [
            (x + undone) * decay >> SCALE_BITS
            for x, decay in zip(self.decoder, self._decays)  # noqa: B905
        ]
        self.answer += (undone << ANSWER_BITS) // multiplier
        return (self.answer + (1 << (ANSWER_BITS - 1))) >> ANSWER_BITS

    def _prepare(self) -> None:
        """The next multipliers and noises, last first."""
        stop = min(self.index + BLOCK, self.root.size)
        self._multipliers = multipliers(self._room, self.root.lengths(self.index, stop))[::-1]
        self._noise = self._normals(stop - self.index).tolist()


def term_room(plan: RunningNoise, coordinate: int) -> int:
    """floor(2^114·μω − √n·2^60) // (c·Q), by which the lengths are divided."""
    square = plan.strength_squared * plan.shares[coordinate] * (1 << 2 * STATE_BITS)
    whole = whole_root_down(square)
    room = whole - ((math.isqrt(plan.size) + 2) << _GUARD)
    if room < whole * (1 - 2.0**-20):
        raise InvalidInput(
            "the promise is too strong for exact arithmetic. Choose a larger epsilon, rho or mu."
        )
    return room // (plan.contributions * plan.reaches[coordinate])


def multipliers(room: int, lengths: Floats) -> list[int]:
    """K_j ≤ room/d_j, as integers."""
    whole = np.ceil(np.ldexp(lengths, _LENGTH_BITS)).astype(np.int64)
    return [(room << _LENGTH_BITS) // length for length in whole.tolist()]


def buffered_deviations(plan: RunningNoise) -> Floats:
    """The standard deviations of every sum, of shape (n, d)."""
    rows = buffered_root(plan.size).standard_deviations
    scales = [math.ldexp(plan.factor(j), e) for j, e in enumerate(plan.exponents)]
    return np.multiply.outer(rows, np.array(scales) * (1 + 2.0**-19))
