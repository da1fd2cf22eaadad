"""Generated cases from file to verdict: what a setting withholds stays out of every prompt."""

import io
import json
from pathlib import Path

import chain_cohort
import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from small_cohort import reader, swept

from cardiolens.benchmarks.benchmark import read_benchmark
from cardiolens.benchmarks.medthinkvqa import PROTOCOL, field_of, source_of
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.models.token_counts import Rendering
from cardiolens.inference.plan.missing import WORK
from cardiolens.inference.plan.plan import plan
from cardiolens.inference.stream.loader import StudyLoader
from cardiolens.inference.stream.replica import StudyInFlight
from cardiolens.show.page.case_viewer.pictures import StudyPictures
from cardiolens.storage import schemas, tables
from cardiolens.study.shards import read_volumes
from tests.support.cases.example_cases import make_cases

N = 10
WITHHELD = {  # of every setting; the two golden texts are given by one setting each
    "title": "MARKTITLE",
    "discussion": "MARKDISCUSSION",
    "correct_answer_text": "MARKANSWERTEXT",
    "ICD Chapter": "MARKCHAPTER",
    "ICD Block": "MARKBLOCK",
    "ICD Category": "MARKCATEGORY",
    "interval_text": "MARKINTERVAL",
    "IMAGING_FINDINGS": "MARKFINDINGS",
    **{field_of(n, "caption"): "MARKCAPTION" for n in range(1, 50)},
    **{field_of(n, "modality"): "MARKMODALITY" for n in range(1, 50)},
    **{field_of(n, "sub_modality"): "MARKSUBMODALITY" for n in range(1, 50)},
    **{field_of(n, "id"): "MARKIMAGEID" for n in range(1, 50)},
    "case_id_of_a_later_version": "MARKUNKNOWN",
}
SETTINGS = {"direct": "none", "twi_oracle1": "captions", "twi_oracle2": "findings"}
GIVEN = {"twi_oracle1": {"MARKCAPTION"}, "twi_oracle2": {"MARKFINDINGS"}}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A dozen generated cases, of which every withheld field holds a marker, prepared."""
    folder = tmp_path_factory.mktemp("cases")
    make_cases(folder, N, 1)
    path = folder / "test.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for record in records:
        for name, marker in WITHHELD.items():
            if record.get(name) is not None or name == "case_id_of_a_later_version":
                record[name] = marker
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    chain_cohort.prepare(folder)
    return folder


def spec_of(root: Path, *models: dict, **changed: object) -> SweepSpec:
    prompts = [
        {"name": name, "style": "standard", "max_tokens": 64, "steps": steps}
        for name, steps in SETTINGS.items()
    ]
    selectors = [
        {"name": "uniform", "kind": "uniform"},
        {"name": "random", "kind": "random", "seeds": [1]},
    ]
    content = {"model": models or [reader("oracle")], "selector": selectors, "budget": [6]}
    return chain_cohort.spec_of(root, *prompts, **(content | changed))


def requests_of(spec: SweepSpec) -> list[dict]:
    planned = plan(spec)
    return tables.read(planned.run.requests(spec.model[0].name), schemas.REQUESTS).to_pylist()


@pytest.mark.parametrize("caption", ["view", "full"])
@pytest.mark.parametrize("style", ["standard", "reasoning"])
def test_withheld_fields_reach_no_prompt(root, caption, style):
    prompts = [
        {"name": name, "style": style, "max_tokens": 64, "steps": steps} for name, steps in SETTINGS.items()
    ]
    controls = ["none", "blind", "captions", "blank", "shuffled_options", "repeat"]
    rows = requests_of(spec_of(root, prompt=prompts, control=controls, caption=caption))
    assert len(rows) == N * 2 * len(prompts) * len(controls)
    seen = set()
    for row in rows:
        (setting,) = [name for name in SETTINGS if f"-{name}-" in row["arm_id"]]
        legal = GIVEN.get(setting, set()) | ({"MARKMODALITY"} if caption == "full" else set())
        found = {mark for mark in WITHHELD.values() if mark in row["prompt"] + row["system"]}
        assert found <= legal, (setting, found)
        seen |= {(setting, mark) for mark in found}
        assert "Clinical history:\nA person of" in row["prompt"]
    assert {("twi_oracle1", "MARKCAPTION"), ("twi_oracle2", "MARKFINDINGS")} <= seen


def test_oracle_knows_every_case_and_images_are_those_of_the_files(root):
    spec = spec_of(root, reader("oracle"), {**reader("constant"), "options": {"answer": "A"}})
    _, judged = swept(spec)
    right = {
        row["arm_id"]: row["value"]
        for row in judged.scores.to_pylist()
        if (row["metric"], row["scope"]) == ("primary", "subtask:M01")
    }
    assert len(right) == 12
    for arm, value in right.items():
        assert value == (100.0 if arm.startswith("oracle") else 20.0), arm


def test_frames_of_any_channels_from_file_to_engine_and_viewer(root):
    read = read_benchmark(source_of(root), PROTOCOL)
    volumes = read_volumes(root / "store")
    planned = plan(spec_of(root))
    part = tables.parts(planned.run.requests("oracle"))[0]
    rows = tables.read_part(part, schemas.REQUESTS, ["study_id"])["study_id"].to_pylist()
    modes = set()
    for case in read.cases:
        name = read.source.name_of(case.number)
        work = {"study_id": name, "part": str(part), "rows": [rows.index(name)], "attempts": [1]}
        loader = StudyLoader(root / "store", volumes, Rendering(32))
        [[loaded]] = [table.to_pylist() for table in loader(pa.Table.from_pylist([work], WORK))]
        shown = StudyInFlight(loaded, None)
        pictures = StudyPictures(root / "store", root, [name])
        for image in case.images:
            stored = Image.open(root / image.path)
            png = pictures.at(f"frames/0/images-{image.number - 1}.png")
            viewed = Image.open(io.BytesIO(png))
            assert np.array_equal(np.asarray(viewed), np.asarray(stored))
            modes.add(viewed.mode)
        for key in loaded["asks"][0]["frame_keys"]:
            assert max(shown(key).shape[:2]) == 32
            assert shown(key).ndim == 2 or shown(key).shape[2] == 3
    assert modes == {"L", "RGB"}
