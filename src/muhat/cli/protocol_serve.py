"""`muhat protocol serve | close | publish | secret`: shuffler and server as HTTP services."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from muhat.errors import InvalidInput

if TYPE_CHECKING:
    from muhat.protocols.services.config import Role, ServiceConfig
    from muhat.protocols.services.sending import Sender

_role = click.argument("role", type=click.Choice(["shuffler", "server"]))
_config = click.option(
    "--config", required=True, metavar="FILE", help="How the service is set up, in TOML."
)


@click.command(epilog="Example: muhat protocol serve shuffler --config shuffler.toml")
@_role
@_config
@click.option("--check", is_flag=True, help="Look at the configuration and its files, and end.")
def serve(role: Role, config: str, check: bool) -> None:
    """Run the shuffler or the server of a collection over HTTP, until it is told to end.

    It may be stopped or killed at any time: started again, it goes on where its store is.
    """
    from muhat.protocols.services.config import ServiceConfig
    from muhat.protocols.services.running import serve as run

    if check:
        click.echo(ServiceConfig.read(config).checked(role).describe())
        return
    run(role, ServiceConfig.read(config), lambda at: click.echo(f"{role} at {at}", err=True))


@click.command(epilog="Example: muhat protocol close shuffler --config shuffler.toml")
@_role
@_config
def close(role: Role, config: str) -> None:
    """Close the round that a service collects, though not everybody has answered.

    Never below the minimum of its description. It is for who may read the service's store.
    """
    _operate(role, config, "/close", b"")


@click.command(epilog="Example: muhat protocol publish signed2.json --config server.toml")
@click.argument("description")
@_config
def publish(description: str, config: str) -> None:
    """Give the server the signed DESCRIPTION of the next round, which it is waiting for.

    What is to be signed is what the server has at /next.
    """
    try:
        content = Path(description).read_bytes()
    except OSError:
        raise InvalidInput(f"{description} cannot be read.") from None
    _operate("server", config, "/round", content)


@click.command(epilog="Example: muhat protocol secret forward.key")
@click.argument("path")
def secret(path: str) -> None:
    """Make in the new file PATH what a shuffler and a server know each other by."""
    from muhat.protocols.services.config import new_secret

    new_secret(path)


SERVICE_COMMANDS = (serve, close, publish, secret)


def fetched(description: str, ca: str | None) -> bytes | None:
    """The description that a service has, if this is the address of one."""
    if not description.startswith(("http://", "https://")):
        return None
    with _sender(description, ca=ca) as sender:
        return sender.description()


def send_to(to: str, ca: str | None, messages: Iterable[bytes]) -> None:
    """Send messages, each until the service has it."""
    from muhat.protocols.services.sending import send_all

    there, new = send_all(to, messages, ca=ca)
    click.echo(f"{new} taken" + (f", {there - new} taken before" if there > new else ""), err=True)


def _operate(role: Role, path: str, where: str, content: bytes) -> None:
    from muhat.protocols.services.config import ServiceConfig
    from muhat.protocols.services.service import token_of

    config = ServiceConfig.read(path)
    if not config.port:
        raise InvalidInput(f"{path} states no port, so that nobody knows where the service is.")
    token = token_of(Path(config.store), role)
    certificate = None if config.tls is None else config.tls.certificate
    with _sender(_address(config), secret=token, ca=certificate, pinned=True, patience=5.0) as own:
        response = own.request("POST", where, content)
    if response.status != 200:
        raise InvalidInput(f"the {role} refuses: {response.words}")
    click.echo(response.words)


def _address(config: ServiceConfig) -> str:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(config.host, config.host)
    scheme = "http" if config.tls is None else "https"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{config.port}"


def _sender(to: str, **options: Any) -> Sender:
    from muhat.protocols.services.sending import Sender

    return Sender(to, **options)
