"""The goldens by name: how each is made, where it is kept, and how it is compared.

A golden is a JSON document of numbers, short texts and digests. Numbers are equal within 1e-12 of their size;
everything else must be the same. `GOLDENS` holds a function for each, which makes it in an empty folder.
"""

import contextlib
import io
import json
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.golden import curated, planned, scored

DATA = Path(__file__).parent / "data"
Document = dict[str, Any]

GOLDENS: dict[str, Callable[[Path], Document]] = {
    "plan_demo": planned.demo,
    "plan_brain": planned.brain,
    "plan_chain": planned.chain,
    "plan_few_shot": planned.few_shot,
    "page": scored.page,
    "claims": scored.claims,
    "imports_real": curated.real_exports,
    "imports_makers": curated.makers,
    "imports_sets": curated.public_sets,
    "drafts": curated.drafts,
    "release": curated.released,
}


def made(name: str) -> Document:
    """Return what the code gives today."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        return json.loads(json.dumps(GOLDENS[name](Path(folder))))  # type: ignore[no-any-return]


def write(name: str, document: Document) -> None:
    """Keep a document as the golden of that name."""
    DATA.mkdir(exist_ok=True)
    kept = {"made by": f"python -m tests.golden make {name}", **document}
    (DATA / f"{name}.json").write_text(_lines(kept) + "\n", encoding="utf-8")


def _lines(value: Any, depth: int = 2) -> str:
    """Return JSON with a line for each entry of the outer levels, so that a difference is a line."""
    if depth == 0 or not value or not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "[\n" + ",\n".join(_lines(one, 0) for one in value) + "\n]"
    pairs = (f"{json.dumps(key, ensure_ascii=False)}: {_lines(one, depth - 1)}" for key, one in value.items())
    return "{\n" + ",\n".join(pairs) + "\n}"


def difference(name: str, today: Document) -> str:
    """Return the first difference from the golden in words; empty if there is none."""
    kept = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    kept.pop("made by")
    return _difference(kept, today, "")


def _difference(kept: Any, today: Any, where: str) -> str:
    if isinstance(kept, dict) and isinstance(today, dict) and kept.keys() == today.keys():
        inner = [_difference(kept[key], today[key], f"{where}/{key}") for key in kept]
        return next(filter(None, inner), "")
    if isinstance(kept, list) and isinstance(today, list) and len(kept) == len(today):
        inner = [
            _difference(one, other, f"{where}/{n}")
            for n, (one, other) in enumerate(zip(kept, today, strict=True))
        ]
        return next(filter(None, inner), "")
    if isinstance(kept, float) and isinstance(today, float):
        if (
            kept == today
            or (math.isnan(kept) and math.isnan(today))
            or math.isclose(kept, today, rel_tol=1e-12, abs_tol=1e-12)
        ):
            return ""
    elif kept == today:
        return ""
    return f"{where or '/'}: was {_short(kept)}, is {_short(today)}"


def _short(value: Any) -> str:
    if isinstance(value, dict):
        value = sorted(value)
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:300]}..."
