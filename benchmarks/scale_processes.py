"""CPU time and memory of processes and of all that they have started, as Linux counts them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_TICK = 1 / os.sysconf("SC_CLK_TCK")
_MEBIBYTE = 1 << 10
"""Linux counts memory in kibibytes."""


@dataclass(frozen=True)
class Process:
    """A process that was there a moment ago."""

    pid: int
    parent: int
    name: str
    seconds: float

    def peak(self) -> float:
        """The most memory it held, in MiB, since `forget_peaks`; 0 if it is gone."""
        with suppress(OSError):
            for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) / _MEBIBYTE
        return 0.0


def family(roots: Iterable[int]) -> list[Process]:
    """The processes named and their descendants."""
    found = {process.pid: process for process in _all()}
    children: dict[int, list[int]] = {}
    for process in found.values():
        children.setdefault(process.parent, []).append(process.pid)
    waiting, members = list(roots), {}
    while waiting:
        pid = waiting.pop()
        if pid in found and pid not in members:
            members[pid] = found[pid]
            waiting += children.get(pid, [])
    return list(members.values())


def cpu_seconds(roots: Iterable[int]) -> float:
    """CPU time of a family, that of members who are gone included; in steps of some 10 ms."""
    return sum(process.seconds for process in family(roots))


def forget_peaks(roots: Iterable[int]) -> None:
    """Have the peaks of a family start anew."""
    for process in family(roots):
        with suppress(OSError):
            Path(f"/proc/{process.pid}/clear_refs").write_text("5")


def _all() -> Iterator[Process]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
                words = rest.split()
                # Own time in user and kernel mode, and that of children who were waited for.
                ticks = sum(map(int, words[11:15]))
                yield Process(int(entry.name), int(words[1]), name, ticks * _TICK)
