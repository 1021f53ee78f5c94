"""The status over HTTP: alive, ready, metrics."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import structlog
import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from worker.config import ConfigError

log = structlog.get_logger()

START_S = 10.0


@dataclass(slots=True)
class Status:
    """What the worker says of itself; each fault is a reason not to be ready.

    Written by the polling thread, read by the server's: a list is replaced, never changed.
    """

    faults: list[str] = field(default_factory=lambda: ["it has not joined the group yet"])


@contextmanager
def served(port: int, status: Status, hung: Callable[[], str | None]) -> Iterator[None]:
    """Serve `/health`, `/ready` and `/metrics` on a port while the block runs; on none where `port` is 0.

    `/health` fails when the polling thread hangs: restart the worker. `/ready` fails with the reasons when the stream
    doesn't flow: look after it, a restart need not help.

    Raises:
        ConfigError: the port is taken.
    """
    if not port:
        yield
        return
    server = uvicorn.Server(
        uvicorn.Config(app(status, hung), host="0.0.0.0", port=port, log_config=None, access_log=False, lifespan="off")
    )
    # It would take over the process's signals, which are the worker's.
    server.capture_signals = _no_signals  # type: ignore[method-assign]
    thread = threading.Thread(target=_run, args=(server,), name="status", daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.01)
        if not thread.is_alive():
            raise ConfigError(f"status_port={port}: can't be listened on; another process has it, or it's not allowed")
    log.info("status_served", port=port)
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(START_S)


def app(status: Status, hung: Callable[[], str | None]) -> Starlette:
    """Return the web application."""

    async def health(_: Request) -> Response:
        doing = hung()
        return JSONResponse({"alive": doing is None, "hangs_in": doing}, 200 if doing is None else 503)

    async def ready(_: Request) -> Response:
        faults = status.faults
        return JSONResponse({"ready": not faults, "faults": faults}, 503 if faults else 200)

    async def metrics(_: Request) -> Response:
        return Response(generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return Starlette(routes=[Route("/health", health), Route("/ready", ready), Route("/metrics", metrics)])


@contextmanager
def _no_signals() -> Iterator[None]:
    yield


def _run(server: uvicorn.Server) -> None:
    try:
        server.run()
    except SystemExit:
        return  # how uvicorn says that it can't listen
