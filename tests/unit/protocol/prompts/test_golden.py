"""Golden prompts: one a (tier, answer type, prompt, caption level), and a form of answer, each read by eye.

After a change that is meant, `python -m tests.unit.protocol.prompts.test_golden` writes them anew; read the
diff.
"""

from itertools import product
from pathlib import Path

import pytest

from cardiolens.config.sweep_factors import SelectorSpec
from cardiolens.inference.plan.frame_views import reversed_options
from cardiolens.protocol.prompts.frames import captions, frame_block
from cardiolens.protocol.prompts.question import AskedQuestion, asked_of
from cardiolens.protocol.prompts.template import Template, question_block, render, template_for
from cardiolens.protocol.select.choose import choose
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.study.structure import StudyStructure, VolumeStructure

GOLDEN = Path(__file__).parent / "golden"
CATALOGUE = load_catalogue("openprotocol-1")
CASES = {  # tier and answer type: subtask, budget
    "tier1-single": ("L01", 4),
    "tier1-ordinal": ("C06", 12),
    "tier1-multi": ("C02", 2),
    "tier1-multi-perfusion": ("P03", 4),
    "tier2-report": ("R-LGE", 1),
    "tier2-report-cine": ("R-CINE", 5),
    "tier3-single": ("D01", 8),
    "tier3-single-nicm": ("D02", 6),
}
STYLES = ("standard", "reasoning")
LEVELS = ("none", "view", "full")


def _volume(volume_id: str, n_slices: int, n_phases: int, **known: object) -> VolumeStructure:
    code, view = volume_id.split("_")
    sequence = "perfusion" if code == "perf" else code
    return VolumeStructure(volume_id, sequence, view, n_slices, n_phases, **known)  # type: ignore[arg-type]


VOLUMES = (
    _volume("cine_sax", 9, 25, es_phase=9, key_layers=(1, 4, 7)),
    _volume("cine_4ch", 3, 25, es_phase=9),
    _volume("cine_3ch", 1, 25, es_phase=9),
    _volume("cine_2ch", 1, 25, es_phase=9),
    _volume("lge_sax", 10, 1, key_layers=(1, 5, 8)),
    _volume("lge_4ch", 1, 1),
    _volume("lge_2ch", 1, 1),
    _volume("perf_sax", 3, 50, key_layers=(0, 1, 2), t_on=8, t_peak=15),
    _volume("t2_sax", 5, 1, key_layers=(0, 2, 4)),
    _volume("t2_4ch", 1, 1),
)
STUDY = StudyStructure("PH-0001", {volume.volume_id: volume for volume in VOLUMES})
CLINICAL = SelectorSpec(name="clinical", kind="clinical")


def asked(subtask_id: str) -> AskedQuestion:
    subtask = CATALOGUE[subtask_id]
    options = tuple((option.key, option.text) for option in subtask.options)
    return asked_of(subtask, CATALOGUE, subtask.question, options)


def golden_texts() -> dict[str, str]:
    texts = {}

    def note(name: str, template: Template, text: str) -> None:
        texts[name] = f"{template.system}\n-----\n{text}\n"

    for (case, (subtask, budget)), style in product(CASES.items(), STYLES):
        question = asked(subtask)
        frames = choose(CLINICAL, None, STUDY, CATALOGUE[subtask], budget).frames
        template = template_for(question, style)
        for level in LEVELS:
            note(f"{case}-{style}-{level}", template, render(frames, STUDY, question, template, level))
        if question.kind != "report":
            text = render(frames, STUDY, question, template, "none", closing="json")
            note(f"json-{case}-{style}", template, text)
        alone = template_for(question, style, display="nothing")
        note(f"question-only-{case}-{style}", alone, render((), STUDY, question, alone, "none"))
        captioned = template_for(question, style, display="captions")
        told = frame_block(frames, STUDY, "view", marked=False) + question_block(
            question, len(frames), captioned
        )
        note(f"captions-only-{case}-{style}", captioned, told)
        if question.answer_type == "ordinal":
            text = render(frames, STUDY, reversed_options(question), template, "view")
            note(f"reversed-{case}-{style}", template, text)
    for level in LEVELS[1:]:
        lines = [
            f"Frame {slice_rank * 25 + phase}:{captions(volume, level)[volume.idx(slice_rank, phase)]}\n"
            for volume in VOLUMES
            for slice_rank in range(volume.n_slices)
            for phase in range(volume.n_phases)
            if phase in (0, 1, 9, volume.n_phases - 1)
        ]
        texts[f"captions-{level}"] = "".join(lines)
    return texts


TEXTS = golden_texts()


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_prompt_is_the_golden_one(name):
    assert TEXTS[name] == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def test_no_golden_file_is_left_over():
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(TEXTS)


if __name__ == "__main__":
    for stale in GOLDEN.glob("*.txt"):
        stale.unlink()
    for name, text in TEXTS.items():
        (GOLDEN / f"{name}.txt").write_text(text, encoding="utf-8")
