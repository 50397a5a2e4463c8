"""A saved counter goes on, once.

Noise that is used twice is no noise: two continuations of one state, pushed different events,
differ by the events alone. So restoring claims the state's id: a file that names it is created
exclusively in the folder of claims, durably, before the counter exists. Of any number of
processes that race for it one wins.

What this sees: a second claim of the file, or of any copy of it, against the same folder of
claims. What it cannot see: a copy restored against another folder (by default the folder the copy
is in), and a folder that was itself put back to an earlier state, by a backup or a snapshot of
the machine. Keep one folder of claims for all, and keep it out of backups.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from muhat.errors import InvalidInput
from muhat.stream.counter import PrefixCounter
from muhat.stream.state import create, locate, read, sync_folder


def restore(
    path: str | os.PathLike[str], *, claims: str | os.PathLike[str] | None = None
) -> PrefixCounter:
    """The counter that was saved, with the same sum and the same noise; works once.

    `claims` is the folder where restored states are noted, by default that of the file. The file
    is removed once it is claimed. A second claim, of a copy too, is InvalidInput.
    """
    # A link is another name of the same state, whose claims are where the state is.
    location = Path(os.path.realpath(locate(path)))
    folder = location.parent if claims is None else locate(claims)
    state = read(location)
    claim = folder / f".muhat-claimed-{state.identity}"
    try:
        create(claim, b"")
    except FileExistsError:
        raise InvalidInput(
            f"{location} was restored already; its noise may be used once only."
        ) from None
    except OSError as error:
        raise InvalidInput(f"{claim} cannot be made: {error.strerror}.") from None
    sync_folder(folder)
    with contextlib.suppress(OSError):
        os.unlink(location)
    return PrefixCounter(state.plan, state.engine, state.pushed, state.last, state.ledger_head)
