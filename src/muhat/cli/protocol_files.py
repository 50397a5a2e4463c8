"""Files of descriptions and of messages, as `muhat protocol` reads and writes them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import IO, TYPE_CHECKING

import click

from muhat.cli.output_files import output
from muhat.errors import InvalidInput

if TYPE_CHECKING:
    from muhat.protocols import Protocol, SealedProtocol
    from muhat.protocols.roles.collector import Collector


def read_description(path: str) -> Protocol:
    """The protocol that a file describes, which nobody has signed."""
    from muhat.protocols import Protocol

    found = read_round(path, None)
    if not isinstance(found, Protocol):
        raise InvalidInput(f"{_name(path)} is signed already.")
    return found


def read_round(path: str, signer: str | None) -> Protocol | SealedProtocol:
    """The round of a description, or of a signed one, if it was signed by `signer`."""
    from muhat.protocols import read_round as read
    from muhat.protocols.roles.messages import LONGEST

    try:
        with click.open_file(path, "rb") as stream:
            data = stream.read(LONGEST + 1)
    except OSError:
        name = _name(path)
        raise InvalidInput(f"{name} cannot be read as a protocol's description.") from None
    try:
        return read(data, signer=signer)
    except InvalidInput as error:
        if error.parameter == "signer":
            raise
        raise InvalidInput(f"{_name(path)}: {error}") from None


def write_description(path: str, protocol: Protocol) -> None:
    """A description to a file, and in words to the terminal."""
    text = protocol.to_json() + "\n"
    with output(path) as stream:
        stream.write(text.encode())
    click.echo(protocol.describe(), err=True)


def fill(
    collector: Collector,
    states: tuple[str, ...],
    paths: tuple[str, ...],
    protocol: Protocol | SealedProtocol,
) -> None:
    """Take states, and the messages of files, or of standard input if there is neither."""
    for path in states:
        try:
            with click.open_file(path, "rb") as stream:
                state = stream.read()
        except OSError:
            raise InvalidInput(f"{path} cannot be read.") from None
        try:
            before = collector.users
            collector.restore(state)
        except InvalidInput as error:
            raise InvalidInput(f"{path}: {error}") from None
        click.echo(f"{collector.users - before} taken from {path}", err=True)
    for messages in messages_in(paths, protocol) if paths or not states else ():
        click.echo(str(collector.take(messages)), err=True)


def messages_in(
    paths: tuple[str, ...], protocol: Protocol | SealedProtocol
) -> Iterator[Iterator[bytes]]:
    """The messages of every file, or of standard input; of none more than the protocol allows."""
    if not paths and sys.stdin.isatty():
        raise InvalidInput("give files of messages, or pipe them in.")
    for path in paths or ("-",):
        try:
            stream = click.open_file(path, "rb")
        except OSError:
            raise InvalidInput(f"{path} cannot be read.") from None
        with stream:
            yield _read(path, stream, protocol.bytes_per_user)


def _read(path: str, stream: IO[bytes], longest: int) -> Iterator[bytes]:
    from muhat.protocols.roles.messages import read_messages

    try:
        yield from read_messages(stream, longest)
    except OSError:
        raise InvalidInput(f"{_name(path)} cannot be read.") from None


def write_all(
    path: str,
    messages: Iterable[bytes],
    mode: int = 0o666,
    before: Callable[[], None] = lambda: None,
) -> int:
    """Messages to a file, or to standard output: how many. No file is touched before the first.

    `before` is called when they are written, and nobody can see them yet.
    """
    from muhat.protocols.roles.messages import write_messages

    refuse_terminal(path, "messages are bytes")
    left = iter(messages)
    first = list(islice(left, 1))
    with output(path, mode) as stream:
        if path == "-":
            before()
            return write_messages(stream, chain(first, left))
        written = write_messages(stream, chain(first, left))
        before()
        return written


def refuse_terminal(path: str, what: str) -> None:
    """No bytes to a terminal."""
    if path == "-" and sys.stdout.isatty():
        raise InvalidInput(f"{what}, not text: give --out FILE, or a pipe.")


def _name(path: str) -> str:
    return "standard input" if path == "-" else path
