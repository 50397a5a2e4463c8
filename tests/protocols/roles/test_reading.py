"""A description as it comes in: which bytes are one, signed or not, and which are refused."""

from __future__ import annotations

import pytest

import muhat as mh
from muhat.protocols import (
    Protocol,
    SealedProtocol,
    ServerKey,
    Signer,
    local_mean,
    read_round,
    shuffle_mean,
)

KEY = ServerKey(bytes(range(32)), "2999-01-01")
SIGNER = Signer(bytes(range(2, 34)))
ROUND = local_mean(domain=mh.Ball(1.0, dim=2), n=20, privacy=mh.PureDP(epsilon=1.0))


def test_bytes_are_read_as_what_they_are():
    for written in (ROUND.to_json().encode(), b"\n " + ROUND.to_json().encode(), ROUND.to_cbor()):
        plain = read_round(written)
        assert isinstance(plain, Protocol)
        assert plain.digest == ROUND.digest
    signed = SIGNER.signed(ROUND, KEY.public)
    sealed = read_round(signed, signer=SIGNER.public)
    assert isinstance(sealed, SealedProtocol)
    assert sealed.protocol.digest == ROUND.digest


def test_a_signer_must_be_said_where_there_is_one_and_only_there():
    signed = SIGNER.signed(ROUND, KEY.public)
    with pytest.raises(mh.InvalidInput, match="say whom you trust, signer="):
        read_round(signed)
    with pytest.raises(mh.InvalidInput, match="signer=… is for a signed description"):
        read_round(ROUND.to_json().encode(), signer=SIGNER.public)
    with pytest.raises(mh.InvalidInput, match="was not signed by"):
        read_round(signed, signer=Signer(bytes(32)).public)


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xfe", b"{}", b"[]", b"\x00", b"nonsense", b"{\xff}", b"\xa0"]
)
def test_what_is_no_description_is_refused(data):
    with pytest.raises(mh.InvalidInput):
        read_round(data)


def test_a_batch_of_which_nothing_is_of_the_round_leaves_every_server_alone():
    promise = mh.ApproxDP(epsilon=1.0, delta=1e-6)
    first, second = (
        shuffle_mean(domain=mh.Box([0], [9]), n=20, privacy=promise, minimum=minimum)
        for minimum in (19, 20)
    )
    message = second.client(account=False).randomize(3.0)
    foreign = first.label[:4] + second.label[4:] + message[12:]
    assert len(message) == first.bytes_per_user
    assert first.server().take([foreign]).rejected == {"another protocol": 1}
