"""Requests to a server of a model: who may be asked, with which key, by which way, and how many at once."""

import asyncio
import ipaddress
import json
import os
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from cardiolens.base.errors import InputError, RunError
from cardiolens.config.http import HttpSpec
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.engine.http.http_reply import (
    FaultError,
    FaultKind,
    HttpAnswer,
    fault_in,
    quoted,
    sanitised_answer,
)

if TYPE_CHECKING:
    from aiohttp import ClientResponse

_SHORTEST = 8  # characters; shorter keys, such as "EMPTY", may appear in the configuration


def check_access(spec: SweepSpec) -> None:
    """Raise InputError, before anything starts, if a server may not be asked or its key is missing.

    A dry run (mode=plan) sends nothing, so it can show the requests of a commercial model without permission
    and key.
    """
    if spec.mode == "plan":
        return
    for model in spec.model:
        if model.engine == "http":
            check_leave(model)
            read_key(model)


def check_leave(model: ModelSpec) -> None:
    """Raise InputError unless the model runs on this machine or frames may leave the machine."""
    http = model.served
    if not is_loopback(http.host) and not http.allow_external:
        raise InputError(
            f"model {model.name}: frames of patients would be sent to {http.host}, not this machine; "
            f"if you may do that, set model.{model.name}.http.allow_external=true"
        )


def read_key(model: ModelSpec) -> str | None:
    """Return the API key from the environment; None if the server needs none, InputError if unusable."""
    name = model.served.api_key_env
    if name is None:
        return None
    key = os.environ.get(name, "").strip()
    if not key or not (key.isascii() and key.isprintable()) or " " in key:
        raise InputError(
            f"model {model.name}: the environment variable {name} is not set, or holds spaces, lines or "
            f"other characters that no key has; put the key of {model.served.host} alone there, here and on "
            "every node of the cluster"
        )
    description = json.dumps(model.served.model_dump(mode="json"), ensure_ascii=False)
    if len(key) >= _SHORTEST and key in description:
        raise InputError(
            f"model {model.name}: its configuration holds the key of {name}, which would be written to every "
            "run; remove it there: the key is sent in the header Authorization and nowhere else"
        )
    return key


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine by name or address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def way_to(http: HttpSpec) -> str:
    """Return a text for the log: the address of a model, and whether a proxy is used."""
    return f"{http.base_url}{', through a proxy that the environment names' if proxy_of(http) else ''}"


def proxy_of(http: HttpSpec) -> str | None:
    """Return the proxy that the environment names for a server; None without one or for this machine."""
    if is_loopback(http.host) or proxy_bypass(http.host):
        return None
    proxy = getproxies().get(urlsplit(http.base_url).scheme)
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy  # as curl reads host:port


_CONNECT_SECONDS = 5.0
_MOST_BYTES = 4 << 20  # of a body: many times the longest reply, and affordable for every request in flight


