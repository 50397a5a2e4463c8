"""The bounds on unbiased means, for a domain."""

from __future__ import annotations

import math

from muhat.bounds.lower_bound import LowerBound
from muhat.bounds.unbiased import unbiased_mean
from muhat.domains import Box, Domain
from muhat.ellipsoids import smallest_ellipsoid
from muhat.privacy import Privacy


def unbiased(K: Domain, *, n: int, privacy: Privacy, p: float = 2) -> tuple[LowerBound, ...]:
    """What no unbiased mechanism for the mean of n records of K can beat."""
    floor = smallest_ellipsoid(K, p).floor
    return unbiased_mean(floor, n=n, privacy=privacy, contact_pairs=contact_pairs(K))


def contact_pairs(K: Domain) -> int:
    """N*: a dataset of this many records can hold an end of each pair that touches the ellipsoid.

    The d axes of a ball or an ellipsoid; the rows of a Sylvester–Hadamard matrix for a box.
    """
    return 1 << math.ceil(math.log2(K.dim)) if isinstance(K, Box) else K.dim
