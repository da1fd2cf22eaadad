"""The whole study in Chromium: what is drawn, in which order, where lines stand, what was missed."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import small_cohort
from page_run import finished
from playwright.sync_api import BrowserContext, Page, expect
from running_server import running
from small_cohort import make_cohort, reader, sweep_spec, volume_row
from whole_studies import rendered_cohort, rendered_spec

from cardiolens.commands.view import served_of
from cardiolens.config.sweep import SweepSpec
from cardiolens.show.page.case_viewer.item_sources import Sources, open_sources
from cardiolens.show.page.case_viewer.viewer_server import Viewer, viewer_server
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run
from cardiolens.study.shards import pixel_digest

from .conftest import assert_fits, findings_of_axe, opened_at, settle

pytestmark = pytest.mark.full

SIDE = 160  # pixels
CINES = {"cine_sax": (10, 30), "cine_4ch": (1, 120), "lge_sax": (10, 1)}  # slices, phases
FRAMES = 120
BLANK: dict[str, Any] = {"control": ["none", "blank"]}

DRAWN = """(canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return [canvas.width, canvas.height, [...data].filter((_, at) => at % 4 === 0)];
}"""
SCROLL = """async (times) => {
  const port = document.querySelector(".port[data-active]");
  const canvas = port.querySelector("canvas");
  const drawn = [];
  while (drawn.length < times) {
    const notch = new WheelEvent("wheel", { deltaY: 100, bubbles: true, cancelable: true });
    port.querySelector(".box").dispatchEvent(notch);
    await new Promise(requestAnimationFrame);
    drawn.push([canvas.dataset.frame, canvas.getContext("2d").getImageData(4, 4, 1, 1).data[0]]);
  }
  return drawn;
}"""


def narrowed(view: str, pixels: np.ndarray) -> list[np.ndarray]:
    """Images of several sizes, as those of a case are."""
    return [
        frame[:, : SIDE // 2] if view == "lge_sax" and idx % 2 else frame for idx, frame in enumerate(pixels)
    ]


def cine_rows(name: str, view: str, slices: int, phases: int) -> pa.Table:
    """Frames of noise, whose corner holds their index; images of late enhancement differ in width."""
    dice = np.random.default_rng(len(name) + len(view))
    pixels = dice.integers(0, 256, (slices * phases, SIDE, SIDE), dtype=np.uint8)
    pixels[:, :8, :8] = (np.arange(slices * phases) % 251)[:, None, None]
    rows: list[dict[str, object]] = [
        {
            **{"study_id": name, "volume_id": view, "idx": idx},
            **{"slice": idx // phases, "phase": idx % phases},
            **{"height": SIDE, "width": frame.shape[1], "channels": 1, "pixels": frame.tobytes()},
            "digest": pixel_digest(frame.tobytes(), SIDE, frame.shape[1], 1),
        }
        for idx, frame in enumerate(narrowed(view, pixels))
    ]
    return tables.from_rows(rows, schemas.FRAMES)


def answered(spec: SweepSpec) -> Run:
    """A finished run; made in a thread of its own, as Playwright holds the event loop of this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(finished, spec).result()


@pytest.fixture(scope="module")
def cine_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_cohort, "VIEWS", CINES)
        patch.setattr(small_cohort, "frame_rows", cine_rows)
        patch.setattr(
            small_cohort, "volume_row", lambda *of: volume_row(*of) | {"height": SIDE, "width": SIDE}
        )
        root = make_cohort(tmp_path_factory.mktemp("cines"), 3)
        return answered(sweep_spec(root, reader("noisy", error=0.3), name="cines", subtask=["C12"], **BLANK))


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Run:
    root = rendered_cohort(tmp_path_factory.mktemp("rendered"), "PH-ICM-LAD")
    return answered(rendered_spec(root, store=root / "store"))


@contextmanager
def opened(context: BrowserContext, run: Run) -> Iterator[Page]:
    """The served viewer of a run."""
    with (
        running(viewer_server(served_of([run]))) as server,
        opened_at(context, server.address, "#case[data-opened]") as page,
    ):
        page.locator("main").focus()
        yield page


