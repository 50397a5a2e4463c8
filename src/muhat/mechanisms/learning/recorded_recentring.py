"""The chain of `recentring` for records of which some may be missing: those are left out.

    R̂ ← the noisy number of complete records, for a small share
    the chain for R̂ records, on the complete ones, with what is left of the promise
    its last step counts them once more, at no cost, and divides by that number

A record that lacks a value is in no count and no sum, so it pulls neither the centre nor a radius.
Ranks are counted from the outside, where they need no number of records at all; R̂ only sets what
each step may spend. Proof: docs/proofs/recorded.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from muhat._plain import Plain
from muhat.mechanisms.learning.learning import Learnt
from muhat.mechanisms.learning.outside_count import count_outside
from muhat.mechanisms.learning.pure_mean import PureMean
from muhat.mechanisms.learning.ratio_mean import FEW
from muhat.mechanisms.learning.recentring import Recentring, recentred_mean
from muhat.mechanisms.learning.recentring_schedule import Schedule
from muhat.mechanisms.learning.sharing import Sharing, short_fraction
from muhat.mechanisms.learning.steps import SourceReader, Step
from muhat.mechanisms.quantiles.noisy_search import NoisySearch

if TYPE_CHECKING:
    from muhat.data import Source

NUMBER_NOISE, MOST_NUMBER = 1 / 400, 0.01
"""The first count has noise of such a part of n, if that costs no more than such a share."""

_CONFIDENCE = 0.95
"""At which a number of records is told from 0."""


@dataclass(frozen=True, eq=False)
class RecordedRecentring(Plain, keys=("complete", "number_share", "number")):
    """The chain as a method for the complete ones of n records."""

    sharing: Sharing

    name = "recentring"

    @cached_property
    def number_share(self) -> Fraction:
        """Of the first count."""
        sharing = self.sharing
        deviation = math.sqrt(sharing.search_law.variance(1))
        wanted = sharing.share_of(deviation / (NUMBER_NOISE * sharing.n))
        return short_fraction(min(wanted, MOST_NUMBER))

    @cached_property
    def number(self) -> NoisySearch:
        """What counts the complete records first, with its noise."""
        return self.sharing.search(2, self.number_share)

    def schedule(self, records: int) -> Schedule:
        """The chain for so many complete records."""
        sharing = self.sharing
        rest = sharing.protect(1 - self.number_share)
        fields = (sharing.magnitude, sharing.weights, records, rest, sharing.kind)
        return Schedule(*fields, self.pure_mean)

    @cached_property
    def pure_mean(self) -> PureMean | None:
        """Pure noise on the mean of one column, as for n complete records."""
        sharing, share = self.sharing, self.number_share
        rest = sharing.protect(1 - share)
        whole = Schedule(sharing.magnitude, sharing.weights, sharing.n, rest, sharing.kind)
        return whole.pure_mean_of(sharing.protection, share, counted=True)

    @cached_property
    def complete(self) -> Recentring:
        """The chain if nothing is missing."""
        return Recentring(self.schedule(self.sharing.n))

    @property
    def summary(self) -> str:
        """What it does, in a few words."""
        return self.complete.summary

    @property
    def shares(self) -> dict[str, float]:
        """The share of the promise that each step takes, if nothing is missing."""
        left = float(1 - self.number_share)
        steps = {name: share * left for name, share in self.complete.shares.items()}
        return {"the number of complete records": float(self.number_share), **steps}

    @property
    def final_share(self) -> float:
        """The share that the mean itself has after two rounds, if nothing is missing."""
        return self.complete.final_share * float(1 - self.number_share)

    @property
    def is_enough(self) -> bool:
        """Whether every step works almost surely, if nothing is missing."""
        return self.complete.is_enough

    @property
    def least_n(self) -> int:
        """The least number of complete records for which every step works almost surely."""
        return self.complete.least_n

    def check(self) -> None:
        """Make every kind of step once."""
        complete = self.complete
        complete.check()
        schedule = complete.schedule
        _ = self.number.multiplier
        ball = complete.largest_ball
        schedule.recorded_in(ball, schedule.least_final_share)

    def admit(self, source: Source) -> None:
        """Every source will do."""

    def run(self, source: Source) -> Learnt:
        """Count the complete records, then carry the chain out on them."""
        from muhat.data.complete import CompleteSource

        records = CompleteSource(source)
        rows = records.rows()
        number = count_outside(self.number, np.array([0, rows]))
        first = Step("number", self.number_share, 0.0)
        schedule = self.schedule(max(round(number.value), 1))
        if number.value <= number.half_width(_CONFIDENCE):
            return self._nothing(FEW, first)
        if schedule.is_hopeless:
            return self._nothing(
                f"about {schedule.n} recorded values are too few to learn where they lie; at "
                f"least {self.least_n} are needed",
                first,
            )
        found = recentred_mean(schedule, SourceReader(records, schedule, rows), counted=True)
        left = 1 - self.number_share
        steps = (replace(step, share=step.share * left) for step in found.steps)
        return replace(found, steps=(first, *steps))

    def _nothing(self, reason: str, first: Step) -> Learnt:
        steps = (first, Step("nothing", 1 - first.share, 0.0))
        return Learnt(np.full(self.sharing.dim, np.nan), None, None, steps, reason)
