"""What no mechanism can beat, each bound with its class of mechanisms and its theorem."""

from __future__ import annotations

from muhat.bounds.ball import BallBounds, any_mean, ball
from muhat.bounds.every_shift import every_shift
from muhat.bounds.families import ExponentialFamily, exponential_family
from muhat.bounds.in_neighbor import in_neighbor
from muhat.bounds.linear_queries import linear_queries
from muhat.bounds.local import local
from muhat.bounds.lower_bound import LowerBound
from muhat.bounds.nikolov_tang import NikolovTang, nikolov_tang
from muhat.bounds.population import largest_spread, population_bounds, population_error
from muhat.bounds.ranks import interior_point, rank_error
from muhat.bounds.secret_number import secret_mean_bounds
from muhat.bounds.totals import mean, mean_bounds, sum_bounds
from muhat.bounds.trilemma import Trilemma, trilemma, trilemma_curve
from muhat.bounds.trilemma_moments import trilemma_moment
from muhat.bounds.unbiased import (
    ADD_REMOVE,
    SUBSTITUTION,
    contact_pairs,
    unbiased,
    unbiased_mean,
    unbiased_sum,
)
from muhat.bounds.volumes import volume_bound
from muhat.bounds.width import MinimumWidth, minimum_width

__all__ = [
    "ADD_REMOVE",
    "SUBSTITUTION",
    "BallBounds",
    "ExponentialFamily",
    "LowerBound",
    "MinimumWidth",
    "NikolovTang",
    "Trilemma",
    "any_mean",
    "ball",
    "contact_pairs",
    "every_shift",
    "exponential_family",
    "in_neighbor",
    "interior_point",
    "largest_spread",
    "linear_queries",
    "local",
    "mean",
    "mean_bounds",
    "minimum_width",
    "nikolov_tang",
    "population_bounds",
    "population_error",
    "rank_error",
    "secret_mean_bounds",
    "sum_bounds",
    "trilemma",
    "trilemma_curve",
    "trilemma_moment",
    "unbiased",
    "unbiased_mean",
    "unbiased_sum",
    "volume_bound",
]
