"""HTTP connections to one server; the only module that imports aiohttp."""

from typing import TYPE_CHECKING

from cardiolens.config.http import HttpSpec
from cardiolens.inference.engine.http.header_lines import HttpAnswer, Words
from cardiolens.inference.engine.http.http_fault import FaultError, FaultKind

if TYPE_CHECKING:
    from aiohttp import ClientResponse

_CONNECT_SECONDS = 5.0
_MOST_BYTES = 4 << 20  # of a body: many times the longest reply, and affordable for every request in flight


class Transport:
    """Connections to one server; made and closed in one event loop."""

    def __init__(self, http: HttpSpec, key: str | None, proxy: str | None, words: Words) -> None:
        import aiohttp

        self._base_url = http.base_url
        self._words = words
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

    async def post(self, body: bytes) -> HttpAnswer:
        """Send one request; FaultError if no whole reply came back."""
        return await self._ask("POST", "chat/completions", body)

    async def models(self) -> HttpAnswer:
        """Ask which models there are; FaultError if no whole reply came back."""
        return await self._ask("GET", "models", None)

    async def _ask(self, method: str, path: str, body: bytes | None) -> HttpAnswer:
        """Send one request, without following redirects."""
        import aiohttp

        url = f"{self._base_url}/{path}"
        try:
            async with self._session.request(method, url, data=body, allow_redirects=False) as response:
                received = await self._read(response)
                return self._words.heard(response.status, dict(response.headers), received)
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
                f"its reply is compressed ({self._words.line(coding)}), although the request forbids that",
            )
        received = bytearray()
        async for piece in response.content.iter_any():
            received += piece
            if len(received) > _MOST_BYTES:
                response.close()
                raise FaultError(FaultKind.MALFORMED, f"its reply is longer than {_MOST_BYTES >> 20} MiB")
        return bytes(received)

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    def _fault(self, kind: FaultKind, error: BaseException) -> FaultError:
        return FaultError(kind, self._words.line(str(error) or type(error).__name__))
