"""One small run, one page of it and one Chromium for all tests of this folder.

Chromium is the system's: `apt-get install chromium`.
"""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))

from page_run import full_spec, reply_instead, with_probabilities, write_record
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    expect,
    sync_playwright,
)
from small_cohort import make_cohort, reader, swept

from cardiolens.config.model import ModelSpec
from cardiolens.show.page import embed
from cardiolens.show.page.write import write_page
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run

MARKUP = "noisy<b>bold"  # a model's name
REPLY = "<think>I see <b>nothing</b>.</think>\n<img src=x onerror='window.harmed=1'>\nANSWER: A"
LOCAL = ("file:", "data:", "blob:", "http://127.0.0.1:")
MIN_RULES = 10
expect.set_options(timeout=120_000)  # for hangs alone: five seconds are a busy machine's
SWITCHES = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@dataclass
class Seen:
    """What a page did besides showing itself."""

    complaints: list[str] = field(default_factory=list)
    abroad: list[str] = field(default_factory=list)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@contextmanager
def shown_as_models() -> Iterator[pytest.MonkeyPatch]:
    """Simulated readers are models meanwhile: the page answers no question of simulated readers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ModelSpec, "simulated", property(lambda _: False))
        yield patch


@pytest.fixture(scope="package")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with its page, whose larger tables stand beside it; one model answers with markup, one sure."""
    root = make_cohort(tmp_path_factory.mktemp("browser"), 21)
    models = [reader("noisy", MARKUP, error=0.3), reader("collapse", share=0.6)]
    planned, _ = swept(full_spec(root, model=models))
    with shown_as_models() as patch:
        patch.setattr(embed, "CHUNK_BYTES", 20_000)
        with_probabilities(planned, MARKUP)
        write_record(planned, reply_instead(planned, "collapse", REPLY))
        write_page(planned.run, [planned.run], include_images=True)
    return planned.run


@pytest.fixture(scope="package")
def scores(run: Run) -> list[dict[str, Any]]:
    return tables.read(run.scores, schemas.SCORES).to_pylist()


@pytest.fixture(scope="package")
def browser(run: Run) -> Iterator[Browser]:  # after the run: Playwright holds the thread's event loop
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=list(SWITCHES))
        yield opened
        opened.close()


@pytest.fixture(scope="package")
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1440, "height": 900}, accept_downloads=True)
    yield made
    made.close()


@pytest.fixture
def seen() -> Seen:
    return Seen()


@contextmanager
def opened_at(context: BrowserContext, address: str, ready: str) -> Iterator[Page]:
    """A page, once it has an element; nothing may have gone wrong by the end."""
    page, seen = context.new_page(), Seen()
    watch(page, seen)
    page.goto(address)
    page.wait_for_selector(ready)
    yield page
    page.close()
    assert seen == Seen()


@pytest.fixture
def page(context: BrowserContext, run: Run) -> Iterator[Page]:
    """The page, opened from the file system and drawn."""
    with opened_at(context, run.page.as_uri(), "html[data-drawn]") as opened:
        yield opened


def watch(page: Page, seen: Seen) -> None:
    """Note what a page complains about, and what it asks of another machine."""

    def said(told: ConsoleMessage) -> None:
        # Tests read canvases back, and a slow browser then advises the page against it.
        if told.type in ("error", "warning") and "willReadFrequently" not in told.text:
            seen.complaints.append(told.text)

    page.on("console", said)
    page.on("pageerror", lambda error: seen.complaints.append(str(error)))

    def asked(request: Request) -> None:
        if not request.url.startswith(LOCAL):
            seen.abroad.append(request.url)

    page.on("request", asked)


def assert_fits(page: Page, width: int) -> None:
    """Nothing is wider than a screen of this width, once what is drawn anew for it has been drawn."""
    page.set_viewport_size({"width": width, "height": 800})
    page.wait_for_timeout(400)  # while charts may become too wide
    page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=width)


def settle(page: Page) -> None:
    """Wait for what is drawn with the next picture of the screen."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def findings_of_axe(page: Page) -> list[str]:
    """All that axe-core finds, of whatever weight, in words: its rules of WCAG and of good practice."""
    page.evaluate((Path(__file__).parent / "assets" / "axe.min.js").read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert len(found["passes"]) > MIN_RULES  # the page was there to be looked at
    return [
        f"{violation['id']} ({violation['impact']}): {node['html'][:120]} {node['failureSummary']}"
        for violation in found["violations"]
        for node in violation["nodes"][:3]
    ]
