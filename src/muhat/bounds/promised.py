"""The constants of the lower bounds for a promise, from what it implies and not from its kind.

Logarithms of upper bounds, as in `divergences` and `pairs`; None where nothing is proved. Proofs:
docs/proofs/bounds.md.
"""

from __future__ import annotations

from fractions import Fraction

from muhat.bounds import divergences, pairs
from muhat.privacy import Privacy
from muhat.privacy.rounding import float_at_least


def one_sided(privacy: Privacy) -> float | None:
    """ln χ²(P₊‖P₀) of neighbouring outputs."""
    if privacy.implied_epsilon is not None:
        return divergences.log_one_sided_pure(privacy.implied_epsilon)
    if privacy.implied_rho is not None:
        return divergences.log_one_sided_zcdp(float_at_least(privacy.implied_rho))
    second = privacy.renyi(Fraction(2))
    return None if second is None else divergences.log_one_sided_zcdp(float_at_least(second / 2))


def two_sided(privacy: Privacy) -> float | None:
    """ln J of two neighbours of a dataset that are neighbours of each other."""
    if privacy.implied_epsilon is not None:
        return divergences.log_two_sided_pure(privacy.implied_epsilon)
    if privacy.implied_rho is not None:
        return divergences.log_two_sided_zcdp(float_at_least(privacy.implied_rho))
    second = privacy.renyi(Fraction(2))
    return None if second is None else divergences.log_two_sided_renyi(float_at_least(second))


def pair(privacy: Privacy) -> float:
    """ln of 4/(1/κ² − 1): neighbouring outputs have (Var + Var')/2 ≥ Δ² divided by this."""
    if privacy.implied_epsilon is not None:
        return divergences.log_one_sided_pure(privacy.implied_epsilon)
    if privacy.point is not None:
        return divergences.log_pair_approx(*privacy.point)
    if privacy.implied_mu is not None:
        return pairs.log_pair_gdp(privacy.implied_mu)
    first = privacy.renyi(Fraction(1))
    if first is None:
        raise AssertionError("a promise is a point, or bounds a divergence")
    found = pairs.log_pair_zcdp(float_at_least(first))
    return found if privacy.implied_rho is not None else min(found, one_sided(privacy) or found)
