"""What everybody is asked in a round of the shuffle chain, for which share of the promise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from muhat.mechanisms.learning.sharing import around, short_fraction
from muhat.protocols.encodings.cut_encoding import CutEncoding, Radius
from muhat.protocols.encodings.domain_encoding import DomainEncoding
from muhat.protocols.encodings.encoding import Encoding
from muhat.protocols.encodings.shell_encoding import ShellEncoding
from muhat.protocols.means.shuffle_chain_schedule import (
    OUTSIDE_PART,
    PULL_SHARE,
    ShuffleChainSchedule,
)
from muhat.protocols.means.shuffle_chain_state import ChainState
from muhat.protocols.randomizers.allowance import Allowance
from muhat.protocols.randomizers.fragment_randomizer import FragmentRandomizer
from muhat.protocols.randomizers.joint_randomizer import JointRandomizer


@dataclass(frozen=True)
class ChainRounds:
    """Rounds of a schedule; `honest` people at least follow the protocol."""

    schedule: ShuffleChainSchedule
    weights: tuple[float, ...] | None
    honest: int

    def asked(self, state: ChainState, spent: Fraction) -> JointRandomizer:
        """The round that a state leads to, after others have spent that part of the promise."""
        return JointRandomizer(tuple(self._parts(state, spent)))

    def _parts(self, state: ChainState, spent: Fraction) -> list[FragmentRandomizer]:
        schedule, center = self.schedule, state.center
        match state.stage:
            case "near":
                mean = self._mean(center, state.radius, schedule.center_share)
                return [mean, self._near_counts(state)]
            case "last":
                cuts = schedule.last_cuts(state.radius)
                return [self._counts(center, cuts, schedule.last_share)]
            case "pull":
                pull = self._shell(center, state.radius, state.high, PULL_SHARE)
                again = schedule.again_cuts(state.radius, state.high)
                if again is None:
                    return [pull]
                return [pull, self._counts(center, again, schedule.again_share)]
            case "aside":
                assert state.aside is not None
                cuts = schedule.aside_cuts(state.radius, state.high)
                return [self._counts(state.aside, cuts, schedule.aside_share)]
            case _:
                return self._last_mean(state, 1 - spent)

    def _near_counts(self, state: ChainState) -> FragmentRandomizer:
        schedule = self.schedule
        if state.is_first:
            return self._counts(state.center, schedule.first_cuts(), schedule.near_share)
        if state.sharp and state.noise is not None:
            cuts = schedule.sharp_cuts(state.noise, state.radius, state.high)
            return self._counts(state.center, cuts, schedule.last_share)
        cuts = schedule.near_cuts(state.low, state.radius, state.high, state.noise)
        return self._counts(state.center, cuts, schedule.near_share)

    def _last_mean(self, state: ChainState, left: Fraction) -> list[FragmentRandomizer]:
        """With all that is left: the ball within, what lies between it and the last radius, and
        how many people are outside that."""
        for_count = short_fraction(float(left) * OUTSIDE_PART)
        outside = self._counts(state.center, (state.high,), for_count)
        left -= for_count
        share = self.schedule.shell_share(state.radius, state.high, left)
        if share is None:
            return [self._mean(state.center, state.high, left), outside]
        return [
            self._mean(state.center, state.radius, left - share),
            self._shell(state.center, state.radius, state.high, share),
            outside,
        ]

    def _mean(self, center: Sequence[float], radius: float, share: Fraction) -> FragmentRandomizer:
        ball = around(np.array(center), radius, np.array(self.schedule.lengths))
        return self._ask(DomainEncoding(ball, weights=self.weights), share)

    def _shell(
        self, center: tuple[float, ...], inner: float, outer: float, share: Fraction
    ) -> FragmentRandomizer:
        return self._ask(ShellEncoding.between(Radius(center, self.weights), inner, outer), share)

    def _counts(
        self, center: tuple[float, ...], cuts: Sequence[float], share: Fraction
    ) -> FragmentRandomizer:
        return self._ask(CutEncoding(Radius(center, self.weights), tuple(cuts)), share)

    def _ask(self, encoding: Encoding, share: Fraction) -> FragmentRandomizer:
        allowance = Allowance(self.schedule.promise).part(share)
        return FragmentRandomizer.of(encoding, allowance, honest=self.honest, users=self.schedule.n)
