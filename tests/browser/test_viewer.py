"""The case viewer in Chromium: from the file system with and without frames, and served on loopback."""

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from running_server import running

from cardiolens.commands.view import served_of
from cardiolens.show.page import case_viewer
from cardiolens.show.page.case_viewer.item_sources import open_sources
from cardiolens.show.page.case_viewer.viewer_server import (
    MOST_WORDS,
    Viewer,
    viewer_server,
    write_viewer,
)
from cardiolens.show.page.page_data import read_header
from cardiolens.storage.places import Run

from .conftest import assert_fits, findings_of_axe, opened_at, shown_as_models

pytestmark = pytest.mark.full

ASSETS = Path(case_viewer.__file__).parents[1] / "assets"
OPENED = "#case[data-opened]"
COLLAPSE = "collapse · clinical · budget 8 · standard"


@pytest.fixture
def viewer(context: BrowserContext, run: Run) -> Iterator[Page]:
    """The viewer, opened from the file system."""
    with opened_at(context, (run.viewer / "index.html").as_uri(), OPENED) as opened:
        yield opened


@pytest.fixture
def address(run: Run) -> Iterator[str]:
    """Where the viewer of the run is served."""
    with shown_as_models():
        served = served_of([run])
    with running(viewer_server(served)) as server:
        yield server.address


def choose(page: Page, **filters: str) -> None:
    for name, label in filters.items():
        options = page.locator(f"[data-filter='{name}'] option").all_inner_texts()
        (chosen,) = [text for text in options if text == label or text.startswith(f"{label} ")]
        page.locator(f"[data-filter='{name}']").select_option(label=chosen)


def pixels(page: Page) -> str:
    """What the first stage shows, as drawn."""
    return page.locator(".frame").first.evaluate("image => image.src")


def test_frames_of_an_arm_stand_in_order_with_their_captions(viewer: Page) -> None:
    captions = viewer.locator(".strip button").evaluate_all("all => all.map(one => one.title)")
    assert len(captions) == 8
    assert all(caption.startswith("cine, ") for caption in captions)
    names = viewer.locator(".strip img").evaluate_all("all => all.map(one => one.src)")
    assert len(set(names)) == 8
    drawn = viewer.locator(".strip img").evaluate_all(
        "all => Promise.all(all.map(one => one.decode().then(() => one.naturalWidth)))"
    )
    assert drawn == [2] * 8


def test_frames_are_scrubbed_and_stepped_with_keys(viewer: Page) -> None:
    viewer.locator("main").focus()
    names = [pixels(viewer)]
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        viewer.keyboard.press(key)
        names.append(pixels(viewer))
    assert len(set(names)) == 3
    assert names[1] == names[3]
    viewer.locator(".stage input[type=range]").first.fill("7")
    expect(viewer.locator(".caption").first).to_have_text(re.compile("^8 of 8"))
    viewer.keyboard.press("Tab")


def test_window_level_and_zoom_change_what_is_drawn(viewer: Page) -> None:
    viewer.locator("main").focus()
    viewer.locator(".frame").first.evaluate("image => image.decode()")
    before = viewer.locator(".box").first.screenshot()
    for key in ("s", "s", "d", "d", "+", "+"):
        viewer.keyboard.press(key)
    assert viewer.locator("#window feFuncR").get_attribute("slope") == str(255 / 225)
    assert (
        viewer.locator(".frame")
        .first.evaluate("one => getComputedStyle(one).transform")
        .startswith("matrix(1.5")
    )
    assert viewer.locator(".box").first.screenshot() != before
    viewer.keyboard.press("0")
    assert viewer.locator(".box").first.screenshot() == before


def test_two_arms_stand_side_by_side(viewer: Page) -> None:
    choose(viewer, second=COLLAPSE)
    viewer.locator(".pane").nth(1).wait_for()
    panes = [pane.bounding_box() for pane in viewer.locator(".pane").all()]
    assert len(panes) == 2
    first, second = (pane or {} for pane in panes)
    assert first["y"] == second["y"]
    assert first["x"] + first["width"] <= second["x"]


