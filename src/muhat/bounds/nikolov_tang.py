"""Nikolov and Tang's own mechanism and bounds, beside what became of them here.

NT24, Theorem 15: with A·B₂ the smallest ellipsoid around K, wherever it is centred, normal noise of
the covariance 4AAᵀ/(μn)² keeps μ-GDP, and errs by 2Γ_p(K)/(nμ) at p = 2; plans make it where asked
for by its name, `mechanism="shifted-gaussian"`. muhat's noise is that of K − K: Γ_p(K − K) is at
most 2Γ_p(K), with equality for a K that is symmetric. The paper's second reading, of the mean of a
distribution that the records are drawn from, stands below it (`population.py`). Proofs:
docs/proofs/bounds.md, docs/proofs/gaussian.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from muhat import _check
from muhat.bounds.lower_bound import BoundTable, LowerBound, rounded_down
from muhat.bounds.population import population_bounds, population_error
from muhat.bounds.unbiased import unbiased
from muhat.domains import Domain
from muhat.ellipsoids import smallest_ellipsoid
from muhat.errors import InvalidInput
from muhat.privacy import Privacy, check_promise, gaussian_mu_squared
from muhat.privacy.rounding import root_at_least

SHIFTED, DIFFERENCE = "NT24 Theorem 15, K with a free shift", "the same with K − K"
POPULATION = "K − K, against the mean of a population"


@dataclass(frozen=True, repr=False)
class NikolovTang(BoundTable):
    """Normal noise by Theorem 15 and by the difference body, and bounds on unbiased mechanisms.

    Attributes:
        shifted: the root mean square ℓ₂ error of Theorem 15's noise, rounded up.
        difference: that of the smallest ellipsoid around K − K, which plans use.
        bounds: ours first, with `source` "derived"; the paper's after them.
        population: the error of `difference` against the mean of the distribution that the records
            are independent draws of, at most, whichever on K it is; rounded up.
        population_bounds: what no mechanism beats that is unbiased for populations.
    """

    n: int
    privacy: Privacy
    shifted: float
    difference: float
    bounds: tuple[LowerBound, ...]
    population: float
    population_bounds: tuple[LowerBound, ...]

    def _title(self) -> str:
        return f"Unbiased means · {self.privacy.describe()} · n = {self.n} · ℓ₂ errors"

    def _rows(self) -> list[list[str]]:
        rows = [["mechanism or theorem", "error", "on", "constant"]]
        for name, error in ((SHIFTED, self.shifted), (DIFFERENCE, self.difference)):
            rows.append([name, f"{error:.4g}", "every dataset", "exact"])
        rows += [_row(bound) for bound in self.bounds if bound.value is not None]
        rows.append([POPULATION, f"≤ {self.population:.4g}", "every distribution", "exact"])
        rows += [_row(bound) for bound in self.population_bounds if bound.value is not None]
        return rows

    def _notes(self) -> list[str]:
        gain = 100 * (1 - self.difference / self.shifted) if self.shifted else 0.0
        return [f"The difference body saves {max(gain, 0.0):.2g} % of the error of Theorem 15."]


def _row(bound: LowerBound) -> list[str]:
    assert bound.value is not None
    return [bound.theorem, f"≥ {rounded_down(bound.value)}", bound.where, bound.source]


def nikolov_tang(K: Domain, *, n: int, privacy: Privacy) -> NikolovTang:
    """NT24's Theorem 15 and its bounds for the mean of n records of K, beside ours, at p = 2.

    >>> from muhat.domains import Simplex
    >>> from muhat.privacy import ZCDP
    >>> found = nikolov_tang(Simplex(dim=8), n=1000, privacy=ZCDP(rho=0.5))
    >>> f"{found.shifted:.5f}, {found.difference:.5f}"  # 2(d − 1)/√d and √(2(d − 1)), over n
    '0.00495, 0.00374'
    """
    check_promise(privacy)
    n = _check.count("n", n)
    if not privacy.admits_normal:
        raise InvalidInput(
            "must be one that normal noise keeps", parameter="privacy", value=privacy.describe()
        )
    mu = root_at_least(gaussian_mu_squared(privacy))
    shifted = 2 * smallest_ellipsoid(K, 2, "shifted").value / (n * mu)
    body = smallest_ellipsoid(K, 2)
    difference = body.value / (n * mu)
    found = unbiased(K, n=n, privacy=privacy)
    drawn = population_bounds(K, found, body.floor, n=n, privacy=privacy)
    population = population_error(K, n=n, noise=difference)
    return NikolovTang(n, privacy, shifted, difference, found, population, drawn)
