"""A plan for the mean of records that nobody has bounded: centre and radius are learnt privately.

The whole promise is charged before the first pass, whatever path the chain takes. What error it
will have depends on how far apart the records lie, which is secret: `error_at` says it for any
radius.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check, privacy
from muhat._words import BALL_OR_BOX, example_of_reals, given, rows
from muhat.domains.reals import Reals
from muhat.ellipsoids.smallest import weight_vector
from muhat.errors import InvalidInput
from muhat.mechanisms.learning.learning import Method
from muhat.mechanisms.learning.sharing import Sharing
from muhat.mechanisms.sums.recipe import Protection
from muhat.noise.law import LAWS
from muhat.noise.spread import Spread
from muhat.planning.caution import warn_of_large_delta
from muhat.planning.digest import digest_of
from muhat.planning.reals_plan import RealsPlan
from muhat.planning.unbounded_methods import make_method
from muhat.privacy import Neighbors, Privacy

if TYPE_CHECKING:
    from matplotlib.figure import Figure


LARGEST_WEIGHTED = 2_000
"""Columns up to which errors may be weighted: the last ellipsoid is a matrix."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class UnboundedPlan(RealsPlan):
    """A private mean of records in `Reals`, ready to be released; `plan_mean` makes it."""

    method: Method
    p: float

    expected_error = expected_error_method = standard_error = covariance = None
    """None: the radius of the records is secret. See `error_at`."""
    certificate = None
    bias: ClassVar[None] = None
    """None: clipping biases the value, nobody knows how much, and bounds speak of unbiased ones."""

    def __post_init__(self) -> None:
        promised = Protection.of(self.privacy, self.neighbors, self.contributions)
        sharing = self.method.sharing
        same = sharing.n == self.n and sharing.magnitude == self.domain.magnitude
        if sharing.protection != promised or not same:
            raise InvalidInput(
                "a plan's promise, n and domain are those its steps were made for; "
                "make a new plan instead of changing them."
            )

    @property
    def least_n(self) -> int:
        """The least number of records for which every step works almost surely."""
        return self.method.least_n

    @property
    def shares(self) -> dict[str, float]:
        """The share of the promise that each step takes."""
        return self.method.shares

    def error_at(self, radius: float) -> float:
        """The weighted root mean square ℓ_p noise if 99 % of the records lie within this radius.

        Around their centre, in weighted distance. The common path is assumed, and that the last
        ball has about this radius; what clipping takes from the records outside it comes on top.
        """
        r = _check.positive("radius", radius)
        sharing = self.method.sharing
        unit = 2 * r / (self.n * sharing.step_strength(self.method.final_share))
        law = LAWS["euclidean-norm" if sharing.pure else "normal"]
        return Spread(law, self.dim, np.full(self.dim, unit)).root_mean_square(self.p)[0]

    @property
    def instance_ratio(self) -> float:
        """The error in units of w/2n if the records' diameter w is twice their radius.

        Every private mean errs by w/2n or more with probability `bounds.in_neighbor(privacy)` on
        the records or on a neighbour inside them.
        """
        return self.error_at(1.0) * self.n

    def errors(self) -> list[tuple[float, float]]:
        """`error_at` for radii over seven decades up to the magnitude."""
        assert self.domain.magnitude is not None
        radii = [self.domain.magnitude * 10.0**power for power in range(-6, 1)]
        return [(radius, self.error_at(radius)) for radius in radii]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that decides the release."""
        fields = {
            "schema": "muhat.planning.unbounded/1",
            "domain": self.domain.to_dict(),
            "privacy": privacy.to_dict(self.privacy),
            "missing": self.missing,
            "p": str(self.p),
            "method": {"name": self.mechanism, **self.method.to_dict()},
        }
        return digest_of(fields)

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data, ready for JSON."""
        return {
            "schema": "muhat.planning.unbounded/1",
            "statistic": self.statistic,
            "mechanism": self.mechanism,
            "columns": None,
            "privacy": privacy.to_dict(self.privacy),
            "neighbors": self.neighbors.value,
            "n": self.n,
            "least_n": self.least_n,
            "p": "inf" if math.isinf(self.p) else self.p,
            "weights": self.weights.tolist(),
            "missing": self.missing,
            "contributions": self.contributions,
            "domain": self.domain.to_dict(),
            "shares": self.shares,
            "expected_error": None,
            "errors": [{"radius": radius, "error": error} for radius, error in self.errors()],
            "instance_ratio": self.instance_ratio,
            "certificate": None,
            "assumptions": list(self.assumptions),
            "cautions": list(privacy.cautions(self.privacy, self.n)),
            "digest": self.digest,
        }

    def describe(self) -> str:
        """The plan in words and tables."""
        from muhat.planning.unbounded_display import plan_text

        return plan_text(self)

    def plot(self) -> Figure:
        """The plan as a picture (needs the extra `plot`); returns a matplotlib Figure."""
        from muhat.planning.unbounded_picture import plan_figure

        return plan_figure(self)

    def _repr_html_(self) -> str:
        from muhat.planning.unbounded_display import plan_html

        return plan_html(self)


