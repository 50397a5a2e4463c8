"""The lower bounds with the constants that follow from Nikolov and Tang's own argument.

Theorem 31 with its constants made explicit: an unbiased ρ-zCDP mean of n records of K has the
root mean square ℓ_p error Γ_p(K)/(2n·√(e^{2ρ} − 1)) at least, on every dataset, where Γ_p(K) is
the smallest ellipsoid around K with a free shift. Lemmas 28 and 29 give the same for pure ε with
4·sinh²(ε/2) for the divergence. `unbiased` improves both: by the difference body, and by
neighbours on both sides.
"""

from __future__ import annotations

from muhat import _check
from muhat.bounds.lower_bound import LowerBound
from muhat.bounds.promised import one_sided
from muhat.bounds.unbiased import quotient
from muhat.privacy import Privacy

CITATION = "Nikolov and Tang 2024, arXiv:2301.13850"


def paper_mean(gamma: float, *, n: int, privacy: Privacy) -> tuple[LowerBound, ...]:
    """The paper's bound for a certified floor of Γ_p(K); nothing explicit is known beyond zCDP."""
    n = _check.count("n", n)
    log_divergence = one_sided(privacy)
    if log_divergence is None or privacy.implied_rho is None:
        return ()
    theorem = "NT24 Theorem 31" if privacy.implied_epsilon is None else "NT24 Lemmas 28 and 29"
    assumptions = (
        "n is public and neighbours replace one record.",
        "The mechanism is unbiased for the mean of every dataset of records in the domain.",
    )
    return (
        LowerBound(
            quotient(gamma / (2 * n), log_divergence),
            "unbiased",
            "every",
            theorem,
            "paper",
            assumptions,
            privacy.describe(),
            CITATION,
        ),
    )
