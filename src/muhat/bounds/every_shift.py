"""The least second moment of noise on the line that hides every shift from 0 to 1.

Records that may be any point of a convex set move their mean by any part of what two of them do,
and noise that hides all of that is wider than what hides the whole of it alone: E Z² ≥ r², r² more
than the number of `steps` by 4, 17 and 70 % at ε = 1, 2 and 4. In every direction of a body, so
errors are at least r·Γ_p.

    ε-DP      the staircase (`volumes`, in one dimension)
    (ε, δ)    the dual of a linear program on a grid of 1/M: for whole noise that hides shifts of
              1, …, M, E Z² ≥ V, and noise of any kind is whole once it is drawn to the grid,
              which adds ¼ at most: r² = (V − ¼)/M²

What the solver finds are weights λ ≥ 0 of tests, and any such weights prove a bound, which is
worked out in whole numbers. Proof: docs/proofs/steps.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from muhat._arrays import Floats, Integers
from muhat.bounds.lower_bound import LowerBound
from muhat.bounds.steps import ADDITIVE
from muhat.bounds.unbiased import about
from muhat.bounds.volumes import log_radial_square
from muhat.domains import Domain
from muhat.noise.enclosures import falling_exponential
from muhat.privacy import Privacy, as_typed

LEAST_EPSILON, LARGEST_EPSILON = 0.5, 10.0
"""For (ε, δ): below it the bound of one shift is within half a per cent of the noise."""

CELLS_AN_EPSILON, FEWEST_CELLS = 4, 8
MOST_STEPS = 14
_BITS = 60
_OURS = "docs/proofs/steps.md"


def every_shift(
    domain: Domain, gamma: float, given: str, *, privacy: Privacy, contributions: int = 1
) -> tuple[LowerBound, ...]:
    """What additive noise errs at least if neighbours move answers by any point of a convex body.

    `gamma` is a certified floor of Γ_p of what one record moves; () where no number is known.
    """
    log_square, convex = _log_square(privacy), domain.half_volume(np.ones(domain.dim))
    if log_square is None or convex is None or gamma == 0:
        return ()
    if privacy.implied_epsilon is not None and convex[0] == 1:
        return ()  # the same as by volume
    log_value = math.log(gamma) + math.log(contributions) + log_square / 2 - 1e-11
    value = math.exp(min(log_value, 709.0))
    assumptions = (given, *about(contributions), ADDITIVE, "Records may be any point of the set.")
    theorem, promise = "B11, every shift", privacy.describe()
    return (
        LowerBound(value, "additive", "every", theorem, "derived", assumptions, promise, _OURS),
    )


def _log_square(privacy: Privacy) -> float | None:
    """ln r²."""
    if privacy.implied_epsilon is not None:
        return log_radial_square(1, privacy.implied_epsilon)
    if privacy.point is None or privacy.implied_rho is not None:
        return None
    return _log_grid_square(*privacy.point)


@lru_cache(maxsize=64)
def _log_grid_square(epsilon: float, delta: float) -> float | None:
    """ln r² for (ε, δ)."""
    if not (LEAST_EPSILON <= epsilon <= LARGEST_EPSILON and 0 < delta < 1):
        return None
    cells = max(FEWEST_CELLS, math.ceil(CELLS_AN_EPSILON * epsilon))
    steps = 2 + min(MOST_STEPS, math.log(1 / delta) / epsilon)
    found = proved(_weights(epsilon, delta, cells, int(cells * steps)), epsilon, delta)
    square = (found - Fraction(1, 4)) / cells**2
    return math.log(square) - 1e-12 if square > 0 else None


def proved(weights: list[Floats], epsilon: float, delta: float) -> Fraction:
    """V from weights λ_s of tests of the shifts s = 1, 2, …: min H − 2δ·Σ max λ_s, exactly.

    H(x) = x² + Σ_s λ_s(x) − Eλ_s(x − s) + λ_s(−x) − Eλ_s(−x − s), E at least e^ε; λ_s are given
    from x = −⌊s/2⌋ on, and are 0 elsewhere.
    """
    falling, _ = falling_exponential(as_typed(epsilon), _BITS + math.ceil(2 * epsilon))
    growth = -(-(1 << _BITS) * falling.denominator // falling.numerator)
    reach = max(len(each) for each in weights) + len(weights)
    x = np.array(range(reach + 1), object)
    H: Integers = x * x << 2 * _BITS
    spent = 0
    for s, each in enumerate(weights, 1):
        tests = np.array([max(0, int(weight * 2.0**_BITS)) for weight in each.tolist()], object)
        places = np.arange(len(tests)) - s // 2
        spent += max(tests, default=0)
        for at, factor in ((places, 1 << _BITS), (places + s, -growth)):
            for mirrored in (at, -at):
                seen = mirrored >= 0
                np.add.at(H, mirrored[seen], tests[seen] * factor)
    # Beyond, H is x².
    least = Fraction(min(H.min(), (reach + 1) ** 2 << 2 * _BITS), 1 << 2 * _BITS)
    return least - 2 * as_typed(delta) * Fraction(spent, 1 << _BITS)


def _weights(epsilon: float, delta: float, cells: int, reach: int) -> list[Floats]:
    """Good weights, by a solver: of each shift from 1 to `cells`, from −⌊s/2⌋ to `reach`."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    places = [np.arange(-(s // 2), reach + 1) for s in range(1, cells + 1)]
    starts = np.cumsum([0, *map(len, places)])
    tests, rows = int(starts[-1]), reach + cells + 1
    lines, columns, values = [np.arange(rows)], [np.full(rows, tests + cells)], [np.ones(rows)]
    for s, at in enumerate(places, 1):
        own = starts[s - 1] + np.arange(len(at))
        for moved, factor in ((at, -1.0), (at + s, math.exp(epsilon))):
            for mirrored in (moved, -moved):
                seen = mirrored >= 0
                lines.append(mirrored[seen])
                columns.append(own[seen])
                values.append(np.full(int(seen.sum()), factor))
        # No weight is above the largest of its shift.
        for column, factor in ((own, 1.0), (np.full(len(at), tests + s - 1), -1.0)):
            lines.append(rows + own)
            columns.append(column)
            values.append(np.full(len(at), factor))
    shape = (rows + tests, tests + cells + 1)
    entries = np.concatenate(values), (np.concatenate(lines), np.concatenate(columns))
    most = np.append(np.arange(rows, dtype=np.float64) ** 2, np.zeros(tests))
    price = np.concatenate([np.zeros(tests), np.full(cells, 2 * delta), [-1.0]])
    found = linprog(price, A_ub=csr_array(entries, shape=shape), b_ub=most, method="highs")
    if found.x is None:
        return [np.zeros(1)]
    return np.split(found.x[:tests], starts[1:-1])