def plan_unbounded_mean(
    domain: Reals,
    *,
    n: int,
    privacy: Privacy,
    p: float = 2,
    weights: ArrayLike | Mapping[str, float] | None = None,
    contributions: int = 1,
    missing: str = "center",
    insist: bool = False,
    mechanism: str | None = None,
    faithful: bool = False,
    scale: tuple[float, float] | None = None,
) -> UnboundedPlan:
    """Plan the mean of records that nobody has bounded.

    `insist` makes a plan for fewer records than the steps need, too. `missing`, `mechanism`,
    `faithful` and `scale` are those of `plan_mean`.
    """
    if domain.magnitude is None:
        raise InvalidInput(
            "must be given to learn centre and radius: a generous public bound on every "
            "coordinate, for instance ",
            example_of_reals(domain.dim),
            parameter="magnitude",
        )
    n = _check.count("n", n)
    warn_of_large_delta(privacy, n, stacklevel=3)
    if isinstance(weights, Mapping):
        raise InvalidInput(
            "must be numbers in Reals, one a column, not a dict of names", parameter="weights"
        )
    scales = np.ones(domain.dim) if weights is None else weight_vector(weights, domain.dim)
    if weights is not None and domain.dim > LARGEST_WEIGHTED:
        raise InvalidInput(f"weights are for at most {LARGEST_WEIGHTED} columns in Reals.")
    contributions = _check.count("contributions", contributions)
    protection = Protection.of(privacy, Neighbors.SUBSTITUTE, contributions)
    sharing = Sharing(domain.magnitude, scales, n, protection)
    method, said = make_method(mechanism, sharing, rule=missing, faithful=faithful, scale=scale)
    method.check()
    plan = UnboundedPlan(
        domain=domain,
        n=n,
        privacy=privacy,
        p=_check.norm_order(p),
        weights=scales,
        contributions=contributions,
        method=method,
        assumptions=(*said, *_assumptions(n, contributions)),
        missing=missing,
    )
    if method.is_enough:
        return plan
    if not insist:
        columns = "one column" if domain.dim == 1 else f"{domain.dim} columns"
        raise InvalidInput(
            rows(n),
            f" is too small for {columns} and {privacy.describe()}: at least {plan.least_n} "
            f"records are needed to learn where they lie, {max(plan.least_n - n, 1)} more.",
            hint=(
                "Spend more, bound the records (",
                BALL_OR_BOX,
                "), or take the risk of a useless answer at the full cost: ",
                given("insist", True),
                ".",
            ),
        )
    return plan.assuming(
        f"n is below the {plan.least_n} records that the steps need, so the value may be useless "
        "and its interval wrong"
    )


def _assumptions(n: int, contributions: int) -> tuple[str, ...]:
    records = "one record" if contributions == 1 else f"{contributions} records"
    return (
        "errors are about the records clipped to the last ball, which is learnt privately",
        f"n = {n} is public",
        f"a person contributes at most {records}",
        "the magnitude, the weights and p were chosen without looking at the data",
    )
