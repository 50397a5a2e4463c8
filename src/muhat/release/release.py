"""What comes out: the value, its error, its interval, its certificate and its cost."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat import _check, privacy
from muhat.domains import Domain
from muhat.domains import from_dict as domain_from_dict
from muhat.domains.hull import nearest_in_hull
from muhat.errors import InvalidInput
from muhat.mechanisms.ratio import Ratio
from muhat.noise.spread import Spread
from muhat.privacy import Neighbors, Privacy
from muhat.release.certificate import Certificate
from muhat.release.reading import read_json

Floats = NDArray[np.float64]

SCHEMA = "muhat.release/1"
"""The meaning of an existing field never changes; a new meaning is a new schema."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Release:
    """A private answer and everything that may be said about it.

    `value`, of shape (d,), is the answer; the error against the exact answer for the clipped
    records is in `covariance`, `standard_error` and `interval`. Nothing in a release depends on
    the data except through the noisy answer.
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
    noise: Spread | Ratio
    certificate: Certificate | None
    assumptions: tuple[str, ...]
    plan_digest: str
    ledger_head: dict[str, Any] | None

    def __post_init__(self) -> None:
        if self.value.shape != (len(self.columns),) or not np.isfinite(self.value).all():
            raise InvalidInput("a release has one finite value a column.")

    @property
    def cost(self) -> Privacy:
        """The promise this release was charged with."""
        return self.privacy

    @property
    def standard_error(self) -> Floats:
        """The standard deviation of the noise on each coordinate, of shape (d,)."""
        return self.noise.standard_error

    @property
    def covariance(self) -> Floats:
        """The covariance of the noise, of shape (d, d)."""
        return self.noise.covariance

    def interval(
        self, confidence: float = 0.95, *, simultaneous: bool = False, target: str = "empirical"
    ) -> tuple[Floats, Floats]:
        """Lower and upper ends, each of shape (d,).

        The target "empirical" is the exact answer for the clipped records: the interval covers
        the noise alone. The target "population" is the mean of the distribution that the
        records are drawn from (clipped too), if they are independent draws of it: Hoeffding's
        inequality adds the sampling error, with nothing assumed but the bounds. One interval a
        coordinate, or with `simultaneous` all of them at once.
        """
        level = _check.probability("confidence", confidence)
        _check.one_of("target", target, ["empirical", "population"])
        if target == "population":
            half = self._population_half_widths(level, simultaneous)
            return self.value - half, self.value + half
        if isinstance(self.noise, Ratio):
            assert self.domain is not None
            lower, upper = self.noise.interval(level, joint=simultaneous)
            return self.domain.center + lower, self.domain.center + upper
        half = self.noise.half_widths(level, joint=simultaneous)
        return self.value - half, self.value + half

    def _population_half_widths(self, level: float, simultaneous: bool) -> Floats:
        if self.statistic != "mean" or self.domain is None:
            raise InvalidInput(
                f"a {self.statistic} has no population interval; only a mean estimates "
                "something of the population."
            )
        if self.n is None or isinstance(self.noise, Ratio):
            raise InvalidInput(
                "the sampling error depends on the number of records, which is secret here; "
                'use target="empirical".'
            )
        if self.mechanism == "recentring":
            raise InvalidInput(
                "the domain was learnt from these records, so it bounds no independent draws; "
                'use target="empirical".'
            )
        if self.contributions > 1:
            raise InvalidInput(
                "records of one person are not independent draws, so the sampling error is "
                'unknown with contributions > 1; use target="empirical".'
            )
        miss, spread = 1 - level, self.noise
        statements = len(self.value) if simultaneous else 1
        halves = []
        for share in (0.1, 0.3, 0.5, 0.7, 0.9):
            # Any public split of the miss between noise and sampling is valid; take the best.
            sampling = math.sqrt(2 / self.n * math.log(2 * statements / (miss * (1 - share))))
            halves.append(
                spread.half_widths(1 - miss * share, joint=simultaneous)
                + self.domain.half_widths * sampling
            )
        return np.asarray(min(halves, key=lambda half: float(np.sum(half / halves[0]))))

    def projected(self) -> Release:
        """The value moved to the nearest point of the domain's convex hull, where the mean lies.

        Free of privacy cost, no longer unbiased. The certificate is dropped, because its bounds
        speak of unbiased mechanisms.
        """
        if self.domain is None or self.statistic != "mean":
            raise InvalidInput("only a mean is known to lie in the domain of the records.")
        note = "projected onto the convex hull of the domain, which may bias the value"
        return replace(
            self,
            value=nearest_in_hull(self.domain, self.value),
            certificate=None,
            assumptions=(*self.assumptions, note),
        )

    def to_dict(self) -> dict[str, Any]:
        """The release as plain data, ready for JSON."""
        lower, upper = self.interval()
        return {
            "schema": SCHEMA,
            "statistic": self.statistic,
            "columns": list(self.columns),
            "value": self.value.tolist(),
            "standard_error": [_number(error) for error in self.standard_error],
            "interval": {
                "confidence": 0.95,
                "target": "empirical",
                "lower": lower.tolist(),
                "upper": upper.tolist(),
            },
            "mechanism": self.mechanism,
            "privacy": privacy.to_dict(self.privacy),
            "neighbors": self.neighbors.value,
            "n": self.n,
            "contributions": self.contributions,
            "domain": None if self.domain is None else self.domain.to_dict(),
            "noise": {"kind": type(self.noise).__name__.lower(), **self.noise.to_dict()},
            "cost": privacy.to_dict(self.cost),
            "certificate": None if self.certificate is None else self.certificate.to_dict(),
            "assumptions": list(self.assumptions),
            "plan_digest": self.plan_digest,
            "ledger_head": self.ledger_head,
        }

    def to_json(self, indent: int | None = 2) -> str:
        """The release as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Release:
        """The release that `to_json` wrote."""
        return read_json(text, SCHEMA, "a muhat release", cls._of)

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> Release:
        noise = Ratio if fields["noise"]["kind"] == "ratio" else Spread
        domain, certificate = fields["domain"], fields["certificate"]
        return cls(
            statistic=fields["statistic"],
            value=np.array(fields["value"], np.float64),
            columns=tuple(fields["columns"]),
            mechanism=fields["mechanism"],
            privacy=privacy.from_dict(fields["privacy"]),
            neighbors=Neighbors.parse(fields["neighbors"]),
            n=fields["n"],
            contributions=fields["contributions"],
            domain=None if domain is None else domain_from_dict(domain),
            noise=noise.from_dict(fields["noise"]),
            certificate=None if certificate is None else Certificate.from_dict(certificate),
            assumptions=tuple(fields["assumptions"]),
            plan_digest=fields["plan_digest"],
            ledger_head=fields["ledger_head"],
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


def _number(value: float) -> float | str:
    """JSON has no infinity; the word stands for it."""
    return float(value) if math.isfinite(value) else "inf"
