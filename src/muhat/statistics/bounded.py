"""A mean or a sum of records in a bounded domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check
from muhat._arrays import Floats
from muhat._words import BOX, SECRET_N, Parameter, given
from muhat.domains import Box, Domain, Reals
from muhat.ellipsoids.smallest import weight_vector
from muhat.errors import InvalidInput

if TYPE_CHECKING:
    pass

NamedBounds = Mapping[str, tuple[float, float]]
Columns = Sequence[str] | Sequence[int] | None

MISSING = {
    "drop": "a missing or non-finite value is left out: each column is of its recorded values",
    "center": "a missing or non-finite value counts as the centre of the domain",
    "none": "nothing is missing, as was declared; a value that is counts as the centre",
}
"""What is said of each rule."""

DROPPED_RECORDS = "records with a missing or non-finite value are left out"


@dataclass(frozen=True, eq=False, kw_only=True)
class Bounded:
    """A mean or a sum of records in a domain.

    `columns` are named where bounds are. `clip` is a smaller domain that records are clipped to.
    `population` says whether squares are wanted, `mechanism` which one is, for comparison.
    `is_default`: nobody chose the rule for missing values, so a schema may. `faithful` keeps what a
    paper has for an unbiased mean of a secret number of records.
    """

    statistic: str
    domain: Domain
    columns: tuple[str, ...] | None
    p: float
    weights: Floats
    missing: str
    clip: Domain | None
    population: bool | None
    mechanism: str | None = None
    unbiased: bool = False
    is_default: bool = False
    faithful: bool = False

    needs_n = False
    """Sums have the same noise whatever n is."""

    @classmethod
    def of(
        cls,
        statistic: str,
        domain: Domain | NamedBounds | Reals | None,
        *,
        p: float = 2,
        weights: ArrayLike | Mapping[str, float] | None = None,
        missing: str | None = None,
        clip: Domain | None = None,
        population: bool | None = False,
        mechanism: str | None = None,
        unbiased: bool = False,
        faithful: bool = False,
    ) -> Bounded:
        """Check every argument."""
        where, columns = as_domain(domain)
        return cls(
            statistic=statistic,
            domain=where,
            columns=columns,
            p=_check.norm_order(p),
            weights=_weights(weights, where, columns),
            missing=_rule(missing, where, columns, clip),
            clip=_inner(clip, where),
            population=_check.optional_flag("population", population),
            mechanism=mechanism,
            unbiased=unbiased,
            is_default=missing is None,
            faithful=faithful,
        )

    @property
    def by_column(self) -> bool:
        """Whether every column is bounded by itself."""
        return self.domain.by_column and self.clip is None

    def completed(self) -> Bounded:
        """The same where a schema says that nothing is missing, unless a rule was chosen."""
        return replace(self, missing="none") if self.is_default else self

    def premises(self) -> tuple[str, ...]:
        """What errors rest on, in sentences."""
        clipped = "records outside the domain are clipped to it"
        if self.clip is not None:
            clipped = f"records are clipped to {self.clip!r}, inside the domain"
        whole = self.missing == "drop" and not self.domain.by_column
        rule = DROPPED_RECORDS if whole else MISSING[self.missing]
        return (f"{clipped}; errors are about the clipped records", rule)


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
            if low > high:
                raise InvalidInput(
                    f"the lower bound of {name} must not be above its upper bound; "
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


def chosen_columns(named: tuple[str, ...] | None, columns: Columns) -> Columns:
    """The columns that were asked for, or those that are named: never others than these."""
    from muhat.data.selection import column_names

    chosen = column_names(columns)
    if named and chosen and tuple(map(str, chosen)) != named:
        raise InvalidInput(
            f"the plan names its columns already: {', '.join(named)}; leave columns out."
        )
    return named if chosen is None else chosen


def _rule(
    missing: str | None, domain: Domain, columns: tuple[str, ...] | None, clip: Domain | None
) -> str:
    """What happens to missing values: where columns have names they are left out by default."""
    if missing is None:
        in_box = domain.by_column and clip is None
        return "drop" if in_box and columns is not None else "center"
    return _check.one_of("missing", missing, ["drop", "center", "none"])


def refuse_dropped_records(asked: Bounded) -> None:
    """Whole records that are left out change n: it cannot be public then."""
    if asked.missing == "drop" and not asked.by_column:
        raise InvalidInput(
            given("missing", "drop"),
            " with a public n is for records in a box, column by column; use ",
            given("missing", "center"),
            ", or ",
            SECRET_N,
            " to keep the number of complete records secret.",
        )


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


def _weights(
    weights: ArrayLike | Mapping[str, float] | None,
    domain: Domain,
    columns: tuple[str, ...] | None,
) -> Floats:
    if isinstance(weights, Mapping):
        if columns is None or set(weights) != set(columns):
            raise InvalidInput(
                "must name the columns of the bounds, each once", parameter="weights"
            )
        weights = [weights[name] for name in columns]
    if weights is not None:
        return weight_vector(weights, domain.dim)
    if columns is not None:
        # In widths of the bounds; what has no width has no error either.
        widths = np.where(domain.half_widths > 0, 2 * domain.half_widths, 1.0)
        return np.asarray(1 / widths)
    return np.ones(domain.dim)
