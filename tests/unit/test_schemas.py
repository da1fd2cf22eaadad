"""The shipped JSON Schemas say what the readers accept, and the pages' examples are read."""

import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from study_folders import study, voxels, write_nifti

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import Windows
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.protocol.tasks.instantiate import records
from cardiolens.study.group import prepare_group
from cardiolens.study.manifest import read_study
from jobs.make_schemas import question_schema, schemas, study_schema
from tests.unit.questions_file import read_questions

ROOT = Path(__file__).resolve().parents[2]
CATALOGUE = load_catalogue("openprotocol-1")
STUDY = Draft202012Validator(study_schema())
QUESTION = Draft202012Validator(question_schema())

# Reasons for which a reader refuses what is valid; the pages list them.
OF_STUDIES = (
    r"layout_mismatch|layout_unresolved|n_slices|full grid",
    r"expected 0\.\.\d+; correct|key_layers is|t_on is \d+ and t_peak \d+;",
    r"(voxels|frames); expected at most",
    r"volumes of view .*; expected one per view",
    r"spans fewer than 5 years",
    r"1 to 128 printable characters",
    r"Input should be a valid integer, got -?\d+\.0",
    r"leads out of the study folder",
    r"is left out, and ",
)
OF_QUESTIONS = (
    r"protocol is .* is configured",
    r"subtask .* is not in protocol",
    r"(tier|sequence|answer_type) is .*, but \w[\w-]* has ",
    r"is outside its options|are not unique|which stands alone, with others",
    r"reference\.fields: no field|reference\.fields\.[\w]+: expected of",
    r"got -?\d+\.0",
    r"answer is empty; pick|names an option twice|must be exactly one of",  # of a compact line
    r"a report has no compact form",
    r"questions are not verified",
    r"which is option \w of|would be the letter of an option",
    r"have the same text except|has a blank text|question is blank|in case or white space alone",
)


def test_the_shipped_schemas_are_in_step_with_the_code():
    for path, text in schemas().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run python jobs/make_schemas.py"
        Draft202012Validator.check_schema(json.loads(text))


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A study folder with the file of every view that is drawn."""
    folder = tmp_path_factory.mktemp("schemas") / "S1"
    for one in studies()["volumes"]:
        write_nifti(folder / one["path"], voxels(3, 4) if one["sequence"] == "cine" else voxels(4, 5))
    return folder


def studies() -> dict[str, Any]:
    """A document with every field."""
    full = {
        **{"volume_id": "cine_sax", "sequence": "cine", "view": "sax", "path": "cine_sax.nii.gz"},
        **{"shape": [6, 5, 12], "spacing_mm": [2.0, 2.0, 10.0], "spatial_order": "base_to_apex"},
        **{"layout": {"order": "slice_major", "n_slices": 3, "n_phases": 4}, "layout_source": "declared"},
        **{"key_layers": [0, 1, 2], "ed_phase": 0, "es_phase": 2, "t_on": None, "t_peak": None},
        "display_transform": {"transpose": True, "flip_rows": False, "flip_cols": False},
        **{"sha256": "0" * 64, "mask": {"path": "mask.nii.gz", "sha256": None}},
    }
    timed = {"sequence": "perfusion", "view": "sax", "path": "perf.nii.gz", "t_on": 1, "t_peak": 2}
    timed |= {"layout": {"n_slices": 4, "n_phases": 5}, "spacing_mm": [2, 2, 10]}
    still = {"sequence": "lge", "view": "4ch", "path": "lge.nii.gz"}
    listed = {"sequence": "t2", "view": "sax", "path": "t2.nii.gz", "spacing_mm": [2, 2, 10]}
    about = {"species": "human", "report_id": None, "sex": "female", "age_band": "40-49", "site": "north"}
    return {
        **{"schema": "study-1", "study_id": "S1", "patient_id": "P1", "cohort": ["full"]},
        **about,
        **{"vendor": "A", "field_tesla": 1.5, "volumes": [full, timed, still, listed]},
    }


def asked() -> list[dict[str, Any]]:
    """A record of every type of answer."""
    findings = {CATALOGUE[name].finding: CATALOGUE[name].options[-1].values for name in ("C01", "C02", "C11")}
    report = {"fields": {"lv_size": "Normal size"}, "findings": "a", "impression": "b"}
    made = records("S1", CATALOGUE, findings, sequences=["cine"], reports={"cine": report})
    of_each_type = {record["answer_type"]: record for record in made}
    compact = {"study": "S1", "subtask": "C02", "answer": ["B"], "evidence": ["E1"], "origin": "reader"}
    return [*of_each_type.values(), compact | {"verification": {"status": "verified"}}]


NUMBERS: list[Any] = [0, 1, 3, 3.0, 4, 12, -1, 0.5, 10**12]
# texts that some field takes, and texts that none does
WORDS = [
    *("A", "B", "x", "S1/..", "..", "../a.nii", "/etc/hostname", "none.nii.gz", "lge.nii.gz", "t1"),
    *("cine", "lge", "perfusion", "t2", "sax", "4ch", "3ch", "cine_sax", "perf_sax", "lge_4ch", "inferred"),
    *("slice_major", "static", "apex_to_base", "unknown", "female", "90+", "44-46", "report", "phantom"),
    *("single", "ordinal", "multi", "C01", "C02", "R-CINE", "openprotocol-1", "explicit"),
]
LISTS: list[Any] = [[], ["A"], ["A", "B"], ["A", "A"], [0], [0, 1, 2], [2, 1], [[0, 0]], [6, 5, 3, 4]]
NOTHING: list[Any] = [None, True, False, "", {}]
OTHERS: list[Any] = ["a\ufffcb", "S\u00a0", "0" * 64, {"a": 1}, [1, 1, 1], [2, 2, -1]]
VALUES = [*NUMBERS, *WORDS, *LISTS, *NOTHING, *OTHERS, {"key": "A", "text": "x"}]
POOL = st.sampled_from(VALUES)


def nodes(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) of a document."""
    entries = list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree))
    for key, value in entries:
        yield tree, key
        if isinstance(value, dict | list):
            yield from nodes(value)


