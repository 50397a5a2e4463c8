"""A service as an ASGI application (Starlette): what can be asked, of whom, and how much of it.

    GET  /round                the description of the round, for everybody
    POST /reports              a device's report: 201, 200 if it was there; refusals with a reason
    GET  /release              the result as JSON; 404 before it is there, 409 if it never will be
    GET  /next                 the next round, if it waits to be signed
    GET  /health, /metrics     that it works, and how much (Prometheus); counts alone
    POST /close, /round        for the operator: close the round; publish the next one
    POST /batches/NAME/PART    for the shuffler: a part of a mixed batch
    POST /batches/NAME/close   … and how many reports there are in it

The access log has the method, the path as it stands here and the status; no address, no body and
nothing else that somebody sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from muhat.protocols.roles.messages import LONGEST
from muhat.protocols.services.config import protocol_of
from muhat.protocols.services.limits import Rates
from muhat.protocols.services.server_service import ServerService
from muhat.protocols.services.service import LOG, Reply, Service
from muhat.protocols.services.shuffler_service import PART_BYTES
from muhat.protocols.services.store import FAILED, FINISHED, UNSIGNED

DIGITS = 20
_PASSING = (408, 429, 503)
_PUBLIC = ("/round", "/reports", "/release", "/next")
"""What is limited in its rate: all that is not for operators and shufflers."""


def application(service: Service) -> Any:
    """The service for an ASGI server, which starts and stops it."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.cors import CORSMiddleware

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.stop()

    origins = list(service.setup.config.origins)
    across = [Middleware(CORSMiddleware, allow_origins=origins, allow_methods=["GET", "POST"])]
    made = Starlette(
        routes=_routes(service), lifespan=lifespan, middleware=across if origins else []
    )
    return _Guarded(made, service)


class _Guarded:
    """Limits of rate, and the access log, around an application."""

    def __init__(self, inside: Any, service: Service) -> None:
        limits = service.limits
        self._inside, self._service = inside, service
        self._rates = Rates(limits.per_second, limits.per_minute_and_address)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._inside(scope, receive, send)
            return
        from starlette.responses import PlainTextResponse

        path = scope["path"]

        async def told(message: Any) -> None:
            if message["type"] == "http.response.start":
                self._note(scope["method"], path, message["status"])
            await send(message)

        address = (scope.get("client") or (None,))[0]
        if path in _PUBLIC and not self._rates.allow(address):
            later = {"Retry-After": "1"}
            await PlainTextResponse("too many requests", 429, later)(scope, receive, told)
        else:
            await self._inside(scope, receive, told)

    def _note(self, method: str, path: str, status: int) -> None:
        self._service.counts[f"status {status}"] += 1
        if self._service.setup.config.access_log:
            known = path if path in (*_PUBLIC, "/health", "/metrics", "/close") else "…"
            known = "/batches/…" if path.startswith("/batches/") else known
            LOG.info("%s %s %d", method if method in ("GET", "POST") else "…", known, status)


