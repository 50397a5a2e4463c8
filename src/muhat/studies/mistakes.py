"""A mistake of a paper that a number shows: what is printed, what is true, what is meant.

Each is a function that computes its numbers when it is called, with `mistake` above it:

    @mistake("NT24", "Lemma 14(4)", says="tr_p ≤ d^(1/q−1/p)·tr_q", means="d^(1/p−1/q)", sign="≤")
    def lemma_14() -> Numbers: ...

The paper says that the exact number is `sign` the printed one. A "false" statement fails so and
holds with the corrected number. An "unsaid" one fails so if it is read to the letter, and what was
left out is clear from the text around it, or from its being called informal: an omission, which no
number contradicts. A "loose" one holds with both, and the corrected one is nearer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from muhat import _check
from muhat.studies.study import Row

SIGNS = ("=", "≤", "≥")
KINDS = ("false", "unsaid", "loose")
CLOSE = 1e-6
"""Equal numbers agree to so much, relatively; inequalities may be missed by so much."""

READ_AGAIN = "as extracted; compare with the PDF"


@dataclass(frozen=True)
class Numbers:
    """What a statement is about, in one example."""

    exact: float
    printed: float
    corrected: float
    example: str


@dataclass(frozen=True)
class Mistake:
    """A statement of a paper, what is wrong with it, and the function that shows it."""

    paper: str
    place: str
    says: str
    means: str
    sign: str
    kind: str
    source: str
    compute: Callable[[], Numbers]

    def __post_init__(self) -> None:
        _check.one_of("sign", self.sign, SIGNS)
        _check.one_of("kind", self.kind, KINDS)

    @property
    def code(self) -> str:
        """The function that computes the numbers, by its whole name."""
        return f"{self.compute.__module__}.{self.compute.__name__}"

    def row(self) -> Row:
        """The numbers, computed now, and whether they show what is said of them."""
        numbers = self.compute()
        return {
            "paper": self.paper,
            "place": self.place,
            "kind": self.kind,
            "the paper says": self.says,
            "what holds": self.means,
            "example": numbers.example,
            "statement": f"exact {self.sign} printed",
            "printed": numbers.printed,
            "exact": numbers.exact,
            "corrected": numbers.corrected,
            "shown": shows(numbers, self.sign, self.kind),
            "source": self.source,
            "code": self.code,
        }


def mistake(
    paper: str,
    place: str,
    *,
    says: str,
    means: str,
    sign: str,
    kind: str = "false",
    source: str = "",
) -> Callable[[Callable[[], Numbers]], Mistake]:
    """Make a Mistake of a function that computes its numbers."""
    return lambda compute: Mistake(paper, place, says, means, sign, kind, source, compute)


def shows(numbers: Numbers, sign: str, kind: str) -> bool:
    """Whether the numbers differ from what is printed, and agree with what is corrected.

    >>> shows(Numbers(4.0, 1.0, 4.0, "M = I"), "≤", "false")
    True
    >>> shows(Numbers(4.0, 5.0, 4.0, "M = I"), "≤", "false")
    False
    >>> shows(Numbers(4.0, 5.0, 4.5, "M = I"), "≤", "loose")
    True
    """
    if not holds(numbers.exact, sign, numbers.corrected):
        return False
    printed = holds(numbers.exact, sign, numbers.printed)
    if kind != "loose":
        return not printed
    nearer = abs(numbers.corrected - numbers.exact) < abs(numbers.printed - numbers.exact)
    return printed and nearer


def holds(exact: float, sign: str, stated: float) -> bool:
    """Whether exact = stated, exact ≤ stated or exact ≥ stated, up to rounding."""
    if sign == "=":
        return math.isclose(exact, stated, rel_tol=CLOSE)
    slack = CLOSE * abs(stated)
    return exact <= stated + slack if sign == "≤" else exact >= stated - slack


def least_sigma(epsilon: float, delta: float) -> float:
    """The least σ of normal noise that is (ε, δ)-private at sensitivity 1, by plain bisection.

    Φ(1/2σ − εσ) − e^ε·Φ(−1/2σ − εσ) ≤ δ, in floats: a second way, beside the certified one.

    >>> round(least_sigma(1.0, 1e-6), 4)
    4.2247
    """

    def tail(x: float) -> float:
        return 0.5 * math.erfc(x / math.sqrt(2))

    low, high = 1e-6, 1e6
    for _ in range(200):
        sigma = math.sqrt(low * high)
        lead, mean = epsilon * sigma, 1 / (2 * sigma)
        leak = tail(lead - mean) - math.exp(epsilon) * tail(lead + mean)
        low, high = (sigma, high) if leak > delta else (low, sigma)
    return high
