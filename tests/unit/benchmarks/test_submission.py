"""What an arm of MedThinkVQA says in steps before its answer, and its submission."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from chain_cohort import SELF, make_cohort, spec_of
from page_run import write_record
from small_cohort import swept

from cardiolens.base.errors import InputError
from cardiolens.benchmarks.medthinkvqa import records, source_of, submission_problems
from cardiolens.inference.engine.ask import Ask, Engine, Pictures, Reply
from cardiolens.protocol.dialogue.chain_tables import read_chains
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run
from jobs import medthinkvqa
from jobs.medthinkvqa import by_image, explanation_of

N = 5


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_cohort(tmp_path, N)


class Describes(Engine):
    """Reader that describes every image it is shown, and says why before it answers.

    `heading`: of each description; `lost`: how many images it leaves out.
    """

    def __init__(self, heading: str = "Image {}: ", lost: int = 0) -> None:
        self._heading, self._lost = heading, lost

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        step = "3" if "ANSWER" in ask.text else re.findall(r"Step (\d):", ask.text)[-1]
        shown = range(1, len(ask.frame_keys) + 1 - self._lost)
        said = {
            "1": "\n".join(f"{self._heading.format(k)}seen {k}\nand more" for k in shown),
            "2": "all in all",
            "3": "It fits best.\nANSWER: C",
        }
        return Reply(text=said[step], finish_reason="stop", prompt_tokens=10, output_tokens=1)


def submitted(root: Path, reader: Engine, prompt: dict) -> tuple[list[dict], Run]:
    planned, judged = swept(spec_of(root, prompt), reader)
    write_record(planned, judged)
    (arm,) = planned.arms
    path = root / "sent.jsonl"
    words = [f"run={planned.run.root}", f"arm={arm.arm_id}", f"out={path}"]
    assert medthinkvqa.main(["submit", *words]) == 0
    source = source_of(root)
    assert not list(submission_problems(path, source))
    return [record for _, record in records(replace(source, files=(path,)))], planned.run


@pytest.mark.parametrize("heading", ["Image {}: ", "**Image {}:** ", "- image {}. ", "IMAGE #{} - "])
def test_steps_stand_by_the_slots_of_the_images_that_were_shown(root, heading):
    lines, run = submitted(root, Describes(heading), SELF)
    assert read_chains(run.requests("uniform"))
    requests = tables.read(run.requests("uniform"), schemas.REQUESTS).sort_by("study_id").to_pylist()
    some_hidden = False
    for line, request in zip(lines, requests, strict=True):
        steps = line["prediction_twi"]
        found = steps["step1_per_image_findings"]
        assert len(found) == line["image_count"]
        told = [text for text in found if text]
        assert told == [f"seen {k}\nand more" for k in range(1, min(3, line["image_count"]) + 1)]
        shown = [frame["idx"] for frame in request["frames"]]
        assert [place for place, text in enumerate(found) if text] == shown
        some_hidden |= shown != [*range(len(shown))]
        assert steps["step2_integrated_summary"] == "all in all"
        assert steps["step3_differential_reasoning"] == "It fits best.\nANSWER: C"
        assert line["prediction"] == "C"
    assert some_hidden


def test_descriptions_that_do_not_match_the_images_are_left_out_and_said(root, capsys):
    lines, _ = submitted(root, Describes(lost=1), SELF)
    assert {"step1_per_image_findings" in line["prediction_twi"] for line in lines} == {False}
    assert f"step 1 left out of {N} of {N} cases" in capsys.readouterr().out


@pytest.mark.parametrize("control", ["blind", "captions"])
def test_steps_about_images_that_are_not_shown_are_refused(root: Path, control: str) -> None:
    with pytest.raises(InputError, match=f"prompt .* writes about images first, and control {control}"):
        spec_of(root, SELF, control=[control])


def test_words_of_a_reply():
    assert [*map(explanation_of, ("B", " (c). ", "ANSWER: A", "Final answer: D", "answer is e"))] == [""] * 5
    assert explanation_of('{"answer": "B", "explanation": "why"}') == "why"
    assert explanation_of('{"answer": "B"}') == ""
    assert explanation_of("A ring.\nANSWER: B") == "A ring.\nANSWER: B"
    assert explanation_of("Abscess") == "Abscess"


def test_numbers_that_are_not_one_after_the_other_are_no_descriptions():
    assert by_image("Image 1: a\nImage 3: b", 2) is None
    assert by_image("Image 2: a\nImage 1: b", 2) is None
    assert by_image("Image 1: a\nImage 1: b", 2) is None
    assert by_image("As in Image 1: nothing", 1) == ["As in Image 1: nothing"]
    assert by_image("", 1) is None
    assert json.dumps(by_image("Before.\nImage 1: a, see Image 2: b", 1)) == '["a, see Image 2: b"]'
