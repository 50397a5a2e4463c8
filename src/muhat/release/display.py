"""Numbers and notes of releases and plans, as people read them."""

from __future__ import annotations

import math

from muhat._text import page as page
from muhat._text import table as table
from muhat.privacy import Privacy, cautions
from muhat.release.certificate import Certificate

MOST_ROWS = 20


def caution_lines(privacy: Privacy, n: int | None) -> list[str]:
    """That the promise is worth little, if it is."""
    return [f"Caution: {sentence}" for sentence in cautions(privacy, n)]


def certificate_lines(certificate: Certificate | None) -> list[str]:
    """How good it is, in a few sentences."""
    if certificate is None:
        return ["No certificate: the value may be biased, and the bounds speak of unbiased ones."]
    return certificate.describe().splitlines()


def rounded(value: float, error: float) -> str:
    """A value to two digits of its error: what lies below is noise."""
    if not math.isfinite(error) or error <= 0:
        return f"{value:.6g}"
    decimals = 1 - math.floor(math.log10(error))
    if decimals > 12 or abs(value) >= 1e15:
        return f"{value:.6g}"
    return f"{value:,.{max(decimals, 0)}f}"


def significant(error: float) -> str:
    """An error to three digits."""
    if not math.isfinite(error):
        return "unknown"
    decimals = 2 - math.floor(math.log10(error)) if error > 0 else 0
    if decimals > 9 or error >= 1e15:
        return f"{error:.3g}"
    return f"{error:,.{max(decimals, 0)}f}"


def around(number: float, half: float, n: int | None) -> tuple[str, str, str]:
    """The ends and the middle of an interval for a number of records, as numbers that can be."""
    most = math.inf if n is None else n
    low, middle, high = (
        f"{min(max(round(end), 0), most):,}" for end in (number - half, number, number + half)
    )
    return low, middle, high


def shortened(rows: list[list[str]], most: int = MOST_ROWS) -> list[list[str]]:
    """At most so many lines below a header: the first ones, and how many are left out."""
    if len(rows) <= most + 1:
        return rows
    more = f"… {len(rows) - most:,} more"
    return [*rows[:most], [more, *[""] * (len(rows[0]) - 1)]]
