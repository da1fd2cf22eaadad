"""Server of the case viewer with its frames, for this machine alone: loopback, read-only, random token."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

import pyarrow as pa

from cardiolens.base.errors import InputError
from cardiolens.show.page.case_viewer.pictures import FRAMES, MASKS, overlay_of, parse_name, png_of
from cardiolens.study.shards import read_volumes

HOST = "127.0.0.1"
_TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".png": "image/png"}


@dataclass(frozen=True)
class Served:
    """Content that may be read: the viewer's page, scripts with cases, and frames of the run's studies.

    `script` returns the script at a path, with the words that are searched; None where there is none.
    """

    index: str
    script: Callable[[str, str], str | None]
    store: Path
    folder: Path  # of the studies, for their masks
    studies: tuple[str, ...]
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    def content(self, path: str) -> tuple[str, bytes] | None:
        """Media type and bytes of an address below the server's root; None where nothing may be read."""
        place, _, query = path.partition("?")
        token, _, rest = unquote(place).removeprefix("/").partition("/")
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            return None
        words = rest.split("/")
        if words in ([""], ["index.html"]):
            return _TYPES[".html"], self.index.encode()
        if words[0] in (FRAMES, MASKS):
            picture = self._picture(words)
            return None if picture is None else (_TYPES[".png"], picture)
        script = self.script(rest, "".join(parse_qs(query).get("words", [])))
        return None if script is None else (_TYPES[".js"], script.encode())

    def _picture(self, words: list[str]) -> bytes | None:
        place = parse_name(words)
        if place is None or place[0] >= len(self.studies):
            return None
        number, volume_id, idx = place
        try:
            masked = self.folder if words[0] == MASKS else None
            return _volume(self.store, self.studies[number], volume_id, masked).get(idx)
        except InputError:
            return None


@lru_cache(maxsize=64)
def _volume(store: Path, study: str, volume_id: str, masks: Path | None) -> Mapping[int, bytes]:
    """All frames of one volume as PNG pictures, by index; with its mask over them, where `masks` has it."""
    own = _volumes(store)
    rows = [row for row in own.to_pylist() if (row["study_id"], row["volume_id"]) == (study, volume_id)]
    frames = [(volume_id, idx) for row in rows for idx in range(row["n_slices"] * row["n_phases"])]
    overlay = overlay_of(masks, own, study, volume_id) if masks else None
    overlays = {volume_id: overlay} if overlay else {}
    return {idx: picture for (_, idx), picture in png_of(store, own, study, frames, overlays).items()}


@lru_cache(maxsize=1)
def _volumes(store: Path) -> pa.Table:
    return read_volumes(store)


def server_of(served: Served, port: int = 0) -> ThreadingHTTPServer:
    """Make a server that is not yet running; port 0 takes a free port."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 60  # s, after which a client that says nothing is left

        def do_GET(self) -> None:
            hosts = {f"{name}:{server.server_port}" for name in (HOST, "localhost")}
            # A foreign Host header means that another site's name was made to point here (DNS rebinding).
            content = served.content(self.path) if self.headers.get("Host") in hosts else None
            if content is None:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            kind, body = content
            self.send_response(HTTPStatus.OK)
            headers = {"Content-Type": kind, "Content-Length": str(len(body)), "Cache-Control": "no-store"}
            headers |= {"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}
            headers |= {"Cross-Origin-Resource-Policy": "same-origin", "X-Frame-Options": "DENY"}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing, because an address holds the token."""

    server = ThreadingHTTPServer((HOST, port), Handler)
    return server


def address_of(server: ThreadingHTTPServer, served: Served) -> str:
    """Address of the viewer, with its token, for the person who started it."""
    return f"http://{HOST}:{server.server_port}/{served.token}/"
