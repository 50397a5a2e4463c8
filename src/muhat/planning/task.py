"""The arguments of a plan, checked once and kept together until a recipe is chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check
from muhat._words import BOX, SECRET_N, Parameter, given
from muhat.domains import Box, Domain, Reals, Simplex
from muhat.domains.vectors import Vector
from muhat.ellipsoids.smallest import weight_vector
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.body import Body
from muhat.mechanisms.sums.box_norm import box_norm
from muhat.mechanisms.sums.ellipsoidal import ellipsoid_norm, gaussian
from muhat.mechanisms.sums.joint import joint
from muhat.mechanisms.sums.laplace import laplace, plain_laplace
from muhat.mechanisms.sums.recipe import Protection, Recipe
from muhat.planning.ball import ball_recipes
from muhat.planning.caution import warn_of_large_delta
from muhat.planning.columns import (
    LAWS_BY_NAME,
    check_population,
    column_recipes,
    releases_columns,
)
from muhat.planning.noise_kinds import kinds_of_noise
from muhat.planning.plan import Plan
from muhat.privacy import Neighbors, Privacy, check_promise

NamedBounds = Mapping[str, tuple[float, float]]
Mechanism = Callable[[Body, float, Vector, Protection], Recipe]

PURE: dict[str, Mechanism] = {
    "ellipsoid-norm": ellipsoid_norm,
    "laplace": laplace,
    "box-norm": box_norm,
    "plain-laplace": plain_laplace,
}
NORMAL: dict[str, Mechanism] = {"gaussian": gaussian}

MISSING = {
    "drop": "a missing or non-finite value is left out: each column is of its recorded values",
    "center": "a missing or non-finite value counts as the centre of the domain",
    "none": "nothing is missing, as was declared; a value that is counts as the centre",
}
"""What is said of each rule."""

DROPPED_RECORDS = "records with a missing or non-finite value are left out"


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """What is to be planned: valid, complete, and still without a recipe."""

    statistic: str
    domain: Domain
    n: int | None
    privacy: Privacy
    p: float
    weights: Vector
    neighbors: Neighbors
    missing: str
    contributions: int
    columns: tuple[str, ...] | None
    clip: Domain | None
    population: bool | None

    @classmethod
    def of(
        cls,
        statistic: str,
        *,
        domain: Domain | NamedBounds | Reals | None,
        n: int | None,
        privacy: Privacy,
        p: float,
        weights: ArrayLike | Mapping[str, float] | None,
        neighbors: Neighbors | str | None,
        missing: str | None,
        contributions: int,
        clip: Domain | None,
        population: bool | None = False,
    ) -> Task:
        """Check every argument."""
        where, columns = as_domain(domain)
        check_promise(privacy)
        n = None if n is None else _check.count("n", n)
        warn_of_large_delta(privacy, n, stacklevel=4)
        task = cls(
            statistic=statistic,
            domain=where,
            n=n,
            privacy=privacy,
            p=_check.norm_order(p),
            weights=_weights(weights, where, columns),
            neighbors=relation_of(n, neighbors),
            missing=_rule(missing, where, columns, n, clip),
            contributions=_check.count("contributions", contributions),
            columns=columns,
            clip=_inner(clip, where),
            population=_check.optional_flag("population", population),
        )
        check_population(task)
        return task

    @cached_property
    def body(self) -> Body:
        """The domain, ready to be summed and hidden."""
        return Body.of(self.domain, self.p, self.weights, self.neighbors, self.clip)

    def protection(self, *, pure: bool) -> Protection:
        """What every recipe for this task must guarantee."""
        return Protection.of(self.privacy, self.neighbors, self.contributions, pure=pure)

    def candidates(self, mechanism: str | None) -> list[str]:
        """The mechanisms that compete, or the one that was asked for."""
        if mechanism is not None:
            family = [
                *(PURE if self.privacy.admits_pure else ()),
                *(NORMAL if self.privacy.admits_normal else ()),
            ]
            words = f"mechanism for {self.privacy.kind} privacy"
            return [_check.one_of(Parameter("mechanism", words, f"--{words}"), mechanism, family)]
        # Of equals the first wins: the simplest.
        simple = {Box: ["laplace", "box-norm"], Simplex: ["laplace"]}.get(type(self.domain), [])
        named = {False: ["gaussian"], True: [*simple, "ellipsoid-norm"]}
        # One record moves two shares of a simplex at most, however many there are.
        dim = 1 if isinstance(self.domain, Simplex) else self.domain.dim
        return [name for pure in kinds_of_noise(self.privacy, dim) for name in named[pure]]

    def recipes(self, body: Body, names: Iterable[str]) -> list[Recipe]:
        """A recipe for each of the named mechanisms."""
        return [
            (PURE | NORMAL)[name](body, self.p, self.weights, self.protection(pure=name in PURE))
            for name in names
        ]

    def with_columns(self, names: Sequence[str]) -> list[Recipe]:
        """A recipe for each of the named mechanisms, with squares and counts where they belong."""
        squared = column_recipes if releases_columns(self) else ball_recipes
        found = squared(self, names)
        if self.missing == "drop" and isinstance(self.domain, Box):
            if not found:
                raise InvalidInput(
                    f"{names[0]} is for complete records: with ",
                    given("missing", "drop"),
                    f" the mechanism is one of {', '.join(LAWS_BY_NAME)}; leave it out, or use ",
                    given("missing", "none"),
                    ".",
                )
            return list(found.values())
        if self.population:
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
        kinds = kinds_of_noise(self.privacy, self.domain.dim + 1)
        if self.contributions > 1:
            # Pure noise is not for people with records in several groups: planning/groups.py.
            kinds = kinds[:1]
        if self.statistic == "mean" and releases_columns(self):
            return list(
                column_recipes(
                    self, ["box-norm" if pure else "gaussian" for pure in kinds]
                ).values()
            )
        names = {pure: "ellipsoid-norm" if pure else "gaussian" for pure in kinds}
        found = ball_recipes(self, list(names.values()), share)
        return [
            found.get(name)
            or joint(self.body, self.p, self.weights, self.protection(pure=pure), share=share)
            for pure, name in names.items()
            if not self.population or name in found
        ]

    def plan(self, recipe: Recipe) -> Plan:
        """The plan that follows this recipe."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        clip = fields.pop("clip")
        del fields["population"]
        lines = assumptions(
            self.statistic,
            self.neighbors,
            self.n,
            self.missing,
            self.contributions,
            by_column=isinstance(self.domain, Box),
        )
        if clip is not None:
            lines = (f"records are clipped to {clip!r}, inside the domain", *lines[1:])
        return Plan(**fields, recipe=recipe, assumptions=lines)

    def best(self, recipes: list[Recipe]) -> Plan:
        """The plan with the least expected error; the rest become its alternatives."""
        return best_plan([self.plan(recipe) for recipe in recipes])


