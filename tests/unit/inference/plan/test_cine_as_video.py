"""Cine as video beside frames: the same frames in another form, an arm of its own, or refused."""

from pathlib import Path
from typing import Any

import pytest
from page_run import write_record
from small_cohort import reader, sweep_spec, swept

from cardiolens.base.errors import InputError
from cardiolens.config.sweep_factors import arms
from cardiolens.inference.plan.missing import beginnings, shared_frames
from cardiolens.inference.plan.plan import Plan, plan
from cardiolens.protocol.prompts.frames import count_videos
from cardiolens.score.run_results.run_comparison import _setting
from cardiolens.score.statistics.factors import arm_factors
from cardiolens.show.page.columns import prompt_words
from cardiolens.show.page.write import write_page
from cardiolens.storage import documents, schemas, tables
from cardiolens.storage.schemas import FRAME

SUBTASKS = ["C02", "C10", "L01", "P01", "R-T2"]
STANDARD = {"name": "standard", "style": "standard", "max_tokens": 64}
VIDEO = STANDARD | {"name": "video", "cine": "video"}


def planned_with(root: Path, *prompts: dict[str, Any], **changes: Any) -> Plan:
    spec = {"subtask": SUBTASKS, "prompt": list(prompts)} | changes
    return plan(sweep_spec(root, reader("constant", answer="A"), **spec))


def rows_of(planned: Plan, prompt: str, control: str = "none") -> list[dict[str, Any]]:
    (model,) = planned.identities
    own = {arm.arm_id for arm in planned.arms if (arm.prompt.name, arm.control) == (prompt, control)}
    rows = tables.read(planned.run.requests(model), schemas.REQUESTS).sort_by("qa_id").to_pylist()
    return [row for row in rows if row["arm_id"] in own]


def test_both_forms_show_the_same_frames_and_only_cine_is_asked_twice(root: Path) -> None:
    planned = planned_with(root, STANDARD, VIDEO)
    pairs = list(zip(rows_of(planned, "standard"), rows_of(planned, "video"), strict=True))
    filmed = {alone["subtask"] for alone, video in pairs if alone["request_key"] != video["request_key"]}
    assert filmed == {"C02", "C10"}
    for alone, video in pairs:
        assert alone["frames"] == video["frames"]
        assert alone["prompt"].count(FRAME) == video["prompt"].count(FRAME) == len(alone["frames"])
        same = ("system", "template", "option_keys", "max_tokens", "answer_format", "status")
        assert [alone[name] for name in same] == [video[name] for name in same]
        asked = "frames above are shown in this order"
        assert alone["prompt"].partition(asked)[2] == video["prompt"].partition(asked)[2]
        n_videos = count_videos(video["prompt"])
        flags = [f"video:{n_videos}"] if video["subtask"] in filmed else []
        assert [flag for flag in video["flags"] if flag not in alone["flags"]] == flags
        assert (n_videos > 0) == bool(flags)


def test_a_limit_declared_for_the_frames_holds_for_videos(root: Path) -> None:
    limited = reader("constant", answer="A") | {"max_tokens": {"standard": 5}}
    spec = sweep_spec(root, limited, subtask=["C10"], prompt=[STANDARD, VIDEO])
    assert {row["max_tokens"] for name in ("standard", "video") for row in rows_of(plan(spec), name)} == {5}
    own = limited | {"max_tokens": {"standard": 5, "video": 9}}
    spec = sweep_spec(root, own, subtask=["C10"], prompt=[STANDARD, VIDEO])
    assert {row["max_tokens"] for row in rows_of(plan(spec), "video")} == {9}


