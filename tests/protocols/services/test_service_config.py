"""A configuration is checked whole before anything is opened."""

from __future__ import annotations

from dataclasses import replace

import pytest
from collections_of_tests import KEY, SIGNER, Collection, described

from muhat.errors import InvalidInput
from muhat.protocols import ServerKey, Signer
from muhat.protocols.services.config import ServiceConfig, ServiceLimits, Tls, new_secret
from muhat.protocols.services.limits import MOST_ADDRESSES, Bucket, Rates
from muhat.protocols.services.running import running

FILE = """
description = "description"
store = "collected"
port = 8443
origins = ["https://survey.example"]

[tls]
certificate = "certificate.pem"
key = "/etc/private.pem"

[limits]
per_second = 50
"""


def test_files_are_found_from_the_folder_of_the_configuration(tmp_path):
    (tmp_path / "server.toml").write_text(f"further_keys = ['second.key']\n{FILE}")
    config = ServiceConfig.read(tmp_path / "server.toml")
    assert config.further_keys == (str(tmp_path / "second.key"),)
    assert config.description == str(tmp_path / "description")
    assert config.tls == Tls(str(tmp_path / "certificate.pem"), "/etc/private.pem")
    assert config.limits == ServiceLimits(per_second=50)
    assert config.origins == ("https://survey.example",)


def test_the_signer_is_named_or_in_a_file(tmp_path):
    (tmp_path / "server.toml").write_text(f"signer = 'signer.pub'\n{FILE}")
    with pytest.raises(InvalidInput, match=r"signer\.pub cannot be read"):
        ServiceConfig.read(tmp_path / "server.toml")
    (tmp_path / "signer.pub").write_text(f"{SIGNER.public}\n")
    assert ServiceConfig.read(tmp_path / "server.toml").signer == SIGNER.public
    (tmp_path / "server.toml").write_text(f"signer = '{SIGNER.public}'\n{FILE}")
    assert ServiceConfig.read(tmp_path / "server.toml").signer == SIGNER.public


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("description = ", "is not TOML"),
        ("store = 'x'", "needs a field 'description'"),
        (FILE + "per_hour = 3", "no field 'per_hour'"),
        (FILE.replace("50", "'fifty'"), "per_second"),
        (FILE.replace("50", "0"), "per_second"),
        (FILE, "cannot be read"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(text, said, tmp_path):
    (tmp_path / "server.toml").write_text(text)
    with pytest.raises(InvalidInput, match=said):
        ServiceConfig.read(tmp_path / "server.toml").checked("server")


@pytest.mark.parametrize(
    ("kind", "role", "changes", "said"),
    [
        ("local", "shuffler", {}, "no shuffler"),
        ("local", "server", {"secret": "s"}, "secret must be left out"),
        ("local", "server", {"turnout": 3}, "at least the minimum of users, 15"),
        ("local", "server", {"turnout": 30}, "turnout"),
        ("local", "server", {"port": 1 << 16}, "port"),
        ("local", "server", {"key": None}, "key is needed"),
        ("local", "server", {"forward_to": "http://x"}, "forward_to must be left out"),
        ("local", "server", {"signer": None}, "signed"),
        ("single", "server", {"turnout": 15}, "turnout must be left out"),
        ("single", "server", {"secret": None}, "secret is needed"),
        ("single", "shuffler", {"forward_to": None}, "forward_to is needed"),
        ("single", "shuffler", {"key": "k"}, "key must be left out"),
        ("single", "shuffler", {"further_keys": ("k",)}, "further_keys must be left out"),
        ("single", "server", {"further_keys": ("k",)}, "cannot be read"),
        ("single", "server", {"secret": "description"}, "is not the file of a key"),
        ("single", "server", {"key": "other.key"}, "are sealed to the key"),
        ("single", "server", {"sign_with": "other.signer"}, "signer that devices trust"),
    ],
)
def test_what_does_not_fit_together_is_refused(kind, role, changes, said, tmp_path):
    collection = Collection.of(tmp_path, described(kind))
    ServerKey.create(tmp_path / "other.key")
    Signer.create(tmp_path / "other.signer")
    names = ("secret", "key", "sign_with")
    placed = {
        name: str(tmp_path / value) if name in names and value else value
        for name, value in changes.items()
    }
    config = collection.shuffler if role == "shuffler" and kind != "local" else collection.server
    with pytest.raises(InvalidInput, match=said):
        replace(config, **placed).checked(role)
    assert not (tmp_path / "server").exists()
    assert not (tmp_path / "shuffler").exists()


def test_a_shuffler_is_given_no_messages_that_it_could_read(tmp_path):
    collection = Collection.of(tmp_path, described("single"), sealed=False)
    with pytest.raises(InvalidInput, match="must be sealed"):
        collection.server.checked("server")


def test_an_address_that_is_taken_is_said_before_the_store_is_made(tmp_path):
    collection = Collection.of(tmp_path, described("local"), sealed=False)
    with running("server", collection.server) as address:
        port = int(address.rpartition(":")[2])
        other = replace(collection.server, port=port, store=str(tmp_path / "other"))
        with pytest.raises(InvalidInput, match="cannot be used"), running("server", other):
            pass
    assert not (tmp_path / "other").exists()


def test_secrets_are_new_and_for_their_owner_alone(tmp_path):
    new_secret(tmp_path / "one")
    assert (tmp_path / "one").stat().st_mode & 0o077 == 0
    with pytest.raises(InvalidInput, match="exists already"):
        new_secret(tmp_path / "one")
    assert KEY.public.id not in (tmp_path / "one").read_text()


def test_buckets_fill_with_time():
    now = [0.0]
    bucket = Bucket(2, 1.0, lambda: now[0])
    assert [bucket.take() for _ in range(3)] == [True, True, False]
    now[0] = 0.5
    assert [bucket.take() for _ in range(2)] == [True, False]
    now[0] = 10.0
    assert bucket.is_full


def test_addresses_have_buckets_of_their_own_and_are_forgotten(monkeypatch):
    now = [0.0]
    rates = Rates(10**6, 1, lambda: now[0])
    assert [rates.allow(f"10.0.0.{i}") for i in (1, 2, 1)] == [True, True, False]
    # One household of IPv6; and what is no address at all is one, too.
    assert [rates.allow(f"2001:db8::{i}") for i in (1, 2)] == [True, False]
    assert [rates.allow(each) for each in (None, "unix")] == [True, False]
    assert all(b"10.0.0.1" not in name for name in rates._buckets)
    monkeypatch.setattr("muhat.protocols.services.limits.MOST_ADDRESSES", 6)
    now[0] = 60.0
    for i in range(50):
        rates.allow(f"10.0.1.{i}")
    assert len(rates._buckets) <= 6 < MOST_ADDRESSES
