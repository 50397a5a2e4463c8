"""Files and pipes of `muhat protocol`: descriptions as text, messages as bytes; "-" is a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from muhat.errors import InvalidInput

if TYPE_CHECKING:
    from muhat.protocols import Protocol
    from muhat.release.release import Release


def read_description(path: str) -> Protocol:
    """The protocol that a file describes."""
    from muhat.protocols import Protocol

    try:
        with click.open_file(path, encoding="utf-8") as stream:
            text = stream.read()
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(f"{path} cannot be read as a protocol's description.") from None
    return Protocol.from_json(text)


def write_description(path: str, protocol: Protocol) -> None:
    """A description to a file, and in words to the terminal."""
    try:
        with click.open_file(path, "w", encoding="utf-8") as stream:
            stream.write(protocol.to_json() + "\n")
    except OSError:
        raise InvalidInput(f"{path} cannot be written.") from None
    click.echo(protocol.describe(), err=True)


def messages_in(paths: tuple[str, ...]) -> Iterator[Iterator[bytes]]:
    """The messages of every file, or of standard input."""
    from muhat.protocols.frames import read_messages

    for path in paths or ("-",):
        try:
            stream: Any = click.open_file(path, "rb")
        except OSError:
            raise InvalidInput(f"{path} cannot be read.") from None
        with stream:
            yield read_messages(stream)


def write_all(path: str, messages: Iterable[bytes]) -> None:
    """Messages to a file, or to standard output."""
    from muhat.protocols.frames import write_messages

    try:
        stream: Any = click.open_file(path, "wb")
    except OSError:
        raise InvalidInput(f"{path} cannot be written.") from None
    with stream:
        write_messages(stream, messages)


def show_release(release: Release, as_json: bool) -> None:
    """The result, for people or for programs."""
    click.echo(release.to_json() if as_json else repr(release))
