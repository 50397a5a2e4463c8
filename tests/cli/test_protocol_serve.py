"""`muhat protocol serve`, what operators and devices say to services, and simulations over HTTP."""

from __future__ import annotations

import sys
import time

import pytest
from protocol_command import run

from muhat.protocols import Protocol, Signer
from muhat.protocols.services.config import ServiceConfig
from muhat.protocols.services.running import running
from muhat.protocols.services.sending import Sender
from muhat.release.release import Release

FAST = "[limits]\nper_minute_and_address = 0\n"
BOUNDS = ("--bounds", "age=0:100", "--epsilon", 1)


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("age\n" + "".join(f"{20 + i % 60}\n" for i in range(40)))
    return path


@pytest.mark.parametrize("options", [(), ("--model", "shuffle", "--delta", 1e-6)])
def test_a_simulation_over_http_is_that_of_every_role(options, people):
    told = run("simulate", people, *BOUNDS, *options, "--http", "--quiet", "--json")
    assert Release.from_json(told.stdout).n == 40


def test_devices_send_operators_close_and_everybody_reads(people, tmp_path, own_device):
    run("new", *BOUNDS, "--n", 50, "--minimum", 20, "--out", tmp_path / "round1.json")
    config = tmp_path / "server.toml"
    config.write_text("description = 'round1.json'\nstore = 'kept'\n" + FAST)
    run("close", "server", "--config", config, code=2)
    with running("server", ServiceConfig.read(config)) as address:
        config.write_text(f"port = {address.rpartition(':')[2]}\n{config.read_text()}")
        device = ("client", address, "--to", address)
        assert run(*device, "--record", 41).stderr == "1 taken\n"
        assert run(*device, "--record", 70).stderr == "0 taken, 1 taken before\n"
        assert "20 of" not in run("close", "server", "--config", config, code=2).output
        assert run(*device, people).stderr == "40 taken\n"
        closed = run("close", "server", "--config", config)
        assert closed.stdout == "closed with 41 users\n"
        refused = run(*device, "--record", 41, "--no-account", code=2)
        assert "the round is closed" in refused.stderr
        run("publish", tmp_path / "round1.json", "--config", config, code=2)
        with Sender(address) as reader:
            while (found := reader.once("GET", "/release")).status != 200:
                time.sleep(0.01)
    assert Release.from_json(found.body.decode()).n == 41


def test_what_cannot_be_served_is_said_in_a_sentence(tmp_path, monkeypatch):
    run("secret", tmp_path / "forward.key")
    assert (tmp_path / "forward.key").stat().st_mode & 0o077 == 0
    run("secret", tmp_path / "forward.key", code=2)
    none = tmp_path / "none.toml"
    assert "cannot be read" in run("serve", "server", "--config", none, code=2).stderr
    none.write_text("description = 'd'\nstore = 's'\nports = 80\n")
    assert "no field 'ports'" in run("serve", "server", "--config", none, code=2).stderr
    run("client", "https://x", "--record", 1, "--to", "http://x", "--out", "y", code=2)
    run("new", *BOUNDS, "--n", 50, "--out", tmp_path / "d")
    none.write_text("description = 'd'\nstore = 's'\n")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    said = run("serve", "server", "--config", none, code=2).stderr
    assert "pip install 'muhat[serve]'" in said
    assert not (tmp_path / "s").exists()


def test_an_operator_publishes_what_was_signed(tmp_path):
    """All by commands, up to the second round."""
    run("key", tmp_path / "server.key")
    public = tmp_path / "server.pub"
    public.write_text(run("key", tmp_path / "other.key").stdout)
    run("signer", tmp_path / "signer.key")
    signer = Signer.open(tmp_path / "signer.key").public
    new = ("new", "--magnitude", 10, "--dim", 1, "--n", 2000, "--epsilon", 1)
    run(*new, "--out", tmp_path / "round1.json")
    sign = ("--key", public, "--signer", tmp_path / "signer.key", "--out")
    run("sign", tmp_path / "round1.json", *sign, tmp_path / "signed1.cbor")
    config = tmp_path / "server.toml"
    config.write_text(
        f"description = 'signed1.cbor'\nsigner = '{signer}'\nkey = 'other.key'\nstore = 'kept'\n"
        + FAST
    )
    people = tmp_path / "people.csv"
    users = Protocol.from_json((tmp_path / "round1.json").read_text()).users
    people.write_text("x\n" + "1\n" * users)
    with running("server", ServiceConfig.read(config)) as address, Sender(address) as reader:
        config.write_text(f"port = {address.rpartition(':')[2]}\n{config.read_text()}")
        run("client", address, people, "--signer", signer, "--to", address)
        while (following := reader.once("GET", "/next")).status != 200:
            time.sleep(0.01)
        (tmp_path / "round2.cbor").write_bytes(following.body)
        run("sign", tmp_path / "round2.cbor", *sign, tmp_path / "signed2.cbor")
        told = run("publish", tmp_path / "signed2.cbor", "--config", config)
        assert told.stdout == "round 2 is open\n"
        assert reader.description() == (tmp_path / "signed2.cbor").read_bytes()
