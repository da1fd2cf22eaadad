"""Sets of other forms through one loader: a map says what each column is, and a wrong record is named."""

import base64
import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from PIL import Image
from set_cohort import prepare_set, read_set, set_spec
from small_cohort import reader, swept

from cardiolens.base.errors import InputError
from cardiolens.benchmarks.case_group import prepare_cases
from cardiolens.benchmarks.case_map import read_map, shipped_maps
from cardiolens.config.compose import read_spec
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.protocol.tasks.questions import given_questions
from cardiolens.storage import schemas, tables
from cardiolens.study.shards import read_volumes

PROTOCOL = "cases-1"
N = 8
OWN = {
    "name": "a hospital's own",
    "expects": "a folder with cases.jsonl",
    "files": {"cases.jsonl": None},
    "id": "id",
    "patient": "patient",
    "images": {"path": "pictures"},
    "history": "story?",
    "question": "question",
    "options": "choices",
    "answer": "truth",
    "groups": {"site": "site?"},
}


def png(number: int) -> bytes:
    """A small image that no other number has."""
    file = io.BytesIO()
    pixels = np.random.default_rng(number).integers(0, 255, (24, 20), np.uint8)
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def make_tsv(folder: Path) -> None:
    """VLMEvalKit's form: an image as base64, two as a list, and one that an earlier row has."""
    encoded = [base64.b64encode(png(at)).decode() for at in range(N)]
    images = [*encoded[:5], json.dumps(encoded[5:7]), "0", "3"]
    with (folder / "set.tsv").open("w", newline="") as file:
        out = csv.writer(file, delimiter="\t")
        out.writerow(["index", "image", "hint", "question", "A", "B", "C", "answer", "category"])
        for at, image in enumerate(images):
            hint = "Chest pain,\nsince May." if at % 2 else ""
            out.writerow(
                [at, image, hint, f"Which {at}?", "one", "two", "three" * (at % 3 > 0), "AB"[at % 2], "x"]
            )


def make_authors(folder: Path) -> None:
    """The authors' form: a JSON list for each patient; paths with and without the patient's folder."""
    for patient in ("p1", "p2"):
        items = []
        for at in range(4):
            name = f"{patient}/cine_{at}.png"
            (folder / patient).mkdir(exist_ok=True)
            (folder / name).write_bytes(png(hash_of(patient) + at))
            several = at % 2 == 0
            lead = "<image>\nWhich findings of wall thickness are present?"
            if at == 2:
                said, truth = f"{lead}\nDescribe them.", "The septum is thick."
            else:
                said = f"{lead}\nOptions:\nA. Normal\nB. Thinned\nC. High (mostly bright, even)\nZ. None"
                truth = "C. High (mostly bright, even); B. Thinned" if several else "B"
            items.append(
                {
                    "qid": at,
                    "field": "Thickening",
                    "image": [name] if at else f"cine_{at}.png",
                    "conversations": [{"from": "human", "value": said}, {"from": "gpt", "value": truth}],
                    "is_multiple_choice": several,
                    "question_type": "choice",
                    "sequence_view": "cine_sax",
                    "patient_id": patient,
                    "original_nii": "secret.nii.gz",
                }
            )
        (folder / f"patient_{patient}_vqa_png.json").write_text(json.dumps(items))


def hash_of(text: str) -> int:
    return sum(text.encode()) * 10


def make_medframeqa(folder: Path) -> None:
    rows = []
    for at in range(N):
        images = [{"bytes": png(100 + 5 * at + n), "path": None} for n in range(2 + at % 4)]
        rows.append(
            {
                "question_id": f"q{at}",
                "system": "heart",
                "organ": "heart",
                "keyword": "MARKKEYWORD",
                "modality": "MRI",
                "video_id": f"v{at // 2}",
                "question": "What is shown across the images?",
                "options": [f"finding {number}" for number in range(6)],
                **{f"image_{n + 1}": images[n] if n < len(images) else None for n in range(5)},
                "reasoning_chain": "MARKREASON",
                "correct_answer": "ABCDEF"[at % 6],
            }
        )
    (folder / "data").mkdir()
    pq.write_table(
        pa.Table.from_pylist(rows), folder / "data" / "test-00000-of-00001.parquet", row_group_size=3
    )


