"""A description as it comes in, from a file, a pipe or the net: bytes in, the round out.

What devices, shufflers and servers are given is one thing, described, in CBOR or JSON, or described
and signed, in CBOR; this is where it is told which.
"""

from __future__ import annotations

from muhat import _cbor
from muhat._words import Parameter
from muhat.errors import InvalidInput
from muhat.protocols.roles.protocol import Protocol, require_short
from muhat.protocols.roles.sealed_protocol import SealedProtocol, is_signed

SIGNER = Parameter("signer", "signer=…", "--signer HEX")


def read_round(data: bytes, *, signer: str | None = None) -> Protocol | SealedProtocol:
    """The round that bytes describe; a sealed one if they are signed, and only by `signer`.

    InvalidInput if they are no description, contradict themselves, or are signed and `signer`, in
    hexadecimal, is somebody else or not said; or if a signer is said and nobody has signed.

    >>> import muhat as mh
    >>> asked = mh.protocols.local_mean(domain=mh.Ball(1, 2), n=100, privacy=mh.PureDP(epsilon=1))
    >>> read_round(asked.to_json().encode()).digest == asked.digest
    True
    >>> read_round(asked.to_cbor()).digest == asked.digest
    True
    """
    require_short(data)
    is_text = data.lstrip(b" \t\r\n")[:1] == b"{"  # which begins no map of CBOR
    if is_text or not is_signed(_cbor.read(data)):
        if signer is not None:
            raise InvalidInput(SIGNER, " is for a signed description, and this one is not.")
        return Protocol.from_json(_decoded(data)) if is_text else Protocol.from_cbor(data)
    if signer is None:
        raise InvalidInput("the description is signed: say whom you trust, ", SIGNER, ".")
    return SealedProtocol.from_signed(data, signer=signer)


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidInput("the bytes are not the description of a protocol.") from None
