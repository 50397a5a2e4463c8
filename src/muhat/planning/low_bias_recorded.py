"""A mean of bounded bias of the complete ones of n records: count them, then plan for as many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.mechanisms.learning.learning import Learnt, RandomPart
from muhat.mechanisms.learning.ratio_mean import FEW
from muhat.mechanisms.learning.recorded_number import FAILURE, RecordedNumber
from muhat.mechanisms.learning.steps import Step
from muhat.mechanisms.learning.unknown_number import random_part
from muhat.noise.spread import Spread
from muhat.planning.low_bias_method import LowBiasMethod
from muhat.planning.reals_mean import require_to_draw
from muhat.privacy import Privacy

if TYPE_CHECKING:
    from muhat.data import Source


@dataclass(frozen=True, eq=False)
class RecordedMean:
    """A method for n records of which some may be missing.

    `complete` is the one if none is, and `method_for` makes it for any smaller number, or refuses.
    What is predicted is that of `complete`; what came out says what holds of it.
    """

    complete: LowBiasMethod
    number: RecordedNumber
    promise: Privacy
    method_for: Callable[[int], LowBiasMethod]

    @property
    def name(self) -> str:
        """What users call it."""
        return self.complete.name

    @property
    def label(self) -> str:
        """What tells it from its alternatives."""
        return self.complete.label

    @property
    def summary(self) -> str:
        """What it does, in a few words."""
        return self.complete.summary

    @property
    def printed(self) -> tuple[str, str] | None:
        """What it is in a paper, and what ours has instead, if it is kept as printed."""
        return self.complete.printed

    @property
    def biases(self) -> Floats:
        """Bounds on the bias of every column if nothing is missing; of shape (d,)."""
        return self.complete.biases

    @property
    def noise(self) -> Spread:
        """The noise on the mean if nothing is missing."""
        return self.complete.noise

    @property
    def noise_error(self) -> float:
        """The weighted root mean square ℓ₂ error of that noise."""
        return self.complete.noise_error

    @property
    def rmse(self) -> float:
        """The weighted root mean square error against the mean, at most, if nothing is missing."""
        return self.complete.rmse

    @property
    def failure(self) -> float:
        """The probability that the steps before the mean fail, if nothing is missing."""
        return min(1.0, self.complete.failure + FAILURE)

    @property
    def assumes_symmetry(self) -> bool:
        """Whether the bias is bounded for symmetric distributions only."""
        return self.complete.assumes_symmetry

    def keeps(self, promise: Privacy, contributions: int, n: int) -> bool:
        """Whether these are the promise and the number of records it was made for."""
        same = RecordedNumber.of(promise, n, contributions) == self.number
        return same and self.complete.keeps(self.number.rest, contributions, n)

    def admit(self, source: Source) -> None:
        """Refuse records that are elsewhere: some of them are drawn at random."""
        require_to_draw(source)

    def run(self, source: Source) -> Learnt:
        """Count the complete records, draw some and average them."""
        from muhat.data import open_source
        from muhat.data.engine import gathered

        records = gathered(source)
        records = records[~np.isnan(records).any(axis=1)]
        found, number = self.number.draw(len(records))
        first, left = Step("number", self.number.share, 0.0), 1 - self.number.share
        nothing = np.full(source.dim, np.nan)
        if number < 1:
            return Learnt(nothing, None, None, (first,), FEW)
        try:
            method = self.method_for(number)
        except InvalidInput:
            # Too few, which the noisy number alone decides.
            reason = f"about {round(found.value)} recorded values are too few for this plan"
            return Learnt(nothing, None, None, (first,), reason)
        chosen = random_part(records, number, np.nan)
        learnt = method.run(open_source(chosen, None, source.dim))
        steps = (first, *(replace(step, share=step.share * left) for step in learnt.steps))
        if learnt.failure:
            return replace(learnt, steps=steps)
        error = learnt.error
        if error is not None:
            error = replace(error, failed=error.failed + FAILURE)
        bias = float(method.biases.max())
        part = RandomPart(found.value, found.standard_error, number, bias)
        return replace(learnt, steps=steps, error=error, part=part)

    def to_dict(self) -> dict[str, Any]:
        """All that decides the release."""
        return {**self.complete.to_dict(), "number": self.number.to_dict()}
