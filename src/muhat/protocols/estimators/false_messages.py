"""What people who do not follow the protocol can do to a result, said before and after.

A message that is private alone is one of finitely many, so that a false one moves a mean no
farther than the loudest there is: with z̄ the mean of n estimates, each within ±c of the centre, one
of them changed moves z̄ by at most 2c/n, and k of them by at most 2ck/n, coordinate by coordinate.
That is a property of the sum and holds whatever the sender knows or draws. In the same way an
answer about where a number lies counts for so many people and no more. A false fragment is another
matter: sums are modulo q, and one fragment sets a sum to whatever its sender likes. All that can be
seen then is a sum that no records have. docs/proofs/local.md, docs/proofs/local-ranges.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from muhat._arrays import Floats
from muhat._text import printable
from muhat.domains import Domain
from muhat.noise.spread import Spread
from muhat.protocols.randomizers.randomizer import MeanRandomizer, Randomizer
from muhat.protocols.randomizers.range_randomizer import RangeRandomizer

MOST_COLUMNS = 4
"""Of more columns the largest step alone is told."""

SURE = 1 - 1e-9
"""Noise takes a mean that far out of its domain in one release of a billion."""

FOLLOWED = "people follow the protocol: "
LEARNT = (
    "people follow the protocol: a false message in a round before the mean moves what is learnt "
    "there as far as the loudest honest one would"
)
OUTSIDE = (
    "the value lies outside of the domain by more than noise explains: somebody has sent a false "
    "message, and the value means nothing"
)
UNEXPLAINED = (
    "fragments add up to what no records and no noise do: somebody has sent a false one, and the "
    "result means nothing"
)


def not_caught(what: str, instead: str) -> str:
    """What a false fragment does, and which local protocol has a bound, in words of its own."""
    return (
        f"{FOLLOWED}one false fragment sets {what} to anything, and its sender is not caught; "
        f"in the local model {instead}"
    )


NOT_CAUGHT = not_caught("the mean", "(local_mean) a false message moves it by little")
"""Where no error of the local model is known beforehand."""


def false_messages(randomizer: Randomizer, people: int, columns: Sequence[str]) -> str:
    """What one false message among those of so many people does at most, and k of them."""
    if isinstance(randomizer, RangeRandomizer) and randomizer.look.numbers == 1:
        counted = randomizer.false_step(people)
        return f"{LEARNT}: {moved_count(counted, people, 'the number of people up to any value')}"
    if not isinstance(randomizer, MeanRandomizer):
        return NOT_CAUGHT if randomizer.messages > 1 else LEARNT
    step = randomizer.false_step(people)
    return NOT_CAUGHT if step is None else FOLLOWED + moved_mean(step, people, columns)


def moved_mean(step: Floats, people: int, columns: Sequence[str]) -> str:
    """How far false messages move a mean, in words."""
    if len(columns) > MOST_COLUMNS or len(columns) != len(step):
        told = f"any coordinate of the mean by at most {step.max():.3g}"
    elif len(columns) == 1:
        told = f"the mean by at most {step[0]:.3g}"
    else:
        named = zip(columns, step, strict=True)
        sizes = (f"{size:.3g} in {printable(name)}" for name, size in named)
        told = f"the mean by at most {', '.join(sizes)}"
    return f"one false message of {people} moves {told}, and k of them k times as far"


def moved_count(step: float, people: int, what: str) -> str:
    """How many people false messages move a count by, in words."""
    if not step < people:
        return f"one false message of {people} can move {what} by any number of people"
    return (
        f"one false message of {people} moves {what} by at most {math.ceil(step)} people, "
        "and k of them about k times as far"
    )


def is_outside(value: Floats, domain: Domain, noise: Spread) -> bool:
    """Whether a mean lies where neither records nor noise can have brought it."""
    beyond = np.abs(value - domain.center) - domain.half_widths
    return bool((beyond > noise.half_widths(SURE, joint=True)).any())
