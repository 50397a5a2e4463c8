"""Which mechanism answers a statistic under given terms: the one with the least error.

Normal noise shaped by the smallest ellipsoid is the best under zCDP and Gaussian privacy, and under
approximate privacy in many dimensions. Under pure privacy, and in few dimensions under approximate
privacy, several mechanisms compete; those that lose are kept as `rivals`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from muhat._words import IN_REALS, SECRET_N, Parameter, given
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.joint import count_only, share_for_mean, share_for_sum
from muhat.mechanisms.sums.staircase import geometric_count
from muhat.noise.kinds import NoiseKind
from muhat.planning.constants import constants_of, parted, with_constants
from muhat.planning.mechanism import Mechanism
from muhat.planning.smooth import smooth_mean
from muhat.planning.sums import NoisySums, best_of
from muhat.planning.task import Task
from muhat.planning.terms import Terms, kinds_of_noise
from muhat.planning.two_steps import two_steps
from muhat.statistics.bounded import Bounded
from muhat.statistics.reals import LowBias, Unassuming


def mechanism_for(asked: Bounded | Unassuming | LowBias, terms: Terms) -> Mechanism:
    """The mechanism for a mean or a sum."""
    if isinstance(asked, Bounded):
        constant = constants_of(asked, terms)
        if constant.any():
            return with_constants(asked, terms, constant, mechanism_for)
        asked = parted(asked, terms)
        return bounded_sum(asked, terms) if asked.statistic == "sum" else bounded_mean(asked, terms)
    # Learning where records lie takes half of all modules, and bounded means need none of them.
    from muhat.planning.unknown_number import mean_in_reals, unknown_number_mean

    return unknown_number_mean(asked, terms) if terms.is_secret else mean_in_reals(asked, terms)


def mean_of_sums(asked: Bounded, terms: Terms) -> NoisySums:
    """A mean or a sum of a public number of records."""
    task = Task(asked, terms)
    names = task.candidates()
    return task.best(task.with_columns(names), two_steps(task, names))


def bounded_mean(asked: Bounded, terms: Terms) -> Mechanism:
    """A mean of records in a domain."""
    if asked.faithful and not terms.is_secret:
        raise InvalidInput(
            Parameter("faithful"),
            " is for a secret n here, ",
            SECRET_N,
            ": with a public n a mean of bounded records is unbiased as it is.",
        )
    if not terms.is_secret:
        return mean_of_sums(asked, terms)
    if asked.mechanism is not None and not (asked.unbiased and asked.mechanism == "smooth"):
        raise InvalidInput(
            "with a secret n the mechanism is the ratio, or smooth if unbiased; leave it out."
        )
    return smooth_mean(asked, terms) if asked.unbiased else ratio(asked, terms)


def ratio(asked: Bounded, terms: Terms) -> NoisySums:
    """A mean of a secret number of records: a noisy sum divided by a noisy count."""
    if terms.n_min is not None:
        raise InvalidInput(
            Parameter("n_min"), " is for ", given("unbiased", True), ", or for ", IN_REALS, "."
        )
    task = Task(asked, terms)
    return task.best(task.joint(share_for_mean(task.body, asked.p, asked.weights)))


def bounded_sum(asked: Bounded, terms: Terms) -> NoisySums:
    """A sum of records in a domain; unbiased also when n is secret."""
    task = Task(asked, terms)
    names = task.candidates()
    if not terms.is_secret or (asked.missing == "drop" and asked.domain.by_column):
        return task.best(task.with_columns(names))
    # A secret number of records: measure them from 0, or release their number too and add the
    # centre that many times.
    body = task.body_from_origin
    if body is None and not task.body.center.any():
        body = task.body
    recipes = [] if body is None else task.recipes(body, names)
    if asked.mechanism is None and task.body.center.any():
        recipes += task.joint(share_for_sum(task.body, asked.p, asked.weights))
    if not recipes:
        raise InvalidInput(
            "with a secret n, the sum over a domain around a centre other than 0 is released "
            "together with the count; leave the mechanism out."
        )
    return task.best(recipes)


def noisy_count(terms: Terms) -> NoisySums:
    """The number of records, under adding or removing one."""
    fields: dict[str, Any] = {"domain": None, "p": 2.0, "weights": np.ones(1), "missing": "center"}
    kinds = kinds_of_noise(terms.privacy, 1)
    recipes = [count_only(terms.protection, kind) for kind in kinds]
    least = geometric_count(terms.protection) if NoiseKind.PURE in kinds else None
    return best_of(
        [
            NoisySums(terms=terms, statistic="count", recipe=recipe, **fields)
            for recipe in (*recipes, *([] if least is None else [least]))
        ]
    )