@pytest.fixture
def study(context: BrowserContext, rendered: Run) -> Iterator[Page]:
    """The whole study of a rendered phantom, opened at a question about its scar."""
    with opened(context, rendered) as page:
        page.locator("[data-filter='subtask']").select_option("L02")
        expect(page.locator("#case h2")).to_contain_text("L02 levels")
        page.locator("main").focus()
        open_whole(page)
        yield page


def open_whole(page: Page) -> None:
    """Open the whole study of a rendered phantom, and wait until all of it is drawn."""
    page.keyboard.press("v")
    expect(page.locator(".port[data-active] canvas")).to_have_attribute("data-frame", re.compile("."))
    expect(page.locator(".lane")).to_have_count(6)  # what the other selectors sent comes later
    wait_for_views(page)


_BLOCK = re.compile(r"([^/]+)-\d+-\d+\.png$")  # of phases of a slice; `cine_4ch-0.png` is a single frame


def caption(page: Page) -> str:
    return page.locator(".port[data-active] .caption").inner_text()


def frame_shown(page: Page) -> str:
    return str(page.locator(".port[data-active] canvas").get_attribute("data-frame"))


def press(page: Page, *keys: str) -> str:
    """Press keys one by one, each drawn before the next; the frame that stands at the end."""
    for key in keys:
        page.keyboard.press(key)
        wait_for_views(page)
    return frame_shown(page)


def wait_for_views(page: Page) -> None:
    """Wait until what was asked for is drawn."""
    settle(page)
    expect(page.locator(".port[data-waiting]")).to_have_count(0)


def test_the_frames_shown_first_are_fetched_first(context: BrowserContext, cine_run: Run) -> None:
    """One frame of each volume comes before a second of any: seconds would be those of the machine."""
    with opened(context, cine_run) as page:
        page.locator("[data-filter='subtask']").select_option("C12")
        expect(page.locator("#list li")).to_have_count(3)
        page.locator("main").focus()
        for _ in range(3):
            asked: list[str] = []
            page.on("request", lambda request, asked=asked: asked.append(request.url))
            page.keyboard.press("v")
            page.locator(".port[data-active] canvas[data-frame]:not([data-frame=''])").wait_for()
            expect(page.locator(".port[data-waiting]")).to_have_count(0)
            blocks = [block for url in asked if (block := _BLOCK.search(url))]  # stills of the list come late
            assert {block[1] for block in blocks[: len(CINES)]} == CINES.keys()
            page.keyboard.press("v")
            page.keyboard.press("j")
            expect(page.locator(".study")).to_have_count(0)


