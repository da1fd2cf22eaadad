"""Images of every mode become frames by a named rule; wrong records and submissions name place and field."""

import io
import json
import math
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from cardiolens.base.errors import InputError
from cardiolens.benchmarks.benchmark import read_benchmark
from cardiolens.benchmarks.case_group import image_bytes, pixels_of
from cardiolens.benchmarks.medthinkvqa import (
    PROTOCOL,
    field_of,
    source_of,
    submission_problems,
    write_submission,
)
from jobs.medthinkvqa import rouge_l, step_overlap
from tests.support.cases.example_cases import make_cases


def stored(image: Image.Image, form: str = "PNG", **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


GREY = np.arange(30, dtype=np.uint8).reshape(5, 6) * 8
COLOUR = np.stack([GREY, GREY[::-1], 255 - GREY], axis=-1)


def clear(image: np.ndarray) -> Image.Image:
    """The colours with a transparent first row."""
    alpha = np.full(image.shape[:2], 255, np.uint8)
    alpha[0] = 0
    return Image.fromarray(np.dstack([image, alpha]))


ON_WHITE = np.concatenate([np.full_like(COLOUR[:1], 255), COLOUR[1:]])
DEEP = GREY.astype(np.uint16) * 100 + 7
MODES = {
    "grey": (stored(Image.fromarray(GREY)), GREY),
    "RGB": (stored(Image.fromarray(COLOUR)), COLOUR),
    "RGB of equal channels": (stored(Image.fromarray(np.dstack([GREY] * 3))), GREY),
    "bilevel": (stored(Image.fromarray(GREY > 99)), np.where(GREY > 99, 255, 0)),
    "alpha on white": (stored(clear(COLOUR)), ON_WHITE),
    "palette": (stored(Image.fromarray(COLOUR).quantize(64)), COLOUR),
    "16 bits": (stored(Image.fromarray(DEEP)), np.rint(GREY.astype(float) / GREY.max() * 255)),
    "CMYK": (stored(Image.fromarray(COLOUR).convert("CMYK"), "TIFF"), COLOUR),
    "turned": (stored(Image.fromarray(COLOUR), exif=Image.Exif()), COLOUR),
}


@pytest.mark.parametrize("mode", MODES)
def test_each_mode_has_its_rule(mode):
    given, expected = MODES[mode]
    found = pixels_of(given)
    assert found.dtype == np.uint8
    assert np.array_equal(found, expected)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (b"no image", "is no image"),
        (stored(Image.fromarray(GREY))[:60], "cannot be decoded"),
        (
            stored(Image.fromarray(GREY), "TIFF", save_all=True, append_images=[Image.fromarray(GREY)]),
            "holds 2 images",
        ),
    ],
)
def test_an_image_that_cannot_be_used_says_why(given, words):
    with pytest.raises(InputError, match=words):
        pixels_of(given)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    make_cases(folder, 6, 1)
    return folder


@pytest.fixture
def record(root):
    """A case of few images."""
    records = map(json.loads, (root / "test.jsonl").read_text().splitlines())
    return next(dict(one) for one in records if one["image_count"] < 10) | {"image_49_path": None}


WRONG = {
    "CLINICAL_HISTORY": [None, [3], "  ", math.nan],
    "options": [
        *(None, {"A": "x"}, "not JSON", {**dict.fromkeys("ABCD", "x"), "E": None}),
        {str(number): f"x{number}" for number in range(30)},
    ],
    "correct_answer": [None, "F", "a", ["A"]],
    "image_count": [None, 0, 50, True, "3"],
    "image_01_path": [None, "/etc/passwd", "../x.jpg", "images/../../x.jpg", 7],
    "image_49_path": ["images/a.jpg"],
    "is_longitudinal": [["yes"], {}],
    "image_01_caption": ["a \ufffc"],
    "IMAGING_FINDINGS": ["what was said: \ufdd00\ufdd1"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in WRONG for value in WRONG[name]])
