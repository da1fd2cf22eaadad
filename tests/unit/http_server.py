"""An OpenAI-compatible server on loopback: answers every request in its own way, and fails as it is told."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

MODEL = "some-model"

Fault = Callable[["Server", web.Request, dict[str, Any]], Awaitable[web.StreamResponse]]


@dataclass
class Server:
    """What it was asked, byte by byte, and when it fails."""

    fails: Callable[[int, str], bool] = lambda number, body: False  # by the number of the call, and its body
    fault: Fault | None = None
    seen: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    port: int = 0
    at_once: int = 0
    most_at_once: int = 0
    let_go: asyncio.Event = field(default_factory=asyncio.Event)  # of calls that hang

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.seen.append((dict(request.headers), body))
        number = len(self.seen)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            asked = json.loads(body)
            if self.fault is not None and self.fails(number, body.decode()):
                return await self.fault(self, request, asked)
            await asyncio.sleep(0)
            return web.json_response(completion(asked))
        finally:
            self.at_once -= 1


def completion(asked: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The reply to a request: the same for the same messages."""
    digest = hashlib.sha256(json.dumps(asked["messages"]).encode()).digest()
    message = {"role": "assistant", "content": f"ANSWER: {'AB'[digest[0] % 2]}"}
    return {
        "object": "chat.completion",
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 4, "total_tokens": 104},
    } | changes


@asynccontextmanager
async def serving(server: Server) -> AsyncIterator[str]:
    """Its base URL while it runs."""
    app = web.Application(client_max_size=2**26)
    app.router.add_post("/v1/chat/completions", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.port = runner.addresses[0][1]
    try:
        yield f"http://127.0.0.1:{server.port}/v1"
    finally:
        server.let_go.set()
        await runner.cleanup()


def replies(status: int, body: bytes, **headers: str) -> Fault:
    """A fault that answers with these bytes."""

    async def fault(server: Server, request: web.Request, asked: dict[str, Any]) -> web.StreamResponse:
        named = {"Content-Type": "application/json"}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, body=body, headers=named)

    return fault


def says(status: int, error: object, **headers: str) -> Fault:
    """A fault that answers with an error."""
    return replies(status, json.dumps({"error": error}).encode(), **headers)


def answers(**changes: Any) -> Fault:
    """A fault that answers with a changed completion."""

    async def fault(server: Server, request: web.Request, asked: dict[str, Any]) -> web.StreamResponse:
        return web.json_response(completion(asked, **changes))

    return fault


async def hangs(server: Server, request: web.Request, asked: dict[str, Any]) -> web.StreamResponse:
    """Never answers."""
    await server.let_go.wait()
    return web.Response()


async def cuts(server: Server, request: web.Request, asked: dict[str, Any]) -> web.StreamResponse:
    """Closes the connection without a word."""
    request.transport.abort()
    return web.Response()


async def cuts_in_the_middle(
    server: Server, request: web.Request, asked: dict[str, Any]
) -> web.StreamResponse:
    """Computes the answer, sends the half of it, and closes the connection."""
    whole = json.dumps(completion(asked)).encode()
    response = web.StreamResponse(headers={"Content-Length": str(len(whole))})
    await response.prepare(request)
    await response.write(whole[: len(whole) // 2])
    request.transport.abort()
    return response


async def answers_twice(server: Server, request: web.Request, asked: dict[str, Any]) -> web.StreamResponse:
    """Two choices where one was asked for."""
    whole = completion(asked)
    return web.json_response(whole | {"choices": whole["choices"] * 2})
