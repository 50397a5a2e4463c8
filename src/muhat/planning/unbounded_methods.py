"""Makes the method that learns where records lie, by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muhat import _check
from muhat._words import given
from muhat.errors import InvalidInput
from muhat.mechanisms.learning.learning import Method
from muhat.mechanisms.learning.recentring import Recentring
from muhat.mechanisms.learning.recentring_schedule import Schedule
from muhat.mechanisms.learning.recorded_recentring import RecordedRecentring
from muhat.mechanisms.learning.sharing import Sharing
from muhat.planning.missing import missing_line
from muhat.statistics.reals import Unassuming

if TYPE_CHECKING:
    from muhat.mechanisms.learning.clipped import Clipped
    from muhat.mechanisms.learning.shifted import ShiftedClipped


def make_method(asked: Unassuming, sharing: Sharing) -> tuple[Method, tuple[str, ...]]:
    """The method that was asked for, and what is assumed of it."""
    mechanism, rule, faithful = asked.mechanism, asked.missing, asked.faithful
    beyond = f"values beyond ±{sharing.magnitude:g} are clipped to that"
    missing = missing_line(rule, sharing.dim, "the centre that is found")
    if mechanism in (None, "recentring"):
        fields = (sharing.magnitude, sharing.weights, sharing.n, sharing.protection, sharing.kind)
        schedule = Schedule(*fields)
        method = RecordedRecentring(sharing) if rule == "drop" else Recentring(schedule)
        finest = (
            f"no radius below {schedule.edges[0]:.2g} is looked for; records that lie closer "
            "together need a smaller magnitude"
        )
        shell = (
            "in the value, not in its interval, what lies beyond an inner radius may count with a "
            "smaller weight, if it is noise"
        )
        return method, (beyond, missing, finest, shell)
    assert mechanism is not None
    _refuse_unsuited(mechanism, sharing, faithful)
    estimator = _of_paper(mechanism, sharing, faithful, asked.scale)
    said = () if faithful or mechanism == "statistical" else (beyond, missing)
    return estimator, (*said, *estimator.assumptions)


def _of_paper(
    mechanism: str, sharing: Sharing, faithful: bool, scale: Any
) -> Clipped | ShiftedClipped:
    # The passes that they need are loaded only if one of them is asked for.
    from muhat.mechanisms.learning.clipped import Clipped
    from muhat.mechanisms.learning.shifted import ShiftedClipped
    from muhat.mechanisms.learning.statistical import Statistical

    if mechanism == "clipped":
        return Clipped(sharing, faithful)
    if mechanism == "shifted-clipped":
        return ShiftedClipped(sharing, faithful)
    return Statistical(sharing, faithful, scale=_bounds(scale))


def _refuse_unsuited(mechanism: str, sharing: Sharing, faithful: bool) -> None:
    weighted = bool((sharing.weights != 1).any())
    if weighted and (faithful or mechanism != "clipped"):
        raise InvalidInput(
            f"{mechanism} measures all columns alike, so there must be no weights; scale the "
            "columns instead, or use ",
            given("mechanism", "recentring"),
            ".",
        )
    if faithful and sharing.pure:
        raise InvalidInput(
            "faithful needs a promise that normal noise keeps: the paper has no pure version. "
            "Leave faithful out, or use mh.ZCDP."
        )


def _bounds(scale: Any) -> tuple[float, float]:
    try:
        low, high = scale
    except (TypeError, ValueError):
        raise InvalidInput(
            "must be a pair, for instance scale=(0.1, 100)", parameter="scale"
        ) from None
    low, high = _check.positive("scale[0]", low), _check.positive("scale[1]", high)
    if low > high or high > 1e100:
        raise InvalidInput(
            "must be an ascending pair of numbers of at most 1e100", parameter="scale"
        )
    return low, high
