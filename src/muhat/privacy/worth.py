"""What a promise is worth: one that forbids next to nothing says so wherever it is printed.

A promise bounds how well anybody can tell which of two values a record has, having seen the
release. Half of the guesses are right without any release. A promise is worth next to nothing if it
lets someone be wrong less than once in `OFTEN` times.
"""

from __future__ import annotations

import sys
import warnings

from muhat.privacy.promise import Privacy

OFTEN = 1000
"""A guess that may be wrong less than once in so many times is as good as knowledge."""


def cautions(promise: Privacy, n: int | None = None) -> tuple[str, ...]:
    """What the reader of a promise should know, in sentences; none if it is a fair one.

    n is the number of records where it is public. A secret one is not given, and nothing is said
    of it.

    >>> from muhat.privacy import ApproxDP, PureDP
    >>> cautions(PureDP(epsilon=1.0))
    ()
    >>> cautions(PureDP(epsilon=50.0))[0].partition(":")[0]
    '50-DP (pure) promises next to nothing'
    >>> cautions(ApproxDP(epsilon=1.0, delta=0.01), n=200)[0].partition(":")[0]
    'delta = 0.01 is not below 1/n = 0.005'
    """
    found = []
    wrong = least_error(promise)
    if wrong * OFTEN < 1:
        times = f"once in {1 / wrong:.2g} times" if wrong > 1e-300 else "never"
        found.append(
            f"{promise.describe()} promises next to nothing: it lets anybody tell which of two "
            f"values a record has, and be wrong {times}."
        )
    if promise.leak:
        found += _about_delta(float(promise.leak), n)
    return tuple(found)


def _about_delta(delta: float, n: int | None) -> list[str]:
    """One record published at random has δ = 1/n; all of them, once in 1/δ times, any n."""
    if n is not None and n > 0 and delta >= 1 / n:
        return [
            f"delta = {delta:g} is not below 1/n = {1 / n:.3g}: a mechanism that publishes one "
            "record in the clear could keep such a promise."
        ]
    if delta * OFTEN >= 1:
        return [
            f"delta = {delta:g} is large: a mechanism that publishes all records in the clear "
            f"once in {1 / delta:.3g} times could keep such a promise."
        ]
    return []


def least_error(promise: Privacy) -> float:
    """How seldom a guess between two values of a record, as likely before, may be wrong.

    (1 − δ)/(1 + e^ε) under (ε, δ) and Φ(−μ/2) under Gaussian privacy, both attained. A promise of
    ρ allows normal noise of μ = √(2ρ), so Φ(−√(ρ/2)), and perhaps still less.

    >>> from muhat.privacy import PureDP
    >>> round(least_error(PureDP(epsilon=1.0)), 4)
    0.2689
    """
    return promise.least_error()


def warn_of_large_delta(promise: Privacy, n: int | None) -> None:
    """Warn whoever called muhat if δ is not below 1/n; a secret n is never compared.

    What else there is to say of a promise is printed with it, and no reason to interrupt.
    """
    if not n or promise.leak * n < 1:
        return
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("muhat."):
        frame, level = frame.f_back, level + 1
    warnings.warn(cautions(promise, n)[-1], stacklevel=level)
