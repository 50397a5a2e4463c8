"""`muhat protocol key`, `signer`, `sign`: sealed rounds on the command line."""

from __future__ import annotations

import json
import stat

import pytest
from protocol_command import run

pytestmark = pytest.mark.usefixtures("own_device")

MIXED = ("--bounds", "age=16:90", "--epsilon", "1", "--delta", "1e-6", "--model", "shuffle")


@pytest.fixture
def place(tmp_path):
    """A folder with a table, a signed round, its key; and who signed it."""
    (tmp_path / "people.csv").write_text("age\n" + "41\n" * 20)
    public = run("key", tmp_path / "server.key", "--expires", "2999-01-01").stdout
    (tmp_path / "server.pub").write_text(public)
    signer = run("signer", tmp_path / "signer.key").stdout.strip()
    run("new", *MIXED, "--n", 20, "--out", tmp_path / "round1.json")
    run(
        *("sign", tmp_path / "round1.json", "--key", tmp_path / "server.pub"),
        *("--signer", tmp_path / "signer.key", "--out", tmp_path / "signed.cbor"),
    )
    return tmp_path, ("--signer", signer)


def test_sealed_messages_go_from_devices_through_a_shuffler_to_the_server(place):
    folder, signer = place
    signed, sent, mixed = folder / "signed.cbor", folder / "sent.bin", folder / "mixed.bin"
    assert "each piece for key" in run("show", signed, *signer).stdout
    run("client", signed, folder / "people.csv", *signer, "--out", sent)
    assert "20 taken" in run("shuffle", signed, sent, *signer, "--out", mixed).stderr
    key = ("--key", folder / "server.key")
    release = json.loads(run("server", signed, mixed, *signer, *key, "--json").stdout)
    assert release["n"] == 20
    for name in ("server.key", "signer.key", "sent.bin"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    first = run("client", signed, "--record", "41", *signer).stdout_bytes
    assert run("client", signed, "--record", "17", *signer).stdout_bytes == first


def test_what_is_signed_needs_a_signer_and_what_is_sealed_a_key(place):
    folder, signer = place
    signed, plain, key = folder / "signed.cbor", folder / "round1.json", folder / "server.key"
    assert "say whom you trust" in run("show", signed, code=2).stderr
    assert "was not signed by" in run("show", signed, "--signer", "11" * 32, code=2).stderr
    assert "this one is not" in run("show", plain, *signer, code=2).stderr
    assert "give the server's key" in run("server", signed, *signer, stdin=b"", code=2).stderr
    assert "are sealed" in run("server", plain, "--key", key, stdin=b"", code=2).stderr
    unsuitable = ("server", signed, *signer, "--key", folder / "signer.key")
    assert "is not the file of a key to seal with" in run(*unsuitable, stdin=b"", code=2).stderr


def test_keys_are_never_overwritten(place):
    folder, _ = place
    for command in ("key", "signer"):
        assert "exists already" in run(command, folder / "server.key", code=2).stderr
    both = ("--key", folder / "server.pub", "--signer", folder / "signer.key")
    over = run("sign", folder / "round1.json", *both, "--out", folder / "server.pub", code=2)
    assert "one of the files that are read" in over.stderr
    wrong = ("--key", folder / "round1.json", "--signer", folder / "signer.key")
    assert "public half" in run("sign", folder / "round1.json", *wrong, code=2).stderr
