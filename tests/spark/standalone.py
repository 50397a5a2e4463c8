"""The standalone cluster of the tests, seen from outside."""

from __future__ import annotations

import os
import signal
from pathlib import Path


class Cluster:
    """A master and two workers, and what can be seen of them from outside."""

    def __init__(self, folder: Path) -> None:
        from muhat.demo.cluster import LocalCluster

        self._folder = folder
        # Two addresses of this machine: tasks are tried twice at once on different hosts alone.
        self._cluster = LocalCluster(folder, ("127.0.0.1", "127.0.0.2"))
        self.url = self._cluster.url
        self.stop = self._cluster.stop

    def executors(self, application: str) -> list[int]:
        """The processes in which tasks of an application run."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    words = (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                if b"CoarseGrainedExecutorBackend" in words and application.encode() in words:
                    found.append(int(entry.name))
        return found

    def logs(self) -> str:
        """All that the executors and the daemons have written."""
        return "".join(
            path.read_text(errors="replace")
            for path in self._folder.rglob("*")
            if path.name in ("stdout", "stderr", "daemon.log")
        )


def kill(process: int) -> None:
    """As the operating system does when memory runs out."""
    os.kill(process, signal.SIGKILL)
