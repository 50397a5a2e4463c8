"""The mean of records that nobody has bounded: centre and radius are learnt privately.

The whole promise is charged before the first pass, whatever path the chain takes. What error it
will have depends on how far apart the records lie, which is secret: `error_at` says it for any
radius.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from muhat import _check
from muhat._words import BALL_OR_BOX, given, rows
from muhat.bounds import in_neighbor
from muhat.errors import InvalidInput
from muhat.mechanisms.learning.learning import Method
from muhat.mechanisms.learning.pure_mean import PureMean
from muhat.mechanisms.learning.recentring import Recentring
from muhat.mechanisms.learning.recentring_schedule import Schedule, with_least_noise
from muhat.mechanisms.learning.recorded_recentring import RecordedRecentring
from muhat.mechanisms.learning.sharing import Sharing
from muhat.noise.kinds import NoiseKind
from muhat.noise.spread import Spread
from muhat.planning.mechanism import Rows
from muhat.planning.picture import INK, NOISE, blank_figure
from muhat.planning.reals_mean import RealsMean, missing_line
from muhat.planning.terms import Terms
from muhat.release.display import significant
from muhat.statistics.reals import Unassuming

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from muhat.mechanisms.learning.clipped import Clipped
    from muhat.mechanisms.learning.shifted import ShiftedClipped


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LearntMean(RealsMean):
    """A mean of records in `Reals`, by a method that learns where they lie.

    Clipping biases the value, nobody knows how much, and bounds speak of unbiased ones: there is no
    certificate.
    """

    method: Method
    p: float

    def keeps(self, terms: Terms) -> bool:
        """Whether the method's steps were made for them, and for the domain."""
        sharing = self.method.sharing
        same = sharing.n == terms.n and sharing.magnitude == self.domain.magnitude
        return same and sharing.protection == terms.protection

    @property
    def chosen(self) -> str:
        return "the magnitude, the weights and p"

    @property
    def least_n(self) -> int:
        """The least number of records for which every step works almost surely."""
        return self.method.least_n

    @property
    def shares(self) -> dict[str, float]:
        """The share of the promise that each step takes."""
        return self.method.shares

    @property
    def unknowns(self) -> tuple[str, ...]:
        """How far apart the records lie."""
        return ("radius",)

    def error_if(self, radius: float) -> float:
        """The weighted root mean square ℓ_p noise if 99 % of the records lie within this radius.

        Around their centre, in weighted distance. The common path is assumed, and that the last
        ball has about this radius; what clipping takes from the records outside it comes on top.
        """
        r = _check.positive("radius", radius)
        sharing = self.method.sharing
        unit = 2 * r / sharing.n
        if self._pure_mean is not None:
            return unit * self._pure_mean.deviation
        unit /= sharing.step_strength(self.method.final_share)
        return Spread(sharing.law, self.dim, np.full(self.dim, unit)).root_mean_square(self.p)[0]

    @property
    def _pure_mean(self) -> PureMean | None:
        """The noise of the last step, if it is of another kind."""
        method = self.method
        if isinstance(method, Recentring | RecordedRecentring):
            return method.pure_mean
        return None

    @property
    def instance_ratio(self) -> float:
        """The error in units of w/2n if the records' diameter w is twice their radius.

        Every private mean errs by w/2n or more with probability `bounds.in_neighbor(privacy)` on
        the records or on a neighbour inside them.
        """
        return self.error_if(1.0) * self.method.sharing.n

    def errors(self) -> list[tuple[float, float]]:
        """`error_at` for radii over seven decades up to the magnitude."""
        assert self.domain.magnitude is not None
        radii = [self.domain.magnitude * 10.0**power for power in range(-6, 1)]
        return [(radius, self.error_if(radius)) for radius in radii]

    def facts(self) -> Rows:
        """The noise, too, if the promise does not ask for its kind."""
        chosen = self.method.sharing.pure and self.privacy.admits_normal
        return [*super().facts(), *([["noise", "pure, which is less here"]] if chosen else [])]

    def decisive(self) -> dict[str, Any]:
        """How errors are measured, too."""
        return {**super().decisive(), "p": str(self.p)}

    def details(self) -> dict[str, Any]:
        """The steps, their shares, and the errors."""
        return {
            **super().details(),
            "least_n": self.least_n,
            "p": "inf" if math.isinf(self.p) else self.p,
            "shares": self.shares,
            "errors": [{"radius": radius, "error": error} for radius, error in self.errors()],
            "instance_ratio": self.instance_ratio,
        }

    @property
    def number_words(self) -> str:
        """Whether there are enough records."""
        enough = "enough" if self.method.sharing.n >= self.least_n else "TOO FEW"
        return f"{self.n}, public; {enough}: at least {self.least_n} are needed"

    def tables(self) -> list[Rows]:
        """How the promise is split, and the error for radii that the records may have."""
        shares = [[name, f"{100 * share:.2f} %"] for name, share in self.shares.items()]
        errors = [[f"{radius:g}", significant(error)] for radius, error in self.errors()]
        return [
            [["step", "share of the promise"], *shares],
            [["if 99 % of the records lie within", "the error is about"], *errors],
        ]

    def notes(self) -> list[str]:
        """What no mechanism can beat on these records or beside them."""
        chance, ratio = in_neighbor(self.privacy), self.instance_ratio
        complete = ["Errors are those if nothing is missing."] if self.missing == "drop" else []
        return [
            *complete,
            f"Every such mean errs by half of the records' diameter over n or more with a "
            f"probability of at least {chance:.2g}, on these records or on neighbours inside them "
            f"(Huang, Liang and Yi); the error of this plan is about {significant(ratio)} times "
            "that.",
            "No certificate: clipping may bias the value. The whole promise is charged on every "
            "path.",
        ]

    def figure(self) -> Figure:
        """The error against the radius that holds 99 % of the records, on logarithmic axes."""
        figure = blank_figure(6)
        axes = figure.subplots()
        radii, errors = zip(*self.errors(), strict=True)
        axes.loglog(radii, errors, color=NOISE, lw=1.5)
        axes.set_xlabel("radius that holds 99 % of the records")
        axes.set_ylabel("error of the mean")
        title = f"Private mean of {self.n} records in {self.domain!r}, {self.privacy.describe()}"
        figure.suptitle(title, color=INK, fontsize="medium")
        return figure


