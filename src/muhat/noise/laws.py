"""The laws of noise, listed: a new one is a module of its own and a line here."""

from __future__ import annotations

from muhat._plain import by_name
from muhat.noise.balanced import Balanced
from muhat.noise.balanced_laplace import BalancedLaplace
from muhat.noise.euclidean_norm import EuclideanNorm
from muhat.noise.kinds import NoiseKind
from muhat.noise.laplace import Laplace
from muhat.noise.law import IndependentFamily, Law, ScaleFamily, Shape
from muhat.noise.maximum_norm import DiamondNorm, MaximumNorm
from muhat.noise.norm_at_delta import NormAtDelta
from muhat.noise.normal import Normal
from muhat.noise.pair_stairs import PairStairs, PairSum
from muhat.noise.radial_stairs import EuclideanStairs, MaximumStairs
from muhat.noise.stairs import Stairs

INDEPENDENT: dict[str, IndependentFamily] = {law.name: law for law in (Normal(), Laplace())}
"""Noise for numbers that are asked for one at a time."""

LAWS: dict[str, ScaleFamily] = {
    **INDEPENDENT,
    **{law.name: law for law in (EuclideanNorm(), MaximumNorm())},
}
"""What can be sampled."""

SHAPES: dict[str, Shape | type[Shape]] = {
    **LAWS,
    DiamondNorm.name: DiamondNorm(),
    Stairs.name: Stairs,
    Balanced.name: Balanced,
    BalancedLaplace.name: BalancedLaplace,
    PairStairs.name: PairStairs,
    PairSum.name: PairSum,
    NormAtDelta.name: NormAtDelta,
    EuclideanStairs.name: EuclideanStairs,
    MaximumStairs.name: MaximumStairs,
}
"""All that a release may say of its noise; a class where numbers decide the shape."""

by_name(Shape, SHAPES)


def kind_of(name: str) -> NoiseKind:
    """In what the privacy of a law is counted."""
    shape = SHAPES[name]
    law = shape if isinstance(shape, type) else type(shape)
    assert issubclass(law, Law)
    assert law.kind is not None
    return law.kind


def independent_law(kind: NoiseKind) -> IndependentFamily:
    """The law of a kind for a single number, and for several that have noise of their own."""
    return next(law for law in INDEPENDENT.values() if law.kind is kind)


def elliptic_law(kind: NoiseKind) -> ScaleFamily:
    """The law of a kind whose noise an ellipsoid shapes."""
    return next(law for law in LAWS.values() if law.kind is kind and law.elliptic)
