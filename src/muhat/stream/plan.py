"""Which noise a counter has: whatever keeps the promise, and of that the one that errs least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from numpy.typing import ArrayLike

from muhat import _check
from muhat._words import given
from muhat.errors import InvalidInput
from muhat.mechanisms.queries.event_weights import Weights
from muhat.mechanisms.queries.running_laplace import (
    LONGEST,
    LaplaceRunningNoise,
    laplace_shares,
)
from muhat.mechanisms.queries.running_laplace import NOISE_BITS as LAPLACE_BITS
from muhat.mechanisms.queries.running_optimum import (
    WEIGHED_BITS,
    OptimalRunningNoise,
)
from muhat.mechanisms.queries.running_stairs import StairsRunningNoise, stairs_for
from muhat.mechanisms.queries.streaming import NOISE_BITS, RunningNoise, shares_of, unit_exponent
from muhat.noise.kinds import NoiseKind, Strength
from muhat.planning.plan import Plan
from muhat.planning.terms import COUNTED, Terms
from muhat.privacy import Neighbors, Privacy, as_typed, gaussian_mu_squared
from muhat.stream.engines import ENGINES, KeptNoise, Noise
from muhat.stream.grid import EventGrid, bounds_of
from muhat.stream.sums import STATISTIC, RunningSums
from muhat.workloads.cells import writable
from muhat.workloads.factorize import LONGEST_SOLVED
from muhat.workloads.toeplitz import LARGEST_SIZE

LEAST_GAIN, LEAST_GAIN_OF_MANY, MANY_STEPS = 1.3, 2.0, 16
"""Laplace noise errs more for a smaller ε/μ: its error is 2.1 times as large at 16 steps, ε = μ."""


def plan_prefix_counter(
    horizon: int,
    privacy: Privacy,
    lower: ArrayLike = 0,
    upper: ArrayLike = 1,
    *,
    window: int | None = None,
    decay: float | None = None,
    contributions: int = 1,
    apart: int = 1,
    neighbors: Neighbors | str | None = None,
    memory: str = "full",
    p: float = 2.0,
) -> Plan:
    """Plan a private running sum: its errors and its certificate, before anything is paid.

    The arguments are those of `prefix_counter`.

    >>> import muhat as mh
    >>> plan = mh.stream.plan_prefix_counter(horizon=365, privacy=mh.ZCDP(rho=0.5))
    >>> round(plan.expected_error, 2), round(plan.certificate.ratio, 3)
    (50.34, 1.005)
    """
    relation = Neighbors.parse(neighbors or Neighbors.ADD_REMOVE)
    replaced = relation is Neighbors.SUBSTITUTE
    terms = Terms.checked(privacy, COUNTED if replaced else None, contributions=contributions)
    size = _check.count("horizon", horizon, most=LARGEST_SIZE)
    memory = _check.one_of("memory", memory, ENGINES)
    bounds, scalar = bounds_of(lower, upper)
    apart = _check.count("apart", apart)
    events = _weights(window, decay, size, memory)
    asked = AskedSums(terms, size, bounds, scalar, _check.norm_order(p), memory, events, apart)
    found = [sums for kind in _kinds(asked) for sums in MAKERS[kind](asked)]
    if len(found) > 1:
        found.sort(key=lambda each: each.expected_error)
    return Plan.of(replace(found[0], rivals=tuple(found[1:])))


@dataclass(frozen=True)
class AskedSums:
    """What is asked of a counter, checked."""

    terms: Terms
    size: int
    bounds: Sequence[tuple[Fraction, Fraction]]
    scalar: bool
    p: float
    memory: str
    events: Weights
    apart: int

    def __post_init__(self) -> None:
        writable("the noise of all answers", self.size * len(self.bounds))

    @property
    def reaches(self) -> list[Fraction]:
        """How far one event moves each coordinate at most: there or not, or replaced."""
        if self.terms.is_secret:
            return [max(abs(low), abs(high)) for low, high in self.bounds]
        return [high - low for low, high in self.bounds]

    def grids(self, shares: Sequence[Fraction], strength: Fraction, bits: int) -> Grids:
        """The grids on which noise of such a strength has so many bits, given squares of shares."""
        replaced, several = not self.terms.is_secret, self.terms.contributions
        reaches = self.reaches
        grids = tuple(
            EventGrid.between(
                low, high, unit_exponent(reach, share, strength, several, bits), replaced=replaced
            )
            for (low, high), reach, share in zip(self.bounds, reaches, shares, strict=True)
        )
        if not all(grid.reach for grid in grids):
            raise InvalidInput(
                "the promise is too strong for exact arithmetic: the noise would be more than "
                "10^11 times the largest event. Choose a larger epsilon, rho or mu."
            )
        return grids

    def answered(self, grids: Grids, noise: Noise) -> RunningSums:
        """The sums with this noise."""
        return RunningSums(
            terms=self.terms,
            statistic=STATISTIC,
            grids=grids,
            noise=noise,
            scalar=self.scalar,
            p=self.p,
            memory=self.memory,
        )


Grids = tuple[EventGrid, ...]


def _kinds(asked: AskedSums) -> list[NoiseKind]:
    """The kinds of noise that compete: pure noise where it may err less, and can be drawn."""
    promise = asked.terms.privacy
    if not promise.admits_normal:
        return [NoiseKind.PURE]
    normal, pure = (Strength.of(promise, kind).squared for kind in NoiseKind)
    few = asked.size < MANY_STEPS or asked.events != Weights()
    least = LEAST_GAIN if few else LEAST_GAIN_OF_MANY
    drawn = asked.memory == KeptNoise.memory and asked.size <= LONGEST
    competes = promise.admits_pure and drawn and pure >= least**2 * normal
    return list(NoiseKind) if competes else [NoiseKind.NORMAL]


def _normal(asked: AskedSums) -> list[RunningSums]:
    """Normal noise of the best factorisation; of the square root for long streams."""
    strength, several = gaussian_mu_squared(asked.terms.privacy), asked.terms.contributions
    shares = shares_of([float(reach) for reach in asked.reaches], asked.p)
    events = asked.events
    grids = asked.grids(shares, strength, NOISE_BITS if events.decay is None else WEIGHED_BITS)
    given = asked.size, *_units(grids), shares, strength, several, asked.apart
    longest = LONGEST_SOLVED if asked.p == 2 or events != Weights() else LONGEST_SOLVED // 2
    if asked.memory == KeptNoise.memory and asked.size <= longest:
        optimal = OptimalRunningNoise(*given, asked.p, events.window, events.decay)
        return [asked.answered(grids, optimal)]
    return [asked.answered(grids, RunningNoise(*given))]


def _pure(asked: AskedSums) -> list[RunningSums]:
    """Laplace noise on events and on sums of them; stairs on events of one number."""
    if asked.memory != KeptNoise.memory:
        raise InvalidInput(
            "a few buffers have normal noise alone: use ",
            given("memory", KeptNoise.memory),
            ", or a promise with a delta, ZCDP or GDP.",
        )
    if asked.size > LONGEST:
        raise InvalidInput(
            f"must be at most {LONGEST:,} under pure privacy",
            parameter="horizon",
            value=f"{asked.size:,}",
            hint="Promises with a delta, ZCDP and GDP have longer streams.",
        )
    strength = Strength.of(asked.terms.privacy, NoiseKind.PURE).squared
    shares = laplace_shares([float(reach) for reach in asked.reaches], asked.p)
    grids = asked.grids([share**2 for share in shares], strength, LAPLACE_BITS)
    exponents, reaches = _units(grids)
    several = asked.terms.contributions
    events, apart = asked.events, asked.apart
    laplace = LaplaceRunningNoise.fitted(
        asked.size, exponents, reaches, shares, strength, several, apart, events
    )
    found = [asked.answered(grids, laplace)]
    if len(grids) == 1:
        law = stairs_for(asked.terms.privacy, several, reaches[0])
        if law is not None:
            stairs = StairsRunningNoise(
                asked.size, exponents, reaches, law, several, apart, *events
            )
            found.append(asked.answered(grids, stairs))
    return found


def _weights(window: int | None, decay: float | None, size: int, memory: str) -> Weights:
    """What events count in the sums after them, checked."""
    if window is None and decay is None:
        return Weights()
    if window is not None and decay is not None:
        raise InvalidInput("sums have a window or decay; leave one of them out.")
    if size > LONGEST_SOLVED or memory != KeptNoise.memory:
        raise InvalidInput(
            f"sums with a window or a decay are for up to {LONGEST_SOLVED:,} steps, with "
            'memory="full".'
        )
    if decay is None:
        return Weights(_check.count("window", window))
    exact = as_typed(_check.real("decay", decay))
    if not 0 < exact < 1:
        raise InvalidInput("must lie between 0 and 1", parameter="decay", value=f"{decay:g}")
    return Weights(None, exact)


MAKERS = {NoiseKind.NORMAL: _normal, NoiseKind.PURE: _pure}


def _units(grids: Grids) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Their exponents, and how far one event moves them."""
    return tuple(grid.exponent for grid in grids), tuple(grid.reach for grid in grids)
