"""A service at its address: in the foreground, or in a thread of this process."""

from __future__ import annotations

import contextlib
import logging
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from muhat.errors import InvalidInput
from muhat.protocols.services.config import Role, ServiceConfig, Setup
from muhat.protocols.services.server_service import ServerService
from muhat.protocols.services.service import LOG, Service
from muhat.protocols.services.shuffler_service import ShufflerService
from muhat.protocols.services.web import application

SPARE_CONNECTIONS = 100
"""Beside those whose reports wait."""


def serve(role: Role, config: ServiceConfig, ready: Callable[[str], None]) -> None:
    """Run a service until it is told to end; `ready` is told its address."""
    setup = config.checked(role)
    with _listening(setup) as (address, listener):
        server = _uvicorn(setup, _service(setup))
        _log_to_stderr()
        ready(address)
        server.run(sockets=[listener])


@contextlib.contextmanager
def running(role: Role, config: ServiceConfig) -> Iterator[str]:
    """The address of a service that runs in a thread meanwhile."""
    setup = config.checked(role)
    with _listening(setup) as (address, listener):
        server = _uvicorn(setup, _service(setup))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield address
        finally:
            server.should_exit = True
            thread.join()


def _service(setup: Setup) -> Service:
    return ShufflerService(setup) if setup.role == "shuffler" else ServerService(setup)


def _uvicorn(setup: Setup, service: Service) -> Any:
    import uvicorn

    config = uvicorn.Config(
        application(service),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        ws="none",
        limit_concurrency=setup.config.limits.waiting + SPARE_CONNECTIONS,
        timeout_graceful_shutdown=5,
    )
    config.load()
    if setup.config.tls is not None:
        config.ssl = setup.tls_context()
    return uvicorn.Server(config)


@contextlib.contextmanager
def _listening(setup: Setup) -> Iterator[tuple[str, socket.socket]]:
    """A socket at the address of a configuration, which may leave the port open."""
    _require_libraries()
    config = setup.config
    try:
        family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
        listener = socket.create_server((config.host, config.port), family=family, backlog=2048)
    except OSError as error:
        raise InvalidInput(
            f"{config.host}:{config.port} cannot be used: {error.strerror}."
        ) from None
    with listener:
        host = f"[{config.host}]" if ":" in config.host else config.host
        scheme = "http" if config.tls is None else "https"
        yield f"{scheme}://{host}:{listener.getsockname()[1]}", listener


def _require_libraries() -> None:
    try:
        import starlette
        import uvicorn
    except ImportError:
        raise InvalidInput(
            "services need Starlette and uvicorn: pip install 'muhat[serve]'."
        ) from None
    del starlette, uvicorn


def _log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
