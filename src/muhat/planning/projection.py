"""What projecting a release onto the convex hull of the domain gains, before any data is seen.

The mean m lies in conv(K). If y is the point of conv(K) nearest to m + z, then

    ‖y − m‖² ≤ ⟨z, y − m⟩ ≤ h_K(z) − ⟨z, m⟩,

whose mean is that of h_K(z), half the width of K in the direction of the noise, since m is fixed
and z symmetric; and ‖y − m‖ is at most ‖z‖ and the diameter of K.
(The projection mechanism; Nikolov and Tang's remarks on Theorems 6 and 7.)
"""

from __future__ import annotations

import math

import numpy as np

from muhat.domains import Domain
from muhat.noise import marginals
from muhat.noise.spread import Spread

SIMULATIONS = 2_000
LARGEST_SIMULATED = 2_000


def projected_error(domain: Domain, spread: Spread) -> float:
    """An upper bound on the root mean square ℓ₂ error after the projection.

    The mean half width is simulated with fixed numbers, plus 4 standard errors.
    """
    plain, _ = spread.root_mean_square(2)
    diameter = 2 * domain.farthest(np.ones(domain.dim))
    if not spread.law.elliptic or domain.dim > LARGEST_SIMULATED:
        return min(plain, diameter)
    normals = marginals.NORMAL.fixed(SIMULATIONS, spread.rows)
    root = spread.factor
    noise = normals * spread.scales if root is None else normals @ root.T
    # The direction of all these noises is that of normal noise, and independent of the length.
    halves = (domain.reach(noise) + domain.reach(-noise)) / 2
    mean = float(halves.mean() + 4 * halves.std() / math.sqrt(SIMULATIONS))
    return min(plain, diameter, math.sqrt(spread.law.mean_length(spread.rows) * mean))
