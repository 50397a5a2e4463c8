"""From a body and a law of noise to a recipe that just keeps the promise; what mechanisms are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from muhat.domains import Domain
from muhat.domains.vectors import Vector
from muhat.ellipsoids.result import norm
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.block_query import BlockQuery, PartQuery, block_query, noise_scales
from muhat.mechanisms.sums.body import Body
from muhat.mechanisms.sums.integer_query import fit
from muhat.mechanisms.sums.recipe import Recipe
from muhat.noise.kinds import NoiseKind
from muhat.noise.law import ScaleFamily
from muhat.noise.laws import kind_of
from muhat.noise.protection import Protection

WHOLE = 1 - Fraction(1, 1 << 50)
"""What the shares of several parts add up to: √ of a sum of squares is rounded up once more."""


@dataclass(frozen=True)
class SumMechanism:
    """A way to add noise to sums.

    `make` gives the recipe for a body, the p of the error, its weights, and what is to be
    guaranteed. Where it `competes`, for a domain and what is to be guaranteed, it is planned with;
    elsewhere it must be asked for by its name. Squares and counts may stand `beside_columns` of a
    box, and squares `beside_ball`, with noise of its `law`.
    """

    name: str
    summary: str
    law: str
    make: Callable[[Body, float, Vector, Protection], Recipe]
    competes: Callable[[Domain, Protection], bool]
    beside_columns: bool = False
    beside_ball: bool = False

    @cached_property
    def kind(self) -> NoiseKind:
        """In what its privacy is counted."""
        return kind_of(self.law)


def calibrated(
    name: str,
    law: ScaleFamily,
    body: Body,
    protection: Protection,
    *,
    p: float = 2,
    weights: Vector | None = None,
    count_share: float = 0.0,
) -> Recipe:
    """The recipe with the body's noise, up to the factor that just keeps the promise.

    With a `count_share` of the squared sensitivity the number of records is released too. Several
    blocks share the rest so that the ℓ_p error, weighted, is least.
    """
    if len(body.blocks) == 1 and not count_share:
        query: PartQuery | BlockQuery = block_query(body.blocks[0], law, protection, Fraction(1))
    elif law.sensitivity_norm not in (1, 2) or (law.sensitivity_norm == 1 and count_share):
        raise InvalidInput(f"{name} is for a single domain with a public number of records.")
    else:
        counted = Fraction(count_share)
        shares = [share * (WHOLE - counted) for share in _shares(body, law, protection, p, weights)]
        parts = [
            block_query(block, law, protection, share)
            for block, share in zip(body.blocks, shares, strict=True)
        ]
        if counted:
            parts.append(fit(None, [1.0], law, protection, counted))
        query = BlockQuery(tuple(parts))
    return Recipe(name, law, query, protection, body.transform, body.center)


def counted(name: str, law: ScaleFamily, protection: Protection) -> Recipe:
    """The recipe that releases the number of records alone."""
    return Recipe(name, law, fit(None, [1.0], law, protection, Fraction(1)), protection)


def _shares(
    body: Body, law: ScaleFamily, protection: Protection, p: float, weights: Vector | None
) -> list[Fraction]:
    """Parts of 1 in proportion to Γ_i^{2p/(p+2)}, Γ_i the ℓ_p size of a block's noise alone.

    The noise of a block with the share s is Γ_i/√s; ‖(Γ_i/√s_i)‖_p is least there (Hölder). In the
    ℓ₁ norm the roots of the shares add up to 1, in proportion to Γ_i^{p/(p+1)}.
    """
    if len(body.blocks) == 1:
        return [Fraction(1)]
    w = np.ones(len(body.center)) if weights is None else weights
    sizes, start = [], 0
    for block in body.blocks:
        stop = start + len(block.center)
        scales = noise_scales(block, block_query(block, law, protection, Fraction(1)))
        sizes.append(norm(w[start:stop] * scales, p))
        start = stop
    largest = max(sizes)
    if largest == 0:
        return [Fraction(1, len(sizes) ** 2)] * len(sizes)
    norms = int(law.sensitivity_norm)
    power = float(norms) if math.isinf(p) else norms * p / (p + norms)
    # A part that needs no noise needs no share either; the others must not vanish.
    parts = [Fraction(max((size / largest) ** power, 2.0**-60)) if size else 0 for size in sizes]
    return [(Fraction(part) / sum(parts)) ** (2 // norms) for part in parts]
