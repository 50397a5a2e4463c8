"""What is known about the error of a value, to JSON and back."""

from __future__ import annotations

from typing import Any

from muhat.mechanisms.sums.ratio import Ratio
from muhat.noise.spread import Spread
from muhat.noise.student_spread import StudentSpread

Noise = Spread | Ratio | StudentSpread
"""What is known about the error of a value."""


def noise_to_dict(noise: Noise) -> dict[str, Any]:
    """The noise, and of which kind it is."""
    return {"kind": _kind(type(noise)), **noise.to_dict()}


def noise_from_dict(fields: dict[str, Any] | None) -> Noise | None:
    """The noise that `noise_to_dict` described."""
    if fields is None:
        return None
    kinds: dict[str, type[Noise]] = {_kind(each): each for each in (Spread, Ratio, StudentSpread)}
    return kinds[fields["kind"]].from_dict(fields)


def _kind(noise: type[Noise]) -> str:
    return noise.__name__.lower()
