"""Devices through real HTTP services on loopback, killed and started again in the middle.

Every device's report is made as on a device, and sent by processes that speak HTTP as devices do.
Server and shuffler are processes of their own. Each is killed (SIGKILL) while reports or parts
arrive, and started again; senders send what was not answered again, and a hundredth of the devices
send what was answered again, too. In the end every report that was made must count once, and none
twice: the result must be, number for number, that of the same reports taken without any network.

CPU is that of whole processes, interpreters included; "files" are the same roles over files in one
process, as `muhat protocol shuffle` and `muhat protocol server` run them.

    python -m benchmarks.devices [--quick] [--write]

The last writes benchmarks/results/devices.md.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import muhat as mh
from benchmarks.pages import fenced, shown, versions
from muhat import protocols
from muhat.protocols import Protocol, SealedProtocol, ServerKey, Signer
from muhat.protocols.roles.messages import read_messages, write_messages
from muhat.protocols.services.config import new_secret
from muhat.protocols.services.sending import Sender, send_all
from muhat.release.release import Release

RESULTS = Path(__file__).parent / "results" / "devices.md"
SERVE = "import sys; from muhat.cli import main; main(['protocol', 'serve', *sys.argv[1:]])"
PURE, APPROX = mh.PureDP(epsilon=1.0), mh.ApproxDP(epsilon=1.0, delta=1e-6)
LIMITS = "[limits]\nper_second = 1000000\nper_minute_and_address = 0\nwaiting = 4000\n"
SENDERS, CONNECTIONS = 2, 32
HEADER = (
    f"{'round':<22} {'devices':>8} {'bytes':>6} {'kills':>5} {'lost':>5} {'twice':>6} "
    f"{'device':>7} {'sender':>7} {'shuffler':>8} {'server':>7} {'files':>7} {'seconds':>8}"
)


@dataclass(frozen=True)
class Case:
    """A round, and how many take part."""

    name: str
    devices: int
    sealed: bool
    most_bytes: int | None = None

    def protocol(self) -> Protocol:
        ball = mh.Ball(1.0, dim=8)
        if not self.sealed:
            return protocols.local_mean(domain=ball, n=self.devices, privacy=PURE)
        return protocols.shuffle_mean(
            domain=ball, n=self.devices, privacy=APPROX, most_bytes=self.most_bytes
        )


FULL = (
    Case("local", 100_000, sealed=False),
    Case("shuffle, one piece", 100_000, sealed=True, most_bytes=64),
    Case("shuffle, fragments", 1000, sealed=True),
)
QUICK = (
    Case("local", 2000, sealed=False),
    Case("shuffle, one piece", 1000, sealed=True, most_bytes=64),
)


@dataclass
class Process:
    """A service, its CPU seconds over all its lives."""

    role: str
    config: Path
    address: str = ""
    cpu: float = 0.0
    kills: int = 0
    running: subprocess.Popen[bytes] | None = field(default=None)

    def start(self) -> Process:
        log = self.config.with_suffix(".log")
        with log.open("wb") as told:
            command = [sys.executable, "-c", SERVE, self.role, "--config", str(self.config)]
            self.running = subprocess.Popen(command, stderr=told)
        while not (line := log.read_text().partition("\n")[0]).startswith(f"{self.role} at "):
            time.sleep(0.02)
        self.address = line.split()[-1]
        text = self.config.read_text()
        if not text.startswith("port"):
            self.config.write_text(f"port = {self.address.rpartition(':')[2]}\n{text}")
        return self

    def end(self) -> None:
        assert self.running is not None
        self.running.send_signal(signal.SIGKILL)
        _, _, used = os.wait4(self.running.pid, 0)
        self.running.returncode = -signal.SIGKILL
        self.cpu += used.ru_utime + used.ru_stime

    def killed(self) -> None:
        """Killed, and started again at the same address."""
        self.end()
        self.kills += 1
        self.start()

    def count(self, name: str) -> int:
        """A number of /metrics."""
        with Sender(self.address) as sender:
            text = sender.request("GET", "/metrics").body.decode()
        (line,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
        return int(line.split()[-1])


def main(quick: bool = True, write: bool = False) -> None:
    """Print the table, and write it if asked to."""
    title = "devices through HTTP services that are killed; CPU milliseconds a device"
    lines = shown(title, HEADER, (measured(case) for case in (QUICK if quick else FULL)))
    if write:
        _write(lines)


def measured(case: Case) -> str:
    """One line of the table."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="muhat-devices-") as name:
        folder = Path(name)
        round_, signer = _described(case, folder)
        before = time.process_time()
        people = np.random.default_rng(1).normal(0.1, 0.2, (case.devices, 8))
        reports = round_.crowd().randomize_many(people)
        device = time.process_time() - before
        with (folder / "reports").open("wb") as file:
            write_messages(file, reports)
        services = _services(case, folder, signer)
        collects = services[-1]
        release, sender = _collected(case, folder, services)
        again = sum(_is_new(collects.address, reports[::100]))
        for service in services:
            service.end()
        expected, files = _over_files(case, folder, round_, reports)
    lost, twice = max(case.devices - release.n, 0), max(release.n - case.devices, 0) + again
    # Equal to the last bit: these reports and no others.
    assert np.array_equal(release.value, expected.value), "other reports count than were made"
    shuffler = f"{_a_device(case, collects.cpu):8.3f}" if case.sealed else f"{'':>8}"
    return (
        f"{case.name:<22} {case.devices:>8,} {len(reports[0]):>6} "
        f"{sum(service.kills for service in services):>5} {lost:>5} {twice:>6} "
        f"{_a_device(case, device):7.3f} {_a_device(case, sender):7.3f} {shuffler} "
        f"{_a_device(case, services[0].cpu):7.3f} {_a_device(case, files):7.3f} "
        f"{time.monotonic() - began:8.0f}"
    )


