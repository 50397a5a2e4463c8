"""Which kinds of noise can keep a promise, and which of them are worth planning with.

Normal noise keeps all promises but pure ones, for some μ, and pure noise keeps every promise, for
some ε. For the same promise the noise of an ellipsoid's norm is √(d + 1)·μ/ε times as large as
normal noise. Under (ε, δ)-privacy ε/μ is 4 or so: in a few dimensions pure noise is the smaller
one. Under zCDP and Gaussian privacy ε/μ is hardly more than 1 unless the promise is worth nothing.
"""

from __future__ import annotations

from muhat.noise.kinds import NoiseKind, Strength
from muhat.privacy import Privacy

LEAST_GAIN = 1.3
"""Pure noise does not win for a smaller ε/μ: √2 in one dimension, 1.35 for ℓ_∞ in two."""

WIDEST = 16
"""Nor in more than so many times (ε/μ)² dimensions: 1 for ellipsoids, 3 for boxes, most for ℓ_∞."""


def kinds_of_noise(promise: Privacy, dim: int) -> tuple[NoiseKind, ...]:
    """The kinds that compete for d noisy numbers.

    >>> from muhat.privacy import ZCDP, ApproxDP, PureDP
    >>> kinds_of_noise(PureDP(epsilon=1.0), 8), kinds_of_noise(ZCDP(rho=0.5), 8)
    ((<NoiseKind.PURE: 'pure'>,), (<NoiseKind.NORMAL: 'normal'>,))
    >>> len(kinds_of_noise(ApproxDP(epsilon=1.0, delta=1e-6), 8))
    2
    """
    if not promise.admits_normal:
        return (NoiseKind.PURE,)
    if not promise.admits_pure:
        return (NoiseKind.NORMAL,)
    normal, pure = (Strength.of(promise, kind).squared for kind in NoiseKind)
    competes = pure / normal >= LEAST_GAIN**2 and dim <= WIDEST * (pure / normal)
    return tuple(NoiseKind) if competes else (NoiseKind.NORMAL,)
