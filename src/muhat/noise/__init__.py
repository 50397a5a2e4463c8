"""Exact integer noise from the operating system's entropy.

Every function returns round(2^54·z) for a real z of the named law, exactly distributed, as
int64 (Python integers in an object array if a value is too large for that). There is no seed
and no state. `docs/proofs/noise.md` has the proof.
"""

from __future__ import annotations

from muhat.noise.density import FRACTION_BITS
from muhat.noise.norms import rounded_euclidean, rounded_maximum
from muhat.noise.scalars import rounded_laplace, rounded_normal

__all__ = [
    "FRACTION_BITS",
    "rounded_euclidean",
    "rounded_laplace",
    "rounded_maximum",
    "rounded_normal",
]
