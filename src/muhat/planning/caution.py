"""Warnings about promises that are kept and still worth little."""

from __future__ import annotations

import warnings

from muhat.privacy import Privacy, cautions


def warn_of_large_delta(promise: Privacy, n: int | None, *, stacklevel: int) -> None:
    """Warn if δ is not below 1/n; a secret n is never compared with anything.

    What else there is to say of a promise is printed with it, and no reason to interrupt.
    """
    if n is None or promise.point is None:
        return
    if promise.point[1] >= 1 / n:
        warnings.warn(cautions(promise, n)[-1], stacklevel=stacklevel + 1)