def own_records() -> list[dict[str, Any]]:
    return [
        {
            "id": f"c{at}",
            "patient": f"p{at // 2}",
            "pictures": [f"images/{at}_0.png", f"images/{at}_1.png"],
            "story": "Short of breath." if at % 2 else None,
            "question": "Which one?",
            "choices": {"A": "alpha", "B": "beta", "C": "gamma"},
            "truth": "beta" if at % 2 else "C",
            "site": "north",
            "report": "MARKREPORT",
        }
        for at in range(N)
    ]


def make_own(folder: Path, records: list[dict[str, Any]] | None = None, **changes: object) -> None:
    (folder / "images").mkdir()
    for at in range(N):
        for n in range(2):
            (folder / "images" / f"{at}_{n}.png").write_bytes(png(200 + 2 * at + n))
    lines = [json.dumps(record) for record in (records if records is not None else own_records())]
    (folder / "cases.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "map.yaml").write_text(yaml.safe_dump({**OWN, **changes}))


SETS: dict[str, tuple[Callable[[Path], None], str, int, int]] = {  # maker, map, cases, questions
    "tsv": (make_tsv, "vlmevalkit", N - 2, N),  # two rows have the image and the words of another
    "authors": (make_authors, "authors_cmr", 6, 6),
    "medframeqa": (make_medframeqa, "medframeqa", N, N),
    "own": (make_own, "map.yaml", N, N),
}


@pytest.mark.parametrize("name", SETS)
def test_a_set_of_any_form_is_asked_with_its_images_and_the_oracle_is_always_right(
    tmp_path: Path, name: str
) -> None:
    make, columns, n_cases, n_questions = SETS[name]
    make(tmp_path)
    found = prepare_set(tmp_path, columns, PROTOCOL)
    assert (len(found.cases), dict(found.failed)) == (n_cases, {})
    assert sum(len(case.questions) for case in found.cases) == n_questions
    _, judged = swept(set_spec(tmp_path, columns, PROTOCOL))
    scores = {
        (row["arm_id"].split("-")[0], row["metric"]): row["value"]
        for row in judged.scores.to_pylist()
        if row["scope"] == "tier:1" and row["arm_id"].startswith("headline")
    }
    assert scores["headline:oracle", "primary"] == 100.0
    assert scores["headline:constant", "primary"] < 100.0
    rows = {row["study_id"]: row["n_slices"] for row in read_volumes(tmp_path / "store").to_pylist()}
    assert rows == {found.source.name_of(case.number): len(case.images) for case in found.cases}
    frames = tables.read_part(tmp_path / "store" / "frames" / "part-0.parquet", schemas.FRAMES).to_pylist()
    first = {row["study_id"]: row["pixels"] for row in frames if row["idx"] == 0}
    number = {"tsv": 0, "authors": hash_of("p1"), "medframeqa": 100, "own": 200}[name]
    wanted = np.asarray(Image.open(io.BytesIO(png(number))))
    assert first["test-00001"] == wanted.tobytes()


def test_the_authors_truth_and_options_are_read_as_written(tmp_path: Path) -> None:
    make_authors(tmp_path)
    found = read_set(tmp_path, "authors_cmr", PROTOCOL)
    asked = [question for case in found.cases for question in case.questions]
    assert asked[0].text == "Which findings of wall thickness are present?"
    assert asked[0].options == ("Normal", "Thinned", "High (mostly bright, even)", "None")
    assert [(question.answer, question.multi) for question in asked[:3]] == [
        ((1, 2), True),
        ((1,), False),
        ((1,), False),
    ]
    assert dict(found.left_out) == {"short answers, which have no options": 2}
    assert {case.patient for case in found.cases} == {"p1", "p2"}
    assert found.cases[0].groups == {"images": "1", "field": "Thickening", "view": "cine_sax"}


def test_a_letter_is_that_of_its_column_where_another_column_is_blank(tmp_path: Path) -> None:
    make_tsv(tmp_path)
    text = (tmp_path / "set.tsv").read_text().replace("one\ttwo\tthree\tB", "one\t\tthree\tC")
    (tmp_path / "set.tsv").write_text(text)
    asked = [
        question for case in read_set(tmp_path, "vlmevalkit", PROTOCOL).cases for question in case.questions
    ]
    right = {
        question.options[question.answer[0]] for question in asked if question.options == ("one", "three")
    }
    assert right == {"three"}


def test_joined_protocols_ask_each_question_by_its_own(tmp_path: Path) -> None:
    make_own(tmp_path)
    joined = f"{PROTOCOL}+publicvqa-1"
    prepare_set(tmp_path, "map.yaml", joined)
    given = list(given_questions(tmp_path / "store" / "cases.jsonl", load_catalogue(joined)))
    assert len(given) == N


def test_questions_on_one_image_are_of_one_patient(tmp_path: Path) -> None:
    make_tsv(tmp_path)
    text = (tmp_path / "set.tsv").read_text().replace("\n6\t0\t\t", "\n6\t0\tAnother history.\t")
    (tmp_path / "set.tsv").write_text(text)
    first, *_, last = read_set(tmp_path, "vlmevalkit", PROTOCOL).cases
    assert (first.questions[0].key, last.questions[0].key) == ("0", "6")
    assert first.patient == last.patient == "test-00001"
    assert (first.history, last.history) == ("", "Another history.")


def wrong(at: int, **changes: object) -> list[dict[str, Any]]:
    records = own_records()
    records[at] = {key: value for key, value in (records[at] | changes).items() if value is not ...}
    return records


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"truth": "delta"}, 'truth is "delta"; expected of A. alpha; B. beta; C. gamma'),
        ({"truth": "A; B"}, "truth is .*; expected one option, as the map has no `multi`"),
        ({"id": "c0"}, r"has the id 'c0' of .*cases\.jsonl:1; remove one of them"),
        ({"pictures": ["images/1_0.png"] * 2}, "names images/1_0.png twice"),
        ({"pictures": ["../other.png"]}, "pictures is .*; expected a path below the folder of the data"),
        ({"choices": {"A": "one"}}, "options is .*; expected two or more"),
        ({"choices": {"A": "one", "B": "ONE "}}, "options is .*; expected texts that differ"),
        (
            {"choices": {"A": "one", "B": "a"}},
            "options: option B is 'a', which in a reply would be the letter",
        ),
        ({"question": " "}, 'question is " "; expected text'),
    ],
)
def test_a_wrong_record_is_refused_with_row_and_value(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    make_own(tmp_path, wrong(1, **changes))
    (error,) = (found := read_set(tmp_path, "map.yaml", PROTOCOL)).failed.values()
    with pytest.raises(InputError, match=message):
        raise InputError(error)
    assert error.startswith(f"{tmp_path}/cases.jsonl:2: ")
    assert len(found.cases) == N - 1


def test_options_that_an_object_leaves_empty_are_none(tmp_path: Path) -> None:
    """Parquet gives every record the keys of all."""
    make_own(tmp_path, wrong(0, choices={"A": "alpha", "B": "beta", "C": "gamma", "D": None}))
    asked = [case.questions[0].options for case in read_set(tmp_path, "map.yaml", PROTOCOL).cases]
    assert asked == [("alpha", "beta", "gamma")] * N


def test_images_that_are_missing_or_unreadable_are_named(tmp_path: Path) -> None:
    make_own(tmp_path)
    (tmp_path / "images" / "0_1.png").unlink()
    (tmp_path / "images" / "1_0.png").write_bytes(b"no image")
    found = read_set(tmp_path, "map.yaml", PROTOCOL)
    outcomes = prepare_cases(tmp_path / "store", "p.parquet", found.source, found.cases)
    errors = [outcome.error for outcome in outcomes if outcome.error]
    said = ("images/0_1.png is not there", "images/1_0.png is no image")
    for number, (error, words) in enumerate(zip(errors, said, strict=True), start=1):
        assert error.startswith(f"{tmp_path}/cases.jsonl:{number}: {words}")


@pytest.mark.parametrize("held", [[], [0, 1]])
def test_a_row_names_another_one_of_one_image_alone(tmp_path: Path, held: list[int]) -> None:
    encoded = [base64.b64encode(png(at)).decode() for at in range(2)]
    images = [encoded[at] for at in held], "c0"
    records = [record | {"pictures": image} for record, image in zip(own_records(), images, strict=False)]
    make_own(tmp_path, records, images={"base64": "pictures"})
    found = read_set(tmp_path, "map.yaml", PROTOCOL)
    outcomes = prepare_cases(tmp_path / "store", "p.parquet", found.source, found.cases)
    assert "cases.jsonl:2: the image in pictures is not there" in outcomes[-1].error


def test_a_map_that_names_an_absent_column_is_refused(tmp_path: Path) -> None:
    make_tsv(tmp_path)
    columns = yaml.safe_load(
        (Path(read_map.__code__.co_filename).parent / "maps/vlmevalkit.yaml").read_text()
    )
    (tmp_path / "map.yaml").write_text(yaml.safe_dump({**columns, "question": "query"}))
    with pytest.raises(
        InputError, match=r"set\.tsv: has no column 'query', .* expected of index, image, hint"
    ):
        read_set(tmp_path, "map.yaml", PROTOCOL)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\tb\n1\t2\t3\n", "has no column"),
        ("index\timage\tquestion\tanswer\tanswer\n", "column 'answer' is there twice"),
        ('index\timage\tquestion\tanswer\n1\t"x\n', "line .* is no row"),
    ],
)
def test_a_damaged_table_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "set.tsv").write_text(content)
    with pytest.raises(InputError, match=message):
        read_set(tmp_path, "vlmevalkit", PROTOCOL)


