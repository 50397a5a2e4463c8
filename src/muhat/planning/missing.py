"""What becomes of missing values of records that nobody has bounded."""

from __future__ import annotations

from muhat._words import given
from muhat.data.base import PartitionedSource, Source
from muhat.errors import InvalidInput

DROPPED = {
    True: "a missing or non-finite value is left out: the mean is that of the recorded values",
    False: "records with a missing or non-finite value are left out",
}
"""What is said of "drop", of one column and of several: a ball needs every coordinate."""


def missing_line(missing: str, dim: int, centre: str) -> str:
    """The rule in a sentence; `centre` is what a missing value counts as, if it does."""
    if missing == "drop":
        return DROPPED[dim == 1]
    if missing == "none":
        return f"nothing is missing, as was declared; a value that is counts as {centre}"
    return f"a missing or non-finite value counts as {centre}"


def require_to_draw(source: Source) -> None:
    """Refuse a source elsewhere: complete records are drawn at random, and never fetched."""
    if not isinstance(source, PartitionedSource):
        raise InvalidInput(
            "must be on this machine to leave missing values out here: some of the other records "
            "are drawn at random",
            parameter="data",
            hint=(
                "Use ",
                given("missing", "none"),
                " if nothing is missing, or ",
                given("missing", "center"),
                ".",
            ),
        )
