"""What comes out: the value, its error, its interval, its certificate and its cost."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat._arrays import Floats
from muhat.domains import Domain
from muhat.domains import from_dict as domain_from_dict
from muhat.errors import InvalidInput
from muhat.mechanisms.learning.moment import Moment
from muhat.mechanisms.learning.moment_error import MomentError
from muhat.mechanisms.sums.ratio import Ratio
from muhat.noise.spread import Spread
from muhat.privacy import Neighbors, Privacy
from muhat.release.certificate import Certificate
from muhat.release.fields import (
    CONFIDENCE,
    account_fields,
    interval_fields,
    read_account,
    read_certificate,
)
from muhat.release.noise_fields import Noise, noise_from_dict, noise_to_dict
from muhat.release.outside import Outside
from muhat.release.population import population_interval, shows_population
from muhat.release.public_sets import Intervals, nearest
from muhat.release.reading import read_json
from muhat.release.record_mean import RecordMean
from muhat.release.recorded import Recorded
from muhat.release.squares import Squares

PUBLIC_DOMAIN = frozenset(
    {
        *("gaussian", "laplace", "plain-laplace", "box-norm", "ellipsoid-norm", "smooth"),
        *("joint", "ratio"),
        *("local-gaussian", "local-cap", "shuffle-shares", "shuffle-cap"),
    }
)
"""Mechanisms whose domain was public before; those of others may be learnt from the records."""

SCHEMA = "muhat.release/1"
"""The meaning of an existing field never changes; a new meaning is a new schema."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Release:
    """A private answer and everything that may be said about it.

    `value`, of shape (d,), is the answer; the error against the exact answer for the clipped
    records is in `covariance`, `standard_error` and `interval`. Nothing in a release depends on
    the data except through the noisy answer.

    Where nothing is known about the error, `noise` is None. `bias` bounds |E value − mean| in
    every column if the assumptions hold, None where no such bound is proved. `outside` counts the
    records outside a domain that was learnt, if that was paid for, and `record_mean` is where the
    mean lies with them, if none is too far out. Where n is secret and a part of
    the records was averaged, `averaged` says of how many: noisy, and paid for. Where a moment is
    assumed, `moment_error` and `rmse`, the root mean square error against the population's mean at
    most (weighted as in the plan), say what follows from it. `unprojected` is the value before
    `projected`. If a part of the value was shrunk, `unshrunk` is the value without that:
    intervals and errors are about it. With a `failure`, the reason why no value came out, all
    values are not-a-number.
    `missing` is the rule for missing values, `recorded` the noisy number of values that there were;
    a column where that cannot be told from 0 has the value not-a-number. `squares` are the noisy
    sums of squares, for the sampling error.
    """

    statistic: str
    value: Floats
    columns: tuple[str, ...]
    mechanism: str
    privacy: Privacy
    neighbors: Neighbors
    n: int | None
    contributions: int
    domain: Domain | None
    noise: Noise | None
    certificate: Certificate | None
    assumptions: tuple[str, ...]
    plan_digest: str
    ledger_head: dict[str, Any] | None
    bias: float | None = None
    outside: Outside | None = None
    record_mean: RecordMean | None = None
    averaged: int | None = None
    moment_error: MomentError | None = None
    rmse: float | None = None
    unprojected: Floats | None = None
    unshrunk: Floats | None = None
    failure: str | None = None
    missing: str | None = None
    recorded: Recorded | None = None
    squares: Squares | None = None

    def __post_init__(self) -> None:
        shape = (len(self.columns),)
        if self.recorded is not None and len(self.recorded.value) not in (1, *shape):
            raise InvalidInput("a release has one number of recorded values, or one a column.")
        if self.failed and not (self.value.shape == shape and np.isnan(self.value).all()):
            raise InvalidInput("a release that failed has not-a-number in every column.")
        said = (
            *(self.noise, self.certificate, self.outside, self.unprojected, self.unshrunk),
            *(self.averaged, self.moment_error, self.rmse, self.record_mean),
        )
        if self.failed and any(one is not None for one in said):
            raise InvalidInput("a release that failed has a reason and nothing else to say.")
        for value in () if self.failed else (self.value, self.unprojected, self.unshrunk):
            if value is not None and not (value.shape == shape and self._is_known(value)):
                raise InvalidInput("a release has one finite value a column.")
        if self.bias is not None and not _check.real("bias", self.bias) >= 0:
            raise InvalidInput("must not be negative", parameter="bias", value=f"{self.bias:g}")

    @property
    def failed(self) -> bool:
        """Whether no value came out; the promise is spent all the same."""
        return self.failure is not None

    @property
    def empty(self) -> NDArray[np.bool_]:
        """Where no recorded values could be told from none at all, of shape (d,)."""
        return np.isnan(self.value) & (self.missing == "drop")

    def _is_known(self, value: Floats) -> bool:
        return bool((np.isfinite(value) | (np.isnan(value) & (self.missing == "drop"))).all())

    @property
    def domain_is_learnt(self) -> bool:
        """Whether the domain came out with the value, instead of being public before."""
        return self.domain is not None and self.mechanism not in PUBLIC_DOMAIN

    @property
    def cost(self) -> Privacy:
        """The promise this release was charged with."""
        return self.privacy

    @property
    def standard_error(self) -> Floats | None:
        """The standard deviation of the noise on each coordinate, of shape (d,).

        None if nothing is known about the error; before a projection if there was one.
        """
        return None if self.noise is None else self.noise.standard_error

    @property
    def covariance(self) -> Floats | None:
        """The covariance of the noise, of shape (d, d), or None as for `standard_error`."""
        return None if self.noise is None else self.noise.covariance

    def interval(
        self,
        confidence: float = 0.95,
        *,
        simultaneous: bool = False,
        target: str = "records",
        guaranteed: bool = False,
    ) -> tuple[Floats, Floats]:
        """Lower and upper ends, each of shape (d,).

        The target "records" is the exact answer for the clipped records: the interval covers the
        noise alone ("empirical" is an old word for it). The target "population" is the mean of
        the distribution that the records are independent draws of, clipped too; for a sum, n
        times that. It adds the sampling error, from the noisy squares where they were released;
        `guaranteed` makes it hold for every n and distribution, and longer. Where a moment is
        assumed, it is the mean of the distribution itself, and the interval allows for noise,
        sampling and bias, for every distribution with that moment and every n. One interval a
        coordinate, or with `simultaneous` all of them at once. A projection moves the value and
        not the interval, which so holds even if the exact answer is not in the set; nor does
        shrinking.
        """
        level = _check.probability("confidence", confidence)
        _check.one_of("target", target, ["records", "population", "empirical"])
        noise = self._known_noise()
        if target == "population" and self.moment_error is not None and self.contributions == 1:
            assert isinstance(noise, Spread)
            half = self.moment_error.half_widths(noise, level, joint=simultaneous)
            return self._middle - half, self._middle + half
        if target == "population":
            return population_interval(
                self, level, simultaneous=simultaneous, guaranteed=guaranteed
            )
        if guaranteed:
            raise InvalidInput('guaranteed is for target="population"; the records\' always holds.')
        if isinstance(noise, Ratio):
            assert self.domain is not None
            lower, upper = noise.interval(level, joint=simultaneous)
            return self.domain.center + lower, self.domain.center + upper
        half = noise.half_widths(level, joint=simultaneous)
        return self._middle - half, self._middle + half

    @property
    def _middle(self) -> Floats:
        """The value that the noise is about: before shrinking, and before a projection."""
        if self.unshrunk is not None:
            return self.unshrunk
        return self.value if self.unprojected is None else self.unprojected

    def _known_noise(self) -> Noise:
        if self.failed:
            raise InvalidInput(f"no value came out, so nothing is known about it: {self.failure}.")
        if self.noise is None:
            raise InvalidInput(
                f"nothing is known about the error of this {self.statistic} by the mechanism "
                f"{self.mechanism!r}, so it has no interval."
            )
        return self.noise

    def projected(self, onto: Domain | Intervals | None = None) -> Release:
        """The value moved to the nearest point of a convex set that the exact answer lies in.

        `onto` is a public set: a domain (its convex hull), or intervals by column, which may
        have infinite ends and leave the other columns alone; `{"income": (0, math.inf)}` stands
        for a half-space, one such entry a column for the cone of non-negative values. Left out,
        it is the domain of the records, where their mean lies.

        Free of privacy cost, no longer unbiased. The certificate is dropped, because its bounds
        speak of unbiased mechanisms; intervals and standard errors stay those of the noise.

        >>> import math
        >>> import numpy as np, muhat as mh
        >>> data, promise = {"debt": np.zeros(900)}, mh.ZCDP(rho=0.1)
        >>> release = mh.mean(data, domain={"debt": (-1, 1)}, privacy=promise)
        >>> float(release.projected(onto={"debt": (0, math.inf)})) >= 0
        True
        """
        if self.failed:
            raise InvalidInput(f"no value came out that could be projected: {self.failure}.")
        if onto is None and (self.domain is None or self.statistic != "mean"):
            raise InvalidInput(
                "only a mean is known to lie in the domain of the records; say where this "
                f"{self.statistic} lies: projected(onto={{{self.columns[0]!r:.40}: (0, math.inf)}})"
                " or another muhat domain."
            )
        chosen = self.domain if onto is None else onto
        assert chosen is not None
        value, words = nearest(chosen, self.value, self.columns)
        where = "the convex hull of the domain" if onto is None else f"{words}, as declared"
        return replace(
            self,
            value=value,
            unprojected=self.value if self.unprojected is None else self.unprojected,
            certificate=None,
            bias=None,
            rmse=None,
            assumptions=(
                *self.assumptions,
                f"projected onto {where}, which may bias the value; intervals and standard errors "
                "are those before the projection",
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """The release as plain data, ready for JSON."""
        errors, noise = self.standard_error, self.noise
        optional = {
            "bias": self.bias,
            "outside": None if self.outside is None else self.outside.to_dict(),
            "record_mean": None if self.record_mean is None else self.record_mean.to_dict(),
            "averaged": self.averaged,
            "rmse": self.rmse,
            "moment_error": None if self.moment_error is None else self.moment_error.to_dict(),
            "unprojected": None if self.unprojected is None else _numbers(self.unprojected),
            "unshrunk": None if self.unshrunk is None else self.unshrunk.tolist(),
            "failure": self.failure,
            "missing": self.missing,
            "recorded": None if self.recorded is None else self.recorded.to_dict(),
            "squares": None if self.squares is None else self.squares.to_dict(),
            "population_interval": self._population_fields(),
        }
        return {
            "schema": SCHEMA,
            "statistic": self.statistic,
            "columns": list(self.columns),
            "value": None if self.failed else _numbers(self.value),
            "standard_error": None if errors is None else [_number(error) for error in errors],
            "interval": None if noise is None else interval_fields(self.interval()),
            **account_fields(self, self.certificate),
            "domain": None if self.domain is None else self.domain.to_dict(),
            "noise": None if noise is None else noise_to_dict(noise),
            **{name: field for name, field in optional.items() if field is not None},
        }

    @property
    def moment(self) -> Moment | None:
        """What was assumed of the population; None if nothing was."""
        return None if self.moment_error is None else self.moment_error.moment

    @property
    def tells_population(self) -> bool:
        """Whether an assumed moment gives an interval for the population's mean, as shown."""
        error = self.moment_error
        return error is not None and self.contributions == 1 and error.tells(CONFIDENCE)

    def _population_fields(self) -> dict[str, Any] | None:
        if not (self.tells_population or shows_population(self)):
            return None
        return interval_fields(self.interval(target="population"), "population")

    def to_json(self, indent: int | None = 2) -> str:
        """The release as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Release:
        """The release that `to_json` wrote."""
        return read_json(text, SCHEMA, "a muhat release", cls._of)

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> Release:
        domain, value, failure = fields["domain"], fields["value"], fields.get("failure")
        columns, outside = tuple(fields["columns"]), fields.get("outside")
        averaged, rmse, assumed = map(fields.get, ("averaged", "rmse", "moment_error"))
        values = [math.nan] * len(columns) if value is None else value
        recorded, squares, whole = map(fields.get, ("recorded", "squares", "record_mean"))
        if (fields["noise"] is None) != (fields["standard_error"] is None):
            raise InvalidInput("the release has errors and no noise, or the other way round.")
        return cls(
            statistic=fields["statistic"],
            value=np.array(values, np.float64),
            columns=columns,
            mechanism=fields["mechanism"],
            domain=None if domain is None else domain_from_dict(domain),
            noise=noise_from_dict(fields["noise"]),
            certificate=read_certificate(fields),
            bias=fields.get("bias"),
            outside=None if outside is None else Outside.from_dict(outside),
            record_mean=None if whole is None else RecordMean.from_dict(whole),
            averaged=None if averaged is None else _check.count("averaged", averaged),
            moment_error=None if assumed is None else MomentError.from_dict(assumed),
            rmse=None if rmse is None else _check.real("rmse", rmse),
            unprojected=_vector(fields.get("unprojected")),
            unshrunk=_vector(fields.get("unshrunk")),
            failure=None if failure is None else str(failure),
            missing=fields.get("missing"),
            recorded=None if recorded is None else Recorded.from_dict(recorded),
            squares=None if squares is None else Squares.from_dict(squares),
            **read_account(fields),
        )

    def __float__(self) -> float:
        if len(self.value) != 1:
            raise TypeError("only a release of one number is a float")
        return float(self.value[0])

    def __repr__(self) -> str:
        from muhat.release.display import release_text

        return release_text(self)

    def _repr_html_(self) -> str:
        from muhat.release.display import release_html

        return release_html(self)


def _numbers(values: Floats) -> list[float | None]:
    """JSON has no not-a-number either; nothing stands for it."""
    return [None if math.isnan(value) else value for value in values.tolist()]


def _number(value: float) -> float | str:
    """JSON has no infinity; the word stands for it."""
    return float(value) if math.isfinite(value) else "inf"


def _vector(numbers: list[float] | None) -> Floats | None:
    return None if numbers is None else np.array(numbers, np.float64)
