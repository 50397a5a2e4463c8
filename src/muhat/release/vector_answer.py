"""Means, sums and counts of columns: the values, their errors and their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat._arrays import Floats
from muhat.domains import Domain
from muhat.domains import from_dict as domain_from_dict
from muhat.errors import InvalidInput
from muhat.mechanisms.learning.moment_error import Moment, MomentError
from muhat.mechanisms.sums.ratio import Ratio
from muhat.noise.spread import Spread
from muhat.noise.student import StudentSpread
from muhat.release.answer import CONFIDENCE, Answer, interval_fields, read_common
from muhat.release.beside import Recorded, Squares
from muhat.release.display import MOST_ROWS
from muhat.release.outside import Outside, RecordMean
from muhat.release.population import population_interval, shows_population
from muhat.release.public_sets import Intervals, nearest
from muhat.release.vector_display import vector_notes, vector_rows, vector_table

Noise = Spread | Ratio | StudentSpread
"""What is known about the error of a value."""

Read = TypeVar("Read")

ONCE_PUBLIC = frozenset(
    {
        *("gaussian", "laplace", "box-norm", "ellipsoid-norm", "plain-laplace"),
        *("smooth", "joint", "ratio"),
        *("local-gaussian", "local-cap", "shuffle-shares", "shuffle-cap"),
    }
)
"""Of releases that do not say whether their domain was learnt: the mechanisms that did not."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class VectorAnswer(Answer):
    """A mean, a sum or a count, a value a column.

    `value`, of shape (d,), is the answer; the error against the exact answer for the clipped
    records is in `covariance`, `standard_error` and `interval`.

    Where nothing is known about the error, `noise` is None. `bias` bounds |E value − mean| in
    every column if the assumptions hold, None where no such bound is proved. `outside` counts the
    records outside a domain that was learnt, if that was paid for, and `record_mean` is where the
    mean lies with them, if none is too far out. Where n is secret and a part of
    the records was averaged, `averaged` says of how many: noisy, and paid for. Where a moment is
    assumed, `moment_error` and `rmse`, the root mean square error against the population's mean at
    most (weighted as in the plan), say what follows from it. `unprojected` is the value before
    `projected`. If a part of the value was shrunk, `unshrunk` is the value without that:
    intervals and errors are about it. With a `failure` all values are not-a-number.
    `missing` is the rule for missing values, `recorded` the noisy number of values that there were;
    a column where that cannot be told from 0 has the value not-a-number. `squares` are the noisy
    sums of squares, for the sampling error. Whether the domain was `learnt` from the records, and
    whether people sent them noisy already, `from_devices`, the mechanism says.
    """

    statistic: str
    value: Floats
    columns: tuple[str, ...]
    domain: Domain | None
    noise: Noise | None
    bias: float | None = None
    outside: Outside | None = None
    record_mean: RecordMean | None = None
    averaged: int | None = None
    moment_error: MomentError | None = None
    rmse: float | None = None
    unprojected: Floats | None = None
    unshrunk: Floats | None = None
    missing: str | None = None
    recorded: Recorded | None = None
    squares: Squares | None = None
    learnt: bool = False
    from_devices: bool = False

    schema: ClassVar[str] = "muhat.release/1"

    def __post_init__(self) -> None:
        super().__post_init__()
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
    def empty(self) -> NDArray[np.bool_]:
        """Where no recorded values could be told from none at all, of shape (d,)."""
        return np.isnan(self.value) & (self.missing == "drop")

    def _is_known(self, value: Floats) -> bool:
        return bool((np.isfinite(value) | (np.isnan(value) & (self.missing == "drop"))).all())

    @property
    def domain_is_learnt(self) -> bool:
        """Whether the domain came out with the value, instead of being public before."""
        return self.domain is not None and self.learnt

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

    def projected(self, onto: Domain | Intervals | None = None) -> VectorAnswer:
        """The value in a convex set that the exact answer lies in; see `Release.projected`."""
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

    @property
    def called(self) -> str:
        """A mean, a sum or a count."""
        return f"a {self.statistic}"

    @property
    def heading(self) -> str:
        """The statistic."""
        return self.statistic

    @property
    def people(self) -> str:
        """What is known of n, and of how many records the value is."""
        part = "" if self.averaged is None else f", {self.averaged} averaged"
        return super().people + part

    def rows(self, most: int = MOST_ROWS) -> list[list[str]]:
        """A line a column."""
        return vector_rows(self, most)

    def table(self, confidence: float = 0.95) -> dict[str, NDArray[Any]]:
        """A tidy table, a line a column of the data; not-a-number is not known."""
        return vector_table(self, confidence)

    def notes(self) -> list[str]:
        """How good the value is, or why that cannot be said."""
        return vector_notes(self)

    def to_dict(self) -> dict[str, Any]:
        errors, noise = self.standard_error, self.noise
        optional = {
            "bias": self.bias,
            "outside": _fields(self.outside),
            "record_mean": _fields(self.record_mean),
            "averaged": self.averaged,
            "rmse": self.rmse,
            "moment_error": _fields(self.moment_error),
            "unprojected": None if self.unprojected is None else _numbers(self.unprojected),
            "unshrunk": None if self.unshrunk is None else self.unshrunk.tolist(),
            "failure": self.failure,
            "missing": self.missing,
            "recorded": _fields(self.recorded),
            "squares": _fields(self.squares),
            "population_interval": self._population_fields(),
            "learnt": None if self.domain is None else self.learnt,
            "from_devices": self.from_devices or None,
        }
        return {
            "statistic": self.statistic,
            "columns": list(self.columns),
            "value": None if self.failed else _numbers(self.value),
            "standard_error": None if errors is None else [_number(error) for error in errors],
            "interval": None if noise is None else interval_fields(self.interval()),
            **self._common(),
            "domain": _fields(self.domain),
            "noise": None if noise is None else {"kind": _kind(type(noise)), **noise.to_dict()},
            **{name: field for name, field in optional.items() if field is not None},
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        columns, value, noise = tuple(fields["columns"]), fields["value"], fields["noise"]
        if (noise is None) != (fields["standard_error"] is None):
            raise InvalidInput("the release has errors and no noise, or the other way round.")

        def read(name: str, build: Callable[[Any], Read]) -> Read | None:
            field = fields.get(name)
            return None if field is None else build(field)

        return cls(
            statistic=fields["statistic"],
            value=_vector([math.nan] * len(columns) if value is None else value),
            columns=columns,
            domain=read("domain", domain_from_dict),
            noise=read("noise", _read_noise),
            bias=fields.get("bias"),
            outside=read("outside", Outside.from_dict),
            record_mean=read("record_mean", RecordMean.from_dict),
            averaged=read("averaged", partial(_check.count, "averaged")),
            moment_error=read("moment_error", MomentError.from_dict),
            rmse=read("rmse", partial(_check.real, "rmse")),
            unprojected=read("unprojected", _vector),
            unshrunk=read("unshrunk", _vector),
            failure=read("failure", str),
            missing=fields.get("missing"),
            recorded=read("recorded", Recorded.from_dict),
            squares=read("squares", Squares.from_dict),
            learnt=bool(fields.get("learnt", fields["mechanism"] not in ONCE_PUBLIC)),
            from_devices=bool(fields.get("from_devices", _sent(str(fields["mechanism"])))),
            **read_common(fields),
        )


def _sent(mechanism: str) -> bool:
    """Whether a release that does not say so was made of messages of people's devices."""
    return mechanism.startswith(("local-", "shuffle-"))


def _numbers(values: Floats) -> list[float | None]:
    """JSON has no not-a-number either; nothing stands for it."""
    return [None if math.isnan(value) else value for value in values.tolist()]


def _number(value: float) -> float | str:
    """JSON has no infinity; the word stands for it."""
    return float(value) if math.isfinite(value) else "inf"


def _vector(numbers: list[float]) -> Floats:
    return np.array(numbers, np.float64)


def _fields(part: Any) -> dict[str, Any] | None:
    return None if part is None else part.to_dict()


def _read_noise(fields: dict[str, Any]) -> Noise:
    kinds: dict[str, type[Noise]] = {_kind(each): each for each in (Spread, Ratio, StudentSpread)}
    return kinds[fields["kind"]].from_dict({k: v for k, v in fields.items() if k != "kind"})


def _kind(noise: type[Noise]) -> str:
    return noise.__name__.lower()