def test_a_row_of_too_many_cells_and_a_line_that_is_no_json_are_named(tmp_path: Path) -> None:
    make_tsv(tmp_path)
    with (tmp_path / "set.tsv").open("a") as file:
        file.write("8\tx\n")
    (error,) = read_set(tmp_path, "vlmevalkit", PROTOCOL).failed.values()
    assert f"set.tsv, row {N + 1}: has 2 cells; expected 9" in error
    make_own(tmp_path)
    with (tmp_path / "cases.jsonl").open("a") as file:
        file.write("{\n")
    (error,) = read_set(tmp_path, "map.yaml", PROTOCOL).failed.values()
    assert f"cases.jsonl:{N + 1}: not JSON" in error


def test_blank_lines_are_no_records(tmp_path: Path) -> None:
    make_tsv(tmp_path)
    make_own(tmp_path)
    for name, columns in (("set.tsv", "vlmevalkit"), ("cases.jsonl", "map.yaml")):
        with (tmp_path / name).open("a") as file:
            file.write("\n\n")
        found = read_set(tmp_path, columns, PROTOCOL)
        assert (sum(len(case.questions) for case in found.cases), dict(found.failed)) == (N, {})


def test_every_shipped_map_is_valid_and_an_unknown_one_names_them() -> None:
    for name in shipped_maps():
        assert read_map(name).name
    with pytest.raises(InputError, match=r"cannot be read .*medframeqa"):
        read_map("none")


