"""The page of decisions in Chromium, and attacks on its server."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from running_server import running

from cardiolens.config.curation_specs import IngestSpec
from cardiolens.curation.ingest.confirm_server import Desk, desk_server, read_imported
from cardiolens.curation.ingest.decisions import Ledger, read_decisions
from cardiolens.curation.ingest.import_run import ingest
from tests.unit.curation.ingest.exports import CURRENT, LGE, NORMAL, SHORT_AXIS, healthy, series
from tests.unit.curation.ingest.test_first_pass_confirmed import export as export_of_first_pass

from .conftest import Seen, findings_of_axe, settle, watch

pytestmark = pytest.mark.full

MARKUP = "<img src=x onerror='window.harmed=1'><script>window.harmed=1</script>"


@dataclass
class Served:
    """A page of decisions that is served, and what it is of."""

    root: Path
    desk: Desk
    address: str

    @property
    def port(self) -> int:
        return int(self.address.split(":")[2].split("/", maxsplit=1)[0])

    def decided(self) -> dict[str, dict[str, dict]]:
        """What the file says by study and series."""
        found: dict[str, dict[str, dict]] = {}
        decisions = read_decisions(self.root / "decisions.jsonl")
        for study_id, stacks in self.desk.studies.items():
            numbers = {stack: each["series"][0] for stack, each in stacks.items()}
            choices = decisions.of(study_id)
            found[study_id] = {numbers[stack]: each.model_dump() for stack, each in choices.items()}
        return found


def export(folder: Path, studies: int) -> None:
    """Studies with one cine; each third has it twice, each fourth an LGE with a phase-sensitive image."""
    before = CURRENT["study"]
    try:
        for number in range(1, studies + 1):
            CURRENT["study"] = f"1.2.3.{number}"
            own = folder / str(number)
            healthy(own, 10, SeriesDescription=f"cine sax {MARKUP}"[:64])
            if number % 3 == 0:
                healthy(own, 11)
            if number % 4 == 0:
                lge(own, 20, "M")
                lge(own, 21, "P")
    finally:
        CURRENT["study"] = before


def lge(folder: Path, number: int, component: str) -> None:
    frames = (np.indices((6, 1, 32, 32)).sum(axis=0) * number) % 1000
    corners = np.array([k * 8.0 * -NORMAL for k in range(6)])
    told = {"ImageType": ["ORIGINAL", "PRIMARY", component], "SeriesDescription": "LGE sax", **LGE}
    series(folder, frames, corners, number, ImageOrientationPatient=SHORT_AXIS, **told)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("confirm")
    export(root / "export", 12)
    ingest(IngestSpec(source=root / "export", out=root / "out", key=root / "key", threshold=0.99))
    for path in (root / "out").glob("proposals/*/proposals.json"):  # evidence that somebody forged
        tree = json.loads(path.read_text())
        for proposal in tree["proposals"]:
            proposal["witnesses"][0]["evidence"] = MARKUP
        path.write_text(json.dumps(tree))
    return root


@pytest.fixture
def served(imported: Path, tmp_path: Path) -> Iterator[Served]:
    yield from serving(imported / "out", tmp_path)


def serving(out: Path, folder: Path) -> Iterator[Served]:
    """Serve the page of an import; its decisions are in `folder`."""
    desk = Desk(out, read_imported(out), Ledger(folder / "decisions.jsonl"))
    with running(desk_server(desk)) as server:
        yield Served(folder, desk, server.address)
    desk.ledger.close()


@pytest.fixture
def page(context: BrowserContext, served: Served, seen: Seen) -> Iterator[Page]:
    opened = opened_page(context, served, seen)
    yield opened
    opened.close()
    assert seen == Seen()


def opened_page(context: BrowserContext, served: Served, seen: Seen) -> Page:
    opened = context.new_page()
    watch(opened, seen)
    opened.goto(served.address)
    opened.wait_for_selector("body[data-ready]")
    return opened


def press(page: Page, *keys: str) -> None:
    """Press keys, each of which must be on the disk before the next."""
    for key in keys:
        before = page.evaluate("document.body.dataset.revision + document.body.dataset.study")
        page.keyboard.press(key)
        page.wait_for_function(
            "before => document.body.dataset.revision + document.body.dataset.study !== before", arg=before
        )


def test_twelve_studies_are_confirmed_by_keys(page: Page, served: Served, imported: Path, capsys) -> None:
    presses = 0
    for _ in served.desk.studies:
        study = page.evaluate("document.body.dataset.study")
        page.keyboard.press("Enter")
        presses += 1
        page.wait_for_function(
            "study => document.body.dataset.study !== study || "
            "document.getElementById('message').textContent.startsWith('Every')",
            arg=study,
        )
    expect(page.locator("#progress")).to_contain_text("0 wait")
    assert presses == 12, "one press a study where every proposal is right"
    decided = served.decided()
    assert all(choices for choices in decided.values())
    out = served.root / "out"
    decisions = served.root / "decisions.jsonl"
    spec = {"source": imported / "export", "out": out, "key": imported / "key", "threshold": 1.0}
    assert ingest(IngestSpec(decisions=decisions, **spec)) == 0
    told = capsys.readouterr().out
    assert f"decisions: {sum(map(len, decided.values()))} applied, 0 refused, 0 fit nothing" in told
    assert "waiting for a person" not in told
    assert len(list((out / "studies").iterdir())) == 12


def test_every_key_is_on_the_disk_at_once_and_is_taken_back(page: Page, served: Served) -> None:
    study = page.evaluate("document.body.dataset.study")

    def now() -> dict:
        return next(iter(served.decided()[study].values()), {})

    press(page, "a")
    first = now()
    press(page, "3")
    assert now() == {**first, "view": "3ch"}
    press(page, "1", "r")
    assert now() == {**first, "along_normal": not first["along_normal"]}
    page.keyboard.press("t")
    assert page.locator("figure canvas[aria-label^=turn]").count() == 8
    press(page, "8")
    assert now()["display"] == {"transpose": False, "flip_rows": False, "flip_cols": False}
    page.keyboard.press(" ")
    page.evaluate("at.phase = 3")
    page.keyboard.press(",")
    press(page, "d")
    page.keyboard.press("s")
    expect(page.locator("#message")).to_contain_text("same phase")
    page.keyboard.press(".")
    press(page, "s")
    assert (now()["ed_phase"], now()["es_phase"]) == (2, 3)
    press(page, "x")
    assert now()["status"] == "excluded"
    press(page, *"uuuuuuu")
    assert now() == first
    press(page, "u")
    assert now() == {}
    page.keyboard.press("u")
    expect(page.locator("#message")).to_contain_text("no decision is left")


def test_a_first_pass_is_marked_by_its_onset_and_then_its_peak(
    context: BrowserContext, tmp_path: Path, seen: Seen
) -> None:
    export_of_first_pass(tmp_path / "export")
    ingest(IngestSpec(source=tmp_path / "export", out=tmp_path / "out", key=tmp_path / "key"))
    for served in serving(tmp_path / "out", tmp_path):
        page = opened_page(context, served, seen)
        expect(page.locator("#detail")).to_contain_text("The first pass was not found")
        page.keyboard.press("l")
        expect(page.locator("#message")).to_contain_text("press I first")
        page.evaluate("at.phase = 9")
        page.keyboard.press("i")
        expect(page.locator("#message")).to_contain_text("Onset at 10")
        page.evaluate("at.phase = 4")
        page.keyboard.press("l")
        expect(page.locator("#message")).to_contain_text("before the onset")
        assert served.decided() == {next(iter(served.desk.studies)): {}}
        page.evaluate("at.phase = 15")
        press(page, "l")
        [marked] = served.decided()[next(iter(served.desk.studies))].values()
        assert (marked["sequence"], marked["t_on"], marked["t_peak"]) == ("perfusion", 9, 15)
        expect(page.locator("#detail")).to_contain_text("onset: 10")
        expect(page.locator("#detail")).to_contain_text("peak: 16")
        press(page, "u")
        [decided] = served.decided().values()
        assert decided == {}
        page.close()
    assert seen == Seen()


def test_of_two_rivals_one_is_chosen_and_the_refusal_says_how(page: Page, served: Served) -> None:
    for _ in range(11):
        if page.locator(".card").count() == 4:
            break
        press(page, "ArrowRight")
    assert page.locator(".card").count() == 4
    study = page.evaluate("document.body.dataset.study")
    press(page, "a")
    rival = page.locator(".card.left_out").first
    rival.click()
    page.get_by_role("button", name="accept this series").click()
    expect(page.locator("#message")).to_contain_text("C takes this one instead")
    press(page, "c")
    assert len(served.decided()[study]) == 1


def test_two_tabs_do_not_decide_over_each_other(
    page: Page, context: BrowserContext, served: Served, seen: Seen
) -> None:
    other, complaints = context.new_page(), Seen()
    watch(other, complaints)
    other.goto(served.address)
    other.wait_for_selector("body[data-ready]")
    press(page, "a")
    other.keyboard.press("x")
    expect(other.locator("#message")).to_contain_text("decided on elsewhere")
    assert [each["status"] for each in served.decided()[next(iter(served.desk.studies))].values()] == [
        "confirmed"
    ]
    press(other, "x")
    assert [each["status"] for each in served.decided()[next(iter(served.desk.studies))].values()] == [
        "excluded"
    ]
    other.close()
    assert complaints.abroad == []


def test_keys_that_do_not_wait_for_the_server_all_count(page: Page, served: Served) -> None:
    study = page.evaluate("document.body.dataset.study")
    one = served.desk.studies[study][page.evaluate("shown().stack")]
    found = one["entry"]["display_transform"]
    page.evaluate("async () => { [...'hvvr', 'ArrowRight'].forEach(press); await waiting; }")
    [decided] = served.decided()[study].values()
    assert decided["display"] == found | {"flip_cols": not found["flip_cols"]}
    assert decided["along_normal"] != one["along_normal"]


def test_enter_goes_on_whatever_the_last_message_was(page: Page) -> None:
    study = page.evaluate("document.body.dataset.study")
    page.keyboard.press("e")
    expect(page.locator("#message")).to_contain_text("other studies")
    page.keyboard.press("Enter")
    expect(page.locator("body")).not_to_have_attribute("data-study", study)


def test_what_the_server_cannot_do_is_said(context: BrowserContext, served: Served) -> None:
    page, fails = context.new_page(), ["**/studies.json", "**/decide", "**/sheets/**"]
    for address in fails:
        page.route(address, lambda route: route.fulfill(status=500, body="internal server error"))
    page.goto(served.address)
    expect(page.locator("#message")).to_contain_text("The studies cannot be read")
    page.unroute(fails[0])
    page.reload()
    expect(page.locator(".card .state").first).to_contain_text("picture cannot be read")
    page.get_by_role("button", name="exclude").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#message")).to_contain_text("Not done: the server failed")
    page.unroute(fails[1])
    page.get_by_role("button", name="exclude").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".card.focused")).to_have_attribute("data-state", "excluded")
    page.close()


def large_picture(page: Page) -> str:
    """What is drawn of the phase that is held."""
    page.wait_for_function("shown().sheet.complete")
    settle(page)
    return str(page.locator("#detail > canvas").evaluate("canvas => canvas.toDataURL()"))


def test_the_mouse_does_what_keys_do_and_words_are_text(page: Page, served: Served) -> None:
    page.get_by_role("button", name="keys").click()
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#help").is_visible()
    assert MARKUP in page.locator("#detail").inner_text()
    assert page.evaluate("window.harmed") is None
    assert page.locator("main img, main script").count() == 0
    page.get_by_role("button", name="exclude").click()
    expect(page.locator(".card.focused")).to_have_attribute("data-state", "excluded")
    page.get_by_role("button", name="eight pictures").click()
    page.keyboard.press(" ")
    before = large_picture(page)
    page.locator("canvas[aria-label='turn 8']").click()
    expect(page.locator(".card.focused")).to_have_attribute("data-state", "confirmed")
    assert large_picture(page) != before


def test_axe_finds_nothing(browser: Browser, served: Served) -> None:
    context = browser.new_context(bypass_csp=True)
    page = opened_page(context, served, Seen())
    page.keyboard.press("t")
    assert findings_of_axe(page) == []
    page.keyboard.press("?")
    assert findings_of_axe(page) == []
    context.close()
