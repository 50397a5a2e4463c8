"""Where a user's own state is kept between runs: one folder, for this user alone."""

from __future__ import annotations

import os
from pathlib import Path

from muhat.errors import InvalidInput


def user_folder(name: str, what: str, hint: str) -> Path:
    """`muhat/name` in $XDG_STATE_HOME or ~/.local/state; made if it is not there.

    `what` is kept there, and `hint` says what else can be done where it cannot be made.
    """
    # LOCALAPPDATA is where Windows has such things.
    given = [os.environ.get(variable, "") for variable in ("XDG_STATE_HOME", "LOCALAPPDATA")]
    root = next((path for path in given if os.path.isabs(path)), None)
    folder = Path(root or os.path.expanduser("~/.local/state")) / "muhat" / name
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"{folder}, where {what}, cannot be made: {error.strerror}. {hint}"
        ) from None
    return folder
