"""What no mechanism can beat, each bound with its class of mechanisms and its theorem."""

from __future__ import annotations

from muhat.bounds.ball import ball
from muhat.bounds.domains import contact_pairs, unbiased
from muhat.bounds.lower_bound import LowerBound
from muhat.bounds.unbiased import unbiased_mean, unbiased_sum

__all__ = ["LowerBound", "ball", "contact_pairs", "unbiased", "unbiased_mean", "unbiased_sum"]
