"""What mechanisms that are kept as a paper has them (`faithful`) say and refuse alike."""

from __future__ import annotations

from muhat.errors import InvalidInput
from muhat.planning.terms import Terms


def printed_note(what: str, gain: str) -> str:
    """What a plan says of one: where it is from, and what ours gains.

    >>> printed_note("Theorem E.6", "it is 2").removeprefix("This is Theorem E.6 ")
    'of Kamath et al. (2024) as printed. Without faithful=True it is 2.'
    """
    return f"This is {what} of Kamath et al. (2024) as printed. Without faithful=True {gain}."


def one_record(terms: Terms) -> None:
    """Refuse several records of a person, which the paper does not have."""
    if terms.contributions != 1:
        raise InvalidInput(
            "must be 1 where faithful is given: the paper has one record a person",
            parameter="contributions",
            value=str(terms.contributions),
        )
