"""A description as it comes in: which bytes are one, signed or not, and which are refused."""

from __future__ import annotations

import pytest

import muhat as mh
from muhat.protocols import Protocol, SealedProtocol, ServerKey, Signer, local_mean, read_round

KEY = ServerKey(bytes(range(32)), "2999-01-01")
SIGNER = Signer(bytes(range(2, 34)))
ROUND = local_mean(domain=mh.Ball(1.0, dim=2), n=20, privacy=mh.PureDP(epsilon=1.0))


def test_bytes_are_read_as_what_they_are():
    plain = read_round(ROUND.to_json().encode())
    assert isinstance(plain, Protocol)
    assert plain.digest == ROUND.digest
    signed = SIGNER.signed(ROUND, KEY.public).encode()
    sealed = read_round(signed, signer=SIGNER.public)
    assert isinstance(sealed, SealedProtocol)
    assert sealed.protocol.digest == ROUND.digest


def test_a_signer_must_be_said_where_there_is_one_and_only_there():
    signed = SIGNER.signed(ROUND, KEY.public).encode()
    with pytest.raises(mh.InvalidInput, match="say whom you trust, signer="):
        read_round(signed)
    with pytest.raises(mh.InvalidInput, match="signer=… is for a signed description"):
        read_round(ROUND.to_json().encode(), signer=SIGNER.public)
    with pytest.raises(mh.InvalidInput, match="was not signed by"):
        read_round(signed, signer=Signer(bytes(32)).public)


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"{}", b"[]", b"\x00", b"nonsense"])
def test_what_is_no_description_is_refused(data):
    with pytest.raises(mh.InvalidInput):
        read_round(data)
