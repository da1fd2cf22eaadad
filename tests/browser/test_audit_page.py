"""The page of an audit in Chromium: replies by keys, a reload, a narrow screen, nothing of our reading."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Response, expect
from running_server import running

from cardiolens.curation.review.audit import LEDGER, AuditDesk, audit_server
from cardiolens.curation.review.replies import draw, judged_choices, shown_replies
from cardiolens.show.notebook.run import read_run
from cardiolens.storage.places import Run

from .conftest import Seen, findings_of_axe, watch

pytestmark = pytest.mark.full


@pytest.fixture
def desk(run: Run, tmp_path: Path) -> Iterator[AuditDesk]:
    finished = read_run(run.root)
    sample = draw(judged_choices(finished), 20, seed=1)
    views = shown_replies(finished, [one.place for one in sample.replies])
    with closing(AuditDesk(sample, views, tmp_path / LEDGER)) as desk:
        yield desk


@pytest.fixture
def address(desk: AuditDesk) -> Iterator[str]:
    with running(audit_server(desk)) as server:
        yield server.address


def progress(page: Page, text: str) -> None:
    expect(page.locator("#progress")).to_have_text(text)


def ours(run: Run, desk: AuditDesk) -> set[str]:
    """What the rules made of the replies, as it would stand in anything that told it."""
    of_sample = {(one.arm_id, one.qa_id) for one in desk.sample.replies}
    rows = [row for row in judged_choices(read_run(run.root)) if (row["arm_id"], row["qa_id"]) in of_sample]
    assert rows
    fields = ("parse_status", "parse_rule", "arm_id")
    names = {str(row[key]) for row in rows for key in fields if row.get(key)}
    return {f'"{name}"' for name in names} | {'"parsed"', '"parse_status"', '"answer"', '"model"'}


def test_three_replies_are_decided_by_keys_and_nothing_tells_our_reading(
    browser: Browser, run: Run, desk: AuditDesk, address: str
) -> None:
    seen, bodies = Seen(), list[bytes]()
    context = browser.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    watch(page, seen)

    def keep(response: Response) -> None:
        bodies.append(response.body())

    page.on("response", keep)
    page.goto(address)
    of = len(desk.sample.replies)
    progress(page, f"0 of {of} read")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.keyboard.press("Enter")
    expect(page.locator("#message")).to_contain_text("choose an option")
    first = desk.state(0)["options"][0][0]
    page.keyboard.press(first.lower())
    expect(page.locator("#options button[aria-pressed=true]")).to_have_count(1)
    page.keyboard.press("Enter")
    progress(page, f"1 of {of} read")
    page.keyboard.press("0")
    progress(page, f"2 of {of} read")
    page.keyboard.press(desk.state(2)["options"][1][0])
    page.keyboard.press("Enter")
    progress(page, f"3 of {of} read")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.reload()
    progress(page, f"3 of {of} read")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#options button[aria-pressed=true]")).to_have_count(1)
    assert findings_of_axe(page) == []
    served = b"\n".join(bodies).decode()
    context.close()
    assert len(bodies) > 8
    assert not [name for name in ours(run, desk) if name in served]
    kept = [json.loads(line) for line in desk.path.read_text(encoding="utf-8").splitlines()]
    assert len(kept) == 3
    assert seen == Seen()