class _Stop(Exception):
    """A request that is answered before it is read."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.answer = Reply(status, words)


def _routes(service: Service) -> list[Any]:
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse, Response
    from starlette.routing import Route

    def told(answer: Reply) -> Response:
        later = {"Retry-After": "1"} if answer.status in _PASSING else {}
        return PlainTextResponse(answer.words + "\n", answer.status, later)

    def handled(handler: Any) -> Any:
        async def endpoint(request: Request) -> Response:
            try:
                found: Response | Reply = await handler(request)
            except _Stop as stop:
                found = stop.answer
            return told(found) if isinstance(found, Reply) else found

        return endpoint

    async def body(request: Request, longest: int) -> bytes:
        """All of it, if it is no longer; of what is longer, no more is held than shows it."""
        declared = request.headers.get("content-length", "0")
        if declared.isdecimal() and int(declared[:DIGITS]) > longest:
            raise _Stop(413, f"at most {longest} bytes")
        parts, length = [], 0
        try:
            async with asyncio.timeout(service.limits.seconds):
                async for part in request.stream():
                    parts.append(part)
                    length += len(part)
                    if length > longest:
                        raise _Stop(413, f"at most {longest} bytes")
        except TimeoutError:
            raise _Stop(408, "the request took too long") from None
        return b"".join(parts)

    def shown(request: Request) -> str:
        return str(request.headers.get("authorization", "")).removeprefix("Bearer ")

    def only(allowed: bool) -> None:
        if not allowed:
            raise _Stop(401, "not for you")

    async def get_round(request: Request) -> Response:
        return Response(service.kept.description, media_type="application/octet-stream")

    async def post_report(request: Request) -> Reply:
        return await service.take(await body(request, service.round.bytes_per_user))

    async def get_release(request: Request) -> Response | Reply:
        kept = service.kept
        if kept.phase == FAILED:
            return Reply(409, (kept.result or b"").decode())
        if kept.phase != FINISHED or not isinstance(service, ServerService):
            return Reply(404, "there is no result here yet")
        return Response(kept.result, media_type="application/json")

    async def get_next(request: Request) -> Response | Reply:
        if service.kept.phase != UNSIGNED:
            return Reply(404, "no round waits to be signed")
        return Response(service.kept.result, media_type="application/octet-stream")

    async def get_health(request: Request) -> Response:
        said = {"role": service.setup.role, "round": service.kept.number}
        text = json.dumps({**said, "phase": service.kept.phase})
        return Response(text, media_type="application/json")

    async def get_metrics(request: Request) -> Response:
        return PlainTextResponse(metrics(service), media_type="text/plain; version=0.0.4")

    async def close(request: Request) -> Reply:
        only(service.is_operator(shown(request)))
        return await service.close()

    async def publish(request: Request) -> Reply:
        only(service.is_operator(shown(request)) and isinstance(service, ServerService))
        assert isinstance(service, ServerService)
        return await service.publish(await body(request, LONGEST))

    async def take_part(request: Request) -> Reply | Response:
        only(isinstance(service, ServerService) and service.is_shuffler(shown(request)))
        assert isinstance(service, ServerService)
        batch, part = request.path_params["batch"], request.path_params["part"]
        longest = max(PART_BYTES, 4 + service.round.bytes_per_user)
        if part != "close":
            return await service.take_part(batch, await body(request, longest))
        said = await body(request, DIGITS)
        if not said.isdigit():
            return Reply(400, "the number of reports is not a number")
        answer, following = await service.complete(batch, int(said))
        return Response(following, 200) if answer.status == 200 else answer

    return [
        Route("/round", handled(get_round)),
        Route("/reports", handled(post_report), methods=["POST"]),
        Route("/release", handled(get_release)),
        Route("/next", handled(get_next)),
        Route("/health", handled(get_health)),
        Route("/metrics", handled(get_metrics)),
        Route("/close", handled(close), methods=["POST"]),
        Route("/round", handled(publish), methods=["POST"]),
        Route("/batches/{batch}/{part}", handled(take_part), methods=["POST"]),
    ]


def metrics(service: Service) -> str:
    """Counts for Prometheus: no values, no addresses."""
    protocol, outcomes, statuses = protocol_of(service.round), Counter[str](), Counter[str]()
    for name, count in service.counts.items():
        kind, _, status = name.rpartition(" ")
        if kind == "status":
            statuses[status] = count
        else:
            outcomes[name] = count
    gauges = {
        "round": service.kept.number,
        "users": service.users,
        "users_planned": protocol.users,
        "users_minimum": protocol.minimum,
        "turnout": service.turnout,
        "reports_waiting": service.queued,
    }
    lines = []
    for name, value in gauges.items():
        lines += [f"# TYPE muhat_{name} gauge", f"muhat_{name} {value}"]
    lines += ["# TYPE muhat_phase gauge", f'muhat_phase{{phase="{service.kept.phase}"}} 1']
    for name, label, counts in (
        ("outcomes", "outcome", outcomes),
        ("responses", "status", statuses),
    ):
        lines.append(f"# TYPE muhat_{name}_total counter")
        lines += [f'muhat_{name}_total{{{label}="{key}"}} {counts[key]}' for key in sorted(counts)]
    return "\n".join(lines) + "\n"