class Transport:
    """Connections to the server of a model; made and closed in one event loop."""

    def __init__(self, model: ModelSpec) -> None:
        import aiohttp

        http, key, proxy = model.served, read_key(model), proxy_of(model.served)
        self._base_url = http.base_url
        self._secrets = [secret for secret in (key, proxy and urlsplit(proxy).password) if secret]
        headers = {"Content-Type": "application/json", "User-Agent": "cardiolens"}
        headers["Accept-Encoding"] = "identity"  # a few compressed bytes could become gigabytes
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),  # no limit here; the gate limits requests
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=headers,
            proxy=proxy,
            timeout=aiohttp.ClientTimeout(total=http.timeout_seconds, sock_connect=_CONNECT_SECONDS),
            trust_env=False,  # use no proxies or ~/.netrc keys beyond those given here
            auto_decompress=False,
        )

    async def ask(self, method: str, path: str, body: bytes | None = None) -> HttpAnswer:
        """Send one request, without following redirects; FaultError if no whole reply came back."""
        import aiohttp

        url = f"{self._base_url}/{path}"
        try:
            async with self._session.request(method, url, data=body, allow_redirects=False) as response:
                content = await self._read(response)
                return sanitised_answer(response.status, response.headers, content, self._secrets)
        except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError) as error:
            raise self._fault(FaultKind.UNREACHABLE, error) from None
        except TimeoutError as error:
            raise self._fault(FaultKind.SLOW, error) from None
        except (aiohttp.ClientError, ConnectionError) as error:
            raise self._fault(FaultKind.CUT, error) from None

    async def _read(self, response: "ClientResponse") -> bytes:
        """Read the body of a response; FaultError, and a closed connection, if compressed or too long."""
        coding = response.headers.get("Content-Encoding", "identity")
        if coding.lower() != "identity":
            response.close()
            raise FaultError(
                FaultKind.FORBIDDEN,
                f"its reply is compressed ({quoted(coding, self._secrets)}), although the request forbids "
                "that",
            )
        received = bytearray()
        async for piece in response.content.iter_any():
            received += piece
            if len(received) > _MOST_BYTES:
                response.close()
                raise FaultError(FaultKind.MALFORMED, f"its reply is longer than {_MOST_BYTES >> 20} MiB")
        return bytes(received)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._session.close()

    def _fault(self, kind: FaultKind, error: BaseException) -> FaultError:
        return FaultError(kind, quoted(str(error) or type(error).__name__, self._secrets))


_SECONDS = 15.0


def reach(model: ModelSpec) -> str:
    """Ask the server of a model for its list of models; InputError if it cannot be used.

    Servers that have no such list answer with an error, which shows that they are there.
    """
    check_leave(model)
    try:
        answer = asyncio.run(asyncio.wait_for(_models(model), _SECONDS))
        if answer.status in (401, 403):
            raise fault_in(answer)
    except (FaultError, TimeoutError) as error:
        raise InputError(f"{model.served.base_url} {error or 'did not answer in time'}") from None
    return f"{model.served.base_url} answers"


async def _models(model: ModelSpec) -> HttpAnswer:
    async with aclosing(Transport(model)) as transport:
        return await transport.ask("GET", "models")


_START = 8


class Gate:
    """First-come, first-served queue before a server; used within one event loop.

    Its window grows by one per reply until the server first throttles, then by one per window of replies;
    each throttling halves it, unless the throttled request was sent before the last halving.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = float(min(most, _START))
        self._throttled = False
        self._cut_at = float("-inf")
        self._inside = self._pauses = 0
        self._in_turn = asyncio.Lock()  # held by the first that waits
        self._changed, self._closed = asyncio.Event(), asyncio.Event()
        self._why = ""  # it was closed

    @property
    def size(self) -> int:
        """Number of requests allowed at the server now; at least one."""
        return int(self._limit)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """Hold a slot at the server; yield the event loop's time of entering. RunError if closed."""
        async with self._in_turn:
            while not self._closed.is_set() and (self._pauses or self._inside >= self.size):
                self._changed.clear()
                await self._changed.wait()
            if self._closed.is_set():
                raise RunError(self._why)
            self._inside += 1
        try:
            yield asyncio.get_running_loop().time()
        finally:
            self._inside -= 1
            self._changed.set()

    def succeeded(self) -> None:
        """Record that a request was answered; the window may grow."""
        self._limit = min(self._most, self._limit + (1 / self._limit if self._throttled else 1))
        self._changed.set()

    def throttled(self, entered: float, seconds: float) -> None:
        """Record that the server throttles: shrink the window and admit no request for `seconds`."""
        loop = asyncio.get_running_loop()
        self._pauses += 1
        loop.call_later(seconds, self._resume)
        if entered >= self._cut_at:
            self._throttled = True
            self._limit = max(1.0, self._limit / 2)
            self._cut_at = loop.time()

    def _resume(self) -> None:
        self._pauses -= 1
        self._changed.set()

    async def wait(self, seconds: float) -> None:
        """Wait before a request is tried again; not longer than the gate is open."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closed.wait()

    def close(self, why: str) -> None:
        """Admit no more requests: RunError for waiting and later ones. Requests in flight may finish."""
        self._why = why
        self._closed.set()
        self._changed.set()
