"""A plan for a private running sum: all that is public about it, before anything is pushed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from numpy.typing import ArrayLike

from muhat import _check, privacy
from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.mechanisms.queries.streaming import RunningNoise, shares_of, unit_exponent
from muhat.mechanisms.sums.recipe import Protection
from muhat.planning.digest import digest_of
from muhat.privacy import Neighbors, Privacy, check_promise, gaussian_mu_squared
from muhat.release.certificate import Certificate
from muhat.stream.engines import ENGINES, Engine
from muhat.stream.grid import EventGrid, bounds_of
from muhat.workloads.cells import writable
from muhat.workloads.toeplitz import LARGEST_SIZE

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class StreamPlan:
    """All that is public about a counter: its promise, its bounds, its noise."""

    privacy: Privacy
    grids: tuple[EventGrid, ...]
    noise: RunningNoise
    scalar: bool
    p: float
    memory: str

    def __post_init__(self) -> None:
        promised = Protection.of(self.privacy, Neighbors.ADD_REMOVE, self.noise.contributions)
        noise = self.noise
        units = [(grid.exponent, grid.reach) for grid in self.grids]
        if (
            promised.pure
            or noise.strength_squared != promised.strength_squared
            or list(zip(noise.exponents, noise.reaches, strict=True)) != units
        ):
            raise InvalidInput(
                "a counter's promise and bounds are those its noise was made for; make a new one."
            )

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON, stable enough to be hashed."""
        return {
            "schema": "muhat.stream.plan/1",
            "privacy": privacy.to_dict(self.privacy),
            "grids": [[g.exponent, g.lower, g.upper, g.center] for g in self.grids],
            "noise": self.noise.to_dict(),
            "scalar": self.scalar,
            "p": str(self.p),
            "memory": self.memory,
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> StreamPlan:
        """The plan that `to_dict` described."""
        return cls(
            privacy.from_dict(fields["privacy"]),
            tuple(EventGrid(*map(int, numbers)) for numbers in fields["grids"]),
            RunningNoise.from_dict(fields["noise"]),
            bool(fields["scalar"]),
            _check.norm_order(float(fields["p"])),
            _check.one_of("memory", fields["memory"], ENGINES),
        )

    @property
    def engine(self) -> type[Engine]:
        """What carries the plan out."""
        return ENGINES[self.memory]

    statistic = "running sums"
    neighbors = Neighbors.ADD_REMOVE
    alternatives: ClassVar[tuple[()]] = ()

    @property
    def contributions(self) -> int:
        """The most events of a person."""
        return self.noise.contributions

    @property
    def horizon(self) -> int:
        """How many events can be pushed in all."""
        return self.noise.size

    @property
    def mechanism(self) -> str:
        """The factorisation and its noise."""
        return f"square-root factorisation ({self.memory})"

    @cached_property
    def certificate(self) -> Certificate:
        """The error of all answers together, beside what no mechanism can beat."""
        from muhat.stream.certifying import certify

        return certify(self)

    def errors(self) -> list[tuple[int, float]]:
        """The largest standard error of the answers after 1, 10, 100, … and all pushes."""
        size = self.horizon
        places = sorted({*(10**k for k in range(8) if 10**k < size), size})
        return [(place, float(self.deviations[place - 1].max())) for place in places]

    def describe(self) -> str:
        """The plan in words and a table."""
        from muhat.stream.certifying import plan_text

        return plan_text(self)

    def plot(self) -> Figure:
        """The standard error after every push (needs the extra `plot`), a matplotlib Figure."""
        from muhat.stream.certifying import plan_figure

        return plan_figure(self)

    @cached_property
    def deviations(self) -> Floats:
        """The standard deviations of all answers, of shape (n, d)."""
        return self.engine.deviations(self.noise)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that decides the answers."""
        return digest_of(self.to_dict())


def plan_prefix_counter(
    horizon: int,
    privacy: Privacy,
    lower: ArrayLike = 0,
    upper: ArrayLike = 1,
    *,
    contributions: int = 1,
    memory: str = "full",
    p: float = 2.0,
) -> StreamPlan:
    """Plan a private running sum: its errors and its certificate, before anything is paid.

    The arguments are those of `prefix_counter`.

    >>> import muhat as mh
    >>> plan = mh.stream.plan_prefix_counter(horizon=1000, privacy=mh.ZCDP(rho=0.5))
    >>> round(plan.errors()[-1][1], 3)
    2.62
    """
    check_promise(privacy)
    size = _check.count("horizon", horizon, most=LARGEST_SIZE)
    contributions = _check.count("contributions", contributions)
    p = _check.norm_order(p)
    memory = _check.one_of("memory", memory, ENGINES)
    protection = Protection.of(privacy, Neighbors.ADD_REMOVE, contributions)
    if not privacy.admits_normal:
        gaussian_mu_squared(privacy)  # says what to do instead
    bounds, scalar = bounds_of(lower, upper)
    writable("the noise of all answers", size * len(bounds))
    reaches = [max(abs(low), abs(high)) for low, high in bounds]
    shares = shares_of([float(reach) for reach in reaches], p)
    strength = protection.strength_squared
    grids = tuple(
        EventGrid.between(low, high, unit_exponent(reach, share, strength, contributions))
        for (low, high), reach, share in zip(bounds, reaches, shares, strict=True)
    )
    if not all(grid.reach for grid in grids):
        raise InvalidInput(
            "the promise is too strong for exact arithmetic: the noise would be more than 10^11 "
            "times the largest event. Choose a larger epsilon, rho or mu."
        )
    noise = RunningNoise(
        size,
        tuple(grid.exponent for grid in grids),
        tuple(grid.reach for grid in grids),
        shares,
        strength,
        contributions,
    )
    return StreamPlan(privacy, grids, noise, scalar, p, memory)
