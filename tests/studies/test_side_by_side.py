"""Work in several interpreters: what came out of each, one that dies, and all that end with us."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from muhat.studies.side_by_side import side_by_side

HERE = Path(__file__).parent


def work(name, progress):
    progress(0.5)
    if name == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "sleeps":
        time.sleep(600)
    return name.upper()


@pytest.mark.slow
def test_each_tells_how_far_it_is_and_what_came_out_though_one_dies():
    heard = []
    names = ["a", "dies", "b"]
    found = dict(side_by_side(names, work, 2, lambda name, part: heard.append((name, part))))
    assert found == {"a": "A", "dies": None, "b": "B"}
    assert set(heard) == {(name, part) for name in names for part in (0.0, 0.5)}


def test_nothing_is_started_for_nothing():
    assert list(side_by_side([], work, 2, lambda name, part: None)) == []


SLEEPERS = """
import multiprocessing, sys
from test_side_by_side import side_by_side, work
if __name__ == "__main__":
    def tell(name, part):
        if part:
            print(*(child.pid for child in multiprocessing.active_children()), flush=True)
    try:
        list(side_by_side(["sleeps"], work, 2, tell))
    except KeyboardInterrupt:
        sys.exit("stopped")
"""


@pytest.mark.slow
def test_ctrl_c_ends_everything_and_is_heard_by_the_caller_alone(tmp_path):
    script = tmp_path / "sleepers.py"
    script.write_text(SLEEPERS)
    started = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])},
    )
    child = int(started.stdout.readline())
    os.killpg(started.pid, signal.SIGINT)  # as a terminal does: to the whole group
    _, errors = started.communicate(timeout=60)
    assert errors == "stopped\n"
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
