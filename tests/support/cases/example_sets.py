"""Stand-ins for the files of public benchmarks, without any text or picture of the real data.

They have the traits that public loaders of the real files take care of: spaces after answers and
their types, numbers as answers, open and closed questions side by side, a second language, options that are
absent, blank or alike, and answers that are none of them. A picture shows a disc or none, which is what its
questions ask.
"""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from cardiolens.base import disk

OPEN_PART = ("QA_information", "Open-access")  # of OmniMedVQA
WHOLE = "VQA_RAD Dataset Public.json"
SEED = 2026
PICTURES = 40  # of the test split
_ORGANS = ("HEAD", "CHEST", "ABD")
_MODALITIES = ("CT", "MRI", "X-Ray")
_SHAPES = ("Disc", "Ring", "Square", "Bar")

Record = dict[str, Any]


def make_benchmark(name: str, folder: Path, n_pictures: int = PICTURES, seed: int = SEED) -> None:
    """Write a stand-in of a benchmark; the bytes depend only on its name, the number and the seed."""
    _MAKERS[name](folder, n_pictures, random.Random(f"{name} {seed}"))


def _make_vqa_rad(folder: Path, n_pictures: int, draw: random.Random) -> None:
    records: list[Record] = []
    for number in range(1, n_pictures + 1):
        name, has_disc = f"synpic{10_000 + number}.jpg", draw.random() < 0.5
        _write_picture(folder / "VQA_RAD Image Folder" / name, draw, has_disc=has_disc)
        of_picture = {"image_name": name, "image_organ": draw.choice(_ORGANS)}
        answer = "Yes" if has_disc else "No"
        for phrase, question, kind, text in (
            ("test_freeform", "Is a disc shown?", "CLOSED", answer),
            ("test_para", "Does the picture show a disc?", "CLOSED ", f"{answer.lower()} "),
            ("test_freeform", "What is shown?", "OPEN", "A disc" if has_disc else "Nothing"),
            ("test_freeform", "How many discs are there?", "OPEN", int(has_disc)),
            ("test_para", "Is the disc left or right?", "CLOSED", "Left"),
            ("freeform", "Is there a disc?", "CLOSED", f"{answer}\t"),
        ):
            entry = {"qid": len(records) + 1, "phrase_type": phrase, "question": question, "answer": text}
            records.append(of_picture | entry | {"answer_type": kind, "question_type": "PRES"})
    _write_json(folder / WHOLE, records)


def _make_slake(folder: Path, n_pictures: int, draw: random.Random) -> None:
    by_split: dict[str, list[Record]] = {"train": [], "test": []}
    for number in range(1, n_pictures + 1):
        name, has_disc = f"xmlab{number}/source.jpg", draw.random() < 0.5
        _write_picture(folder / "imgs" / name, draw, has_disc=has_disc)
        of_picture = {"img_id": number, "img_name": name, "modality": draw.choice(_MODALITIES)}
        answer = "Yes" if has_disc else "No"
        for split, language, question, kind, text in (
            ("test", "en", "Is a disc shown?", "CLOSED", answer),
            ("test", "en", "Does the picture contain a disc?", "CLOSED", answer.lower()),
            ("test", "en", "Which side is the disc on, left or right?", "CLOSED", "Left"),
            ("test", "en", "What is shown?", "OPEN", "Disc" if has_disc else "Nothing"),
            ("test", "zh", "图中有圆盘吗？", "CLOSED", "是" if has_disc else "不是"),
            ("train", "en", "Is there a disc?", "CLOSED", answer),
        ):
            entry = {"qid": sum(map(len, by_split.values())), "q_lang": language, "question": question}
            entry |= {"answer": text, "answer_type": kind, "content_type": "Shape", "base_type": "vqa"}
            by_split[split].append(of_picture | entry)
    for split, records in by_split.items():
        _write_json(folder / f"{split}.json", records)


def _make_omnimedvqa(folder: Path, n_pictures: int, draw: random.Random) -> None:
    by_set: dict[str, list[Record]] = {"Blank Discs": [], "ShapeNet-M": []}
    for number in range(1, n_pictures + 1):
        name = sorted(by_set)[number % 2]
        shape = draw.choice(_SHAPES)
        path = f"Images/{name}/{number:04d}.png"
        _write_picture(folder / path, draw, has_disc=shape == "Disc")
        texts = draw.sample(_SHAPES, 4)
        if number % 5 == 0:  # fewer than four options, of which one place is blank
            rest = [text for text in texts if text != shape]
            texts = [shape, rest[0], "", rest[1]]
        options: Record = {f"option_{letter}": text for letter, text in zip("ABCD", texts, strict=True)}
        if number % 7 == 0:
            options["option_D"] = None
            options["option_A"], options["option_B"] = shape, next(text for text in _SHAPES if text != shape)
            options["option_C"] = ""
        answer = shape.lower() if number % 3 == 0 else shape
        kind = "modality" if number == 2 else "modality_type"
        entry = {"dataset": name, "question_id": f"{name}_{number:04d}", "question_type": "Shape", **options}
        entry |= {"question": "Which shape is shown?", "gt_answer": answer, "image_path": path, kind: "CT"}
        by_set[name].append(entry)
        if number % 10 == 0:
            base = {**entry, "option_A": shape, "option_B": texts[1] or "Ring", "option_C": "Cross"}
            alike = {"question_id": f"{name}_{number:04d}a", "option_D": f" {shape.upper()}"}
            none_right = {"question_id": f"{name}_{number:04d}n", "gt_answer": "Star", "option_D": "Dot"}
            by_set[name] += [base | alike, base | none_right]
    for name, records in by_set.items():
        _write_json(folder.joinpath(*OPEN_PART, f"{name}.json"), records)


_MAKERS: dict[str, Callable[[Path, int, random.Random], None]] = {
    "vqa_rad": _make_vqa_rad,
    "slake": _make_slake,
    "omnimedvqa": _make_omnimedvqa,
}


def _write_json(path: Path, records: list[Record]) -> None:
    disk.write_text(path, json.dumps(records, ensure_ascii=False, indent=1) + "\n")


def _write_picture(path: Path, draw: random.Random, *, has_disc: bool) -> None:
    """Write noise, with or without a disc."""
    size = draw.randint(40, 72), draw.randint(40, 72)
    noise = np.random.default_rng(draw.getrandbits(32)).integers(30, 70, size[::-1], np.uint8)
    image = Image.fromarray(noise)
    if has_disc:
        ImageDraw.Draw(image).ellipse((10, 10, 28, 28), fill=230)
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)
