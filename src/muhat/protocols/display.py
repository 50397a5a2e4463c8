"""A protocol in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muhat.protocols.protocol import Protocol


def protocol_text(protocol: Protocol) -> str:
    """The round in a few lines."""
    rows = [
        ("estimates", protocol.estimator.describe()),
        ("promise", protocol.privacy.describe()),
        ("trust", TRUST[protocol.model]),
        ("users", f"{protocol.users}, and at least {protocol.minimum}"),
        ("each sends", sent(protocol)),
        ("randomizer", protocol.randomizer.kind),
        ("description", f"sha256 {protocol.digest[:16]}…"),
    ]
    width = max(len(name) for name, _ in rows)
    head = f"Round {protocol.round}, {protocol.model} model"
    return "\n".join([head, *(f"  {name:<{width}}  {text}" for name, text in rows)])


TRUST = {
    "local": "nobody: every message is private as it stands",
    "shuffle": "that the shuffler mixes messages, and that enough users are honest",
}


def sent(protocol: Protocol) -> str:
    """What communication costs a device in this round."""
    count = protocol.messages_per_user
    messages = "one message" if count == 1 else f"{count} messages"
    return f"{messages}, {protocol.bytes_per_user} bytes in all"
