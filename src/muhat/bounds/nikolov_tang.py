"""Nikolov and Tang's own mechanism and bounds, beside what became of them here.

NT24, Theorem 15: with A·B₂ the smallest ellipsoid around K, wherever it is centred, normal noise of
the covariance 4AAᵀ/(μn)² keeps μ-GDP, and errs by 2Γ_p(K)/(nμ) at p = 2; plans make it where asked
for by its name, `mechanism="shifted-gaussian"`. muhat's noise is that of
K − K: Γ_p(K − K) ≤ 2Γ_p(K), with equality for a K that is symmetric. Proofs: docs/proofs/bounds.md,
docs/proofs/gaussian.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from muhat import _check
from muhat.bounds.lower_bound import BoundTable, LowerBound, rounded_down
from muhat.bounds.unbiased import unbiased
from muhat.domains import Domain
from muhat.ellipsoids import smallest_ellipsoid
from muhat.errors import InvalidInput
from muhat.privacy import Privacy, check_promise, gaussian_mu_squared
from muhat.privacy.rounding import root_at_least

SHIFTED, DIFFERENCE = "NT24 Theorem 15, K with a free shift", "the same with K − K"


@dataclass(frozen=True, repr=False)
class NikolovTang(BoundTable):
    """Normal noise by Theorem 15 and by the difference body, and bounds on unbiased mechanisms.

    Attributes:
        shifted: the root mean square ℓ₂ error of Theorem 15's noise, rounded up.
        difference: that of the smallest ellipsoid around K − K, which plans use.
        bounds: ours first, with `source` "derived"; the paper's after them.
    """

    n: int
    privacy: Privacy
    shifted: float
    difference: float
    bounds: tuple[LowerBound, ...]

    def _title(self) -> str:
        return f"Unbiased means · {self.privacy.describe()} · n = {self.n} · ℓ₂ errors"

    def _rows(self) -> list[list[str]]:
        rows = [["mechanism or theorem", "error", "on", "constant"]]
        for name, error in ((SHIFTED, self.shifted), (DIFFERENCE, self.difference)):
            rows.append([name, f"{error:.4g}", "every dataset", "exact"])
        for bound in self.bounds:
            if bound.value is not None:
                shown = f"≥ {rounded_down(bound.value)}"
                rows.append([bound.theorem, shown, bound.where, bound.source])
        return rows

    def _notes(self) -> list[str]:
        gain = 100 * (1 - self.difference / self.shifted) if self.shifted else 0.0
        return [f"The difference body saves {max(gain, 0.0):.2g} % of the error of Theorem 15."]


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
    difference = smallest_ellipsoid(K, 2).value / (n * mu)
    found = unbiased(K, n=n, privacy=privacy)
    return NikolovTang(n, privacy, shifted, difference, found)