def test_a_wrong_field_is_named_with_what_is_legal(record, tmp_path, name, value):
    (tmp_path / "test.jsonl").write_text(json.dumps(record | {name: value}) + "\n")
    (error,) = read_benchmark(source_of(tmp_path), PROTOCOL).failed.values()
    assert error.startswith(f"{tmp_path}/test.jsonl:1: ")
    assert name in error
    assert "expected" in error or "reserved for" in error


def test_a_missing_image_and_a_link_out_are_refused(root, tmp_path):
    make_cases(tmp_path, 1, 1)
    source = source_of(tmp_path)
    (case,) = read_benchmark(source, PROTOCOL).cases
    path = tmp_path / case.images[0].path
    path.unlink()
    with pytest.raises(InputError, match="is not there"):
        image_bytes(source, case.images[0])
    path.symlink_to(root / "test.jsonl")
    with pytest.raises(InputError, match="by a link"):
        image_bytes(source, case.images[0])


def test_images_that_a_parquet_file_holds_are_read_without_their_folder(tmp_path):
    def pixels():
        source = source_of(tmp_path)
        return [
            pixels_of(image_bytes(source, image))
            for case in read_benchmark(source, PROTOCOL).cases
            for image in case.images
        ]

    make_cases(tmp_path, 3, 1)
    of_files = pixels()
    records = [json.loads(line) for line in (tmp_path / "test.jsonl").read_text().splitlines()]
    for record in records:
        for number in range(1, 50):
            path = record.get(field_of(number, "path"))
            held = {"bytes": (tmp_path / path).read_bytes(), "path": None} if path else None
            record[f"image_{number:02d}"] = held
    pq.write_table(pa.Table.from_pylist(records), tmp_path / "test.parquet")
    (tmp_path / "test.jsonl").unlink()
    shutil.rmtree(tmp_path / "images")
    assert all(np.array_equal(one, other) for one, other in zip(pixels(), of_files, strict=True))


def test_a_submission_is_whole_and_its_mistakes_have_line_and_field(root, tmp_path):
    source, path = source_of(root), tmp_path / "sent.jsonl"
    letters = {source.name_of(number): "B" for number in range(1, 7)}
    write_submission(path, source, letters, {})
    assert not list(submission_problems(path, source))
    good = path.read_text().splitlines()

    def problems(at: int, change: dict) -> list[str]:
        lines = [*good[:at], json.dumps(json.loads(good[at]) | change), *good[at + 1 :]]
        path.write_text("\n".join(lines) + "\n")
        return list(submission_problems(path, source))

    wrong = {
        "prediction": {"prediction": "F"},
        "title": {"title": "another"},
        "extra": {"extra": 1},
        "prediction_rationale": {"prediction_rationale": 3},
        "prediction_twi": {"prediction_twi": {"step2_integrated_summary": 4}},
        "step1_per_image_findings": {"prediction_twi": {"step1_per_image_findings": ["x"] * 50}},
    }
    for name, change in wrong.items():
        (problem,) = problems(3, change)
        assert problem.startswith(f"{path}:4: ")
        assert name in problem
    path.write_text("\n".join(good[:5]) + "\n")
    assert [problem for problem in submission_problems(path, source) if f"{path}:6: is missing" in problem]
    path.write_text("\n".join([*good, good[0]]) + "\n")
    assert [problem for problem in submission_problems(path, source) if f"{path}:7: is beyond" in problem]
    with pytest.raises(InputError, match="prediction is missing"):
        write_submission(path, source, letters | {"test-00003": "F"}, {})


def test_rouge_l():
    assert rouge_l("a ring is seen", "A ring is seen.") == 1
    assert rouge_l("the cat sat", "the dog sat here") == pytest.approx(2 * 2 / 7)
    assert rouge_l("", "x") == 0
    record = {"image_01_caption": "a b", "image_02_caption": None, "IMAGING_FINDINGS": "c d"}
    steps = {"step1_per_image_findings": ["a b", "z"], "step2_integrated_summary": "c"}
    assert step_overlap(record, steps) == (1.0, pytest.approx(2 / 3))