def _a_device(case: Case, seconds: float) -> float:
    return 1000 * seconds / case.devices


def _described(case: Case, folder: Path) -> tuple[Protocol | SealedProtocol, str]:
    protocol = case.protocol()
    if not case.sealed:
        (folder / "description").write_bytes(protocol.to_cbor())
        return protocol, ""
    key, signer = ServerKey.create(folder / "server.key"), Signer.create(folder / "signer.key")
    new_secret(folder / "secret")
    (folder / "description").write_bytes(signer.signed(protocol, key.public))
    return SealedProtocol(protocol, key.public), signer.public


def _services(case: Case, folder: Path, signer: str) -> list[Process]:
    """The server, and in the shuffle model the shuffler after it."""
    common = "description = 'description'\naccess_log = false\n"
    if not case.sealed:
        return [_service("server", folder, common)]
    common += f"signer = '{signer}'\nsecret = 'secret'\n"
    server = _service("server", folder, f"{common}key = 'server.key'\n")
    forwards = f"{common}forward_to = '{server.address}'\n"
    return [server, _service("shuffler", folder, forwards)]


def _service(role: str, folder: Path, text: str) -> Process:
    config = folder / f"{role}.toml"
    config.write_text(f"{text}store = '{role}'\n{LIMITS}")
    return Process(role, config).start()


def _collected(case: Case, folder: Path, services: list[Process]) -> tuple[Release, float]:
    """Send everything, and kill every service on the way: the result, and the senders' CPU."""
    collects, server = services[-1], services[0]
    senders = [_sender(folder, collects.address, index) for index in range(SENDERS)]
    for part in (1, 2):
        while collects.count("muhat_users") < part * case.devices // 3:
            time.sleep(0.05)
        collects.killed()
    spent = 0.0
    for sender in senders:
        _, status, used = os.wait4(sender.pid, 0)
        sender.returncode = status
        assert status == 0, "a sender has failed"
        spent += used.ru_utime + used.ru_stime
    if case.sealed:
        # While parts arrive, if there are several; else while the result is computed, or before.
        server.killed()
        collects.killed()
        server.killed()
    with Sender(server.address, patience=600) as reader:
        while (found := reader.request("GET", "/release")).status == 404:
            time.sleep(0.1)
    assert found.status == 200, found.words
    return Release.from_json(found.body.decode()), spent


def _sender(folder: Path, address: str, index: int) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "benchmarks.devices",
        "--send",
        address,
        str(folder / "reports"),
    ]
    return subprocess.Popen([*command, str(index)])


def _send(address: str, path: str, index: int) -> None:
    with open(path, "rb") as file:
        own = list(read_messages(file))[index::SENDERS]
    send_all(address, own, CONNECTIONS)


def _is_new(address: str, reports: list[bytes]) -> Iterator[bool]:
    with Sender(address) as sender:
        for report in reports:
            yield sender.send(report)


def _over_files(
    case: Case, folder: Path, round_: Protocol | SealedProtocol, reports: list[bytes]
) -> tuple[Release, float]:
    """The same reports by the roles alone, and what they take."""
    before = time.process_time()
    if isinstance(round_, SealedProtocol):
        server = round_.server(ServerKey.open(folder / "server.key"))
        shuffler = round_.shuffler()
        with (folder / "reports").open("rb") as file:
            shuffler.take(read_messages(file))
        with (folder / "mixed").open("wb") as file:
            write_messages(file, shuffler.mixed())
        taken = folder / "mixed"
    else:
        server, taken = round_.server(), folder / "reports"
    with taken.open("rb") as file:
        server.take(read_messages(file))
    release = server.finish()
    assert isinstance(release, Release)
    assert release.n == case.devices
    return release, time.process_time() - before


def _write(lines: list[str]) -> None:
    RESULTS.write_text(
        f"""# Devices through services

Written by `python -m benchmarks.devices --write` ({versions()}).

Devices send their reports over HTTP on loopback to services that are processes of their own; each
service is killed (SIGKILL) in the middle and started again. "lost" are reports that were made and
do not count in the result, "twice" are those that count more than once or were taken as new when
a hundredth of the devices sent theirs again. The result is, bit for bit, that of the same reports
without a network.

CPU milliseconds a device: "device" makes the report (many at once in one process), "sender" sends
it (`http.client`, {SENDERS} processes of {CONNECTIONS} connections), "shuffler" and "server" are
the services, interpreters and restarts included, and "files" is what the same roles take over files
in one process. Of a sealed report every piece is opened by itself, so that fragments cost in
proportion to their number; that is why few devices send them here. "seconds" are those of a clock
on a machine that does other work, too.

{fenced(lines)}"""
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--send", nargs=3, metavar=("ADDRESS", "FILE", "INDEX"))
    options = parser.parse_args()
    if options.send:
        _send(options.send[0], options.send[1], int(options.send[2]))
    else:
        main(options.quick, options.write)