def test_flips_are_cases_right_under_one_arm_and_wrong_under_the_other(viewer: Page) -> None:
    choose(viewer, second=COLLAPSE, subtask="C10")
    viewer.locator("[data-filter='flips']").check()
    wait_for_labels(viewer, are_flips)
    viewer.wait_for_function(  # the first case of the list is read from its file before it is shown
        "() => [...document.querySelectorAll('.pane .verdict-box .word')].map(one => one.innerText).sort()"
        ".join() === 'right,wrong'"
    )


def test_cases_are_filtered_by_verdict_and_subtask(viewer: Page) -> None:
    choose(viewer, subtask="C10", ended="wrong")
    wait_for_labels(viewer, all_like("C10 .*: wrong"))


def test_a_reply_is_text_and_its_thought_is_folded(viewer: Page) -> None:
    choose(viewer, model="collapse", subtask="C10")
    expect(viewer.locator("#case h2")).to_contain_text("C10")
    reply = viewer.locator(".reply")
    expect(reply).to_contain_text("<img src=x onerror='window.harmed=1'>")
    thought = viewer.locator("details.thought")
    assert not thought.locator("pre").is_visible()
    thought.locator("summary").click()
    assert thought.locator("pre").inner_text() == "I see <b>nothing</b>."
    assert viewer.evaluate("window.harmed") is None
    assert viewer.locator(".reply img, .reply b").count() == 0
    assert "ANSWER" in viewer.locator("details.prompt pre").text_content()


def test_a_report_shows_fields_and_what_was_found(viewer: Page) -> None:
    choose(viewer, subtask="R-CINE")
    viewer.get_by_text("Fields and reference").click()
    assert viewer.locator("table.fields tbody tr").count() == 19
    assert viewer.locator(".sets .hit").count() > 0
    assert viewer.locator(".reply mark.hit").count() > 0


def test_cases_are_walked_with_the_keyboard(viewer: Page) -> None:
    viewer.locator("main").focus()
    first = viewer.locator("#case").get_attribute("data-opened")
    viewer.keyboard.press("j")
    expect(viewer.locator("#case")).not_to_have_attribute("data-opened", str(first))
    viewer.keyboard.press("k")
    expect(viewer.locator("#case")).to_have_attribute("data-opened", str(first))


def without_frames(run: Run, folder: Path) -> Path:
    """The viewer of a copy of a run, which has no frames."""
    copy = Run(folder / "run")
    shutil.copytree(run.verdicts, copy.verdicts)
    write_viewer(copy, [run], read_header(run, [run]), include_images=False)
    return copy.viewer


def test_without_frames_the_viewer_says_so(context: BrowserContext, run: Run, tmp_path: Path) -> None:
    folder = without_frames(run, tmp_path)
    with opened_at(context, (folder / "index.html").as_uri(), OPENED) as page:
        assert "cardiolens.view" in page.inner_text(".stage")
        assert page.locator("img").count() == 0
        assert not (folder / "frames").exists()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Browser, run: Run, scheme: str) -> None:
    context = browser.new_context(color_scheme=scheme, bypass_csp=True)
    with opened_at(context, (run.viewer / "index.html").as_uri(), OPENED) as page:
        choose(page, second=COLLAPSE)
        expect(page.locator(".pane")).to_have_count(2)
        assert findings_of_axe(page) == []
    context.close()


def test_nothing_is_wider_than_a_phone(viewer: Page) -> None:
    assert_fits(viewer, 360)
    viewer.set_viewport_size({"width": 1440, "height": 900})


@pytest.fixture
def served(context: BrowserContext, address: str) -> Iterator[Page]:
    """The viewer as it is served."""
    with opened_at(context, address, OPENED) as opened:
        yield opened


def labels(page: Page) -> list[str]:
    return page.locator("#list button").evaluate_all("all => all.map(one => one.ariaLabel)")


