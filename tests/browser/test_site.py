"""The docs as a site: the strict build ends well, Chromium reaches every page, no other machine is asked."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext
from printed_names import printed_names
from running_server import running

from .conftest import Seen, watch

pytestmark = pytest.mark.full
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
    with running(ThreadingHTTPServer(("127.0.0.1", 0), partial(_Silent, directory=str(folder)))) as server:
        yield f"http://127.0.0.1:{server.server_port}"


def test_every_page_is_reached_in_two_clicks(site: Path, context: BrowserContext, seen: Seen) -> None:
    with served(site) as address:
        page = context.new_page()
        watch(page, seen)
        page.goto(f"{address}/index.html", wait_until="networkidle")
        tabs = page.locator(".md-tabs a").evaluate_all("all => all.map(a => a.href)")
        places: set[str] = set()
        for tab in tabs:
            page.goto(tab, wait_until="networkidle")
            links = page.locator(".md-nav--primary a.md-nav__link[href]").evaluate_all(
                "all => all.map(a => a.href)"
            )
            places |= {link.split("#")[0].removeprefix(f"{address}/") for link in links}
        page.close()
    built = {str(path.relative_to(site)) for path in site.rglob("*.html")} - {"404.html"}
    assert built <= places
    assert seen == Seen()


# What a new user asks, and the page that is to stand first.
QUESTIONS = {
    "How do I add a model?": "guides/extend.html",
    "How do I add a data set of my own?": "guides/extend.html",
    "How do I compare two runs?": "guides/results.html",
    "Does it run on SLURM?": "guides/slurm.html",
    "How do I install it with conda or docker?": "get-started/install.html",
    "Can I use models behind an API?": "guides/http.html",
    "What leaves the hospital?": "guides/privacy.html",
    "Which Python versions are supported?": "get-started/install.html",
    "How do I resume a sweep after a crash?": "guides/failures.html",
    "How do I import DICOM from our hospital?": "guides/import.html",
    "Which GPU does a model run on?": "guides/gpus.html",
    "How are confidence intervals computed?": "explanation/statistics.html",
    "How do I delete old files in a store?": "guides/failures.html",
}
# Small words, which every search leaves out (mkdocs.yml), and a name that other pages have in their titles.
LEFT_OUT = {"how", "on", "to", "Tier 1 · findings"}
# The worker of the site's own search, asked as its page asks it: set up, then a query.
SEARCH = """async queries => {
    const settings = JSON.parse(document.getElementById("__config").textContent);
    const index = await (await fetch(`${settings.base}/search/search_index.json`)).json();
    const worker = new Worker(settings.search);
    const ask = (type, data) => new Promise(reply => {
        worker.onmessage = message => reply(message.data.data);
        worker.postMessage({type, data});
    });
    await ask(0, {...index, options: {suggest: false}});
    const pages = [];
    for (const query of queries)
        pages.push((await ask(2, query)).items.map(found => found[0].location.split("#")[0]));
    worker.terminate();
    return pages;
}"""


def searched(site: Path, context: BrowserContext, queries: list[str]) -> dict[str, list[str]]:
    """The pages that the search of the site finds, best first, by query."""
    with served(site) as address:
        page = context.new_page()
        page.goto(f"{address}/index.html", wait_until="networkidle")
        found = page.evaluate(SEARCH, queries)
        page.close()
    return dict(zip(queries, found, strict=True))


def test_a_new_users_questions_are_answered_by_the_first_title(site: Path, context: BrowserContext) -> None:
    first = {query: pages[0] for query, pages in searched(site, context, list(QUESTIONS)).items()}
    assert first == QUESTIONS


def test_every_name_that_the_page_prints_is_found(site: Path, context: BrowserContext) -> None:
    found = searched(site, context, sorted(printed_names() - LEFT_OUT))
    assert [name for name, pages in found.items() if "reference/page-names.html" not in pages] == []


def test_a_broken_link_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "README.md").write_text("# One\n\n[gone](gone.md#there)\n")
    settings = (ROOT / "mkdocs.yml").read_text().split("\nnav:")[0]
    (tmp_path / "mkdocs.yml").write_text(settings)
    shutil.copytree(ROOT / "jobs", tmp_path / "jobs")
    done = build(tmp_path / "mkdocs.yml", tmp_path / "out")
    assert done.returncode == 1
    assert "gone.md" in done.stderr
