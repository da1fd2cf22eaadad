"""The page of review in Chromium: two people at once, a killed server, a stopped network, keys an item."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from cardiolens.config.dataset import PhantomSpec
from cardiolens.curation.review.people import read_people
from cardiolens.curation.review.queue import NAME, Reviews, read_ledger
from cardiolens.curation.review.review_items import SECTIONS
from cardiolens.phantom.phantom_cohort import make_cohort

from .conftest import Seen, findings_of_axe, watch

pytestmark = pytest.mark.full

MARKUP = "<img src=x onerror='window.harmed=1'>"
ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Served:
    """A server of review in a process of its own, which can be killed and started again at its port."""

    data: Path
    out: Path
    mode: str
    port: int
    tokens: dict[str, str]
    process: subprocess.Popen[str] | None = None

    def link(self, reader: str) -> str:
        return f"http://127.0.0.1:{self.port}/{self.tokens[reader]}/"

    def start(self) -> None:
        words = [f"questions={self.data}/drafts/questions.jsonl", f"studies={self.data}/studies"]
        words += [f"out={self.out}", f"mode={self.mode}", f"port={self.port}"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cardiolens.review", *words],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
        )
        for line in self.process.stdout:
            if line.startswith("pass on"):
                return
        raise AssertionError("the server did not start")

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process.stdout.close()
            self.process = None

    def kept(self) -> Reviews:
        return read_ledger(self.out / NAME)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One phantom study with masks; its questions as drafts, with a quote that somebody forged."""
    root = tmp_path_factory.mktemp("review") / "data"
    make_cohort(PhantomSpec(canonical=("PH-NORMAL",), size="ci", also=("masks",)), root)
    (root / "drafts").mkdir()
    lines = [json.loads(line) for line in (root / "questions.jsonl").read_text().splitlines()]
    for line in lines:
        if line["answer_type"] != "report":
            line |= {"evidence": ["R1"], "origin": "report", "verification": {"status": "draft"}}
    (root / "drafts" / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = f"\N{ANATOMICAL HEART} {MARKUP}"  # a character of two units of UTF-16
    item: dict[str, object] = {"id": "R1", "quote": MARKUP, "start": 2, "end": len(text)}
    found = {"study_id": "PH-NORMAL", "items": [item]}
    (root / "drafts" / SECTIONS).write_text(json.dumps({"study_id": "PH-NORMAL", "text": text}) + "\n")
    (root / "drafts" / "2-findings.rules.jsonl").write_text(json.dumps(found) + "\n")
    return root


def served_at(data: Path, out: Path, mode: str) -> Iterator[Served]:
    people = read_people(out, ("anna", "berta"), "third")
    tokens = {person.name: token for token, person in people.by_token.items()}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    served = Served(data, out, mode, port, tokens)
    served.start()
    yield served
    served.kill()


@pytest.fixture
def verify(data: Path, tmp_path: Path) -> Iterator[Served]:
    yield from served_at(data, tmp_path, "verify")


@pytest.fixture
def read(data: Path, tmp_path: Path) -> Iterator[Served]:
    yield from served_at(data, tmp_path, "read")


def opened(browser: Browser, served: Served, reader: str, seen: Seen) -> tuple[BrowserContext, Page]:
    """A browser of one person at their link."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    watch(page, seen)
    page.goto(served.link(reader))
    page.wait_for_function("() => document.body.dataset.item !== undefined")
    return context, page


def press(page: Page, *keys: str) -> None:
    """Press the keys of one decision; the next item must stand there after the last."""
    before = page.evaluate("document.body.dataset.item + document.body.dataset.done")
    for key in keys:
        page.keyboard.press(key)
    page.wait_for_function(
        "before => document.body.dataset.item + document.body.dataset.done !== before", arg=before
    )


def decided(reviews: Reviews, reader: str, mode: str = "verify") -> int:
    return len(reviews.of_reader(reader, mode))


def test_two_people_at_once_a_third_and_undo(browser: Browser, verify: Served) -> None:
    seen = Seen()
    pages = {name: opened(browser, verify, name, seen) for name in ("anna", "berta", "third")}
    anna, berta, third = (pages[name][1] for name in ("anna", "berta", "third"))
    assert third.locator("#title").inner_text() == "Nothing waits for you"
    first = anna.evaluate("document.body.dataset.item")
    assert berta.evaluate("document.body.dataset.item") == first
    press(anna, "Enter")
    press(berta, "-", "3")
    press(anna, "+", *correction(anna))
    press(berta, "Backspace")
    assert berta.evaluate("document.body.dataset.item") == first
    press(berta, "0")
    third.reload()
    third.wait_for_function("() => document.body.dataset.item")
    assert "cannot tell" in third.locator("#truth").inner_text()
    assert not any(name in third.locator("main").inner_text() for name in ("anna", "berta"))
    press(third, "Enter")
    kept = verify.kept()
    assert [decided(kept, name) for name in ("anna", "berta", "third")] == [2, 1, 1]
    assert anna.evaluate("window.harmed") is None
    assert MARKUP in anna.locator("#truth").inner_text()
    anna.keyboard.press("*")
    expect(anna.locator("#report mark")).to_have_text(MARKUP)
    for context, _ in pages.values():
        context.close()
    assert seen == Seen()


def correction(page: Page) -> list[str]:
    """Keys that choose another answer than the proposed one."""
    multi = page.evaluate("told.item.multi")
    other = page.evaluate("told.item.options.find(one => !told.item.proposal.includes(one.key)).key")
    return [other.lower(), *(["Enter"] if multi else [])]


def test_a_kill_of_the_server_costs_no_key_and_none_counts_twice(browser: Browser, verify: Served) -> None:
    context, page = opened(browser, verify, "anna", Seen())
    press(page, "Enter")
    press(page, "Enter")
    verify.kill()
    page.keyboard.press("Enter")
    expect(page.locator("#message")).to_contain_text("kept and sent again")
    page.keyboard.press("Enter")  # while it is not known, nothing more is taken
    verify.start()
    page.wait_for_function("() => document.body.dataset.done === '3'")
    assert decided(verify.kept(), "anna") == 3
    press(page, "Enter")
    assert decided(verify.kept(), "anna") == 4
    context.close()


def test_a_key_whose_reply_is_lost_is_sent_again_and_counted_once(browser: Browser, verify: Served) -> None:
    context, page = opened(browser, verify, "anna", Seen())
    lost = []

    def lose(route) -> None:
        if not lost:
            lost.append(route.fetch().status)  # the server hears it, the page does not hear the reply
            route.abort("connectionreset")
        else:
            route.continue_()

    page.route("**/decide", lose)
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.body.dataset.done === '1'")
    assert lost == [200]
    assert decided(verify.kept(), "anna") == 1
    context.set_offline(True)
    page.keyboard.press("Enter")
    expect(page.locator("#message")).to_contain_text("No connection")
    assert decided(verify.kept(), "anna") == 1
    context.set_offline(False)
    page.wait_for_function("() => document.body.dataset.done === '2'")
    assert decided(verify.kept(), "anna") == 2
    context.close()


def test_a_focused_button_is_pressed_by_enter_and_is_not_an_acceptance(
    browser: Browser, verify: Served
) -> None:
    context, page = opened(browser, verify, "anna", Seen())
    page.get_by_role("button", name="cannot tell").focus()
    press(page, "Enter")
    [line] = verify.kept().of_reader("anna", "verify").values()
    assert line.verdict == "cannot_tell"
    page.keyboard.press("-")
    press(page, "+", *correction(page))  # to correct is no longer to reject
    expect(page.locator("#message")).to_have_text("")
    context.close()


def test_images_of_another_study_never_stand_beside_a_question(browser: Browser, verify: Served) -> None:
    context, page = opened(browser, verify, "anna", Seen())
    page.wait_for_function("() => document.body.dataset.drawn")
    page.route("**/loops/*", lambda route: route.fulfill(status=500, body="internal server error"))
    page.evaluate("show({...told, item: {...told.item, study: 'other'}})")
    assert page.locator("#loops canvas").count() == 0
    expect(page.locator("#message")).to_contain_text("the server failed")
    page.unroute("**/loops/*")
    page.route("**/sheets/**", lambda route: route.fulfill(status=404, body="not found"))
    page.evaluate("show({...told, item: {...told.item, study: 'third'}})")
    expect(page.locator("#loops figcaption").first).to_contain_text("cannot be read")
    context.close()


def test_a_fault_of_the_server_is_no_lost_connection_and_a_full_disk_no_end_of_work(
    browser: Browser, verify: Served
) -> None:
    context, page = opened(browser, verify, "anna", Seen())
    page.route("**/decide", lambda route: route.fulfill(status=500, body="internal server error"))
    page.keyboard.press("Enter")
    expect(page.locator("#message")).to_contain_text("Not done: refused: the server failed")
    page.unroute("**/decide")
    press(page, "Enter")
    full = {"error": "not saved: the file of reviews cannot be written", "again": True}
    page.route("**/state.json", lambda route: route.fulfill(json=full))
    page.reload()
    expect(page.locator("#message")).to_contain_text("not saved")
    assert page.locator("#title").inner_text() == "Review"
    page.unroute("**/state.json")
    page.wait_for_function("() => document.body.dataset.done === '1'")
    expect(page.locator("#message")).to_have_text("")
    context.close()


def test_quotes_are_marked_where_the_report_has_signs_beyond_16_bits(
    browser: Browser, verify: Served
) -> None:
    context, page = opened(browser, verify, "anna", Seen())
    quote = {"text": "dilated", "start": 5, "end": 12}
    item = {"report": "\N{ANATOMICAL HEART} LV dilated.", "evidence": [quote]}
    page.evaluate("item => { view.whole = true; show({...told, item: {...told.item, ...item}}); }", item)
    assert page.locator("#report mark").inner_text() == "dilated"
    context.close()


def test_every_item_is_verified_with_one_key_and_the_pictures_are_drawn(
    browser: Browser, verify: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = Seen()
    context, page = opened(browser, verify, "anna", seen)
    page.wait_for_function("() => document.body.dataset.drawn")
    page.wait_for_function(
        "() => [...document.querySelectorAll('#loops canvas')].every(one => {"
        " const data = one.getContext('2d').getImageData(0, 0, one.width, one.height).data;"
        " return data.some((value, k) => k % 4 < 3 && value > 60); })"
    )
    masked = "loops.some(one => one.mask)"
    assert page.evaluate(masked), "the phantom has masks"
    began, keys = time.monotonic(), 0
    n = page.evaluate("told.left")
    for _ in range(n):
        press(page, "Enter")
        keys += 1
    seconds = time.monotonic() - began
    assert page.locator("#title").inner_text() == "Nothing waits for you"
    assert keys == n == decided(verify.kept(), "anna")
    with capsys.disabled():
        print(f"\n{n} items, {keys} keys, {3600 * n / seconds:.0f} items an hour by a script")
    context.close()
    assert seen == Seen()


def test_who_reads_sees_no_truth_and_answers_with_letters(browser: Browser, read: Served) -> None:
    seen = Seen()
    context, page = opened(browser, read, "anna", seen)
    n = page.evaluate("told.left")
    keys = 0
    for _ in range(n):
        assert page.locator("#truth").inner_text() == ""
        assert page.locator(".proposed").count() == 0
        letters = ["a", "Enter"] if page.evaluate("told.item.multi") else ["a"]
        press(page, *letters)
        keys += len(letters)
    kept = read.kept()
    assert decided(kept, "anna", "read") == n
    assert all(line.seconds > 0 for by in kept.decided["read"].values() for line in by.values())
    assert keys < 2 * n
    press_undo = page.evaluate("document.body.dataset.done")
    page.keyboard.press("Backspace")
    page.wait_for_function("before => document.body.dataset.done !== before", arg=press_undo)
    context.close()
    assert seen == Seen()


def test_a_link_of_nobody_shows_nothing_and_axe_finds_nothing(browser: Browser, verify: Served) -> None:
    context = browser.new_context(bypass_csp=True)
    page = context.new_page()
    assert page.goto(f"http://127.0.0.1:{verify.port}/x/").status == 404
    page.goto(verify.link("anna"))
    page.wait_for_function("() => document.body.dataset.drawn")
    assert findings_of_axe(page) == []
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    assert findings_of_axe(page) == []
    context.close()
