"""Private running sums: all that is public about them, before anything is pushed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from muhat import _check, bounds, privacy
from muhat._arrays import Floats
from muhat.domains import Box
from muhat.domains.norms import p_norm
from muhat.ellipsoids import smallest_ellipsoid
from muhat.errors import InvalidInput
from muhat.mechanisms.queries.event_weights import Weights
from muhat.mechanisms.queries.running_optimum import (
    several_floor,
)
from muhat.noise.error import moment_bound
from muhat.planning.mechanism import Columns, Mechanism, Rows
from muhat.planning.picture import INK, NOISE, blank_figure
from muhat.planning.terms import Terms
from muhat.privacy import Neighbors, Privacy
from muhat.release.certificate import Certificate
from muhat.release.display import certificate_lines, significant
from muhat.stream.engines import ENGINES, NOISES, Engine, Noise, engine_of
from muhat.stream.grid import EventGrid

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MOST_SHOWN = 8
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
MOST_TOGETHER = 512
"""Steps of streams for which it is solved what several events of a person move at least."""

LEAST_BESIDE = 2.0**-200
"""Coordinates of an event so small beside the largest count for nothing."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RunningSums(Mechanism):
    """All that is public about a counter: its promise, its bounds, its noise."""

    grids: tuple[EventGrid, ...]
    noise: Noise
    scalar: bool
    p: float
    memory: str

    def keeps(self, terms: Terms) -> bool:
        """Whether the noise was made for them, and for the bounds."""
        noise = self.noise
        units = [(grid.exponent, grid.reach) for grid in self.grids]
        return (
            noise.made_for(terms.privacy)
            and noise.contributions == terms.contributions
            and list(zip(noise.exponents, noise.reaches, strict=True)) == units
            and all((grid.origin is None) == terms.is_secret for grid in self.grids)
        )

    def to_dict(self) -> dict[str, Any]:
        """What a saved counter keeps of it."""
        return {
            "schema": "muhat.stream.plan/1",
            "privacy": privacy.to_dict(self.privacy),
            **self.decisive(),
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> RunningSums:
        """The counter that `to_dict` described."""
        noise = NOISES[fields["noise"]["mechanism"]].from_dict(fields["noise"])
        grids = tuple(map(EventGrid.from_list, fields["grids"]))
        relation = Neighbors.SUBSTITUTE if grids[0].origin is not None else Neighbors.ADD_REMOVE
        return cls(
            terms=_terms(privacy.from_dict(fields["privacy"]), noise.contributions, relation),
            statistic=STATISTIC,
            grids=grids,
            noise=noise,
            scalar=bool(fields["scalar"]),
            p=_check.norm_order(float(fields["p"])),
            memory=_check.one_of("memory", fields["memory"], ENGINES),
        )

    @property
    def engine(self) -> type[Engine]:
        """What carries it out."""
        return engine_of(self.noise, self.memory)

    def weight_after(self, pushed: Any) -> Any:
        """How many events the sums after so many pushes count, each by its weight."""
        return pushed if self._counted is None else self._counted[pushed]

    @cached_property
    def _counted(self) -> Floats | None:
        """That after 0, 1, … pushes; None where every event counts the same."""
        events = self.noise.events
        return None if events == Weights() else np.append(0.0, events.shares(self.horizon))

    @property
    def name(self) -> str:
        """The factorisation and its noise."""
        return f"{self.noise.name} ({self.memory})"

    @property
    def horizon(self) -> int:
        """How many events can be pushed in all."""
        return self.noise.size

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Whose events are hidden, and what is public."""
        events = "one event" if self.contributions == 1 else f"{self.contributions} events"
        if self.noise.apart > 1 and self.contributions > 1:
            events += f", no two less than {self.noise.apart} steps apart"
        steps = "the number of steps is public"
        if not self.terms.is_secret:
            steps = "every step has an event; their number is public"
        return (
            f"a person has at most {events}",
            f"{steps}; events are clipped to their bounds",
            *self.said,
        )

    @cached_property
    def certificate(self) -> Certificate:
        """The error of all answers together, beside what no mechanism can beat."""
        return _certificate(self)

    @cached_property
    def deviations(self) -> Floats:
        """The standard deviations of all answers, of shape (n, d)."""
        return self.engine.deviations(self.noise)

    @property
    def expected_error(self) -> float:
        """The root mean square ℓ_p error of all answers together."""
        return self.certificate.error

    @property
    def expected_error_method(self) -> str:
        """How that was found."""
        return self.certificate.method

    def errors(self) -> list[tuple[int, float]]:
        """The largest standard error of the answers after 1, 10, 100, … and all pushes."""
        size = self.horizon
        places = sorted({*(10**k for k in range(8) if 10**k < size), size})
        return [(place, float(self.deviations[place - 1].max())) for place in places]

    def decisive(self) -> dict[str, Any]:
        """The bounds and the noise."""
        return {
            "grids": [grid.to_list() for grid in self.grids],
            "noise": self.noise.to_dict(),
            "scalar": self.scalar,
            "p": str(self.p),
            "memory": self.memory,
        }

    def details(self) -> dict[str, Any]:
        """How many events there may be, and the errors on the way."""
        errors = [{"push": place, "standard_error": error} for place, error in self.errors()]
        return {"horizon": self.horizon, "p": str(self.p), "errors": errors}

    @property
    def title(self) -> str:
        """What is planned."""
        return self.noise.events.words(self.horizon)

    @property
    def relation(self) -> str:
        """What one person can do to the events."""
        return self.terms.relation("event")

    @property
    def number_words(self) -> str:
        """How many pushes there are is public."""
        return f"{self.horizon:,} pushes at most, public"

    def facts(self) -> Rows:
        """The factorisation."""
        return [["mechanism", self.name]]

    def tables(self) -> list[Rows]:
        """The standard error of every coordinate, the first ones, after some pushes."""
        shown = self.grids[:MOST_SHOWN]
        rows = [["push", *("standard error" for _ in shown)]]
        for place, _ in self.errors():
            errors = self.deviations[place - 1, : len(shown)]
            rows.append([f"{place:,}", *(significant(float(error)) for error in errors)])
        return [rows]

    def notes(self) -> list[str]:
        """The certificate."""
        return certificate_lines(self.certificate)

    def figure(self) -> Figure:
        """The standard error of the answer after every push."""
        figure = blank_figure(6)
        axes = figure.subplots()
        places = np.unique(np.geomspace(1, self.horizon, 400).astype(np.int64))
        axes.semilogx(places, self.deviations[places - 1].max(axis=1), color=NOISE, lw=1.5)
        axes.set_xlabel("pushes")
        axes.set_ylabel("standard error of the sum")
        axes.set_ylim(bottom=0)
        title = f"{self.title[:1].upper()}{self.title[1:]}, {self.privacy.describe()}"
        figure.suptitle(title, color=INK, fontsize="medium")
        return figure

    def open(self, data: Any, columns: Columns) -> Engine:
        """The noise, which may not fit into memory; there are no data yet."""
        if data is not None:
            raise InvalidInput(
                "running sums are released push by push: counter = mh.stream.start(plan), then "
                "counter.push(event)."
            )
        return self.engine.start(self.noise)

    def note(self, source: Engine) -> str:
        """How many events there may be."""
        if self.contributions == 1 or self.noise.apart == 1:
            return self.title
        return f"{self.title}, those of a person at least {self.noise.apart} steps apart"

    def read(self, source: Engine) -> Engine:
        """Nothing yet."""
        return source


STATISTIC = "running sums"


def _terms(promise: Privacy, contributions: int, relation: Neighbors) -> Terms:
    """A step without an event is a push of 0, unless events are replaced."""
    return Terms(privacy=promise, neighbors=relation, contributions=contributions)


def _certificate(sums: RunningSums) -> Certificate:
    """The error of all answers together, and the lower bounds.

    The floor of γ_(p) for running sums of vectors is the floor for running sums times that of the
    body of one event: the dual measures multiply. Several events of a person are at different
    times; for additive noise it is solved what they move together, and the other bounds are those
    of one event. A time has one event, so there are no copies of it.
    """
    p = sums.p
    spread, moment = sums.deviations, sums.noise.moment
    known = math.isfinite(p) and np.isfinite(moment(p)).all()
    power = float(p_norm((spread * moment(p)).ravel(), p)) if known else None
    error, method = _root_mean_square(spread, p, moment)
    order = "ℓ∞" if math.isinf(p) else f"ℓ{p:g}".translate(SUBSCRIPTS)
    floor = sums.noise.floor(p) * _body_floor(sums)
    if sums.terms.is_secret:
        lower = bounds.sum_bounds(floor, privacy=sums.privacy, copies=0)
    else:
        lower = bounds.linear_queries(
            sums.noise.events.workload(sums.horizon),
            sums.privacy,
            p,
            neighbors=sums.neighbors,
            floor=floor,
        )
    if sums.contributions > 1 and sums.horizon <= MOST_TOGETHER:
        lower = (*lower[:-1], _together(sums))
    metric = f"root mean square {order} error of all running sums"
    return Certificate(metric, p, error, method, lower, power)


def _together(sums: RunningSums) -> bounds.LowerBound:
    """What additive noise errs at least that hides all events of a person."""
    noise, several = sums.noise, sums.contributions
    floor = several_floor(sums.horizon, sums.p, noise.events, several, noise.apart)
    each = floor * _body_floor(sums) / several
    if sums.terms.is_secret:
        return bounds.sum_bounds(each, privacy=sums.privacy, contributions=several, copies=0)[-1]
    return bounds.linear_queries(
        noise.events.workload(sums.horizon),
        sums.privacy,
        sums.p,
        neighbors=sums.neighbors,
        floor=each,
        contributions=several,
    )[-1]


def _root_mean_square(
    spread: Floats, p: float, moment: Callable[[float], float | Floats]
) -> tuple[float, str]:
    """(E‖z‖_p²)^½ of correlated noise: exact at p = 2, else an upper bound."""
    if p == 2:
        return float(np.sqrt(np.sum(spread**2))), "exact"
    return moment_bound(spread, p, moment), "bound"


def _body_floor(sums: RunningSums) -> float:
    """A floor of Γ_p of what one event can add or take away, or of two events' difference.

    In units of the largest coordinate; those beyond floats beside it are left out, which only
    lowers Γ_p.
    """
    _, unit = math.frexp(max(math.ldexp(g.reach, g.exponent) for g in sums.grids))
    seen = [g for g in sums.grids if math.ldexp(g.reach, g.exponent - unit) > LEAST_BESIDE]
    if len(seen) == 1:
        return math.ldexp(seen[0].reach, seen[0].exponent)
    lower = [math.ldexp(g.lower, g.exponent - unit) for g in seen]
    upper = [math.ldexp(g.upper, g.exponent - unit) for g in seen]
    body = "symmetric" if sums.terms.is_secret else "difference"
    return math.ldexp(smallest_ellipsoid(Box(lower, upper), sums.p, body).floor, unit)
