"""Bytes to a server and back; the only module that imports aiohttp."""

from dataclasses import dataclass

from cardiolens.config.http import HttpSpec
from cardiolens.engine.http.fault import FaultError, FaultKind

_CONNECT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What came back."""

    status: int
    headers: dict[str, str]  # names in lower case
    body: bytes


class Transport:
    """Connections to one server; made and closed in one event loop."""

    def __init__(self, http: HttpSpec, key: str | None, proxy: str | None) -> None:
        import aiohttp

        self._url = f"{http.base_url}/chat/completions"
        headers = {"Content-Type": "application/json", "User-Agent": "cardiolens"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),  # bounded by the gate
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=headers,
            proxy=proxy,
            timeout=aiohttp.ClientTimeout(total=http.timeout_seconds, sock_connect=_CONNECT_SECONDS),
            trust_env=False,  # neither proxies nor keys from ~/.netrc that nobody named
        )

    async def post(self, body: bytes) -> HttpAnswer:
        """One request, never redirected; FaultError where no whole reply came back."""
        import aiohttp

        try:
            async with self._session.post(self._url, data=body, allow_redirects=False) as response:
                headers = {name.lower(): value for name, value in response.headers.items()}
                return HttpAnswer(response.status, headers, await response.read())
        except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError) as error:
            raise _fault(FaultKind.UNREACHABLE, error) from None
        except TimeoutError as error:
            raise _fault(FaultKind.SLOW, error) from None
        except (aiohttp.ClientError, ConnectionError) as error:
            raise _fault(FaultKind.CUT, error) from None

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()


def _fault(kind: FaultKind, error: BaseException) -> FaultError:
    return FaultError(kind, str(error) or type(error).__name__)
