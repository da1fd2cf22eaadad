"""The leaderboard in a browser: the address holds filters and order, and CSV is what is shown."""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page

from cardiolens.show.leaderboard.leaderboard_page import write_leaderboard
from cardiolens.show.page.page_data import read_facts
from cardiolens.storage.places import Run

from .conftest import findings_of_axe, opened_at

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def board(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("board") / "leaderboard.html"
    write_leaderboard(out, read_facts(run, [run]))
    return out


@pytest.fixture
def opened(context: BrowserContext, board: Path) -> Iterator[Page]:
    with opened_at(context, board.as_uri(), "html[data-drawn]") as page:
        yield page


def rows(page: Page) -> list[list[str]]:
    return [row.locator("td").all_inner_texts() for row in page.locator("#models tbody tr").all()]


def test_filters_and_order_stand_in_the_address(opened: Page, board: Path) -> None:
    first = rows(opened)
    assert {row[2] for row in first} == {"headline"}, "what is ranked is shown first"
    opened.select_option("[data-filter=setting]", "")
    opened.fill("[data-filter=words]", "noisy")
    opened.click("thead button:has-text('setting')")
    shown = rows(opened)
    assert len(shown) > 1
    assert all(row[0].startswith("noisy") for row in shown)
    budgets = [
        int(row[2].partition("budget ")[2].split()[0]) for row in shown if row[2].startswith("clinical")
    ]
    assert budgets == sorted(budgets), "budgets as numbers"
    address = opened.url
    assert address.startswith(f"{board.as_uri()}#")
    opened.goto("about:blank")
    opened.goto(address)
    opened.wait_for_selector("html[data-drawn]")
    assert rows(opened) == shown
    assert opened.input_value("[data-filter=words]") == "noisy"


def test_an_address_that_names_nothing_shows_no_row_and_says_so(opened: Page) -> None:
    opened.evaluate("location.hash = '#setting=nowhere&sort=nothing'")
    opened.wait_for_function("document.querySelectorAll('#models tbody tr').length === 0")
    assert opened.inner_text("#count").startswith("0 of ")


def test_the_highest_and_what_is_not_shown_to_be_lower_are_marked(
    context: BrowserContext, run: Run, tmp_path: Path
) -> None:
    facts = read_facts(run, [run])
    undecided = replace(facts, comparisons=facts.comparisons.slice(0, 0))
    write_leaderboard(tmp_path / "board.html", undecided)
    with opened_at(context, (tmp_path / "board.html").as_uri(), "html[data-drawn]") as page:
        marked = page.locator("#models td.best").all_inner_texts()
        cells = page.locator("#models td.number").filter(has_text=re.compile("highest|not shown to be lower"))
        assert marked == cells.all_inner_texts()
        assert any("not shown to be lower" in text for text in marked)


def test_csv_is_what_is_shown(opened: Page, context: BrowserContext) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened.click("#copy")
    opened.wait_for_selector("text=Copied.")
    copied = list(csv.DictReader(io.StringIO(opened.evaluate("navigator.clipboard.readText()"))))
    shown = rows(opened)
    assert [row["model"] for row in copied] == [row[0] for row in shown]
    assert {row["setting"] for row in copied} == {"headline"}
    assert all(float(row["tier1_low"]) <= float(row["tier1"]) <= float(row["tier1_high"]) for row in copied)


def test_axe_finds_nothing(opened: Page) -> None:
    assert findings_of_axe(opened) == []