def best_plan(plans: Sequence[Plan]) -> Plan:
    """The plan with the least expected error; the rest become its alternatives."""
    if len(plans) == 1:
        return plans[0]
    best, *others = sorted(plans, key=lambda plan: float(f"{_error(plan):.9e}"))
    if best.is_ratio:
        return best
    return replace(best, alternatives=tuple((each.mechanism, _error(each)) for each in others))


def _error(plan: Plan) -> float:
    """What plans are compared by; that of a ratio at any number of records, to which it is
    inversely proportional.
    """
    return plan.error_at(1) if plan.is_ratio else plan.expected_error or 0.0


def as_domain(
    domain: Domain | NamedBounds | Reals | None,
) -> tuple[Domain, tuple[str, ...] | None]:
    """The domain, and the columns' names if it was given as a dict of bounds."""
    if isinstance(domain, Domain):
        return domain, None
    if isinstance(domain, Mapping) and domain:
        try:
            pairs = [(low, high) for low, high in domain.values()]
        except (TypeError, ValueError):
            raise InvalidInput(
                'must be pairs, for instance {"age": (16, 90)}',
                parameter=Parameter("domain", "bounds"),
            ) from None
        for name, (low, high) in zip(domain, pairs, strict=True):
            low, high = (
                _check.real(Parameter("domain", f"lower bound of {name}"), low),
                _check.real(Parameter("domain", f"upper bound of {name}"), high),
            )
            if low >= high:
                raise InvalidInput(
                    f"the lower bound of {name} must be below its upper bound; "
                    f"got {low:g} and {high:g}."
                )
        lower, upper = zip(*pairs, strict=True)
        return Box(lower, upper), tuple(str(name) for name in domain)
    if isinstance(domain, Reals):
        raise InvalidInput(
            "records in Reals have no bounds, so only their mean is planned, with n public: "
            "mh.plan_mean or mh.mean.",
            hint=("For anything else bound them, for instance by ", BOX, "."),
        )
    raise InvalidInput(
        "must say where records lie: a muhat domain such as mh.Ball(radius=1, dim=3) or "
        'mh.Box(lower=[0], upper=[1]), or a dict of bounds such as {"age": (16, 90)}',
        parameter="domain",
        hint=(
            "If nobody knows bounds, a generous magnitude is enough for a mean: mh.mean(data, "
            "domain=mh.Reals(dim=3, magnitude=1e6), privacy=...)."
        ),
    )


