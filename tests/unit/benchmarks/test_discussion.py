"""What an arm of MedThinkVQA says: its discussion before the answer, and its submission."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from chain_cohort import DIRECT, SELF, make_cohort, spec_of
from page_run import write_record
from small_cohort import swept

from cardiolens.base.errors import InputError
from cardiolens.benchmarks.medthinkvqa import records, source_of, submission_problems
from cardiolens.inference.engine.ask import Ask, Pictures, Reply
from cardiolens.inference.engine.readers import Reader
from cardiolens.protocol.dialogue.chain_tables import read_chains
from cardiolens.protocol.prompts.case_prompts import SECTIONS, sections_of
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run
from jobs import medthinkvqa
from jobs.medthinkvqa import by_image, explanation_of

N = 5
DISCUSSION = {"name": "discussion", "style": "standard", "max_tokens": 64, "steps": "discussion"}
TEXT = "\n".join(f"{name}:\nIt is {name.lower()}. And more." for name in SECTIONS)


@pytest.mark.parametrize(
    "heading", ["{}:", "{}: ", "**{}**", "**{}:**", "## {}", "### 2. {}", "3) {} :", "- **{}**:", "__{}__"]
)
def test_headings_are_known_in_each_of_their_dresses(heading: str) -> None:
    text = "Here it is.\n" + "\n\n".join(f"{heading.format(name)}\nIt is\nso." for name in SECTIONS)
    assert sections_of(text) == dict.fromkeys(SECTIONS, "It is\nso.")


@pytest.mark.parametrize(
    "names",
    [SECTIONS[:-1], SECTIONS[1:], (*SECTIONS, SECTIONS[0]), (SECTIONS[1], SECTIONS[0], *SECTIONS[2:]), ()],
)
def test_a_text_without_the_six_sections_is_not_split(names: tuple[str, ...]) -> None:
    assert sections_of("\n".join(f"{name}: x." for name in names)) is None


class Teaches(Reader):
    """Reader that discusses a case before its answer; from the second case on it forgets the headings."""

    def __init__(self, finish_reason: str = "stop", refuses: bool = False) -> None:
        self.asked: list[Ask] = []
        self._finish_reason, self._refuses = finish_reason, refuses

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        self.asked.append(ask)
        if "ANSWER" in ask.text:
            return Reply(text="ANSWER: B", finish_reason="stop", prompt_tokens=1, output_tokens=1)
        text = TEXT if "test-00001" in str(ask.qa_id) or len(self.asked) < 3 else "All is said."
        return Reply(
            text=text,
            finish_reason=self._finish_reason,
            prompt_tokens=1,
            output_tokens=1,
            refused=self._refuses,
        )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_cohort(tmp_path, N)


def test_the_discussion_is_asked_for_with_options_and_no_gold_text_and_stands_before_the_answer(
    root: Path,
) -> None:
    reader = Teaches()
    planned, judged = swept(spec_of(root, DISCUSSION), reader)
    write_record(planned, judged)
    rows = tables.read(planned.run.requests("uniform"), schemas.REQUESTS).to_pylist()
    chains = read_chains(planned.run.requests("uniform"))
    by_name = {f"test-{number:05d}": record for number, record in records(source_of(root))}
    for row in rows:
        record = by_name[row["study_id"]]
        first, last = chains[row["request_key"]].stages
        for text in record["options"].values():
            assert text in first.prompt
        for name in SECTIONS:
            assert f"\n{name}:" in first.prompt
        for name in ("discussion", "IMAGING_FINDINGS", "title"):
            assert record[name] not in first.prompt + last.prompt
        assert "ANSWER" not in first.prompt
        assert last.prompt.endswith(row["prompt"][-40:])
        assert first.prompt.count(schemas.FRAME) == len(row["frames"])
    answers = [ask for ask in reader.asked if "ANSWER" in ask.text]
    assert len(answers) == N
    assert all(TEXT in ask.text or "All is said." in ask.text for ask in answers)
    verdicts = tables.read(planned.run.verdicts, schemas.VERDICTS).to_pylist()
    assert {tuple(row["parsed"]) for row in verdicts} == {("B",)}


def written(root: Path, reader: Reader, out: Path, prompt: dict = DISCUSSION) -> int:
    planned, judged = swept(spec_of(root, prompt), reader)
    write_record(planned, judged)
    (arm,) = planned.arms
    return medthinkvqa.main(["discussions", f"run={planned.run.root}", f"arm={arm.arm_id}", f"out={out}"])


def test_discussions_are_written_and_what_is_wrong_with_them_counted(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "said.jsonl"
    assert written(root, Teaches(finish_reason="length"), out) == 0
    said = capsys.readouterr().out
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["case"] for line in lines] == [1, 2, 3, 4, 5]
    unsplit = sum(line["discussion"] != TEXT for line in lines)
    assert 0 < unsplit < N
    assert f"discussions: 5 cases; {unsplit} without the six sections, 5 cut at the token limit" in said
    assert re.search(r"ROUGE-L against the discussions of the data: 0\.\d+ over 5 cases", said)


@pytest.mark.parametrize("prompt", [SELF, DIRECT])
def test_an_arm_without_discussions_is_refused(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], prompt: dict
) -> None:
    out = tmp_path / "said.jsonl"
    assert written(root, Teaches(), out, prompt) == 2
    assert "writes no case discussion; choose an arm with steps: discussion" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("control", ["blind", "captions"])
def test_a_discussion_of_images_that_are_not_shown_is_refused(root: Path, control: str) -> None:
    with pytest.raises(
        InputError, match=f"prompt discussion writes about images first, and control {control}"
    ):
        spec_of(root, DISCUSSION, control=[control])


class Describes(Reader):
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


def submitted(root: Path, reader: Reader, prompt: dict) -> tuple[list[dict], Run]:
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
