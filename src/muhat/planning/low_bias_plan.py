"""A plan for a mean of which the bias is bounded, not only the noise.

Errors are about the mean of the distribution that the records are drawn from, so they rest on an
assumption about it that nobody can check: a moment, or symmetry too. The promise of privacy does
not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from muhat import _check, privacy
from muhat._arrays import Floats
from muhat.bounds.trilemma import Trilemma, trilemma, trilemma_curve
from muhat.errors import InvalidInput
from muhat.mechanisms.learning.moment import Moment
from muhat.planning.digest import digest_of
from muhat.planning.low_bias_method import Alternative, LowBiasMethod, class_of, finite
from muhat.planning.reals_plan import RealsPlan
from muhat.planning.tradeoff import Tradeoff

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LowBiasPlan(RealsPlan):
    """A private mean of bounded bias in `Reals`; `plan_mean` makes it.

    `alternatives` lists what else was possible. `curve` makes the plan for another bias.
    """

    method: LowBiasMethod
    moment: Moment
    alternatives: tuple[Alternative, ...]
    curve: Callable[[float], Alternative | None]

    p: ClassVar[float] = 2.0
    expected_error_method = "exact"
    certificate = None
    """None: no bound holds for biased means of one dataset. See `trilemma` for the class."""

    def __post_init__(self) -> None:
        if not self.method.keeps(self.privacy, self.contributions, self.n):
            raise InvalidInput(
                "a plan's promise, n and domain are those its noise was made for; "
                "make a new plan instead of changing them."
            )

    @property
    def predicted(self) -> Alternative:
        """Bias, standard error and root mean square error of this plan."""
        return Alternative.of(self.method)

    @property
    def bias(self) -> float | None:
        """No column's bias is larger, if the assumption holds; None if no bound is known."""
        return finite(self.predicted.bias)

    @property
    def rmse(self) -> float:
        """The weighted root mean square error against the mean of the distribution, at most.

        If the assumption holds and there is a value.
        """
        return self.predicted.rmse

    @property
    def expected_error(self) -> float:
        """The weighted root mean square ℓ₂ error of the noise, against the clipped records."""
        return self.method.noise_error

    @property
    def standard_error(self) -> Floats:
        """The standard deviation of the noise on each value, of shape (d,)."""
        return self.method.noise.standard_error

    @property
    def covariance(self) -> Floats:
        """The covariance of the noise on the value, of shape (d, d)."""
        return self.method.noise.covariance

    @cached_property
    def trilemma(self) -> Trilemma | None:
        """What no mechanism can beat on every distribution of the class; None for vectors.

        The class is that of the moment. A plan that assumes symmetry may do better: its bias is
        bounded for fewer distributions.
        """
        if self.dim > 1:
            return None
        if self.bias is None:
            return None
        return trilemma(
            self.n, bias=self.bias, privacy=self.privacy, **class_of(self.domain, self.moment)
        )

    def tradeoff(self, points: int = 40) -> Tradeoff:
        """Error against bias, with what no mechanism can beat under it; for one column."""
        if self.dim > 1:
            raise InvalidInput("the trade-off is drawn for one column; plan it by itself.")
        unit = float(self.moment.scales[0])
        biases = unit * np.geomspace(1e-5, 0.5, _check.count("points", points, least=2))
        reached = [self.curve(float(bias)) for bias in biases]
        errors = np.array([math.inf if each is None else each.rmse for each in reached])
        # Whatever a smaller bias reaches, a larger one allows too.
        errors = np.minimum.accumulate(errors)
        possible = np.isfinite(errors)
        if not possible.any():
            raise InvalidInput("without a magnitude no bias can be traded for less error.")
        biases, errors = biases[possible], errors[possible]
        floor = trilemma_curve(
            biases, n=self.n, privacy=self.privacy, **class_of(self.domain, self.moment)
        )
        return Tradeoff(
            biases,
            errors,
            floor,
            chosen=(self.predicted.bias, self.rmse),
            symmetric=self.method.assumes_symmetry,
            title=self.title,
        )

    @property
    def title(self) -> str:
        """What is planned, in a line."""
        return f"{self.n} records, {self.privacy.describe()}, {self.moment.describe()}"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that decides the release."""
        fields = {
            "schema": "muhat.planning.low_bias/1",
            "domain": self.domain.to_dict(),
            "privacy": privacy.to_dict(self.privacy),
            "missing": self.missing,
            "method": {"name": self.mechanism, **self.method.to_dict()},
        }
        return digest_of(fields)

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data, ready for JSON."""
        trilemma = self.trilemma
        return {
            "schema": "muhat.planning.low_bias/1",
            "statistic": self.statistic,
            "mechanism": self.mechanism,
            "columns": None,
            "privacy": privacy.to_dict(self.privacy),
            "neighbors": self.neighbors.value,
            "n": self.n,
            "p": self.p,
            "weights": self.weights.tolist(),
            "missing": self.missing,
            "contributions": self.contributions,
            "domain": self.domain.to_dict(),
            "moment": {"order": self.moment.order, "scales": self.moment.scales.tolist()},
            "bias": self.bias,
            "failure": self.method.failure,
            "expected_error": self.expected_error,
            "expected_error_method": self.expected_error_method,
            "standard_error": self.standard_error.tolist(),
            "rmse": finite(self.rmse),
            "certificate": None,
            "trilemma": None if trilemma is None else trilemma.to_dict(),
            "alternatives": [each.to_dict() for each in self.alternatives],
            "assumptions": list(self.assumptions),
            "cautions": list(privacy.cautions(self.privacy, self.n)),
            "digest": self.digest,
        }

    def describe(self) -> str:
        """The plan in words and tables."""
        from muhat.planning.low_bias_display import plan_text

        return plan_text(self)

    def plot(self) -> Figure:
        """The trade-off as a picture (needs the extra `plot`); returns a matplotlib Figure."""
        return self.tradeoff().plot()

    def _repr_html_(self) -> str:
        from muhat.planning.low_bias_display import plan_html

        return plan_html(self)
