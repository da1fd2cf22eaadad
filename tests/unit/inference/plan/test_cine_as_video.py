"""Cine as video beside frames: the same frames in another form, an arm of its own, or refused."""

from pathlib import Path
from typing import Any

import pytest
from page_run import write_record
from small_cohort import reader, requests_of, sweep_spec, swept, values

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


def test_both_forms_show_the_same_frames_and_only_cine_is_asked_twice(root: Path) -> None:
    planned = planned_with(root, STANDARD, VIDEO)
    pairs = list(zip(*(requests_of(planned, prompt=name) for name in ("standard", "video")), strict=True))
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
    assert {row["max_tokens"] for row in requests_of(plan(spec))} == {5}
    own = limited | {"max_tokens": {"standard": 5, "video": 9}}
    spec = sweep_spec(root, own, subtask=["C10"], prompt=[STANDARD, VIDEO])
    assert {row["max_tokens"] for row in requests_of(plan(spec), prompt="video")} == {9}


def test_controls_change_videos_as_they_change_frames(root: Path) -> None:
    controls = ["none", "blind", "captions", "blank", "other_patient", "repeat"]
    planned = planned_with(root, STANDARD, VIDEO, control=controls, subtask=["C10"])
    filmed = {}
    for control in controls:
        shown = [requests_of(planned, prompt=name, control=control) for name in ("standard", "video")]
        keys, filmed[control] = ({row["request_key"] for row in rows} for rows in shown)
        if control in ("blind", "captions"):  # no frame is shown in either form
            assert keys == filmed[control]
            continue
        assert keys.isdisjoint(filmed[control])
        for alone, video in zip(*shown, strict=True):
            assert (alone["frames_study_id"], alone["frames"]) == (video["frames_study_id"], video["frames"])
            assert "video:" in "".join(video["flags"])
    assert filmed["none"].isdisjoint(filmed["blank"])


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


def test_the_arm_is_judged_and_named_on_the_page_and_in_comparisons(root: Path) -> None:
    planned, judged = swept(sweep_spec(root, reader("oracle"), subtask=SUBTASKS, prompt=[STANDARD, VIDEO]))
    by_name = {arm.prompt.name: arm.arm_id for arm in planned.arms}
    assert values(judged, by_name["video"], ["primary"])["primary", "tier:1"] == pytest.approx(100)
    words = [prompt_words(arm) for arm in arm_factors(arms(planned.spec))]
    assert words == ["standard", "video, cine as video"]
    write_record(planned, judged)
    manifest = documents.read_manifest(planned.run)
    assert [arm.get("cine") for arm in manifest["arms"]] == [None, "video"]
    assert _setting(manifest["arms"][1]) != _setting(manifest["arms"][1] | {"cine": "frames"})
    page = write_page(planned.run, [planned.run]).read_text()
    assert "video, cine as video" in page
    assert "Prompt video shows the phases of a slice of cine as one video" in page