def learnt_mean(asked: Unassuming, terms: Terms) -> LearntMean:
    """The mean of records that nobody has bounded, of which there are a public n."""
    domain, n = asked.domain, terms.n
    assert domain.magnitude is not None
    assert n is not None
    kind = NoiseKind.named_by(terms.privacy)
    sharing = Sharing(domain.magnitude, asked.weights, n, terms.protection, kind)
    method, said = make_method(asked, sharing)
    method.check()
    mean = LearntMean(
        terms=terms,
        domain=domain,
        p=asked.p,
        weights=asked.weights,
        method=method,
        premises=(
            *said,
            "errors are about the records clipped to the last ball, which is learnt privately",
        ),
        missing=asked.missing,
    )
    if method.is_enough:
        return mean
    if not asked.insist:
        columns = "one column" if domain.dim == 1 else f"{domain.dim} columns"
        raise InvalidInput(
            rows(n),
            f" is too small for {columns} and {terms.privacy.describe()}: at least {mean.least_n} "
            f"records are needed to learn where they lie, {max(mean.least_n - n, 1)} more.",
            hint=(
                "Spend more, bound the records (",
                BALL_OR_BOX,
                "), or take the risk of a useless answer at the full cost: ",
                given("insist", True),
                ".",
            ),
        )
    return mean.assuming(
        f"n is below the {mean.least_n} records that the steps need, so the value may be useless "
        "and its interval wrong"
    )


def make_method(asked: Unassuming, sharing: Sharing) -> tuple[Method, tuple[str, ...]]:
    """The method that was asked for, and what is assumed of it."""
    mechanism, rule, faithful = asked.mechanism, asked.missing, asked.faithful
    beyond = f"values beyond ±{sharing.magnitude:g} are clipped to that"
    missing = missing_line(rule, sharing.dim, "the centre that is found")
    if mechanism in (None, "recentring"):
        sharing = with_least_noise(sharing)
        fields = (sharing.magnitude, sharing.weights, sharing.n, sharing.protection, sharing.kind)
        schedule = Schedule(*fields)
        schedule = replace(schedule, pure_mean=schedule.pure_mean_of(sharing.protection))
        method = RecordedRecentring(sharing) if rule == "drop" else Recentring(schedule)
        finest = (
            f"no radius below {schedule.edges[0]:.2g} is looked for; records that lie closer "
            "together need a smaller magnitude"
        )
        shell = (
            "in the value, not in its interval, what lies beyond an inner radius may count with a "
            "smaller weight, if it is noise"
        )
        has_shell = not (schedule.pure or schedule.last.on_line)
        return method, (beyond, missing, finest, *([shell] if has_shell else []))
    assert mechanism is not None
    _refuse_unsuited(mechanism, sharing, faithful)
    estimator = _of_paper(mechanism, sharing, faithful, asked.scale)
    said = () if faithful or mechanism == "statistical" else (beyond, missing)
    return estimator, (*said, *estimator.assumptions)


def _of_paper(
    mechanism: str, sharing: Sharing, faithful: bool, scale: Any
) -> Clipped | ShiftedClipped:
    # The passes that they need are loaded only if one of them is asked for.
    from muhat.mechanisms.learning.clipped import Clipped
    from muhat.mechanisms.learning.shifted import ShiftedClipped
    from muhat.mechanisms.learning.statistical import Statistical

    if mechanism == "clipped":
        return Clipped(sharing, faithful)
    if mechanism == "shifted-clipped":
        return ShiftedClipped(sharing, faithful)
    return Statistical(sharing, faithful, scale=_bounds(scale))


def _refuse_unsuited(mechanism: str, sharing: Sharing, faithful: bool) -> None:
    weighted = bool((sharing.weights != 1).any())
    if weighted and (faithful or mechanism != "clipped"):
        raise InvalidInput(
            f"{mechanism} measures all columns alike, so there must be no weights; scale the "
            "columns instead, or use ",
            given("mechanism", "recentring"),
            ".",
        )
    if faithful and sharing.pure:
        raise InvalidInput(
            "faithful needs a promise that normal noise keeps: the paper has no pure version. "
            "Leave faithful out, or use mh.ZCDP."
        )


def _bounds(scale: Any) -> tuple[float, float]:
    try:
        low, high = scale
    except (TypeError, ValueError):
        raise InvalidInput(
            "must be a pair, for instance scale=(0.1, 100)", parameter="scale"
        ) from None
    low, high = _check.positive("scale[0]", low), _check.positive("scale[1]", high)
    if low > high or high > 1e100:
        raise InvalidInput(
            "must be an ascending pair of numbers of at most 1e100", parameter="scale"
        )
    return low, high
