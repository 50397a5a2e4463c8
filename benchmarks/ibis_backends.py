"""Backends of Ibis as they really run: ClickHouse within this process, and a MariaDB of its own.

For benchmarks, and for tests.
"""

from __future__ import annotations

import contextlib
import getpass
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PATIENCE_SECONDS = 60

NAMES = ("clickhouse", "mysql")


def why_not(name: str) -> str | None:
    """What is missing to run a backend here, None if nothing is."""
    if name == "clickhouse":
        missing = [each for each in ("chdb", "clickhouse_connect") if find_spec(each) is None]
    else:
        missing = [each for each in ("mariadbd", "mariadb-install-db") if not shutil.which(each)]
        missing += [] if find_spec("MySQLdb") else ["mysqlclient"]
    return f"{name}: {', '.join(missing)} not installed" if missing else None


@contextlib.contextmanager
def connected(name: str) -> Iterator[Any]:
    """A connection of Ibis to an empty database."""
    import ibis

    if name == "mysql":
        with mariadb() as (socket, _):
            yield (backend := mysql(socket))
            backend.disconnect()
        return
    import clickhouse_connect

    backend = ibis.clickhouse.from_connection(clickhouse_connect.get_client(interface="chdb"))
    yield backend
    backend.disconnect()


def mysql(socket: str) -> Any:
    """A connection of Ibis to a MariaDB."""
    import ibis

    return ibis.mysql.connect(user="root", unix_socket=socket, database="shop", host="")


@contextlib.contextmanager
def mariadb() -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The socket of a server in a folder of its own, that no network reaches; and the server."""
    folder = Path(tempfile.mkdtemp(prefix="muhat-mariadb-"))
    socket = folder / "socket"
    options = ["--no-defaults", f"--datadir={folder / 'data'}", f"--user={getpass.getuser()}"]
    server = None
    try:
        method = "--auth-root-authentication-method=normal"
        made = ["mariadb-install-db", *options, method, "--skip-test-db"]
        subprocess.run(made, check=True, capture_output=True)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        server = subprocess.Popen(
            ["mariadbd", *options, f"--socket={socket}", "--skip-networking"], **quiet
        )
        until = time.monotonic() + PATIENCE_SECONDS
        while not _answers(socket) and time.monotonic() < until:
            time.sleep(0.1)
        yield str(socket), server
    finally:
        if server is not None:
            server.kill()
            server.wait(PATIENCE_SECONDS)
        shutil.rmtree(folder, ignore_errors=True)


def _answers(socket: Path) -> bool:
    import MySQLdb

    try:
        con = MySQLdb.connect(user="root", unix_socket=str(socket))
    except MySQLdb.Error:
        return False
    con.query("CREATE DATABASE IF NOT EXISTS shop CHARACTER SET utf8mb4")
    con.close()
    return True