def changed(data: st.DataObject, document: dict[str, Any]) -> dict[str, Any]:
    """A document of which one to three things were replaced, removed, repeated or added."""
    document = copy.deepcopy(document)
    for _ in range(data.draw(st.integers(1, 3))):
        places = list(nodes(document))
        if not places:
            break
        container, key = places[data.draw(st.integers(0, len(places) - 1))]
        match data.draw(st.sampled_from(["replace", "replace", "remove", "repeat", "add"])):
            case "replace":
                container[key] = copy.deepcopy(data.draw(POOL))
            case "remove":
                del container[key]
            case "repeat" if isinstance(container, list):
                container.append(copy.deepcopy(container[key]))
            case "add" if isinstance(container, dict):
                name = data.draw(st.sampled_from(["colour", "mask", "t_on", "frames", "reference"]))
                container[name] = copy.deepcopy(data.draw(POOL))
    return document


def check(document: Any, schema: Draft202012Validator, read: Callable[[], object], reasons: tuple[str, ...]):
    """Schema and reader agree, but for what a schema cannot say."""
    valid, refusal = schema.is_valid(document), ""
    try:
        read()
    except InputError as error:
        refusal = str(error)
    if not refusal:
        assert valid, (document, [error.message for error in schema.iter_errors(document)])
    elif valid:
        assert any(re.search(reason, refusal) for reason in reasons), (refusal, document)


@settings(max_examples=100)
@given(st.data())
def test_the_schema_of_studies_and_its_reader_agree(place: Path, data: st.DataObject):
    document = changed(data, studies())
    (place / "study.json").write_text(json.dumps(document))
    check(document, STUDY, lambda: read_study(place), OF_STUDIES)


@settings(max_examples=100)
@given(st.data())
def test_the_schema_of_questions_and_their_reader_agree(place: Path, data: st.DataObject):
    document = changed(data, data.draw(st.sampled_from(asked())))
    path = place / "questions.jsonl"
    path.write_text(json.dumps(document) + "\n")
    check(document, QUESTION, lambda: read_questions(path, CATALOGUE), OF_QUESTIONS)


@pytest.mark.parametrize(
    "changes", [{"t_on": 1, "t_peak": 2}, {"volume_id": "lge_sax"}, {"layout": {"frames": [[0, 0]]}}]
)
def test_rules_between_fields_stand_in_the_schema_too(changes: dict[str, Any], place: Path):
    document = studies()
    document["volumes"][0] |= changes
    assert not STUDY.is_valid(document)
    with pytest.raises(InputError):
        read_study(study(place, **document))


def test_what_is_drawn_from_is_valid_and_read(place: Path):
    assert STUDY.is_valid(studies())
    assert read_study(study(place, **studies())).study_id == "S1"
    assert all(QUESTION.is_valid(record) for record in asked())
    types = {record["answer_type"] for record in asked() if "study" not in record}
    assert types == {"single", "ordinal", "multi", "report"}


def examples(page: str) -> list[str]:
    text = (ROOT / "docs" / "reference" / page).read_text()
    return re.findall(r"^```json\n(.*?)^```$", text, flags=re.M | re.S)


@pytest.mark.parametrize("example", examples("study.md"))
def test_the_examples_of_studies_are_prepared(example: str, tmp_path: Path):
    document = json.loads(example)
    assert STUDY.is_valid(document)
    folder = tmp_path / "S1"
    for entry in document["volumes"]:
        write_nifti(folder / entry["path"], np.squeeze(voxels(3, 4)), np.diag([2.0, 2.0, 10.0, 1.0]))
    (folder / "study.json").write_text(example)
    (outcome,) = prepare_group(tmp_path / "store", "p.parquet", [folder], Windows())
    assert outcome.error == ""


@pytest.mark.parametrize("example", examples("questions.md"))
def test_the_examples_of_questions_are_read(example: str, tmp_path: Path):
    path = tmp_path / "questions.jsonl"
    path.write_text(example)
    assert all(QUESTION.is_valid(json.loads(line)) for line in example.splitlines())
    assert read_questions(path, CATALOGUE).num_rows == len(example.splitlines())
