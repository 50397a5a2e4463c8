"""Warnings about promises that are kept and still worth little."""

from __future__ import annotations

import sys
import warnings

from muhat.privacy import Privacy, cautions


def warn_of_large_delta(promise: Privacy, n: int | None) -> None:
    """Warn whoever called muhat if δ is not below 1/n; a secret n is never compared.

    What else there is to say of a promise is printed with it, and no reason to interrupt.
    """
    if not n or promise.point is None or promise.point[1] < 1 / n:
        return
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("muhat."):
        frame, level = frame.f_back, level + 1
    warnings.warn(cautions(promise, n)[-1], stacklevel=level)
