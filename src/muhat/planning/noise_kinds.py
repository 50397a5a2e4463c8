"""Which kinds of noise can keep a promise, and which of them are worth planning with.

Normal noise keeps all promises but pure ones, for some μ, and pure noise keeps every promise, for
some ε. For the same promise the noise of an ellipsoid's norm is √(d + 1)·μ/ε times as large as
normal noise. Under (ε, δ)-privacy ε/μ is 4 or so: in a few dimensions pure noise is the smaller
one. Under zCDP and Gaussian privacy ε/μ is hardly more than 1 unless the promise is worth nothing.
"""

from __future__ import annotations

from muhat.privacy import Privacy, as_typed, gaussian_mu_squared, pure_within

LEAST_GAIN = 1.3
"""Pure noise does not win for a smaller ε/μ: √2 in one dimension, 1.35 for ℓ_∞ in two."""

WIDEST = 16
"""Nor in more than so many times (ε/μ)² dimensions: 1 for ellipsoids, 3 for boxes, most for ℓ_∞."""


def kinds_of_noise(promise: Privacy, dim: int) -> tuple[bool, ...]:
    """The kinds that compete for d noisy numbers: True is pure, False is normal.

    >>> from muhat.privacy import ZCDP, ApproxDP, PureDP
    >>> kinds_of_noise(PureDP(epsilon=1.0), 8), kinds_of_noise(ZCDP(rho=0.5), 8)
    ((True,), (False,))
    >>> kinds_of_noise(ApproxDP(epsilon=1.0, delta=1e-6), 8)
    (False, True)
    """
    if not promise.admits_normal:
        return (True,)
    if not promise.admits_pure:
        return (False,)
    gain_squared = as_typed(pure_within(promise)) ** 2 / gaussian_mu_squared(promise)
    competes = gain_squared >= LEAST_GAIN**2 and dim <= WIDEST * gain_squared
    return (False, True) if competes else (False,)
