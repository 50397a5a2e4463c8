"""Hostile paths and files: each a clear refusal, nothing spent, nothing overwritten."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from muhat import ZCDP, InvalidInput
from muhat.ledger import Ledger
from muhat.ledger import store as store


def create(path):
    return Ledger.create(path, budget=ZCDP(rho=1), neighbors="substitute")


def charge(ledger, note=""):
    return ledger.charge(ZCDP(rho=0.001), neighbors="substitute", plan_digest="ab12", note=note)


def test_a_missing_file_is_refused_with_the_command_that_makes_one(tmp_path):
    hint = "muhat ledger create budget.db --rho 1 --neighbors substitute"
    for path in (tmp_path / "none.db", tmp_path / "none" / "none.db"):
        with pytest.raises(InvalidInput, match=hint):
            Ledger.open(path)
        assert not path.exists()


def test_a_file_that_vanishes_is_refused_and_not_made_anew(tmp_path):
    ledger = create(tmp_path / "budget.db")
    ledger.path.unlink()
    for use in (lambda: charge(ledger), lambda: ledger.spent):
        with pytest.raises(InvalidInput, match="There is no ledger at"):
            use()
    assert os.listdir(tmp_path) == []


def test_creating_never_touches_what_exists(tmp_path):
    path = tmp_path / "budget.db"
    path.write_bytes(b"precious")
    (tmp_path / "link.db").symlink_to(tmp_path / "nowhere.db")
    for place in (path, tmp_path / "link.db", tmp_path):
        with pytest.raises(InvalidInput, match="exists already"):
            create(place)
    assert path.read_bytes() == b"precious"
    assert not (tmp_path / "nowhere.db").exists()


def test_an_account_belongs_to_its_owner_alone_whatever_the_umask_allows(tmp_path):
    before = os.umask(0)
    try:
        ledger = create(tmp_path / "budget.db")
    finally:
        os.umask(before)
    charge(ledger)
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600


def test_rights_that_were_given_to_a_group_stay_when_it_is_charged(tmp_path):
    ledger = create(tmp_path / "budget.db")
    ledger.path.chmod(0o660)
    charge(ledger)
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o660


@pytest.mark.parametrize(
    "content",
    [b"a,b\n1,2\n", b"SQLite format 3\0", b"\0" * 5000, b"SQLite format 3\0" + b"\7" * 5000],
)
def test_a_file_that_is_not_sqlite_is_refused(tmp_path, content):
    path = tmp_path / "budget.db"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"not a muhat ledger|is damaged"):
        Ledger.open(path)
    assert path.read_bytes() == content


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "budget.db").touch()
    with pytest.raises(InvalidInput, match="is empty, so it is not a ledger"):
        Ledger.open(tmp_path / "budget.db")


def test_a_foreign_sqlite_file_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE chain (id INTEGER PRIMARY KEY, body TEXT, hash TEXT)")
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match="is an SQLite file, but not a muhat ledger"):
        Ledger.open(path)
    assert path.read_bytes() == before


def test_a_newer_schema_is_refused_with_the_advice_to_upgrade(tmp_path):
    ledger = create(tmp_path / "budget.db")
    with closing(sqlite3.connect(ledger.path)) as connection:
        connection.execute("PRAGMA user_version = 4")
    for use in (lambda: Ledger.open(ledger.path), lambda: charge(ledger)):
        with pytest.raises(InvalidInput, match=r"newer muhat .*upgrade"):
            use()


def test_a_file_cut_in_the_middle_is_refused(tmp_path):
    ledger = create(tmp_path / "budget.db")
    for _ in range(50):
        charge(ledger)
    os.truncate(ledger.path, os.path.getsize(ledger.path) // 2)
    with pytest.raises(InvalidInput):
        Ledger.open(ledger.path).verify()


def test_directories_and_devices_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", "/dev/null"):
        with pytest.raises(InvalidInput, match="is not a file"):
            Ledger.open(path)


@pytest.mark.parametrize(
    "path", ["", "a\0b", ":memory:", None, 3, "x" * 300 + ".db", "no/where.db"]
)
def test_paths_that_cannot_hold_a_ledger_are_refused(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    for use in (create, Ledger.open):
        with pytest.raises(InvalidInput):
            use(path)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "name",
    [
        "a b.db",
        "a?mode=memory.db",
        "a#b.db",
        "100%25.db",
        "ü→.db",
        "a\nb.db",
        "file:x",
        "-",
        "a'\".db",
    ],
)
def test_any_file_name_is_only_a_name(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    charge(create(name))
    assert os.listdir(tmp_path) == [name]
    assert Ledger.open(name).head.count == 1


def test_bytes_and_undecodable_names_are_paths_too(tmp_path):
    name = os.fsencode(tmp_path) + b"/\xff.db"
    charge(create(name))
    assert Ledger.open(name).head.count == 1


def test_the_stale_journal_of_a_deleted_ledger_does_no_harm(tmp_path):
    path = tmp_path / "budget.db"
    (tmp_path / "budget.db-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + b"\1" * 9000)
    ledger = create(path)
    charge(ledger)
    assert Ledger.open(path).verify().count == 1


def test_a_creation_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    def fail(connection, record):
        raise sqlite3.OperationalError("CANARY")

    monkeypatch.setattr(store, "append", fail)
    with pytest.raises(InvalidInput) as refusal:
        create(tmp_path / "budget.db")
    assert "CANARY" not in str(refusal.value)
    assert os.listdir(tmp_path) == []


@contextmanager
def ordinary_user():
    """The rights of nobody, also where the tests run as root, whom no mode bit stops."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.fixture
