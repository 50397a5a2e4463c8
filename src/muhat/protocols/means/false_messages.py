"""What people who do not follow the protocol can do to a mean, said before and after.

A message that is private alone is one of finitely many, so that a false one moves the mean no
farther than the loudest there is: with z̄ the mean of n estimates, each within ±c of the centre, one
of them changed moves z̄ by at most 2c/n, and k of them by at most 2ck/n, coordinate by coordinate.
That is a property of the sum and holds whatever the sender knows or draws. A false fragment is
another matter: sums are modulo q, and one fragment sets a sum to whatever its sender likes. All
that can be seen then is a mean where no record can be. docs/proofs/local.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muhat._arrays import Floats
from muhat._text import printable
from muhat.domains import Domain
from muhat.noise.spread import Spread
from muhat.protocols.randomizers.randomizer import MeanRandomizer, Randomizer

MOST_COLUMNS = 4
"""Of more columns the largest step alone is told."""

SURE = 1 - 1e-9
"""Noise takes a mean that far out of its domain in one release of a billion."""

NOT_CAUGHT = (
    "people follow the protocol: one false fragment sets the mean to anything, and its sender is "
    "not caught; in the local model (local_mean) a false message moves it by little"
)
LEARNT = (
    "people follow the protocol: a false message in a round before the mean moves what is learnt "
    "there as far as the loudest honest one would"
)
OUTSIDE = (
    "the value lies outside of the domain by more than noise explains: somebody has sent a false "
    "message, and the value means nothing"
)


def false_messages(randomizer: Randomizer, people: int, columns: Sequence[str]) -> str:
    """What one false message among those of so many people does at most, and k of them."""
    if not isinstance(randomizer, MeanRandomizer):
        return NOT_CAUGHT if randomizer.messages > 1 else LEARNT
    step = randomizer.false_step(people)
    if step is None:
        return NOT_CAUGHT
    if len(columns) > MOST_COLUMNS or len(columns) != len(step):
        told = f"any coordinate of the mean by at most {step.max():.3g}"
    elif len(columns) == 1:
        told = f"the mean by at most {step[0]:.3g}"
    else:
        named = zip(columns, step, strict=True)
        sizes = (f"{size:.3g} in {printable(name)}" for name, size in named)
        told = f"the mean by at most {', '.join(sizes)}"
    return (
        f"people follow the protocol: one false message of {people} moves {told}, "
        "and k of them k times as far"
    )


def is_outside(value: Floats, domain: Domain, noise: Spread) -> bool:
    """Whether a mean lies where neither records nor noise can have brought it."""
    beyond = np.abs(value - domain.center) - domain.half_widths
    return bool((beyond > noise.half_widths(SURE, joint=True)).any())
