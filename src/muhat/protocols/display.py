"""A protocol in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muhat._text import joined
from muhat.privacy import cautions
from muhat.protocols.roles.keeping import share_of

if TYPE_CHECKING:
    from muhat.protocols.protocol import Protocol


def protocol_text(protocol: Protocol) -> str:
    """The round in a few lines."""
    rows = [
        ("estimates", protocol.estimator.describe()),
        ("promise", promised(protocol)),
        *(("caution", sentence) for sentence in cautions(protocol.privacy, protocol.users)),
        ("trust", trust(protocol)),
        ("users", f"{protocol.users}, and at least {protocol.minimum}"),
        ("each sends", sent(protocol)),
        ("randomizer", protocol.randomizer.kind),
        ("description", f"sha256 {protocol.digest[:16]}…"),
    ]
    width = max(len(name) for name, _ in rows)
    head = f"Round {protocol.round}, {protocol.model} model"
    return joined([head, *(f"  {name:<{width}}  {text}" for name, text in rows)])


def promised(protocol: Protocol) -> str:
    """The promise, and the part of it that the round takes."""
    share, whole = share_of(protocol), protocol.privacy.describe()
    return whole if share == 1 else f"{whole}, of which this round takes {float(share):.2g}"


def trust(protocol: Protocol) -> str:
    """Whom a person trusts with what."""
    if protocol.model == "local":
        return "nobody: every message is private as it stands"
    return (
        "that the shuffler mixes messages and does not work with the server, and that at least "
        f"{protocol.minimum} users are honest"
    )


def sent(protocol: Protocol) -> str:
    """What communication costs a device in this round."""
    count = protocol.messages_per_user
    messages = "one message" if count == 1 else f"{count} messages"
    return f"{messages}, {protocol.bytes_per_user} bytes in all"
