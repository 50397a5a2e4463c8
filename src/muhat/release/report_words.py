"""What a report says to people who have never heard of its promise."""

from __future__ import annotations

import math
from collections.abc import Iterable

from muhat.privacy import Neighbors, Privacy
from muhat.release.answer import Answer

DELTA = 1e-6
"""At which a promise of another kind is written as (ε, δ), which most readers have heard of."""

LEAD = (
    "These numbers were made from people's records, with random noise added so that they give away "
    "little about any one person: how little is stated under “What it cost”. The noise is of a "
    "known size, and every number comes with an interval that says how far off it may be."
)

VALUE = {
    "Value": "The statistic of the records, plus noise. It is written to two digits of its error: "
    "what lies below is noise.",
    "95 % interval: records (noise)": "It holds the exact statistic of these records, clipped to "
    "their bounds, in 95 of 100 such releases. It allows for the noise alone.",
}
POPULATION = {
    "95 % interval: population (noise and sampling)": "It holds the statistic of the population "
    "that the records are independent draws of, in 95 of 100 samples. It allows for the noise and "
    "for the choice of the sample; not for people who were never asked, nor for wrong answers. Use "
    "it to speak of more people than those in the data.",
}
RANKS = {
    "Rank error": "How many records may lie between the quantile that is printed and the exact "
    "one, in 95 of 100 such releases.",
}
OTHERS = {
    "One interval in twenty misses": "Each interval holds by itself. Among many of them some miss, "
    "so a single group that stands out slightly is no finding.",
    "Too few": "The noisy number of a group's records cannot be told from a handful, so nothing "
    "about them is printed. It does not mean that there is nobody.",
    "Numbers that should add up": "Each has its own noise, so a total may differ from the sum of "
    "its parts by the errors that are shown, and a small count may be below zero. Rounding that "
    "away would bias what is made of them.",
}
"""How the page is to be read."""


def reading(answers: Iterable[Answer]) -> dict[str, str]:
    """What the words of a page mean, as far as it uses them."""
    said = set().union(*(each.table() for each in answers))
    terms = VALUE | (POPULATION if "population_lower" in said else {})
    return terms | (RANKS if "rank_error" in said else {}) | OTHERS


def in_plain_words(promise: Privacy, neighbors: Neighbors) -> str:
    """What somebody can find out who knows all but one person, as how often a guess is wrong."""
    secret = neighbors is Neighbors.ADD_REMOVE
    between = (
        "whether a certain person is in these data"
        if secret
        else "which of two possible records a certain person has"
    )
    wrong = promise.certain_error()
    # Rounded down, as a promise is.
    often = f"{math.floor(100 * wrong)} of 100" if wrong >= 0.01 else "less than one of 100"
    least = "at least " if wrong >= 0.01 else "perhaps "
    return (
        f"Suppose somebody knows everything about everybody else, and guesses {between}. Without "
        f"this page half of such guesses are wrong; after reading it, {least}{often} still are. "
        "All numbers of the page together give away no more."
    )


def as_point(promise: Privacy) -> str | None:
    """The promise as (ε, δ), if it is of another kind and implies one."""
    if promise.point is not None:
        return None
    epsilon = promise.epsilon_at(DELTA)
    if not math.isfinite(epsilon):
        return None
    return f"It implies (ε, δ)-differential privacy with ε = {_up(epsilon)} and δ = {DELTA:g}."


def _up(epsilon: float) -> str:
    """Three digits, rounded up."""
    decimals = max(0, 2 - math.floor(math.log10(epsilon))) if epsilon > 0 else 2
    return f"{math.ceil(epsilon * 10**decimals) / 10**decimals:g}"


def unit(answer: Answer, column: str | None) -> str:
    """Whose records are hidden together: those with one value of a column, if it is known."""
    if column is not None:
        return f"each {column}, with all of its rows"
    most = answer.contributions
    return f"each person, with {'one record' if most == 1 else f'up to {most:,} records'}"


def protected(answer: Answer, neighbors: Neighbors, column: str | None) -> str:
    """The unit and the relation of a promise."""
    most = answer.contributions
    records = "one record counts" if most == 1 else f"{most:,} records count"
    if neighbors is Neighbors.ADD_REMOVE:
        other, number = "the data without them", "secret, too"
    else:
        other, number = "data in which they are replaced by any others", "public"
    if column is not None:
        entering = "row" if most == 1 else "rows"
        return (
            f"Each {column}, with all of its rows, of which at most {most:,} {entering} entered. "
            f"The promise compares the data with {other}. How many rows there are is secret, too."
        )
    return (
        f"Everybody, with all of their records, of which at most {records}. The "
        f"promise compares the data with {other}. How many records there are is {number}."
    )


def people(answer: Answer) -> str:
    """What is known of the number of records."""
    n = answer.n
    return "number kept secret" if n is None else f"{n:,}"
