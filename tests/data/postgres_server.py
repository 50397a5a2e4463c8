"""A PostgreSQL of one's own for tests: that of the system, or the one that pip installs."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE_SECONDS = 60


def programs() -> Path | None:
    """Where initdb and postgres are, None if they are not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found += [Path(path).resolve().parent for path in [shutil.which("initdb")] if path]
    package = importlib.util.find_spec("pgserver")
    if package is not None and package.origin is not None:
        found.append(Path(package.origin).parent / "pginstall" / "bin")
    return next((each for each in found if (each / "postgres").exists()), None)


@contextmanager
def running(where: Path) -> Iterator[str]:
    """A server that listens in a folder only, and what to connect with; it ends with the tests."""
    # PostgreSQL refuses to be root, and others cannot see the folders of root's tests.
    user = "nobody" if os.getuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="muhat-postgres-"))
    if user is not None:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "user": user}
    data = folder / "data"
    made = [
        where / "initdb",
        "-D",
        data,
        "-U",
        "postgres",
        "-A",
        "trust",
        "--no-sync",
        "-E",
        "UTF8",
    ]
    settings = [f"unix_socket_directories={folder}", "listen_addresses=", "fsync=off"]
    options = [part for each in settings for part in ("-c", each)]
    server = None
    try:
        subprocess.run([*made, "--locale=C"], check=True, cwd=folder, **quiet)
        server = subprocess.Popen([where / "postgres", "-D", data, *options], cwd=folder, **quiet)
        until = time.monotonic() + PATIENCE_SECONDS
        conninfo = f"postgresql://postgres@/postgres?host={folder}"
        while not _answers(conninfo) and time.monotonic() < until:
            time.sleep(0.05)
        yield conninfo
    finally:
        if server is not None:
            server.send_signal(signal.SIGQUIT)
            server.wait(PATIENCE_SECONDS)
        shutil.rmtree(folder, ignore_errors=True)


def _answers(conninfo: str) -> bool:
    import psycopg

    try:
        psycopg.connect(conninfo).close()
    except psycopg.OperationalError:
        return False
    return True
