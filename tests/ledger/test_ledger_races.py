"""Processes, threads, forks and kills: never an overspend, never a lost charge."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from fractions import Fraction

import pytest

from muhat import ZCDP, BudgetExceeded
from muhat.ledger import Head, Ledger

WORKER = """
import sys
from muhat import ZCDP, BudgetExceeded
from muhat.ledger import Ledger
path, charges = sys.argv[1], int(sys.argv[2])
ledger = Ledger.open(path)
print("ready", flush=True)
sys.stdin.readline()
for _ in range(charges):
    try:
        entry = ledger.charge(ZCDP(rho=0.1), neighbors="substitute", plan_digest="ab12")
    except BudgetExceeded:
        print("refused", flush=True)
    else:
        print(entry.head, flush=True)
"""

FORKER = """
import os, sys, threading
from muhat import ZCDP
from muhat.ledger import Ledger
ledger = Ledger.open(sys.argv[1])
def charge():
    ledger.charge(ZCDP(rho=0.1), neighbors="substitute", plan_digest="ab12")
stop, charged = threading.Event(), [0, 0]
def keep_charging(worker):
    while not stop.is_set():
        charge()
        charged[worker] += 1
threads = [threading.Thread(target=keep_charging, args=(worker,)) for worker in range(2)]
for thread in threads:
    thread.start()
for _ in range(10):
    child = os.fork()
    if child == 0:
        charge()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
for thread in threads:
    thread.join()
print(sum(charged) + 10)
"""


def start(ledger, charges):
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", WORKER, str(ledger.path), str(charges)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def race(ledger, *, processes, charges):
    """What each process reported, all of them let go at the same moment."""
    workers = [start(ledger, charges) for _ in range(processes)]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    reports = [worker.communicate()[0].split() for worker in workers]
    assert all(worker.returncode == 0 for worker in workers)
    return [line for report in reports for line in report]


@pytest.mark.parametrize(
    ("processes", "charges"), [(8, 20), pytest.param(64, 100, marks=pytest.mark.slow)]
)
def test_racing_processes_never_overspend_and_the_total_is_exact(tmp_path, processes, charges):
    affordable = processes * charges * 3 // 4
    budget = ZCDP(rho=affordable / 10 + 0.05)
    ledger = Ledger.create(tmp_path / "budget.db", budget=budget, neighbors="substitute")
    reports = race(ledger, processes=processes, charges=charges)
    heads = {Head.parse(line) for line in reports if line != "refused"}
    assert len(heads) == affordable
    assert reports.count("refused") == processes * charges - affordable
    assert heads == {entry.head for entry in ledger.entries()}
    assert ledger.spent.amounts == (Fraction(affordable, 10),)
    assert ledger.remaining == 0.05
    assert ledger.verify().count == affordable


def test_a_kill_at_any_moment_loses_no_charge_that_was_reported(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.db", budget=ZCDP(rho=10**6), neighbors="substitute")
    moments = random.Random(20240)
    reported = []
    for _ in range(8):
        workers = [start(ledger, 10**6) for _ in range(2)]
        for worker in workers:
            assert worker.stdout.readline() == "ready\n"
            worker.stdin.write("go\n")
            worker.stdin.flush()
        for worker in workers:
            # However slow the machine is, every process gets a charge through.
            reported.append(Head.parse(worker.stdout.readline().strip()))
            time.sleep(0.02 + moments.random() * 0.02)
            worker.send_signal(signal.SIGKILL)
        for worker in workers:
            # Not communicate(), which would forget what readline() has read ahead.
            output = worker.stdout.read()
            worker.wait()
            worker.stdin.close()
            worker.stdout.close()
            whole_lines = output[: output.rfind("\n") + 1].split()
            reported += [Head.parse(line) for line in whole_lines]
        Ledger.open(ledger.path).verify()
    assert len(reported) >= 16
    kept = {entry.head for entry in ledger.entries()}
    assert kept.issuperset(reported)
    # A kill between the commit and the report wastes that one charge, and no more.
    assert len(kept) <= len(reported) + 16
    assert ledger.spent.amounts == (Fraction(len(kept), 10),)
    for anchor in reported[::10]:
        Ledger.open(ledger.path, expect_head=anchor)


def test_threads_share_one_ledger_object_without_overspending(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.db", budget=ZCDP(rho=5), neighbors="substitute")
    outcomes = []

    def work():
        for _ in range(10):
            try:
                entry = ledger.charge(ZCDP(rho=0.1), neighbors="substitute", plan_digest="ab12")
                outcomes.append(entry.id)
            except BudgetExceeded:
                outcomes.append(None)
            except BaseException as error:
                outcomes.append(error)
                raise

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(filter(None, outcomes)) == list(range(1, 51))
    assert outcomes.count(None) == 30
    assert ledger.remaining == 0
    assert ledger.verify().count == 50


def test_children_forked_in_the_middle_of_charges_charge_too(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.db", budget=ZCDP(rho=10**6), neighbors="substitute")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKER, str(ledger.path)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert ledger.verify().count == int(done.stdout)


def test_one_path_can_be_created_only_once_however_many_try(tmp_path):
    script = """
import sys
from muhat import ZCDP, InvalidInput
from muhat.ledger import Ledger
sys.stdin.readline()
try:
    Ledger.create(sys.argv[1], budget=ZCDP(rho=1), neighbors="substitute")
except InvalidInput:
    print("refused")
else:
    print("created")
"""
    command = [sys.executable, "-c", script, str(tmp_path / "budget.db")]
    workers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(5)
    ]
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    outcomes = sorted(worker.communicate()[0].strip() for worker in workers)
    assert outcomes == ["created", *["refused"] * 4]
    assert Ledger.open(tmp_path / "budget.db").verify().count == 0
