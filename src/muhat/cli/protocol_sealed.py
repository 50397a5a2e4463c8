"""`muhat protocol key | signer | sign`: sealing to a server, and who vouches for a description."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from muhat._plain import MALFORMED
from muhat.cli.output_files import check_apart, output
from muhat.cli.protocol_files import read_description, refuse_terminal
from muhat.errors import InvalidInput

if TYPE_CHECKING:
    from muhat.protocols import Protocol, SealedProtocol, SealingKey, Server

signer_option = click.option(
    "--signer", metavar="HEX", help="Whose signature you trust; for signed descriptions."
)


@click.command(epilog="Example: muhat protocol key server.key --expires 2027-01-01 > server.pub")
@click.argument("path")
@click.option("--expires", metavar="DATE", help="From then on no device seals anything to it.")
def key(path: str, expires: str | None) -> None:
    """Make a server's key in the new file PATH, and print its public half, which is signed."""
    from muhat.protocols import ServerKey

    made = ServerKey.create(path, expires=expires).public
    click.echo(json.dumps(made.to_dict()))
    click.echo(f"Key {made.id} in {path}, for you alone to read.", err=True)


@click.command(epilog="Example: muhat protocol signer signer.key")
@click.argument("path")
def signer(path: str) -> None:
    """Make a signer in the new file PATH, and print what devices must know to trust it."""
    from muhat.protocols import Signer

    click.echo(Signer.create(path).public)


@click.command(
    epilog="Example: muhat protocol sign round1.json --key server.pub --signer signer.key "
    "--out signed.cbor"
)
@click.argument("description")
@click.option("--key", required=True, metavar="FILE", help="The public half of the server's key.")
@click.option("--signer", required=True, metavar="FILE", help="The signer's own file.")
@click.option("--out", default="-", help="Where to write; standard output.")
def sign(description: str, key: str, signer: str, out: str) -> None:
    """Vouch for a description and the key that devices seal their messages to."""
    from muhat.protocols import Signer

    check_apart(out, (description, key, signer))
    refuse_terminal(out, "a signed description is bytes")
    signed = Signer.open(signer).signed(read_description(description), _public(key))
    with output(out) as stream:
        stream.write(signed)


def _public(path: str) -> SealingKey:
    from muhat.protocols import SealingKey

    try:
        with click.open_file(path, encoding="utf-8") as stream:
            return SealingKey.from_dict(json.load(stream))
    except (OSError, *MALFORMED):
        raise InvalidInput(f"{path} is not the public half of a key.") from None


def server_of(round_: Protocol | SealedProtocol, key: str | None) -> Server:
    """The server of a round, which has a key if messages are sealed."""
    from muhat.protocols import SealedProtocol, ServerKey

    if isinstance(round_, SealedProtocol):
        if key is None:
            raise InvalidInput("the messages are sealed: give the server's key, --key FILE.")
        return round_.server(ServerKey.open(key))
    if key is not None:
        raise InvalidInput("--key is for messages that are sealed, and these are not.")
    return round_.server()
