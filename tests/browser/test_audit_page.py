"""The page of an audit in Chromium: replies by keys, a reload, a narrow screen, nothing of our reading."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Response, expect
from running_server import running

from cardiolens.curation.review.audit import AUDITOR, LEDGER, audit_desk, draw, judged_choices
from cardiolens.curation.review.desk import Desk, review_server
from cardiolens.curation.review.people import People, Person
from cardiolens.curation.review.queue import Ledger
from cardiolens.show.notebook.run import read_run
from cardiolens.storage.places import Run

from .conftest import Seen, findings_of_axe, watch

pytestmark = pytest.mark.full
PEOPLE = People({"t" * 32: Person(AUDITOR, "reader")})


@pytest.fixture
def desk(run: Run, tmp_path: Path) -> Iterator[Desk]:
    finished = read_run(run.root)
    sample = draw(judged_choices(finished), 20, seed=1)
    with closing(Ledger(tmp_path / LEDGER)) as ledger:
        yield audit_desk(finished, sample, ledger, PEOPLE.key)


@pytest.fixture
def address(desk: Desk) -> Iterator[str]:
    with running(review_server(desk, PEOPLE)) as server:
        yield f"{server.address}{'t' * 32}/"


def progress(page: Page, done: int) -> None:
    expect(page.locator("#progress")).to_contain_text(f"{done} done")


def ours(run: Run, desk: Desk) -> set[str]:
    """What the rules made of the replies, as it would stand in anything that told it."""
    of_sample = {(item.digest, item.qa_id) for item in desk.queue.items.values()}
    rows = [row for row in judged_choices(read_run(run.root)) if (row["arm_id"], row["qa_id"]) in of_sample]
    assert rows
    names = {str(row[key]) for row in rows for key in ("parse_status", "rule", "arm_id") if row.get(key)}
    return {f'"{name}"' for name in names - {"none"}} | {'"parsed"', '"parse_status"', '"model"'}


def test_replies_are_decided_by_keys_and_nothing_tells_our_reading(
    browser: Browser, run: Run, desk: Desk, address: str
) -> None:
    seen, answered, bodies = Seen(), list[Response](), list[bytes]()
    context = browser.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    watch(page, seen)

    def note(response: Response) -> None:
        answered.append(response)

    def keep() -> None:
        """The browser forgets what a page was sent when it is left."""
        while answered:
            bodies.append(answered.pop().body())

    page.on("response", note)
    page.goto(address)
    progress(page, 0)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    first = next(iter(desk.queue.items.values()))
    expect(page.locator("#reply")).to_have_text(first.reply)
    page.keyboard.press("a")
    if first.is_multi:
        page.keyboard.press("Enter")
    progress(page, 1)
    page.keyboard.press("0")
    progress(page, 2)
    page.keyboard.press("Backspace")
    progress(page, 1)
    keep()
    page.reload()
    progress(page, 1)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert findings_of_axe(page) == []
    keep()
    served = b"\n".join(bodies).decode()
    context.close()
    assert len(bodies) > 6
    assert not [name for name in ours(run, desk) if name in served]
    assert desk.queue.done(AUDITOR) == 1
    assert seen == Seen()