def test_a_set_composes_by_source_and_map() -> None:
    spec = read_spec(["dataset=cases", "dataset.source=folder", "dataset.map=medframeqa"])
    assert (spec.dataset.protocol, [selector.name for selector in spec.selector]) == (PROTOCOL, ["all"])
    with pytest.raises(InputError, match="map is given without source"):
        read_spec(
            ["dataset=cases", "dataset.source=null", "dataset.studies=folder", "dataset.map=medframeqa"]
        )


NAMES = ("Fabry disease", "Danon disease", "Cardiac amyloidosis")


def make_rare(folder: Path) -> None:
    """MMRareBench's form as its card names it: TSV, images as a list in base64, a name and its synonyms."""
    (folder / "diagnosis").mkdir()
    with (folder / "diagnosis" / "diagnosis_opened.tsv").open("w", newline="") as file:
        out = csv.writer(file, delimiter="\t")
        out.writerow(["index", "image", "question", "answer", "answer_aliases", "category", "ORPHA_code"])
        for at in range(N):
            images = [base64.b64encode(png(300 + 2 * at + n)).decode() for n in range(2)]
            synonyms = json.dumps(["MARK synonym"]) if at % 2 else ""
            out.writerow([at, json.dumps(images), "Which disease?", NAMES[at % 3], synonyms, "heart", "324"])


def make_volumes(folder: Path, **changes: object) -> None:
    records = [record | {"truth": f"{100 + 10 * at} ml"} for at, record in enumerate(own_records())]
    records[1] |= changes
    make_own(folder, records, options=[], subtask="NML")


