"""What the mean of records in Reals has no use for, refused in words."""

from __future__ import annotations

from muhat import _check
from muhat._words import Parameter, given
from muhat.domains import Domain
from muhat.errors import InvalidInput
from muhat.planning.reals_rule import PAPERS
from muhat.planning.task import relation_of
from muhat.privacy import Neighbors


def check_unbounded(
    n: int | None,
    *,
    neighbors: Neighbors | str | None,
    mechanism: str | None,
    clip: Domain | None,
    faithful: bool,
    scale: tuple[float, float] | None,
) -> None:
    """Refuse what the mean of records in Reals has no use for."""
    if n is not None:
        relation_of(n, neighbors)
    if clip is not None:
        raise InvalidInput("clip is for bounded domains; in Reals the ball is learnt privately.")
    if mechanism is not None:
        where = Parameter("mechanism", "mechanism in Reals", "--mechanism with --magnitude")
        _check.one_of(where, mechanism, ["recentring", *PAPERS])
    if faithful and mechanism not in PAPERS:
        raise InvalidInput(f"faithful is for the estimators of a paper: {', '.join(PAPERS)}.")
    if (scale is not None) != (mechanism == "statistical"):
        raise InvalidInput(
            Parameter("scale", "scale=(lowest, highest)", "--scale LOW:HIGH"),
            " and ",
            given("mechanism", "statistical"),
            " go together: public bounds on the standard deviation of the records in every "
            "direction.",
        )


def check_low_bias(
    n: int | None,
    *,
    neighbors: Neighbors | str | None,
    clip: Domain | None,
    p: float,
    faithful: bool,
    scale: tuple[float, float] | None,
) -> None:
    """Refuse what a mean of bounded bias has no use for."""
    relation_of(n, neighbors)
    if clip is not None or faithful or scale is not None:
        three = Parameter("scale", "clip, faithful and scale have", "--scale has")
        raise InvalidInput(three, " no use where the bias is bounded.")
    if _check.norm_order(p) != 2:
        raise InvalidInput("must be 2 where the bias is bounded", parameter="p")
