"""The unbiased mean of a secret number of records as it is printed, for comparison.

Kamath et al. (2024), Theorem E.6: f + τ·S(n)·t₃, β = ε/12, τ = √3/ε and

    S(n) = (b − a)·max{ e^{−β(n−1)}, 1/max(n, 1) },

the paper's bound on the smooth sensitivity of the mean, which is 0 without records. In units of
w = t₃/√3 the standard error is s(n) = (3/ε)·S(n). The paper counts 4β + 2/(√3·τ) = ε; 3β is enough,
so that it spends 11/12 of its ε. Proof: docs/proofs/smooth.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from muhat import _check
from muhat.mechanisms.sums.student_mean import MOST_EPSILON, Number, StudentMean, ends_of, grid_of
from muhat.noise.enclosures import falling_exponential


@dataclass(frozen=True)
class PrintedSmoothMean(StudentMean, keys=("printed", "interval", "epsilon", "grid", "n_min")):
    """Theorem E.6: ε-private where a record is added, removed or replaced.

    >>> mean = PrintedSmoothMean.of((0, 1), Fraction(1), n_min=1000)
    >>> round(mean.standard_error_at(1000), 6), round(mean.standard_error_at(50), 6)
    (0.003, 0.06)
    """

    interval: tuple[Fraction, Fraction]
    epsilon: Fraction
    grid: Fraction
    n_min: int | None = None
    printed = "E.6"

    @classmethod
    def of(
        cls, interval: tuple[Number, Number], epsilon: Fraction, *, n_min: int | None = None
    ) -> PrintedSmoothMean:
        """The mean for a promise ε."""
        lower, upper = ends_of(interval, epsilon)
        return cls((lower, upper), epsilon, grid_of(upper - lower), n_min)

    def __post_init__(self) -> None:
        if self.n_min is not None:
            _check.count("n_min", self.n_min)
        if not (self.grid > 0 and self.epsilon > 0 and self.width > 0):
            raise AssertionError("the noise is too small for the promise")

    @property
    def strength(self) -> Fraction:
        """ε, or what is enough beyond."""
        return min(self.epsilon, MOST_EPSILON)

    @property
    def empty(self) -> Fraction:
        """0, or the end of the interval that is nearest to it."""
        lower, upper = self.interval
        return min(max(lower, Fraction(0)), upper)

    @property
    def covers_replacement(self) -> bool:
        """n and s(n) stay, and f moves by S(n) at most: 2/3 of ε."""
        return True

    def _deviation(self, n: int, precision: int) -> tuple[Fraction, Fraction]:
        """Encloses s(n)."""
        least, most = falling_exponential(self.strength / 12 * abs(n - 1), precision)
        if not n:
            least, most = 1 / most, 1 / least
        lasting = Fraction(1, max(n, 1))
        unit = 3 * self.width / self.strength
        return max(least, lasting) * unit, max(most, lasting) * unit
