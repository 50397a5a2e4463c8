"""The clipped means that one promise has for records of a bounded moment.

The wide one is on ±magnitude and a pad. For the learnt interval there are three free numbers: the
share of the promise that the search takes, how rarely it may fail, and the pad; the bias that is
allowed ties the pad to the others. The least bound on the error decides. What a search can tell
does not depend on the bias, so the searches are made once. Proof: docs/proofs/tails.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from muhat._arrays import Floats
from muhat.mechanisms.learning.location import Location
from muhat.mechanisms.learning.moment_error import Moment
from muhat.mechanisms.learning.padded import PaddedMean
from muhat.mechanisms.learning.padded_error import PLACING, ROUNDING, astray_bias, learnt_squares
from muhat.mechanisms.learning.sharing import Sharing
from muhat.mechanisms.learning.tails import pad, paper_pad

LOCATION_SHARES = tuple(Fraction(part, 100) for part in (1, 2, 3, 5, 8, 12, 18, 25, 35, 50, 65))
"""What the search for the interval may take of the promise."""


@dataclass(frozen=True, eq=False)
class PaddedMeans:
    """Clipped means for one promise and one moment, by their biases, of shape (d,)."""

    sharing: Sharing
    moment: Moment

    @cached_property
    def searches(self) -> list[tuple[Fraction, Location]]:
        """The searches that so many records allow, with their shares of the promise."""
        sharing = self.sharing
        found = []
        for share in LOCATION_SHARES:
            location = Location.of(
                sharing.magnitude,
                self.moment.scales,
                self.moment.order,
                sharing.n,
                sharing.protect(share),
                sharing.kind,
            )
            if location is not None:
                found.append((share, location))
        return found

    def wide(self, biases: Floats) -> PaddedMean | None:
        """On the whole of ±magnitude; None if that is too wide for the grid of the records."""
        pads = self._pads(biases, np.full(self.sharing.dim, self.sharing.magnitude))
        if pads is None:
            return None
        return PaddedMean(self.sharing, self.moment, pads, biases, None, Fraction(0))

    def printed(self, biases: Floats) -> PaddedMean | None:
        """On the whole of ±magnitude with the pad of Proposition 3.5; None if that is too wide.

        Its bias is at most C ≤ ¼ of what was asked for, λ ≥ 2, so rounding has room in the rest.
        """
        order, size = self.moment.order, self.sharing.magnitude
        columns = zip(biases.tolist(), self.moment.scales.tolist(), strict=True)
        pads = np.array([paper_pad(bias, order, scale) for bias, scale in columns])
        rounding = ROUNDING * (size + pads) + PLACING * size
        if (rounding > biases / 2).any():
            return None
        return PaddedMean(self.sharing, self.moment, pads, biases, None, Fraction(0), faithful=True)

    def located(self, biases: Floats) -> PaddedMean | None:
        """On an interval that is learnt first; None if there are too few records for that."""
        for _, share, location in sorted(self._estimates(biases), key=lambda each: each[0]):
            pads = self._pads(biases - astray_bias(location, self.moment.scales), location.reaches)
            if pads is not None:
                return PaddedMean(self.sharing, self.moment, pads, biases, location, share)
        return None

    def _estimates(self, biases: Floats) -> Iterator[tuple[float, Fraction, Location]]:
        """About what each search would lead to: the squared error, the share, the search."""
        sharing, order, scales = self.sharing, self.moment.order, self.moment.scales
        constant = ((order - 1) / order) ** (order - 1) / order
        for share, search in self.searches:
            least = math.inf
            for level in range(len(search.known)):
                location = search.at(level)
                allowed = biases - astray_bias(location, scales)
                if not (allowed > 0).all():
                    continue
                # `closed_pad`, near enough.
                with np.errstate(over="ignore"):
                    pads = scales * (constant * scales / allowed) ** (1 / (order - 1))
                if not np.isfinite(pads).all():
                    continue
                squares = learnt_squares(location, order, scales, pads, sharing.n)
                noise = _noise(sharing, 1 - share, location.reaches + pads)
                square = float(sharing.weights**2 @ squares) + noise**2
                yield square, share, location
                # Rarer failures only have longer reaches from here on.
                if square > 1.1 * least:
                    break
                least = min(least, square)

    def _pads(self, biases: Floats, reaches: Floats) -> Floats | None:
        """The pads for these biases, of which rounding takes a little; None if it takes all."""
        moment, pads = self.moment, []
        for bias, scale, reach in zip(biases, moment.scales, reaches, strict=True):
            widest = pad(float(bias) / 2, moment.order, float(scale))
            rounding = ROUNDING * (float(reach) + widest) + PLACING * self.sharing.magnitude
            if rounding > bias / 2:
                return None
            pads.append(pad(float(bias) - rounding, moment.order, float(scale)))
        return np.array(pads)


def _noise(sharing: Sharing, share: Fraction, half_widths: Floats) -> float:
    """About the root mean square noise on the mean of records in a box, for a share."""
    sides = 2 * sharing.weights * half_widths
    strength = sharing.n * sharing.step_strength(float(share))
    if sharing.pure:
        return math.sqrt(2) * math.pow(float(np.sum(sides ** (2 / 3))), 1.5) / strength
    return float(sides.sum()) / strength