def test_controls_change_videos_as_they_change_frames(root: Path) -> None:
    controls = ["none", "blind", "captions", "blank", "other_patient", "repeat"]
    planned = planned_with(root, STANDARD, VIDEO, control=controls, subtask=["C10"])
    keys = {
        (prompt, control): [row["request_key"] for row in rows_of(planned, prompt, control)]
        for prompt in ("standard", "video")
        for control in controls
    }
    for control in ("blind", "captions"):  # no frame is shown in either form
        assert keys["standard", control] == keys["video", control]
    for control in ("none", "blank", "other_patient", "repeat"):
        assert set(keys["standard", control]).isdisjoint(keys["video", control])
        shown = (rows_of(planned, prompt, control) for prompt in ("standard", "video"))
        for alone, video in zip(*shown, strict=True):
            assert (alone["frames_study_id"], alone["frames"]) == (video["frames_study_id"], video["frames"])
            assert "video:" in "".join(video["flags"])
    assert set(keys["video", "none"]).isdisjoint(keys["video", "blank"])


def test_forms_share_no_beginning_and_a_video_is_shared_as_a_whole(root: Path) -> None:
    planned = planned_with(root, STANDARD, VIDEO, subtask=["C10", "C11"], budget=[4, 8])
    (model,) = planned.identities
    table = tables.read(planned.run.requests(model), schemas.REQUESTS)
    study = table.filter([row == "PH-0001" for row in table["study_id"].to_pylist()])
    rows = beginnings(study)
    kinds = [(count_videos(row["prompt"]) > 0, row["frames"]) for row in study.to_pylist()]
    assert {filmed for filmed, _ in kinds} == {True, False}
    for first, one in enumerate(kinds):
        for second, other in enumerate(kinds):
            (_, shared) = shared_frames(rows[[first, second]])
            if one == other:
                assert shared == len(one[1])
            elif one[0] or other[0]:
                assert shared == 0


VLLM = {"name": "m", "engine": "vllm", "source": "hub/m"}
LLAVA = {
    **{"architecture": "LlavaForConditionalGeneration", "field": "general", "licence": "x", "context": 1},
    **{"thinking": "never", "image_rule": "x", "verified": "none", "note": "x"},
}
SERVED = {
    "name": "m",
    "engine": "http",
    "revision": "r",
    "http": {"base_url": "http://h/v1", "api_model": "m"},
}


@pytest.mark.parametrize(
    ("model", "changes", "why"),
    [
        (
            VLLM | {"card": LLAVA},
            {},
            "model m is of LlavaForConditionalGeneration, and videos are sent to Qwen2VL",
        ),
        (SERVED, {}, "is asked over HTTP, where a video is coded with loss .*; serve it with engine: vllm"),
        (
            VLLM,
            {"prompt": [STANDARD | {"cine": "video"}]},
            "as videos, and headlines are asked with standard",
        ),
        (
            VLLM,
            {"selector": [{"name": "n", "kind": "clinical", "order": "nested"}]},
            r"selector n parts the phases of a slice \(it has order nested\); leave one",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_loaded(
    tmp_path: Path, model: dict[str, Any], changes: dict[str, Any], why: str
) -> None:
    with pytest.raises(InputError, match=why):
        sweep_spec(tmp_path, model, **({"prompt": [STANDARD, VIDEO]} | changes))


def test_the_arm_is_judged_and_named_on_the_page_and_in_comparisons(root: Path) -> None:
    planned, judged = swept(sweep_spec(root, reader("oracle"), subtask=SUBTASKS, prompt=[STANDARD, VIDEO]))
    by_name = {arm.prompt.name: arm.arm_id for arm in planned.arms}
    scores = {
        (row["arm_id"], row["scope"]): row["value"]
        for row in judged.scores.to_pylist()
        if row["metric"] == "primary"
    }
    assert scores[by_name["video"], "tier:1"] == pytest.approx(100)
    assert [prompt_words(arm) for arm in arm_factors(arms(planned.spec))] == [
        "standard",
        "video, cine as video",
    ]
    write_record(planned, judged)
    manifest = documents.read_manifest(planned.run)
    assert [arm.get("cine") for arm in manifest["arms"]] == [None, "video"]
    assert _setting(manifest["arms"][1]) != _setting(manifest["arms"][1] | {"cine": "frames"})
    page = write_page(planned.run, [planned.run]).read_text()
    assert "video, cine as video" in page
    assert "Prompt video shows the phases of a slice of cine as one video" in page
