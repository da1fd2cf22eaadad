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

from cardiolens.base import stage_versions
from tests.golden import curated, planned, scored

DATA = Path(__file__).parent / "data"
_VERSIONS = "cardiolens/base/stage_versions.py"
Document = dict[str, Any]

STAGES = {
    "plan": ("PREPARED", "PLAN"),
    "imports": ("IMPORT",),
    "drafts": ("DRAFTS",),
}
"""By the first word of a golden's name, the stages whose versions it holds."""

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
    "imports_habits": curated.habits_of_scanners,
    "imports_traits": curated.traits_of_sets,
    "drafts": curated.drafts,
    "release": curated.released,
}

SLOW = {"imports_habits", "imports_traits"}
"""Compared by name and by the full tests alone: they take minutes."""


def made(name: str) -> Document:
    """Return what the code gives today."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        return json.loads(json.dumps(GOLDENS[name](Path(folder))))  # type: ignore[no-any-return]


def write(name: str, document: Document) -> None:
    """Keep a document as the golden of that name."""
    DATA.mkdir(exist_ok=True)
    path = DATA / f"{name}.json"
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    versions = versions_of(name)
    if versions and before.get("versions") == versions and difference(name, document):
        raise SystemExit(f"{name}: its numbers changed; raise one of {', '.join(versions)} in {_VERSIONS}")
    made_by = {"made by": f"python -m tests.golden make {name}"}
    kept = made_by | ({"versions": versions} if versions else {}) | document
    path.write_text(_lines(kept) + "\n", encoding="utf-8")


def versions_of(name: str) -> dict[str, str]:
    """Return the versions of the stages that a golden holds."""
    return {stage: getattr(stage_versions, stage) for stage in STAGES.get(name.partition("_")[0], ())}


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
    if (versions := kept.pop("versions", {})) != versions_of(name):
        return f"made for versions {versions} of {_VERSIONS}, which has {versions_of(name)}; make it anew"
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
