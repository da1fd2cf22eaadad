"""Goldens of plans: arms, request keys and request rows."""

import hashlib
import json
import runpy
from collections import defaultdict
from pathlib import Path
from typing import Any

from chain_cohort import DIRECT, SELF, spec_of
from chain_cohort import make_cohort as make_chain_cohort
from small_cohort import make_cohort, reader, sweep_spec
from study_folders import published

from cardiolens.config.compose import read_spec
from cardiolens.config.dataset import PhantomSpec, Windows
from cardiolens.inference.plan.plan import Plan, plan
from cardiolens.phantom.phantom_cohort import make_cohort as make_phantoms
from cardiolens.storage import schemas, tables
from cardiolens.study.anatomy import Anatomy, anatomy_of

BRAIN = Path(__file__).resolve().parents[2] / "examples" / "brain"
DEMO = PhantomSpec(seed=2026, canonical=("PH-NORMAL", "PH-ICM-LAD", "PH-HCM-ASH"), n_sampled=1, size="ci")


def digest(value: Any) -> str:
    """Return a short digest of a value that JSON can hold."""
    stored = json.dumps(value, sort_keys=True, default=str, ensure_ascii=False)
    return hashlib.sha256(stored.encode()).hexdigest()[:16]


def demo(folder: Path) -> dict[str, Any]:
    """The demo's arms on four phantoms with their real frames."""
    make_phantoms(DEMO, folder / "data")
    prepare(folder / "data" / "studies", folder / "store", Windows(pct=(1.0, 99.0)))
    data = [f"dataset.studies={folder}/data/studies", f"dataset.questions={folder}/data/questions.jsonl"]
    where = [f"store={folder}/store", f"outputs={folder}/outputs", "tracker=none"]
    return document(plan(read_spec(["+experiment=demo", *data, *where])))


def brain(folder: Path) -> dict[str, Any]:
    """The brain example: a protocol, a generator and a sweep of another organ."""
    runpy.run_path(str(BRAIN / "make_brains.py"))["make"](folder / "brains", 6)
    anatomy = anatomy_of(str(BRAIN / "protocol"))
    root = folder / "brains"
    prepare(root / "studies", root / "store", anatomy.windows(Windows()), anatomy)
    dataset = {"name": "brain", "studies": root / "studies", "questions": root / "questions.jsonl"}
    spec = sweep_spec(
        root, reader("oracle"), budget=[4, 8], dataset=dataset | {"protocol": str(BRAIN / "protocol")}
    )
    return document(plan(spec))


def chain(folder: Path) -> dict[str, Any]:
    """Chains of three requests on generated cases of MedThinkVQA, beside direct questions."""
    root = make_chain_cohort(folder / "cases", 6)
    return document(plan(spec_of(root, SELF, DIRECT)))


def few_shot(folder: Path) -> dict[str, Any]:
    """Two solved examples of other patients before each question."""
    root = make_cohort(folder / "small", 5)
    shots = {"name": "two_shots", "style": "standard", "max_tokens": 64, "shots": 2}
    return document(plan(sweep_spec(root, reader("uniform"), prompt=[shots])))


def prepare(studies: Path, store: Path, windows: Windows, anatomy: Anatomy | None = None) -> None:
    """Prepare studies in this process."""
    published(store, sorted(studies.iterdir()), windows=windows, anatomy=anatomy)


def document(planned: Plan) -> dict[str, Any]:
    """Arms, and for each the number and digests of its requests; the first request of each model as it is."""
    rows_of: dict[str, list[dict[str, Any]]] = defaultdict(list)
    first = {}
    for model in planned.identities:
        folder = planned.run.requests(model)
        rows = tables.read(folder, schemas.REQUESTS).sort_by(
            [("arm_id", "ascending"), ("qa_id", "ascending")]
        )
        for row in rows.to_pylist():
            rows_of[row["arm_id"]].append(row)
        first[model] = {
            name: value for name, value in rows.slice(0, 1).to_pylist()[0].items() if name != "frames"
        }
    for arm in planned.arms:
        rows_of[arm.arm_id].sort(key=lambda row: (row["qa_id"], row["stage"], row["replicate"]))
    return {
        "arms": {
            arm.arm_id: {
                "what": [arm.model.name, arm.selector.name, arm.budget, arm.prompt.name, arm.control],
                "requests": len(rows_of[arm.arm_id]),
                "keys": digest([row["request_key"] for row in rows_of[arm.arm_id]]),
                "rows": digest(rows_of[arm.arm_id]),
            }
            for arm in planned.arms
        },
        "first request": first,
    }