def shared_folder():
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.parametrize(("folder_mode", "file_mode"), [(0o755, 0o444), (0o555, 0o666)])
def test_a_read_only_file_or_folder_can_be_read_and_not_charged(
    shared_folder, folder_mode, file_mode
):
    path = shared_folder / "budget.db"
    charge(create(path))
    path.chmod(file_mode)
    shared_folder.chmod(folder_mode)
    with ordinary_user():
        ledger = Ledger.open(path)
        assert ledger.verify().count == 1
        with pytest.raises(InvalidInput, match=r"read-only or out of reach; nothing was spent"):
            charge(ledger)
        with pytest.raises(InvalidInput, match="cannot be created: Permission denied"):
            create(shared_folder / "other.db")
    assert Ledger.open(path).head.count == 1


def test_a_file_without_any_rights_is_refused(shared_folder):
    path = shared_folder / "budget.db"
    create(path)
    path.chmod(0)
    with ordinary_user(), pytest.raises(InvalidInput, match="cannot be read"):
        Ledger.open(path)
    shared_folder.chmod(0)
    with ordinary_user(), pytest.raises(InvalidInput, match="cannot be opened: Permission denied"):
        Ledger.open(path)


def test_a_full_disk_refuses_the_charge_and_spends_nothing(tmp_path, monkeypatch):
    ledger = create(tmp_path / "budget.db")
    connect = store._connect

    def nearly_full(path):
        connection = connect(path)
        connection.execute("PRAGMA max_page_count = 3")
        return connection

    monkeypatch.setattr(store, "_connect", nearly_full)
    charge(ledger)
    with pytest.raises(InvalidInput, match="the disk is full; nothing was spent"):
        charge(ledger, note="x" * 9000)
    assert ledger.verify().count == 1
    assert ledger.spent == 0.001


def test_a_disk_that_fails_never_confirms_a_charge(tmp_path):
    ledger = create(tmp_path / "budget.db")
    script = """
import resource, sys
from muhat import ZCDP, InvalidInput
from muhat.ledger import Ledger
ledger = Ledger.open(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))
try:
    ledger.charge(ZCDP(rho=0.1), neighbors="substitute", plan_digest="", note="x" * 9000)
except InvalidInput as refusal:
    print(refusal, file=sys.stderr)
    sys.exit(2)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(ledger.path)], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert ledger.verify().count == 0


def test_a_lock_that_is_never_given_back_is_refused_in_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "BUSY_SECONDS", 0.2)
    ledger = create(tmp_path / "budget.db")
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InvalidInput, match=r"locked by another process.*nothing was spent"):
            charge(ledger)
        with pytest.raises(InvalidInput, match="locked by another process"):
            Ledger.open(ledger.path)
        other.execute("ROLLBACK")
    assert charge(ledger).id == 1


def test_a_charge_is_synced_to_the_disk_and_its_journal_gone(tmp_path):
    ledger = create(tmp_path / "budget.db")
    charge(ledger)
    assert os.listdir(tmp_path) == ["budget.db"]
    with closing(store._connect(ledger.path)) as connection:
        (level,) = connection.execute("PRAGMA synchronous").fetchone()
        (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
    assert (level, journal) == (3, "delete"), "EXTRA, the level that syncs the unlinked journal"
