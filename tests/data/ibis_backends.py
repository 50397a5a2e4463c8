"""Backends of Ibis as they really run, for tests: ClickHouse in this process, MariaDB, SQLite."""

from __future__ import annotations

import contextlib
import getpass
import importlib.util
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PATIENCE_SECONDS = 60


def has(name: str) -> bool:
    """Whether a backend can be run here."""
    if name == "mysql":
        found = shutil.which("mariadbd"), shutil.which("mariadb-install-db")
        return all(found) and importlib.util.find_spec("MySQLdb") is not None
    if name == "clickhouse":
        return all(map(importlib.util.find_spec, ("chdb", "clickhouse_connect")))
    return importlib.util.find_spec("ibis") is not None


@contextlib.contextmanager
def connected(name: str) -> Iterator[Any]:
    """A connection of Ibis to an empty database."""
    import ibis

    if name == "mysql":
        with _mariadb() as socket:
            backend = ibis.mysql.connect(user="root", unix_socket=socket, database="test", host="")
            yield backend
            backend.disconnect()
        return
    if name == "clickhouse":
        import clickhouse_connect

        backend = ibis.clickhouse.from_connection(clickhouse_connect.get_client(interface="chdb"))
    else:
        backend = ibis.sqlite.connect()
    yield backend
    backend.disconnect()


@contextlib.contextmanager
def _mariadb() -> Iterator[str]:
    """A server of its own in a folder of its own, on a socket alone."""
    folder = Path(tempfile.mkdtemp(prefix="muhat-mariadb-"))
    socket = folder / "socket"
    server = None
    try:
        where = [f"--datadir={folder / 'data'}", f"--user={getpass.getuser()}", "--no-defaults"]
        made = [
            "mariadb-install-db",
            where[2],
            *where[:2],
            "--auth-root-authentication-method=normal",
        ]
        subprocess.run([*made, "--skip-test-db"], check=True, capture_output=True)
        server = subprocess.Popen(
            ["mariadbd", where[2], *where[:2], f"--socket={socket}", "--skip-networking"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _until(lambda: _answers(socket))
        yield str(socket)
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
    con.query("CREATE DATABASE IF NOT EXISTS test CHARACTER SET utf8mb4")
    con.close()
    return True


def _until(happens: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not happens():
        assert time.monotonic() < until, "the server does not answer"
        time.sleep(0.1)
