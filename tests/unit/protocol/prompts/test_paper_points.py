"""Prompt style `paper`: the paper's points for the two subtasks whose points are known, else ours."""

from pathlib import Path

from small_cohort import make_cohort, reader, sweep_spec

from cardiolens.inference.plan.plan import plan
from cardiolens.storage import schemas, tables

KNOWN = {"C02": "thinned, thickened or bulging", "L02": "where along the long axis"}
PROMPTS = [
    {"name": name, "style": style, "max_tokens": 1024}
    for name, style in (("reasoning", "reasoning"), ("paper", "paper"), ("standard", "standard"))
]


def test_two_subtasks_are_asked_by_the_papers_points_and_all_others_as_before(tmp_path: Path) -> None:
    root = make_cohort(tmp_path, 3)
    subtasks = ["C02", "L02", "C10", "D01", "R-LGE"]
    spec = sweep_spec(root, reader("constant", answer="A"), prompt=PROMPTS, subtask=subtasks)
    planned = plan(spec)
    prompt_of = {arm.arm_id: arm.prompt.name for arm in planned.arms}
    rows = tables.read(planned.run.requests("constant"), schemas.REQUESTS).to_pylist()
    asked = {(row["qa_id"], prompt_of[row["arm_id"]]): row for row in rows}
    assert {row["subtask"] for row in rows} == set(subtasks)
    for (qa_id, prompt), row in asked.items():
        ours = asked[qa_id, "reasoning"]
        if prompt != "paper":
            assert "expected of normal muscle" not in row["prompt"]
        elif points := KNOWN.get(row["subtask"]):
            assert points in row["prompt"]
            assert row["request_key"] != ours["request_key"]
            assert row["prompt"].splitlines()[-1] == ours["prompt"].splitlines()[-1]
        else:
            assert (row["request_key"], row["prompt"]) == (ours["request_key"], ours["prompt"])