def scores(folder: Path, name: str, *models: dict[str, Any]) -> dict[tuple[str, str], float]:
    _, judged = swept(set_spec(folder, name, PROTOCOL, *models))
    rows = judged.scores.to_pylist()
    return {(row["arm_id"].split("-")[0], row["metric"]): row["value"] for row in rows}


def test_diagnoses_are_ranked_and_the_place_of_the_true_one_is_scored(tmp_path: Path) -> None:
    make_rare(tmp_path)
    found = prepare_set(tmp_path, "mmrarebench", PROTOCOL)
    assert (len(found.cases), dict(found.failed)) == (N, {})
    assert found.cases[1].questions[0].names == ("Danon disease", "MARK synonym")
    third = reader("measuring", "third", place=3)
    got = scores(tmp_path, "mmrarebench", reader("oracle"), third, reader("constant", answer="A"))
    assert [got["oracle", f"recall_at_{most}"] for most in (1, 3, 5)] == [100, 100, 100]
    assert [got["third", f"recall_at_{most}"] for most in (1, 3, 5)] == [0, 100, 100]
    assert got["third", "reciprocal_rank"] == pytest.approx(100 / 3)
    assert got["constant", "recall_at_5"] == 0  # a letter is no list


def test_volumes_of_a_set_are_numbers(tmp_path: Path) -> None:
    make_volumes(tmp_path)
    prepare_set(tmp_path, "map.yaml", PROTOCOL)
    got = scores(tmp_path, "map.yaml", reader("oracle"), reader("measuring", "biased", bias=30.0))
    assert (got["oracle", "absolute_error"], got["oracle", "within_tolerance"]) == (0, 100)
    assert (got["biased", "bias"], got["biased", "within_tolerance"]) == (pytest.approx(30), 0)
    assert got["oracle", "constant_error"] == 20


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        ("140", r'truth is "140", which has no unit, and ml and l are legal; expected e\.g\. 0\.0 ml'),
        ("140 %", 'truth is "140 %", which has another unit than ml or l'),
        ("9 l", "is outside 0 to 5000 ml"),
        ("", "truth is missing; expected an answer"),
    ],
)
def test_a_number_that_is_not_legal_is_refused_with_row_and_value(
    tmp_path: Path, truth: str, message: str
) -> None:
    make_volumes(tmp_path, truth=truth)
    (error,) = read_set(tmp_path, "map.yaml", PROTOCOL).failed.values()
    assert error.startswith(f"{tmp_path}/cases.jsonl:2: ")
    with pytest.raises(InputError, match=message):
        raise InputError(error)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"options": []}, "expected options, or for questions without any the subtask"),
        ({"subtask": "R10"}, "expected options, or for questions without any the subtask"),
        ({"answer": ["truth", "more?"]}, "answer has several columns"),
        ({"question": {"text": ["Which one?"]}}, "question"),
        ({"options": {"text": "Yes"}}, "options"),
    ],
)
def test_a_map_that_cannot_be_used_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    make_own(tmp_path, **change)
    with pytest.raises(InputError, match=f"map.yaml: .*{message}"):
        read_set(tmp_path, "map.yaml", PROTOCOL)


DATA = ["dataset=medthinkvqa", "dataset.source=folder"]


def selectors(*words: str) -> list[str]:
    return [selector.name for selector in read_spec(list(words)).selector]


@pytest.mark.parametrize("prompt", ["standard", "twi_self"])
def test_every_setting_shows_all_images_where_no_selector_is_named(prompt: str) -> None:
    assert selectors(*DATA, f"prompt=[{prompt}]") == ["all"]


def test_what_is_named_counts() -> None:
    assert selectors(*DATA, "selector=[uniform]") == ["uniform"]
    assert selectors("selector=[random@3]", *DATA) == ["random"]
    assert selectors("+experiment=medthinkvqa", DATA[1]) == ["random", "uniform"]
    assert selectors("+experiment=medthinkvqa", DATA[1], "selector=[all]") == ["all"]
    assert selectors("+experiment=controls", *DATA) == ["all"]
    with pytest.raises(InputError, match="selector clinical: images of a case have no views"):
        selectors(*DATA, "selector=[clinical]")
