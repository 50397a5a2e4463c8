"""A saved counter goes on, once.

Noise that is used twice is no noise: two continuations of one state, pushed different events,
differ by the events alone. So restoring claims the state's id: a file that names it is created
exclusively in the folder of claims, durably, before the counter exists. Of any number of
processes that race for it one wins.

There is one folder of claims for each user, so that a copy of the file is seen wherever it was put.
What this cannot see: a copy restored by another user, on another machine or against another folder,
and a folder that was itself put back to an earlier state, by a backup or a snapshot of the machine.
Where several restore, give all of them the same folder, and keep it out of backups.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from muhat.errors import InvalidInput
from muhat.stream.counter import AnyCounter, PrefixCounter
from muhat.stream.state import create, locate, read, sync_folder


def restore(
    path: str | os.PathLike[str], *, claims: str | os.PathLike[str] | None = None
) -> AnyCounter:
    """The counter that was saved, with the same sum and the same noise; works once.

    `claims` is the folder where restored states are noted, by default one of the user's own
    (`muhat/claims` in $XDG_STATE_HOME, or in ~/.local/state). The file is removed once it is
    claimed. A second claim, of a copy too, is InvalidInput.
    """
    location = Path(os.path.realpath(locate(path)))
    folder = claims_of_user() if claims is None else locate(claims)
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


def claims_of_user() -> Path:
    """The folder where this user's restored states are noted; made if it is not there."""
    # LOCALAPPDATA is where Windows has such things.
    given = [os.environ.get(name, "") for name in ("XDG_STATE_HOME", "LOCALAPPDATA")]
    root = next((path for path in given if os.path.isabs(path)), None)
    folder = Path(root or os.path.expanduser("~/.local/state")) / "muhat" / "claims"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"{folder}, where restored states are noted, cannot be made: {error.strerror}. Name "
            "another folder, the same for all that restore: claims=…."
        ) from None
    return folder
