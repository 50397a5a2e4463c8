"""docs/wire-vectors.json from Python's side: what is sound is read, what is not is refused."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

import muhat as mh
from muhat import _cbor
from muhat.protocols import DeviceAccount, Protocol, SealedProtocol, ServerKey

ROOT = Path(__file__).parents[2]
VECTORS = json.loads((ROOT / "docs" / "wire-vectors.json").read_text())
SIGNER = VECTORS["signer"]["public"]


def read(text: str) -> SealedProtocol:
    return SealedProtocol.from_signed(bytes.fromhex(text), signer=SIGNER)


def test_the_file_is_what_its_script_writes():
    """If not: python scripts/make_wire_vectors.py."""
    made = runpy.run_path(str(ROOT / "scripts" / "make_wire_vectors.py"))["text"]()
    assert (ROOT / "docs" / "wire-vectors.json").read_text() == made


@pytest.mark.parametrize("name", VECTORS["descriptions"])
def test_a_description_has_its_digest_and_task(name):
    said = VECTORS["descriptions"][name]
    found = Protocol.from_cbor(bytes.fromhex(said["cbor"]))
    assert (found.digest, found.task, found.label.hex()) == tuple(
        said[key] for key in ("digest", "task", "label")
    )
    assert read(said["signed"]).protocol.digest == found.digest


@pytest.mark.parametrize("hexadecimal", VECTORS["cbor"]["refused"].values())
def test_what_is_not_deterministic_cbor_is_refused(hexadecimal):
    with pytest.raises(mh.InvalidInput):
        _cbor.read(bytes.fromhex(hexadecimal))


@pytest.mark.parametrize("name", VECTORS["lies"])
def test_a_description_that_lies_is_refused_whoever_has_signed_it(name):
    with pytest.raises(mh.InvalidInput, match=r"^(?!.*was not signed)"):
        read(VECTORS["lies"][name])


@pytest.mark.parametrize("name", VECTORS["forged"])
def test_what_nobody_has_signed_so_is_refused(name):
    with pytest.raises(mh.InvalidInput):
        read(VECTORS["forged"][name]).client(account=False)


@pytest.mark.parametrize("name", VECTORS["not_supported"])
def test_what_another_client_cannot_do_python_can(name):
    assert read(VECTORS["not_supported"][name]).bytes_per_user


def test_what_has_ended_is_not_answered(tmp_path):
    account = DeviceAccount.create(tmp_path / "device.db")
    client = read(VECTORS["ended"]["survey"]).client(account=account)
    with pytest.raises(mh.InvalidInput, match="survey ended"):
        client.randomize([41, 3e4, 2])


def test_a_sealed_piece_is_opened_with_its_key_and_for_its_use_alone():
    said = {name: bytes.fromhex(text) for name, text in VECTORS["sealed"].items()}
    key = ServerKey(bytes.fromhex(VECTORS["key"]["secret"]))
    assert key.unseal(said["sealed"], said["info"]) == said["piece"]
    assert key.unseal(said["sealed"], said["info"][::-1]) is None
