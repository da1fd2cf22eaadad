"""Synthetic cases in the format of MedThinkVQA, without any text or image of the real data.

The answer is visible in the images: one of them shows a coloured or grey mark, and each mark stands for one
diagnosis. Captions and findings name the mark; the history does not, so a reader of it alone can only guess.
"""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image, ImageDraw

from cardiolens.base import disk
from cardiolens.benchmarks.medthinkvqa import LETTERS, MOST_IMAGES, field_of

SEED = 2026
TEST, TRAIN = 720, 12  # cases
LONGITUDINAL = 0.304  # share of the real test cases
_PARTS = ("id", "path", "caption", "modality", "sub_modality")
_MODALITIES = {  # of level 1, with one of level 2
    "CT": "contrast-enhanced",
    "MRI": "T2-weighted",
    "X-ray": "frontal",
    "Ultrasound": "B-mode",
    "Pathology": "light microscopy",
    "Clinical photography": "skin",
    "Nuclear medicine and molecular imaging": "PET",
    "Endoscopy": "upper",
    "non-modality": "diagram",
}
_COLOURED = ("Pathology", "Clinical photography", "Endoscopy", "non-modality")
_DIAGNOSES = {  # shape of the mark: diagnosis, chapter; all of them invented
    "disc": ("Discoid dyslumia", "IX Circulatory"),
    "ring": ("Annular pallidosis", "IX Circulatory"),
    "square": ("Quadratic opalitis", "X Respiratory"),
    "bar": ("Linear stratopathy", "X Respiratory"),
    "cross": ("Cruciate fascitosis", "XIII Musculoskeletal"),
    "wedge": ("Cuneiform lucency", "II Neoplasms"),
    "pair": ("Geminate nodulosis", "II Neoplasms"),
    "frame": ("Marginal corticosis", "XIII Musculoskeletal"),
}
_SHAPES = tuple(_DIAGNOSES)


def make_cases(folder: Path, n_test: int = TEST, n_train: int = TRAIN, seed: int = SEED) -> None:
    """Write `train` and `test` as JSON Lines and Parquet with images; the bytes depend only on the seed."""
    for split, number in (("train", n_train), ("test", n_test)):
        draw = random.Random(f"{seed} {split}")
        records = [_case(folder, split, at, draw) for at in range(1, number + 1)]
        lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        disk.write_text(folder / f"{split}.jsonl", lines)
        every = {name: None for record in records for name in record}
        rows = [{**every, **record, "options": json.dumps(record["options"])} for record in records]
        with disk.atomic(folder / f"{split}.parquet") as temporary:
            pq.write_table(pa.Table.from_pylist(rows), temporary, compression="zstd")


def _case(folder: Path, split: str, at: int, draw: random.Random) -> dict[str, Any]:
    count = min(MOST_IMAGES, 1 + int(draw.expovariate(1 / 7.0)))
    shape = draw.choice(_SHAPES)
    other_shapes = draw.sample([candidate for candidate in _SHAPES if candidate != shape], len(LETTERS) - 1)
    letter = LETTERS[(at - 1) % len(LETTERS)]
    other_shapes.insert(LETTERS.index(letter), shape)
    diagnosis, chapter = _DIAGNOSES[shape]
    longitudinal = draw.random() < LONGITUDINAL
    record: dict[str, Any] = {
        "title": f"Case {at}: {diagnosis}",
        "CLINICAL_HISTORY": f"A person of {draw.randint(18, 90)} years was seen for {draw.choice(_REASONS)}.",
        "IMAGING_FINDINGS": f"One image shows a {shape}. There is nothing else of note.",
        "discussion": f"A {shape} is the sign of {diagnosis}, and of no other disease.",
        "options": {key: _DIAGNOSES[name][0] for key, name in zip(LETTERS, other_shapes, strict=True)},
        "correct_answer": letter,
        "correct_answer_text": diagnosis,
        "ICD Chapter": chapter,
        "ICD Block": f"{chapter} block",
        "ICD Category": f"{chapter} category",
        "is_longitudinal": longitudinal,
        "timepoint_count": draw.randint(2, 4) if longitudinal else 1,
        "interval_text": f"{draw.randint(2, 20)} months later" if longitudinal else None,
        "image_count": count,
    }
    key = draw.randint(1, count)
    modalities = draw.sample(list(_MODALITIES), min(count, draw.randint(1, 3)))
    for number in range(1, count + 1):
        modality = draw.choice(modalities)
        path = f"images/case{split}{at:05d}/{number:02d}.jpg"
        visible_shape = shape if number == key else None
        _write_image(folder / path, visible_shape, draw, coloured=modality in _COLOURED)
        values = (
            f"{split}{at:05d}_{number:02d}",
            path,
            f"{modality}: a {shape} is seen." if visible_shape else f"{modality}: no mark is seen.",
            modality,
            _MODALITIES[modality],
        )
        record |= {field_of(number, part): value for part, value in zip(_PARTS, values, strict=True)}
    return record


_REASONS = ("pain", "fever", "fatigue", "a routine visit", "cough", "loss of weight", "a fall", "dizziness")


def _write_image(path: Path, shape: str | None, draw: random.Random, *, coloured: bool) -> None:
    """Write a noise image, in colour or grey, with or without a mark in its middle."""
    height, width = draw.randint(40, 96), draw.randint(40, 96)
    noise = np.random.default_rng(draw.getrandbits(32)).integers(30, 70, (height, width, 3), np.uint8)
    image = Image.fromarray(noise if coloured else noise[..., 0])
    if shape is not None:
        _draw_mark(ImageDraw.Draw(image), shape, (width, height), (230, 90, 60) if coloured else 230)
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, "JPEG", quality=90)


def _draw_mark(
    draw: ImageDraw.ImageDraw, shape: str, size: tuple[int, int], fill: int | tuple[int, int, int]
) -> None:
    x, y = size[0] / 2, size[1] / 2
    r = min(size) / 4
    box = (x - r, y - r, x + r, y + r)
    match shape:
        case "disc":
            draw.ellipse(box, fill=fill)
        case "ring":
            draw.ellipse(box, outline=fill, width=4)
        case "square":
            draw.rectangle(box, fill=fill)
        case "bar":
            draw.rectangle((x - r, y - 3, x + r, y + 3), fill=fill)
        case "cross":
            draw.line((x - r, y, x + r, y), fill=fill, width=5)
            draw.line((x, y - r, x, y + r), fill=fill, width=5)
        case "wedge":
            draw.polygon(((x, y - r), (x - r, y + r), (x + r, y + r)), fill=fill)
        case "pair":
            draw.ellipse((x - r, y - r / 2, x, y + r / 2), fill=fill)
            draw.ellipse((x + 2, y - r / 2, x + r + 2, y + r / 2), fill=fill)
        case _:
            draw.rectangle(box, outline=fill, width=4)