def are_flips(shown: list[str]) -> bool:
    """Whether in each case that is shown just one of two arms is right."""
    return bool(shown) and all(label.partition(": ")[2].split(", ").count("right") == 1 for label in shown)


def all_like(pattern: str) -> Callable[[list[str]], bool]:
    """Whether there are cases, and each has such a label."""
    return lambda shown: bool(shown) and all(re.fullmatch(pattern, label) for label in shown)


def wait_for_labels(page: Page, fits: Callable[[list[str]], bool]) -> None:
    """Wait until the labels of the list fit: it is drawn again some time after a change."""
    until = time.monotonic() + 300
    while not fits(shown := labels(page)):
        assert time.monotonic() < until, shown
        page.wait_for_timeout(50)


def settled(page: Page, words: str) -> None:
    """Wait until the list says how many cases it has."""
    expect(page.locator("#count")).to_have_text(re.compile(words))


def test_the_served_list_is_that_of_the_portable_viewer(served: Page, viewer: Page) -> None:
    for filters, fit in (
        ({"subtask": "C10"}, "C10 [^,]*"),
        ({"ended": "wrong"}, "C10 .*: wrong"),
        ({"second": COLLAPSE}, "C10 .*: wrong, .*"),
    ):
        for page in (served, viewer):
            choose(page, **filters)
            wait_for_labels(page, all_like(fit))
        assert labels(served) == labels(viewer)
        assert served.inner_text("#count") == viewer.inner_text("#count")
    assert "read from its tables" in served.locator("#held").inner_text()
    assert "All" in viewer.locator("#held").inner_text()


def test_what_the_truth_rests_on_is_shown_as_text(context: BrowserContext, run: Run) -> None:
    """Whatever a file says of a verification: names, one name, numbers in place of both."""
    sources = open_sources(run, [run])
    verifications = (
        ({"status": "verified", "by": ["anna", "berta"], "at": "2026-01-02T03:04"}, "2026-01-02"),
        ({"by": "<i>anna</i>", "at": 7}, "7"),
        ({"readers": 2, "by": None}, "by 2 readers"),
    )
    quote = {"text": "<b>LVEF</b> 30 %", "section": "cine"}
    told = {
        qa_id: {
            "origin": "report",
            "quotes": [quote],
            "verification": json.dumps(verifications[at % 3][0]),
            "slices": [],
        }
        for at, qa_id in enumerate(sources.questions["qa_id"].to_pylist())
    }
    served = Viewer(replace(sources, evidence=told))
    with running(viewer_server(served)) as server, opened_at(context, server.address, "main") as page:
        page.locator("main").focus()
        for _, words in verifications:
            expect(page.locator(".grounds summary")).to_have_text(
                re.compile(f"Truth: from report .*{words}$")
            )
            assert "<b>LVEF</b> 30 %" in page.locator(".grounds li").inner_text()
            page.keyboard.press("j")


def test_words_of_replies_are_found_where_the_viewer_is_served(served: Page, viewer: Page) -> None:
    assert viewer.locator("[data-filter='said']").count() == 0
    choose(served, model="collapse", subtask="C10")
    settled(served, "^21 cases$")
    said = served.locator("[data-filter='said']")
    said.fill("No reply has this")
    said.press("Enter")
    settled(served, "^0 cases$")
    said.fill("I see <b>nothing</b>")
    said.press("Enter")
    settled(served, "^21 cases$")
    assert "I see <b>nothing</b>." in str(served.locator("details.thought pre").text_content())
    assert served.evaluate("window.harmed") is None


