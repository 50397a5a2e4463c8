"""Real services, killed and started again in the middle: nothing is lost, nothing counts twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from collections_of_tests import Collection, described, reports_of
from test_web import wait_for

from muhat.protocols.services.sending import Sender, send_all
from muhat.release.release import Release

SERVE = "import sys; from muhat.cli import main; main(['protocol', 'serve', *sys.argv[1:]])"


@dataclass
class Process:
    """A service of its own, which can be killed and started again at the same address."""

    role: str
    config: Path
    address: str = ""
    running: subprocess.Popen | None = field(default=None)

    def start(self) -> str:
        command = [sys.executable, "-c", SERVE, self.role, "--config", str(self.config)]
        self.running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        line = self.running.stderr.readline()
        assert line.startswith(f"{self.role} at http"), line
        self.address = line.split()[-1]
        threading.Thread(target=self.running.stderr.read, daemon=True).start()
        return self.address

    def kill(self) -> None:
        self.running.send_signal(signal.SIGKILL)
        self.running.wait()
        self.running.stderr.close()

    def restart(self) -> None:
        """At the address that others know."""
        self.kill()
        text = self.config.read_text()
        if "port =" not in text:
            self.config.write_text(f"port = {self.address.rpartition(':')[2]}\n{text}")
        self.start()


def written(folder: Path, name: str, fields: dict[str, object]) -> Path:
    lines = [f"{key} = {value!r}" for key, value in fields.items() if value is not None]
    limits = "\n[limits]\nper_second = 1000000\nper_minute_and_address = 0\n"
    path = folder / f"{name}.toml"
    path.write_text("\n".join([*lines, "access_log = false", limits]))
    return path


def test_a_server_that_is_killed_goes_on_and_one_that_is_told_to_end_ends(tmp_path):
    devices = 300
    collection = Collection.of(tmp_path, described("local", devices), sealed=False)
    reports = reports_of(collection.round, devices)
    fields = {"description": "description", "store": "server"}
    server = Process("server", written(tmp_path, "server", fields))
    server.start()
    try:
        assert send_all(server.address, reports[:100]) == (100, 100)
        sending = threading.Thread(target=send_all, args=(server.address, reports[100:]))
        sending.start()
        server.restart()
        sending.join()
        with Sender(server.address) as reader:
            found = wait_for(reader, "/release", 200).body.decode()
            assert not any(reader.send(report) for report in reports[::20])
        assert Release.from_json(found).n == devices
        os.kill(server.running.pid, signal.SIGTERM)
        assert server.running.wait(timeout=60) in (0, -signal.SIGTERM)
    finally:
        server.kill()


@pytest.mark.slow
def test_shuffler_and_server_that_are_killed_lose_nothing_and_count_nothing_twice(tmp_path):
    devices = 1500
    collection = Collection.of(tmp_path, described("single", devices))
    reports = reports_of(collection.round, devices)
    common = {
        "description": "description",
        "signer": collection.server.signer,
        "secret": "secret",
    }
    server = Process(
        "server", written(tmp_path, "server", {**common, "store": "server", "key": "server.key"})
    )
    fields = {**common, "store": "shuffler", "forward_to": server.start()}
    shuffler = Process("shuffler", written(tmp_path, "shuffler", fields))
    shuffler.start()
    try:
        assert send_all(shuffler.address, reports[:500]) == (500, 500)
        sending = threading.Thread(target=send_all, args=(shuffler.address, reports[500:]))
        sending.start()
        shuffler.restart()
        sending.join()
        # Everything was acknowledged; the batch is mixed now, or handed on, or neither yet.
        shuffler.kill()
        server.restart()
        shuffler.start()
        with Sender(server.address) as reader, Sender(shuffler.address) as device:
            found = wait_for(reader, "/release", 200).body.decode()
            assert not any(device.send(report) for report in reports[::20])
    finally:
        shuffler.kill()
        server.kill()
    assert Release.from_json(found).n == devices
