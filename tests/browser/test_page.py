"""The page in Chromium: it shows the numbers of the run, can be used by hand and by keyboard, asks nobody."""

import csv
import io
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from cardiolens.storage.places import Run

from .conftest import MARKUP, assert_fits, findings_of_axe, opened_at

pytestmark = pytest.mark.full

SECTIONS = "landscape questions explored subtasks collapse confidence dependence asked"

MEASURES = ("primary", "primary.skill", "primary.constant")


def opened(page: Page, table: str) -> Any:
    """The block of a table, opened."""
    block = page.locator(f"details[data-of='{table}']").first
    if block.get_attribute("open") is None:
        block.locator("summary").press("Enter")  # a click may miss while charts above are drawn
    block.locator("tbody tr").first.wait_for()
    return block


def open_all(place: Page | Locator) -> None:
    """Open every block below a place, and wait for the tables in them."""
    place.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
    for block in place.locator("details.table").all():
        block.locator("table").wait_for()


def cells(block: Any, column: str) -> list[str]:
    """The text of one column of an open table."""
    heads = block.locator("thead th").all_inner_texts()
    place = heads.index(column) + 1
    return block.locator(f"tbody td:nth-child({place})").all_inner_texts()


def printed(value: float, sign: bool = False) -> str:
    if math.isnan(value):
        return "–"
    text = f"{abs(value):.1f}"
    minus = "−" if value < 0 and text != "0.0" else ""
    return minus + ("+" if sign and value > 0 and text != "0.0" else "") + text


def test_every_section_is_drawn_without_complaint(page: Page) -> None:
    assert (
        page.locator(".sections > section").evaluate_all("all => all.map(one => one.id)") == SECTIONS.split()
    )
    assert page.locator("figure").count() > 8
    assert page.locator(".answer .verdict").count() == 8


def test_differences_of_a_chunk_beside_the_page_are_those_of_the_scores(
    page: Page, run: Run, scores: list[dict[str, Any]]
) -> None:
    assert (run.root / "page" / "arm_scores.js").exists()
    block = opened(page, "arm_scores")
    block.get_by_role("button", name="Show all").click()
    wanted = [
        row["value"]
        for row in scores
        if row["metric"] in MEASURES
        if row["scope"].startswith(("tier:", "sequence:")) and not row["arm_id"].startswith("headline:")
    ]
    shown = block.locator("tbody td[data-value]:nth-child(8)").evaluate_all(
        "all => all.map(cell => Number(cell.dataset.value))"
    )
    assert sorted(shown) == sorted(wanted)


@pytest.mark.parametrize(("width", "media"), [(390, "screen"), (1440, "screen"), (794, "print")])
def test_the_zero_of_a_small_chart_stands_under_its_zero(page: Page, width: int, media: Any) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(media=media)
    distances = page.locator(".answers .ends").evaluate_all(
        """all => all.flatMap(ends => {
            const middle = box => (box.left + box.right) / 2;
            const label = middle(ends.children[1].getBoundingClientRect());
            const zeros = [...ends.parentElement.querySelectorAll(".strip .zero")];
            return zeros.map(zero => middle(zero.getBoundingClientRect()) - label);
        })"""
    )
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": 1440, "height": 900})
    assert distances
    assert max(map(abs, distances)) < 1


def test_every_row_of_a_small_chart_has_a_label_and_the_width_of_the_others(page: Page) -> None:
    cards = page.locator(".answers .answer:has(.strip)")
    assert cards.count() == 6
    for card in cards.all():
        names = card.locator(".strip .name").all_inner_texts()
        assert all(name.strip() for name in names)
        boxes = card.locator(".strip svg").evaluate_all(
            "all => all.map(one => one.getBoundingClientRect()).map(({ left, right }) => [left, right])"
        )
        assert len(names) == len(boxes)
        assert len({tuple(box) for box in boxes}) == 1


def test_readings_differ_in_shape_and_not_in_colour_alone(page: Page) -> None:
    figure = page.locator("#pairs-chart")
    figure.scroll_into_view_if_needed()
    figure.locator(".role-legend-symbol path").first.wait_for()
    shapes = figure.locator(".role-legend-symbol path").evaluate_all(
        "all => all.map(one => one.getAttribute('d'))"
    )
    assert len(shapes) == len(set(shapes)) == 4
    tones = page.locator(".legend .tone").evaluate_all(
        """all => all.map(one => {
            const style = getComputedStyle(one);
            return [style.borderRadius, style.backgroundColor === "rgba(0, 0, 0, 0)"].join();
        })"""
    )
    assert len(tones) == len(set(tones)) == 3


def test_every_section_shows_numbers(page: Page) -> None:
    for name in SECTIONS.split():
        section = page.locator(f"#{name}")
        open_all(section)
        assert section.locator("td[data-value]").count() > 0, name
    assert "NaN" not in page.inner_text("main")


def test_a_chart_has_a_mark_for_each_row_of_its_choice(page: Page, scores: list[dict[str, Any]]) -> None:
    headlines = [row for row in scores if row["arm_id"].startswith("headline:")]
    wanted = [row for row in headlines if row["metric"] == "primary"]
    expect(page.locator("#landscape-score .mark-symbol.role-mark path")).to_have_count(len(wanted))
    tiers = page.locator("#landscape-score .role-legend-label text")
    expect(tiers).to_have_count(len({row["scope"] for row in wanted}))
    assert wanted