def test_a_cine_of_120_frames_scrolls_without_a_gap(context: BrowserContext, cine_run: Run) -> None:
    """Each frame asked for is drawn with its own pixels at the next picture of the screen."""
    with opened(context, cine_run) as page:
        page.locator("[data-filter='subtask']").select_option("C12")
        page.locator("main").focus()
        page.keyboard.press("v")
        view = page.locator(".port", has=page.locator("option:checked[value='cine_4ch']"))
        view.locator("canvas").click()
        expect(page.locator(".port[data-active] canvas")).to_have_attribute("data-frame", re.compile("4ch"))
        page.evaluate(SCROLL, FRAMES // 2)  # into the other of the two pictures that hold the loop
        wait_for_views(page)
        start = int(frame_shown(page).split()[1])
        drawn = page.evaluate(SCROLL, FRAMES)
        names = [int(name.split()[1]) for name, _ in drawn]
        assert names == [(start + at + 1) % FRAMES for at in range(FRAMES)]
        assert [grey for _, grey in drawn] == names


def test_frames_that_were_shown_black_are_black(context: BrowserContext, cine_run: Run) -> None:
    (label,) = [
        arm.control for arm in open_sources(cine_run, [cine_run]).header.arms if arm.control != "none"
    ]
    with opened(context, cine_run) as page:
        option = page.locator("[data-filter='first'] option", has_text=label)
        page.locator("[data-filter='first']").select_option(str(option.get_attribute("value")))
        expect(page.locator(".verdict-box").first).to_contain_text("every frame shown black")
        filters = page.locator(".stage img").evaluate_all(
            "all => all.map(one => getComputedStyle(one).filter)"
        )
        assert len(filters) == 9
        assert set(filters) == {"brightness(0)"}
        page.locator("main").focus()
        page.keyboard.press("v")
        expect(page.locator(".lane").first).to_contain_text("every frame was shown black")
        expect(page.locator(".port[data-sent]")).to_have_count(0)


def test_wheel_moves_slices_and_with_shift_phases(context: BrowserContext, cine_run: Run) -> None:
    with opened(context, cine_run) as page:
        page.locator("[data-filter='subtask']").select_option("C12")
        page.locator("main").focus()
        page.keyboard.press("v")
        box = page.locator(".port", has=page.locator("option:checked[value='cine_sax']")).locator(".box")
        box.locator("canvas").click()
        expect(page.locator(".port[data-active] canvas")).to_have_attribute("data-frame", re.compile("sax"))

        def wheel(**event: Any) -> int:
            box.evaluate("(box, event) => box.dispatchEvent(new WheelEvent('wheel', event))", event)
            wait_for_views(page)
            return int(frame_shown(page).split()[1])

        start = int(frame_shown(page).split()[1])
        assert wheel(deltaY=100) == start + 30
        assert wheel(deltaY=1, deltaMode=1) == start + 60
        assert wheel(deltaY=-100) == start + 30
        assert wheel(deltaX=100, shiftKey=True) == start + 31
        assert [wheel(deltaY=20) for _ in range(5)] == [start + at for at in (31, 31, 61, 61, 91)]
        for _ in range(12):
            last = wheel(deltaY=100)
        assert last == 271 + start % 30  # the last slice: a stack ends, and does not go round
        assert press(page, "ArrowLeft", "ArrowLeft").endswith(str(270 + (start - 1) % 30))


def test_an_unsent_slice_is_one_key_from_the_next_sent_one(study: Page, rendered: Run) -> None:
    press(study, "ArrowDown")
    while "not sent" not in caption(study):
        press(study, "ArrowDown")
    before = frame_shown(study)
    assert press(study, "n") != before
    assert "sent by clinical budget 4" in caption(study)
    assert study.locator(".port[data-active]").get_attribute("data-sent") is not None
    own = json.loads(study.evaluate("JSON.stringify([...document.querySelectorAll('.lane')].length)"))
    assert own == 6
    seen = {press(study, "n") for _ in range(4)}
    assert len(seen) == 4
    assert press(study, "p") in seen


def test_views_are_linked_by_level_and_lines_show_where(study: Page) -> None:
    views = study.locator(".port select").evaluate_all("all => all.map(one => one.value)")
    assert views[0] == "lge_sax"
    assert study.locator(".port[data-active] .lines line.here").count() >= 2
    long_axis = study.locator(".port").nth(1).locator(".lines line.here")
    first = long_axis.first.get_attribute("y1")
    slice_before = frame_shown(study)
    assert press(study, "ArrowDown") != slice_before
    assert long_axis.first.get_attribute("y1") != first
    assert study.locator(".lines line.sent").count() > 0
    study.locator(".port").nth(3).locator("select").select_option("cine_sax")
    press(study, "1", "ArrowUp", "ArrowUp")
    at = int(frame_shown(study).split()[1])
    cine = study.locator(".port").nth(3).locator("canvas").get_attribute("data-frame")
    phases = len(study.locator(".port").nth(3).locator(".caption").inner_text()) and int(
        re.findall(r"phase \d+ of (\d+)", study.locator(".port").nth(3).locator(".caption").inner_text())[0]
    )
    assert int(str(cine).split()[1]) // phases == at
    press(study, "l", "ArrowDown")
    assert study.locator(".port").nth(3).locator("canvas").get_attribute("data-frame") == cine


def test_selectors_stand_side_by_side_with_what_they_sent(study: Page, rendered: Run) -> None:
    sources = open_sources(rendered, [rendered])
    place = next(at for at in range(sources.questions.num_rows) if sources.qa_id(at).endswith(":L02"))
    lanes = Viewer(sources).content(f"sent/{place}/0.js")
    assert isinstance(lanes, list)
    labels = study.locator(".lane canvas").evaluate_all("all => all.map(one => one.ariaLabel)")
    for lane, label in zip(lanes, labels, strict=True):
        slices = sorted(idx + 1 for volume, idx in lane["frames"] if volume == "lge_sax")
        named = [int(number) for number in re.findall(r"slice (\d+)", label)]
        assert label.startswith(f"{lane['selector']} budget {lane['budget']}: ")
        assert named == slices
    study.locator(".lane canvas").first.click(position={"x": 2, "y": 2})
    expect(study.locator(".port[data-active] canvas")).to_have_attribute("data-frame", "lge_sax 0")


def test_what_shows_the_answer_is_found_and_told(study: Page) -> None:
    press(study, "g")
    assert "shows the answer" in caption(study)
    assert re.match("(All|Some|No) ", study.locator(".shown").first.inner_text())
    study.locator("[data-filter='subtask']").select_option("C12")
    expect(study.locator(".study")).to_contain_text("No slices are named that show the answer")


def letters(sources: Sources, arm: int) -> tuple[str, str]:
    shown = Viewer(sources).content(f"shown/{arm}.js")
    assert isinstance(shown, str)
    return sources.endings(arm), shown


def test_misses_are_those_of_the_tables(study: Page, rendered: Run) -> None:
    sources = open_sources(rendered, [rendered])
    study.locator("[data-filter='subtask']").select_option("")
    ended, shown = letters(sources, 0)
    arms = sources.header.arms
    peers = [
        at
        for at, arm in enumerate(arms)
        if (arm.selector, arm.budget, arm.prompt) == (arms[0].selector, arms[0].budget, arms[0].prompt)
    ]
    every = [sources.endings(at) for at in peers]
    counts = {
        letter: sum(end == "w" and state == letter for end, state in zip(ended, shown, strict=True))
        for letter in "spn?"
    }
    counts["all"] = sum(set(ends) == {"w"} for ends in zip(*every, strict=True))
    assert len(peers) == 2
    assert min(counts["?"], sum(counts[letter] for letter in "spn")) > 0
    for name, count in counts.items():
        study.locator("[data-filter='missed']").select_option(name)
        word = "case" if count == 1 else "cases"
        expect(study.locator("#count")).to_have_text(f"{count} {word}")


def test_axe_finds_nothing_serious_in_a_whole_study(context: BrowserContext, rendered: Run) -> None:
    loose = context.browser
    bypassing = loose.new_context(bypass_csp=True)
    with opened(bypassing, rendered) as page:
        open_whole(page)
        assert findings_of_axe(page) == []
        assert_fits(page, 360)
    bypassing.close()


def test_a_picture_that_cannot_be_read_is_said_and_asked_for_once(
    context: BrowserContext, cine_run: Run
) -> None:
    with opened(context, cine_run) as page:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.route(_BLOCK, lambda route: route.fulfill(content_type="image/png", body="no picture"))
        page.keyboard.press("v")
        active = page.locator(".port[data-active]")
        expect(active.locator(".caption")).to_contain_text("cannot be read")
        expect(active.locator("canvas")).to_have_attribute("aria-label", re.compile("cannot be read"))
        page.wait_for_timeout(300)  # while it would be asked for again
        blocks = [url for url in asked if _BLOCK.search(url)]
        assert blocks
        assert len(blocks) == len(set(blocks))
        page.unroute(_BLOCK)
        page.keyboard.press("v")
        page.keyboard.press("v")
        expect(active.locator("canvas")).to_have_attribute("data-frame", re.compile("."))


def test_without_the_studys_folder_no_line_is_drawn_and_the_reason_stands(
    context: BrowserContext, cine_run: Run
) -> None:
    with opened(context, cine_run) as page:
        page.keyboard.press("v")
        expect(page.locator(".study")).to_contain_text("No reference lines and no linked slices for 3 of 3")
        assert page.locator(".lines line").count() == 0


def test_a_folder_that_may_be_passed_on_has_no_whole_study(context: BrowserContext, run: Run) -> None:
    with opened_at(context, (run.viewer / "index.html").as_uri(), "#case[data-opened]") as page:
        page.locator("main").focus()
        page.keyboard.press("v")
        assert page.locator("#whole, .study").count() == 0
    assert not any("slices" in path.name for path in run.viewer.rglob("*"))
