"""A mean or a sum of bounded records under given terms, until a recipe is chosen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from muhat import _check
from muhat._words import Parameter, given
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.body import Body
from muhat.mechanisms.sums.joint import joint
from muhat.mechanisms.sums.mechanisms import MECHANISMS, competing
from muhat.mechanisms.sums.recipe import Recipe
from muhat.noise.kinds import NoiseKind
from muhat.noise.laws import elliptic_law
from muhat.noise.protection import Protection
from muhat.planning.columns import (
    ball_recipes,
    check_population,
    column_recipes,
    counted_sums,
    pair_recipes,
    releases_columns,
)
from muhat.planning.sums import NoisySums, best_of
from muhat.planning.terms import Terms, UnderTerms, kinds_of_noise
from muhat.planning.two_steps import two_steps
from muhat.statistics.bounded import Bounded, refuse_dropped_records

ORDERS = (4.0, 2.0, 8.0, math.inf)
"""Of the noise that is tried where the largest error counts; of equals the first is taken."""

_STAIRS = Fraction(1, 2)
"""ε² from which on stairs on a sum and a count are worth more than K-norm noise."""


@dataclass(frozen=True, eq=False)
class Task(UnderTerms):
    """What is asked, under which terms: valid, complete, and still without a recipe."""

    asked: Bounded
    terms: Terms

    def __post_init__(self) -> None:
        if not self.is_secret:
            refuse_dropped_records(self.asked)
        check_population(self)

    @property
    def is_secret(self) -> bool:
        """Whether the number of records is."""
        return self.terms.is_secret

    @cached_property
    def body(self) -> Body:
        """The domain, ready to be summed and hidden."""
        asked, neighbors = self.asked, self.terms.neighbors
        return self._least(
            [
                Body.of(asked.domain, order, asked.weights, neighbors, asked.clip)
                for order in self._orders
            ]
        )

    @cached_property
    def body_from_origin(self) -> Body | None:
        """The same, measured from 0; None where that is not known."""
        asked = self.asked
        if asked.clip is not None:
            return None
        found = [Body.from_origin(asked.domain, order, asked.weights) for order in self._orders]
        bodies = [body for body in found if body is not None]
        return self._least(bodies) if bodies else None

    @property
    def _orders(self) -> tuple[float, ...]:
        """The orders of the norm whose best noise may err least.

        The largest of all errors knows how many of them are large, which Γ_∞ does not: noise that
        is as large as can be on whatever matters little would err up to twice as much.
        """
        return ORDERS if math.isinf(self.asked.p) and self.asked.domain.dim > 1 else (self.asked.p,)

    def _least(self, bodies: Sequence[Body]) -> Body:
        """The body whose elliptic noise errs least; plain columns are what they are."""
        if len(bodies) == 1 or bodies[-1].is_plain:
            return bodies[-1]
        law = elliptic_law(kinds_of_noise(self.privacy, self.asked.domain.dim)[0])

        def error(body: Body) -> float:
            (recipe,) = self.recipes(body, [law.mechanism])
            spread = recipe.sum_spread.weighted(self.asked.weights)
            return float(spread.root_mean_square(self.asked.p)[0])

        return min(bodies, key=error)

    @property
    def protection(self) -> Protection:
        """What every recipe for this task must guarantee."""
        return self.terms.protection

    def candidates(self) -> list[str]:
        """The mechanisms that compete, or the one that was asked for."""
        mechanism = self.asked.mechanism
        if mechanism is not None:
            admitted = {
                NoiseKind.PURE: self.privacy.admits_pure,
                NoiseKind.NORMAL: self.privacy.admits_normal,
            }
            family = [each.name for each in MECHANISMS.values() if admitted[each.kind]]
            words = f"mechanism for {self.privacy.kind} privacy"
            return [_check.one_of(Parameter("mechanism", words, f"--{words}"), mechanism, family)]
        # One record moves two shares of a simplex at most, however many there are.
        kinds = kinds_of_noise(self.privacy, self.asked.domain.most_nonzero)
        every = [competing(kind, self.asked.domain, self.protection) for kind in kinds]
        return [each.name for found in every for each in found]

    def recipes(self, body: Body, names: Iterable[str]) -> list[Recipe]:
        """A recipe for each of the named mechanisms."""
        return [
            MECHANISMS[name].make(body, self.asked.p, self.asked.weights, self.protection)
            for name in names
        ]

    def with_columns(self, names: Sequence[str]) -> list[Recipe]:
        """A recipe for each of the named mechanisms, with squares and counts where they belong."""
        squared = column_recipes if releases_columns(self) else ball_recipes
        found = squared(self, names)
        if self.asked.missing == "drop" and self.asked.domain.by_column:
            stairs = counted_sums(self, names)
            if not (found or stairs or two_steps(self, names)):
                able = [each.name for each in MECHANISMS.values() if each.beside_columns]
                raise InvalidInput(
                    f"{names[0]} is for complete records: with ",
                    given("missing", "drop"),
                    f" the mechanism is one of {', '.join(able)}; leave it out, or use ",
                    given("missing", "none"),
                    ".",
                )
            pairs = pair_recipes(self) if self.asked.mechanism is None else []
            return [*found.values(), *stairs, *pairs]
        if self.asked.population:
            if not found:
                raise InvalidInput(
                    f"{names[0]} has no room for squares: leave ",
                    given("population", True),
                    " out.",
                )
            return list(found.values())
        plain = [name for name in names if name not in found]
        return [*found.values(), *self.recipes(self.body, plain)]

    def joint(self, share: float) -> list[Recipe]:
        """The recipes that release the sum and the count together."""
        kinds = kinds_of_noise(self.privacy, self.asked.domain.dim + 1)
        if self.contributions > 1:
            # Pure noise is not for people with records in several groups: planning/groups.py.
            kinds = kinds[:1]
        if self.asked.statistic == "mean" and releases_columns(self):
            named = {NoiseKind.NORMAL: "gaussian", NoiseKind.PURE: "box-norm"}
            found = column_recipes(self, [named[kind] for kind in kinds])
            # For a smaller ε stairs gain less than one per cent here.
            pure = NoiseKind.PURE
            gains = pure in kinds and self.protection.strength_squared(pure) >= _STAIRS
            pairs = pair_recipes(self) if gains else []
            return [*found.values(), *pairs]
        names = {kind: elliptic_law(kind).mechanism for kind in kinds}
        found = ball_recipes(self, list(names.values()), share)
        return [
            found.get(name)
            or joint(
                self.body, self.asked.p, self.asked.weights, self.protection, kind, share=share
            )
            for kind, name in names.items()
            if not self.asked.population or name in found
        ]

    def best(self, recipes: Iterable[Recipe], more: Iterable[NoisySums] = ()) -> NoisySums:
        """The mechanism with the least expected error, or one of more; the rest are its rivals."""
        asked = self.asked
        return best_of(
            [
                *more,
                *(
                    NoisySums(
                        terms=self.terms,
                        statistic=asked.statistic,
                        columns=asked.columns,
                        premises=asked.premises(),
                        domain=asked.domain,
                        p=asked.p,
                        weights=asked.weights,
                        missing=asked.missing,
                        recipe=recipe,
                    )
                    for recipe in recipes
                ),
            ]
        )