def test_a_tooltip_says_what_the_table_says(context: BrowserContext, run: Run, tmp_path: Path) -> None:
    """An undefined end of an interval is a dash, and not zero."""

    def undefined(found: re.Match[str]) -> str:
        table = json.loads(found[2])
        names = [name for name, *_ in table["columns"]]
        for row in table["rows"]:
            row[names.index("low")] = row[names.index("high")] = None
        return found[1] + json.dumps(table)

    text = run.page.read_text()
    text, n_tables = re.subn(r'(data-table="headlines">)(.*)(?=</script>)', undefined, text)
    assert n_tables == 1
    (tmp_path / "index.html").write_text(text)
    page = context.new_page()
    page.goto((tmp_path / "index.html").as_uri())
    page.locator("#landscape-score .mark-symbol.role-mark path").first.hover()
    expect(page.locator("#tip")).to_contain_text("95 % CI from \N{EN DASH}to \N{EN DASH}")
    page.close()


def test_a_chart_that_cannot_be_drawn_says_why(context: BrowserContext, run: Run) -> None:
    page = context.new_page()
    page.goto(run.page.as_uri())
    page.evaluate("() => { vega.View = class { constructor() { throw new Error('no canvas'); } }; }")
    figure = page.locator("#pairs-chart")
    figure.scroll_into_view_if_needed()
    expect(figure.locator(".drawing")).to_have_text("no canvas")
    page.close()


def test_a_choice_redraws_its_chart(page: Page) -> None:
    figure = page.locator("#pairs-chart")
    figure.scroll_into_view_if_needed()
    figure.locator(".vega svg").wait_for()
    marks = figure.locator(".mark-symbol.role-mark")
    before = marks.inner_html()
    figure.locator("[data-choice='scope']").select_option(label="Tier 3 · diagnosis")
    page.wait_for_function(
        "([node, before]) => node.querySelector('.mark-symbol.role-mark')?.innerHTML !== before",
        arg=[figure.element_handle(), before],
    )


def test_a_table_is_searched(page: Page) -> None:
    block = opened(page, "pairs")
    every = block.locator("tbody tr").count()
    block.get_by_role("searchbox").fill("tier 3")
    assert set(cells(block, "on")) == {"Tier 3 · diagnosis"}
    assert block.locator("tbody tr").count() < every


def test_a_saved_table_has_every_digit(page: Page, scores: list[dict[str, Any]]) -> None:
    block = opened(page, "headlines")
    with page.expect_download() as download:
        block.get_by_role("button", name="Save CSV").click()
    assert download.value.suggested_filename.endswith("-headlines.csv")
    rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text())))
    wanted = [
        row["value"] for row in scores if row["arm_id"].startswith("headline:") if row["metric"] in MEASURES
    ]
    assert sorted(float(row["value"]) for row in rows) == sorted(wanted)


def test_the_grid_of_subtasks_is_sorted_by_a_model(page: Page) -> None:
    page.locator("#subtask-grid").scroll_into_view_if_needed()
    grid = page.locator("#subtask-grid .drawing table")
    grid.locator("tbody tr").first.wait_for()
    head = grid.locator("thead th").nth(2)
    for direction in ("descending", "ascending"):
        head.get_by_role("button").click()
        assert head.get_attribute("aria-sort") == direction
        values = [float(text) for text in grid.locator("tbody td:nth-child(3)").all_inner_texts()]
        assert values == sorted(values, reverse=direction == "descending")


def test_confusion_matrices_count_every_answer(page: Page) -> None:
    page.locator("#confusion").scroll_into_view_if_needed()
    grid = page.locator("#confusion .drawing table")
    grid.locator("td.cell").first.wait_for()
    counted = grid.locator("td.cell").evaluate_all(
        "all => all.reduce((sum, cell) => sum + Number(cell.dataset.value), 0)"
    )
    assert counted == 21


def test_a_table_is_opened_and_sorted_with_the_keyboard(page: Page) -> None:
    block = page.locator("details[data-of='headlines']").first
    block.locator("summary").focus()
    page.keyboard.press("Enter")
    block.locator("tbody tr").first.wait_for()
    block.locator("thead button").first.focus()
    page.keyboard.press("Space")
    assert block.locator("thead th").first.get_attribute("aria-sort") == "ascending"


def test_markup_in_a_name_is_text(page: Page) -> None:
    assert MARKUP in page.inner_text("main")
    assert page.locator("main b").count() == 0
    assert page.evaluate("window.harmed") is None


@pytest.mark.parametrize("width", [360, 768, 1920])
def test_nothing_is_wider_than_the_screen(page: Page, width: int) -> None:
    assert_fits(page, width)
    page.set_viewport_size({"width": 1440, "height": 900})


@pytest.mark.parametrize(
    ("width", "columns"),
    [(360, [1] * 4), (420, [1] * 4), (700, [2] * 4), (1000, [2] * 4), (1440, [5, 3, 4, 4])],
)
def test_cards_have_the_columns_that_the_screen_has_room_for(
    page: Page, width: int, columns: list[int]
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    counted = page.locator(".answers").evaluate(
        """grid => [5, 6, 7, 8].map(number => {
            while (grid.children.length > number) grid.lastElementChild.remove();
            while (grid.children.length < number) grid.append(grid.children[0].cloneNode(true));
            return getComputedStyle(grid).gridTemplateColumns.split(" ").length;
        })"""
    )
    page.set_viewport_size({"width": 1440, "height": 900})
    assert counted == columns


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Browser, run: Run, scheme: str) -> None:
    context = browser.new_context(color_scheme=scheme, bypass_csp=True)  # axe is not part of the page
    with opened_at(context, run.page.as_uri(), "html[data-drawn]") as page:
        open_all(page)
        assert findings_of_axe(page) == []
    context.close()


def test_on_paper_there_are_charts_and_no_controls(page: Page) -> None:
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert not page.locator("#slice-lines .choices").is_visible()
    assert page.locator("#slice-lines .vega svg").is_visible()
    page.emulate_media(media="screen")