def test_the_served_viewer_is_used_with_keys_alone(served: Page) -> None:
    served.locator("main").focus()
    arm = served.locator("[data-filter='first']")
    first = arm.input_value()
    served.keyboard.press("]")
    expect(arm).not_to_have_value(first)
    served.keyboard.press("[")
    expect(arm).to_have_value(first)
    served.keyboard.press("}")
    expect(served.locator(".pane")).to_have_count(2)
    served.keyboard.press("f")
    expect(served.locator("[data-filter='flips']")).to_be_checked()
    wait_for_labels(served, are_flips)
    assert "/masks/" in pixels(served)
    served.keyboard.press("m")
    assert "/frames/" in pixels(served)
    assert not served.locator("#masks").is_checked()
    (study,) = set(re.findall(r"PH-\d{4}", labels(served)[0]))
    served.keyboard.press("/")
    served.keyboard.type(study)
    served.keyboard.press("Escape")
    wait_for_labels(served, all_like(f".*{study}.*"))


def test_a_server_that_has_ended_is_named_and_leaves_no_case_of_other_filters(
    context: BrowserContext, run: Run
) -> None:
    with shown_as_models():
        viewer = served_of([run])
    page = context.new_page()
    with running(viewer_server(viewer)) as server:
        page.goto(server.address)
        page.wait_for_selector(OPENED)
        page.locator("[data-filter='model']").focus()
        page.keyboard.press("ArrowDown")
        expect(page.locator("[data-filter='model']")).to_be_focused()
        expect(page.locator("[data-filter='said']")).to_have_attribute("maxlength", str(MOST_WORDS))
        page.keyboard.press("Escape")
    said = page.locator("[data-filter='said']")
    said.fill("nothing")
    said.press("Enter")
    expect(page.locator("main")).to_contain_text("python -m cardiolens.view again")
    assert page.locator("#list li, .pane").count() == 0
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    said.press("Escape")
    for key in ("v", "V", "n", " ", "ArrowRight"):
        page.keyboard.press(key)
    assert complaints == []
    page.close()


@pytest.fixture
def sampled(
    context: BrowserContext, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Page]:
    """A portable viewer that holds a part of the run."""
    monkeypatch.setattr("cardiolens.show.page.case_viewer.viewer_server.MOST_ANSWERS", 500)
    address = (without_frames(run, tmp_path) / "index.html").as_uri()
    with opened_at(context, address, OPENED) as page:
        yield page


def test_a_long_list_is_walked_to_its_end(sampled: Page) -> None:
    (held,) = re.findall(r"A sample: ([\d,]+) of", sampled.inner_text("#held"))
    settled(sampled, f"{held} cases$")
    last = int(held.replace(",", "")) - 1
    press = """times => { for (let at = 0; at < times; at++) document.getElementById("case").dispatchEvent(
        new KeyboardEvent("keydown", { key: "j", bubbles: true })) }"""
    sampled.evaluate(press, last + 5)
    expect(sampled.locator("#list li[data-here]")).to_have_attribute("data-at", str(last))
    sampled.locator("main").focus()
    sampled.keyboard.press("k")
    expect(sampled.locator("#list li[data-here]")).to_have_attribute("data-at", str(last - 1))


def test_every_frame_of_a_video_has_the_words_of_the_video(context: BrowserContext) -> None:
    page = context.new_page()

    def called(file: str, name: str, argument: str) -> object:
        """What a function of the viewer, which keeps it to itself, returns."""
        found = re.search(rf"^function {name}\(.*?^}}", (ASSETS / file).read_text(), re.M | re.S)
        assert found
        return page.evaluate(f"argument => {{ {found[0]}; return {name}(argument); }}", argument)

    text = "Frame 1: late\n\ufffc\nFrames 2 to 4, as a video: cine, phases 1, 2, 3 of 9\n\ufffc\ufffc\ufffc\n"
    captions = called("stage.js", "captions", f"{text}Frame 5:\n\ufffc\nQuestion\n")
    assert captions == ["late", *["video: cine, phases 1, 2, 3 of 9"] * 3, ""]
    unnamed = "Frames 1 to 2, as a video:\n\ufffc\ufffc\n"
    assert called("stage.js", "captions", unnamed) == ["video"] * 2
    assert called("words.js", "flagInWords", "video:1") == "1 video"
    assert called("words.js", "flagInWords", "video:2") == "2 videos"