def assumptions(
    statistic: str,
    neighbors: Neighbors,
    n: int | None,
    missing: str,
    contributions: int,
    *,
    by_column: bool,
) -> tuple[str, ...]:
    """What the promise and the errors rest on, in sentences.

    Values that are missing are left out `by_column`, or else the whole record is.
    """
    records = "one record" if contributions == 1 else f"{contributions} records"
    holds = f"a person contributes at most {records}"
    if statistic == "count":
        return (holds,)
    lines = ["records outside the domain are clipped to it; errors are about the clipped records"]
    lines.append(MISSING[missing] if by_column or missing != "drop" else DROPPED_RECORDS)
    lines.append(f"n = {n} is public" if neighbors is Neighbors.SUBSTITUTE else "n is secret")
    if statistic == "mean" and n is None:
        lines.append("a ratio of a noisy sum and a noisy count: slightly biased, no certificate")
    elif statistic == "mean" and missing == "drop":
        lines.append("a ratio of a noisy sum and a noisy count: unbiased to first order")
    lines += [holds, "the domain, the weights and p were chosen without looking at the data"]
    return tuple(lines)


def _rule(
    missing: str | None,
    domain: Domain,
    columns: tuple[str, ...] | None,
    n: int | None,
    clip: Domain | None,
) -> str:
    """What happens to missing values: where columns have names they are left out by default."""
    in_box = isinstance(domain, Box) and clip is None
    if missing is None:
        return "drop" if in_box and columns is not None else "center"
    _check.one_of("missing", missing, ["drop", "center", "none"])
    if missing == "drop" and n is not None and not in_box:
        raise InvalidInput(
            given("missing", "drop"),
            " with a public n is for records in a box, column by column; use ",
            given("missing", "center"),
            ", or ",
            SECRET_N,
            " to keep the number of complete records secret.",
        )
    return missing


def _inner(clip: Domain | None, domain: Domain) -> Domain | None:
    """The domain that records are clipped to, about the same centre."""
    if clip is None:
        return None
    if not isinstance(clip, Domain) or clip.dim != domain.dim or not clip.is_symmetric:
        raise InvalidInput(
            "must be a symmetric muhat domain with as many coordinates as the domain",
            parameter="clip",
        )
    if np.any(np.abs(clip.center - domain.center) > 1e-9 * np.maximum(domain.half_widths, 1e-300)):
        raise InvalidInput(
            "must have the same centre as the domain; move it there with +", parameter="clip"
        )
    if np.any(clip.half_widths > domain.half_widths * (1 + 1e-9)):
        raise InvalidInput("must lie inside the domain", parameter="clip")
    return clip


def relation_of(n: int | None, neighbors: Neighbors | str | None) -> Neighbors:
    """The relation that a public or a secret n implies; another one is refused."""
    implied = Neighbors.ADD_REMOVE if n is None else Neighbors.SUBSTITUTE
    if neighbors is not None and Neighbors.parse(neighbors) is not implied:
        fact = "n is secret" if n is None else "n is public"
        raise InvalidInput(
            f"{fact}, so neighbors must be {implied.value!r}; got "
            f"{Neighbors.parse(neighbors).value!r}."
        )
    return implied


def _weights(
    weights: ArrayLike | Mapping[str, float] | None,
    domain: Domain,
    columns: tuple[str, ...] | None,
) -> Vector:
    if isinstance(weights, Mapping):
        if columns is None or set(weights) != set(columns):
            raise InvalidInput(
                "must name the columns of the bounds, each once", parameter="weights"
            )
        weights = [weights[name] for name in columns]
    if weights is not None:
        return weight_vector(weights, domain.dim)
    if columns is not None:
        return np.asarray(0.5 / domain.half_widths)
    return np.ones(domain.dim)


def in_order(bounds: NamedBounds, columns: Sequence[str] | Sequence[int]) -> NamedBounds:
    """The bounds in the order of the columns, each named once in both."""
    named = {str(name): pair for name, pair in bounds.items()}
    names = [str(name) for name in columns]
    for name in names:
        if name not in named:
            hint = _check.did_you_mean(name, named)
            raise InvalidInput(f"column {name!r:.60} has no bounds.{hint}")
    for name in named:
        if name not in names:
            raise InvalidInput(f"bounds are given for {name!r:.60}, which is not in columns.")
    return {name: named[name] for name in names}
