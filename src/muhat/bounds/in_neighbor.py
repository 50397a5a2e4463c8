"""What every mean must err on the records themselves or on neighbours inside them.

Let w be the largest distance between two of n records. One of the two takes the place of the
other: the mean moves by w/n, and the records stay within themselves (an in-neighbour). No private
mean can be closer than w/2n to both almost surely. w is secret, so only the probability is told,
and an error in units of w/2n. Huang, Liang and Yi (2021), B9; proof: docs/proofs/bounds.md.
"""

from __future__ import annotations

from muhat.privacy import Privacy

_SAFE = 1 - 1e-12


def in_neighbor(privacy: Privacy) -> float:
    """A probability, rounded down, with which every private mean errs by w/2n or more.

    On the records or on an in-neighbour of theirs: (1 − δ)/(1 + e^ε), or (1 − TV)/2 with the
    total variation of the promise at most min(√(ρ/2), √(1 − e^−ρ)) or 2Φ(μ/2) − 1.

    >>> from muhat.privacy import ZCDP, PureDP
    >>> round(in_neighbor(PureDP(epsilon=1)), 4), round(in_neighbor(ZCDP(rho=0.5)), 4)
    (0.2689, 0.25)
    """
    return privacy.certain_error() * _SAFE
