"""`--project`: move a value to where it is publicly known to lie, at no cost."""

from __future__ import annotations

from muhat.cli.options import Interval, interval
from muhat.errors import InvalidInput
from muhat.release import Release
from muhat.release.public_sets import checked_intervals

Targets = dict[str | None, Interval]
"""Intervals by column; that of None is for all columns without one of their own."""


def targets_from(texts: tuple[str, ...], columns: list[str] | None) -> Targets:
    """What --project asks for, checked before anything is spent."""
    targets: Targets = {}
    for text in texts:
        name, equals, ends = text.rpartition("=")
        if ":" not in ends or (equals and not name.strip()):
            raise InvalidInput(
                "must read LOW:HIGH or COLUMN=LOW:HIGH",
                parameter="--project",
                value=f"{text!r:.80}",
            )
        key = name.strip() if equals else None
        if key in targets:
            raise InvalidInput(f"--project says twice where {key or 'every column'!r:.60} lies.")
        targets[key] = interval(ends, text)
    named = {name: pair for name, pair in targets.items() if name is not None}
    if named and columns is None:
        raise InvalidInput("--project COLUMN=… needs --columns, to know their names.")
    checked_intervals(named, columns or [])
    if None in targets:
        checked_intervals({"every column": targets[None]}, ["every column"])
    return targets


def projected(release: Release, targets: Targets) -> Release:
    """The release with its value moved; one without a value stays as it is."""
    if not targets or release.failed:
        return release
    everywhere = targets.get(None)
    pairs = {name: targets.get(name, everywhere) for name in release.columns}
    return release.projected({name: pair for name, pair in pairs.items() if pair is not None})
