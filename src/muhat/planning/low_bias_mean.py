"""A mean of which the bias is bounded, not only the noise.

Errors are about the mean of the distribution that the records are drawn from, so they rest on an
assumption about it that nobody can check: a moment, or symmetry too. The promise of privacy does
not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from muhat import _check
from muhat._arrays import Floats
from muhat.bounds.trilemma import Trilemma, trilemma, trilemma_curve
from muhat.errors import InvalidInput
from muhat.mechanisms.learning.moment_error import Moment
from muhat.planning.low_bias_method import Alternative, LowBiasMethod, class_of, finite
from muhat.planning.mechanism import Rows
from muhat.planning.printed import printed_note
from muhat.planning.reals_mean import RealsMean
from muhat.planning.terms import Terms
from muhat.planning.tradeoff import Tradeoff
from muhat.release.display import significant

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_WEIGHTS = 5
"""How many are shown."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LowBiasMean(RealsMean):
    """A private mean of bounded bias in `Reals`.

    `others` lists what else was possible. `curve` says what is reached with another bias. No bound
    holds for biased means of one dataset, so there is no certificate: see `trilemma` for the class.
    """

    method: LowBiasMethod
    moment: Moment
    others: tuple[Alternative, ...]
    curve: Callable[[float], Alternative | None]

    p = 2.0

    def keeps(self, terms: Terms) -> bool:
        """Whether the method was made for them."""
        assert terms.n is not None
        return self.method.keeps(terms.privacy, terms.contributions, terms.n)

    @property
    def chosen(self) -> str:
        return "the moment, the magnitude and the bias"

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
    def expected_error_method(self) -> str:
        """Of noise alone, and exact."""
        return "exact"

    @property
    def standard_error(self) -> Floats:
        return self.method.noise.standard_error

    @property
    def covariance(self) -> Floats:
        return self.method.noise.covariance

    @cached_property
    def trilemma(self) -> Trilemma | None:
        """What no mechanism can beat on every distribution of the class; None for vectors.

        The class is that of the moment. A plan that assumes symmetry may do better: its bias is
        bounded for fewer distributions.
        """
        if self.dim > 1 or self.bias is None:
            return None
        assert self.n is not None
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
        assert self.n is not None
        floor = trilemma_curve(
            biases, n=self.n, privacy=self.privacy, **class_of(self.domain, self.moment)
        )
        return Tradeoff(
            biases,
            errors,
            floor,
            chosen=(self.predicted.bias, self.rmse),
            symmetric=self.method.assumes_symmetry,
            title=f"{self.n} records, {self.privacy.describe()}, {self.moment.describe()}",
        )

    @property
    def alternatives(self) -> tuple[tuple[str, float], ...]:
        """The other mechanisms that were possible, with their root mean square errors."""
        return tuple((each.mechanism, each.rmse) for each in self.others)

    def errors(self) -> list[tuple[str, float]]:
        """The root mean square error of this mechanism and of its alternatives, at most."""
        return [(self.predicted.mechanism, self.rmse), *self.alternatives]

    def details(self) -> dict[str, Any]:
        """What is assumed, what follows, and what else was possible."""
        trilemma = self.trilemma
        return {
            **super().details(),
            "p": self.p,
            "moment": {"order": self.moment.order, "scales": self.moment.scales.tolist()},
            "bias": self.bias,
            "failure": self.method.failure,
            "rmse": finite(self.rmse),
            "trilemma": None if trilemma is None else trilemma.to_dict(),
            "alternatives": [each.to_dict() for each in self.others],
        }

    @property
    def title(self) -> str:
        """What is planned."""
        return "private mean of bounded bias"

    def facts(self) -> Rows:
        """The domain, what is assumed, and the method."""
        domain, mechanism = super().facts()
        rows = [domain, ["assumed", self.moment.describe()], mechanism]
        if self.method.failure > 0:
            rows.append(["failure", f"with a probability of at most {self.method.failure:.2g}"])
        return rows

    def tables(self) -> list[Rows]:
        """Bias and errors of the mechanism, then of its alternatives."""
        rows = [["mechanism", "bias at most", "noise", "root mean square error"]]
        for number, each in enumerate((self.predicted, *self.others)):
            name = f"{each.mechanism} (this plan)" if number == 0 else each.mechanism
            rows.append([name, *map(significant, (each.bias, each.standard_error, each.rmse))])
        return [rows]

    def notes(self) -> list[str]:
        """What no mechanism can beat."""
        notes = [] if self.trilemma is None else [self.trilemma.sentence()]
        if self.method.assumes_symmetry:
            notes = [f"If symmetry is not assumed: {note[0].lower()}{note[1:]}" for note in notes]
        if self.method.printed is not None:
            what, instead = self.method.printed
            less, error = map(significant, (self.others[0].rmse, self.rmse))
            gain = f"the root mean square error is at most {less} in place of {error}"
            notes.insert(0, printed_note(what, f"{instead}, and {gain}"))
        if self.missing == "drop":
            notes.insert(0, "Bias and errors are those if nothing is missing.")
        if self.domain.dim > 1:
            notes.insert(0, self._together())
        return notes

    def _together(self) -> str:
        """What the noise and the error of several columns are."""
        shown = ", ".join(f"{weight:.4g}" for weight in self.weights[:MOST_WEIGHTS])
        more = ", …" * (len(self.weights) > MOST_WEIGHTS)
        times = "" if (self.weights == 1).all() else f", each times its weight ({shown}{more})"
        return f"Noise and error are of all columns together{times}; the bias is that of the worst."

    def figure(self) -> Figure:
        """The trade-off between bias and error."""
        return self.tradeoff().plot()
