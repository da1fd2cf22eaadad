"""The docs as a site: the strict build ends well, Chromium reaches every page, no other machine is asked."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import BrowserContext

from .conftest import Seen, watch

ROOT = Path(__file__).resolve().parents[2]


def build(source: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(source), "-d", str(out)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=quiet, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    done = build(ROOT / "mkdocs.yml", out)
    assert done.returncode == 0, done.stderr
    return out


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Silent, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_every_page_is_reached_in_two_clicks(site: Path, context: BrowserContext, seen: Seen) -> None:
    with served(site) as address:
        page = context.new_page()
        watch(page, seen)
        page.goto(f"{address}/index.html", wait_until="networkidle")
        tabs = page.locator(".md-tabs a")
        places: set[str] = set()
        for number in range(tabs.count()):
            tabs.nth(number).click()
            page.wait_for_load_state("networkidle")
            links = page.locator(".md-nav--primary a.md-nav__link[href]").evaluate_all(
                "all => all.map(a => a.href)"
            )
            places |= {link.split("#")[0].removeprefix(f"{address}/") for link in links}
        page.close()
    built = {str(path.relative_to(site)) for path in site.rglob("*.html")} - {"404.html"}
    assert built <= places
    assert seen == Seen()


def test_a_broken_link_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "README.md").write_text("# One\n\n[gone](gone.md#there)\n")
    settings = (ROOT / "mkdocs.yml").read_text().split("\nnav:")[0]
    (tmp_path / "mkdocs.yml").write_text(settings)
    done = build(tmp_path / "mkdocs.yml", tmp_path / "out")
    assert done.returncode == 1
    assert "gone.md" in done.stderr
