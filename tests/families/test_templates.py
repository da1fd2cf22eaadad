"""Prompts of every family of the catalogue: texts verbatim and in order, one placeholder a frame."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from cardiolens.base.errors import InputError
from cardiolens.config.model import VIDEO_ARCHITECTURES
from cardiolens.inference.models.chat_template import IMAGE, VIDEO, ChatTemplate, Piece
from tests.families import templates
from tests.families.families import FAMILIES, Family, tokenizer

SYSTEM = "You see frames of one patient's study.\nAnswer with one letter."
QUESTION = "\nThe frames are shown in order.\n\nQuestion: How is the function?\nA. Normal\nB. Reduced\n"
CONF = Path(__file__).parents[2] / "conf" / "model"


@dataclass
class Processor:
    """What a template needs of a processor, without one: no image is processed here."""

    tokenizer: Any
    chat_template: None = None
    image_token: str | None = None


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest) -> Family:
    return FAMILIES[request.param]


@pytest.fixture(scope="module")
def template(family: Family, tmp_path_factory: pytest.TempPathFactory) -> ChatTemplate:
    folder = tmp_path_factory.mktemp("model")
    (folder / "config.json").write_text(json.dumps({"architectures": [family.architecture]}))
    image_token = family.named.get("image_token", family.placeholder.strip())
    return ChatTemplate(folder, Processor(tokenizer(family), image_token=image_token), family.options)


def pieces(frames: int) -> list[Piece]:
    return [piece for number in range(1, frames + 1) for piece in (f"\nFrame {number}: cine\n", IMAGE)]


@pytest.mark.parametrize("frames", [1, 3, 32])
def test_texts_stand_verbatim_and_in_order_between_placeholders(
    family: Family, template: ChatTemplate, frames: int
):
    prompt = template.render(SYSTEM, [*pieces(frames), QUESTION])
    place = 0
    for number in range(1, frames + 1):
        for wanted in (f"Frame {number}: cine", family.placeholder.replace("{number}", str(number))):
            found = prompt.find(wanted, place)
            assert found >= 0, (number, wanted)
            assert prompt[place:found].strip() == "" or number == 1, prompt[place:found]
            place = found + len(wanted)
    assert prompt.count(SYSTEM) == prompt.count(QUESTION.strip()) == 1
    assert prompt.find(QUESTION.strip(), place) - place <= len("\n")
    if "{number}" not in family.placeholder:
        assert prompt.count(family.placeholder) == frames
    assert not any(printed in prompt for printed in ("[{", "}]", "'type'", '"type"'))


@pytest.mark.parametrize("frames", [1, 3])
def test_the_question_goes_through_the_template(family: Family, template: ChatTemplate, frames: int):
    head, tail = template.around(SYSTEM, pieces(frames))
    whole = template.render(SYSTEM, [*pieces(frames), QUESTION])
    assert f"{head}{template.asked(QUESTION)}{tail}" == whole
    assert template.asked(QUESTION).endswith("\n") != family.cut


def test_a_video_stands_between_texts_where_videos_are_sent_and_is_refused_elsewhere(
    family: Family, template: ChatTemplate
):
    if family.architecture not in VIDEO_ARCHITECTURES:
        with pytest.raises(InputError, match="its chat template puts no video between texts"):
            template.video_marks(1)
        return
    assert template.video_marks(2) == (templates.VIDEO,) * 2
    prompt = template.render(SYSTEM, ["Frame 1: late\n", IMAGE, "\nFrames 2 to 4\n", VIDEO, QUESTION])
    assert [prompt.count(mark) for mark in (family.placeholder, templates.VIDEO)] == [1, 1]
    assert prompt.index("Frames 2 to 4\n") < prompt.index(templates.VIDEO) < prompt.index(QUESTION.strip())


def test_videos_that_a_template_numbers_are_told_apart(tmp_path: Path):
    counted = "{% set seen.videos = seen.videos + 1 %}Video {{ seen.videos }}: "
    numbered = templates.listed(
        templates.VISION,
        templates.CHATML_BEFORE,
        "",
        "",
        start="{% set seen = namespace(videos=0) %}",
        video=f"{counted}{templates.VIDEO}",
    )
    words = tokenizer(FAMILIES["qwen_2_5_vl"])
    words.chat_template = numbered
    template = ChatTemplate(tmp_path, Processor(words, image_token="<|image_pad|>"), {})
    assert template.video_marks(3) == tuple(f"Video {number}: {templates.VIDEO}" for number in (1, 2, 3))


def test_the_catalogue_has_a_model_of_every_family_that_takes_videos():
    entries = [next(iter(yaml.safe_load(path.read_text()).values())) for path in CONF.glob("*.yaml")]
    assert {entry["card"]["architecture"] for entry in entries if "card" in entry} >= set(VIDEO_ARCHITECTURES)


def test_marks_are_the_placeholders(family: Family, template: ChatTemplate):
    wanted = [family.placeholder.replace("{number}", str(number)) for number in range(1, 13)]
    assert list(template.marks(12)) == wanted


def test_the_architecture_that_vllm_is_told_to_take_decides_the_placeholder(tmp_path: Path):
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["LlavaForConditionalGeneration"]}))
    processor = Processor(tokenizer(FAMILIES["minicpm_v"]), image_token="<image>")
    told = {"architectures": ["MiniCPMV"]}
    assert list(ChatTemplate(tmp_path, processor, {}).marks(1)) == ["<image>"]
    assert list(ChatTemplate(tmp_path, processor, {}, told).marks(1)) == ["(<image>./</image>)"]


def test_every_open_model_of_the_catalogue_belongs_to_a_family():
    cards = [
        next(iter(yaml.safe_load(path.read_text()).values())).get("card") for path in CONF.glob("*.yaml")
    ]
    known = {one.architecture for one in FAMILIES.values()} | {None}
    assert {card["architecture"] for card in cards if card} == known
