"""Warnings about promises that are kept and still worth little."""

from __future__ import annotations

import warnings

from muhat.privacy import ApproxDP, Privacy


def warn_of_large_delta(promise: Privacy, n: int | None, *, stacklevel: int) -> None:
    """Warn if δ is not below 1/n; a secret n is never compared with anything."""
    if isinstance(promise, ApproxDP) and n is not None and promise.delta >= 1 / n:
        warnings.warn(
            f"delta = {promise.delta:g} is not below 1/n = {1 / n:.3g}: a mechanism that "
            "publishes one record in the clear could keep such a promise.",
            stacklevel=stacklevel + 1,
        )
