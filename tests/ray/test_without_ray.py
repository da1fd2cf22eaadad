"""Few requests to a server need no Ray: the same stream in one process, stopped and killed like any other."""

import asyncio
import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.ray.conftest import ASKED, Place
from tests.ray.test_http import SERVED, in_the_background
from tests.unit.http_server import MODEL, Server, completion

pytestmark = [pytest.mark.ray, pytest.mark.full]

WORDS = [word for word in ASKED if not word.startswith(("model", "stream"))]
WORDS += ["limit=2", "model=[mine]", "stream.flush_rows=4"]


async def takes_its_time(server: Server, request: web.Request, asked: dict[str, Any]) -> web.StreamResponse:
    await asyncio.sleep(0.2)
    return web.json_response(completion(asked))


@pytest.fixture
def served(prepared: Place, tmp_path: Path) -> Iterator[tuple[Place, Server]]:
    """The prepared store, and a model file for a slow server that answers four requests at once."""
    shutil.copytree(prepared.root / "store", tmp_path / "store")
    server = Server(lambda number, body: True, takes_its_time)
    with in_the_background(server) as (url,):
        place = Place(tmp_path, prepared.data)
        entry = SERVED.format(name="mine", url=url, model=MODEL, more="")
        place.write_model("mine", entry.replace("  http:", "  max_num_seqs: 4\n  http:"))
        yield place, server


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_small_run_of_a_server_goes_on_where_it_ended(
    served: tuple[Place, Server], number: signal.Signals
) -> None:
    place, server = served
    no_ray = {"RAY_TMPDIR": str(place.root / "ray")}
    running = place.start(*WORDS, **no_ray)
    while len(server.seen) < 24:
        assert running.poll() is None, running.communicate()[0]
        time.sleep(0.05)
    os.kill(running.pid, number)
    running.communicate(timeout=600)
    assert running.returncode == (75 if number == signal.SIGTERM else -number)
    while server.at_once:  # what was sent just before the end
        time.sleep(0.05)
    begun, kept = len(server.seen), place.keys("mine")
    assert len(set(kept)) == len(kept)
    lost = 0 if number == signal.SIGTERM else 4 + 4 + 3  # asked, being written, and not yet a part
    assert len(kept) >= begun - lost
    place.sweep(*WORDS, **no_ray)
    assert not (place.root / "ray").exists(), "Ray was started"
    keys = place.keys("mine")
    assert len(set(keys)) == len(keys)
    assert set(kept) <= set(keys)
    counts = json.loads((place.run / "manifest.json").read_text())["requests"]
    assert counts["executed"] == len(keys) - len(kept) == len(server.seen) - begun
