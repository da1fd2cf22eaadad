"""Benchmark of planning the `full` experiment for one model on a cohort of the paper's size: time and memory.

    .venv/bin/python bench/plan_full.py [override ...]

The 670 studies have the structure of the default phantom and frames of one byte each, since planning reads no
pixels; their questions are those of phantom_ci (`python -m cardiolens.prepare dataset=phantom_ci` makes it),
study by study in turn.
`uniform` replaces the third selector: features of 800,000 frames are not made here, see bench/selection.py.
"""

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
from selection import study

from cardiolens.config.compose import read_spec
from cardiolens.inference.plan.missing import missing
from cardiolens.inference.plan.plan import plan
from cardiolens.storage import schemas, tables
from cardiolens.study.cohort import Cohort, StudyRecord, write_cohort
from cardiolens.study.shards import part_writer, pixel_digest
from cardiolens.study.structure import VolumeStructure

N_STUDIES = 670
STUDIES_A_PART = 20
QUESTIONS = Path("data/phantom_ci/questions.jsonl")
FULL = ["+experiment=full", "model=[tiny]", "selector=[clinical,random,uniform]", "tracker=none"]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _write_store(root / "store")
        _write_questions(root / "questions.jsonl")
        places = [f"store={root}/store", f"outputs={root}/out", f"dataset.questions={root}/questions.jsonl"]
        for budgets in ("[8]", "[8,16]", "[8,16,32,64]"):
            spec = read_spec([*FULL, *places, *sys.argv[1:], f"budget={budgets}"])
            plan(spec.model_copy(update={"limit": 1}))  # imports and tokenizer
            began, used = time.monotonic(), time.process_time()
            planned = plan(spec)
            wall, processor = time.monotonic() - began, time.process_time() - used
            (identity,) = planned.identities.values()
            work = missing(planned.run.requests("tiny"), planned.store.completions(identity.model_key), 1)
            peak, others = (
                resource.getrusage(who).ru_maxrss / 2**20
                for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
            )
            print(
                f"{len(planned.arms)} arms: {planned.asked} requests, {work.unique} unique, "
                f"{planned.overflow} overflow: {wall:.1f} s ({processor:.1f} s of this process), "
                f"{planned.asked / wall:.0f}/s, peak {peak:.2f} GiB, of another process {others:.2f} GiB",
                flush=True,
            )


def _write_store(store: Path) -> None:
    records = {}
    for first in range(0, N_STUDIES, STUDIES_A_PART):
        part = f"part-{first:05d}.parquet"
        with part_writer(store, part) as writer:
            for number in range(first, min(first + STUDIES_A_PART, N_STUDIES)):
                study_id = _study_id(number)
                for volume in study(number).volumes.values():
                    row = _volume_row(study_id, volume)
                    writer.rows.append(writer.write(row, _frames(study_id, volume)))
                records[study_id] = StudyRecord(part=part, state="")
    write_cohort(store, Cohort(window_pct=(1.0, 99.0), studies=records, failed={}))


def _study_id(number: int) -> str:
    return f"PH-{number:04d}"


def _volume_row(study_id: str, volume: VolumeStructure) -> dict[str, object]:
    return {
        "study_id": study_id,
        "patient_id": study_id,
        "cohort": ["full"],
        "species": "phantom",
        "volume_id": volume.volume_id,
        "sequence": volume.sequence,
        "view": volume.view,
        "n_slices": volume.n_slices,
        "n_phases": volume.n_phases,
        "height": 256,
        "width": 256,
        "spacing_mm": [1.5, 1.5, 10.0],
        "spatial_order": "base_to_apex",
        "key_layers": list(volume.key_layers),
        "ed_phase": volume.ed_phase,
        "es_phase": volume.es_phase,
        "t_on": volume.t_on,
        "t_peak": volume.t_peak,
        "window_low": 0.0,
        "window_high": 1.0,
        "source_sha256": f"{study_id}/{volume.volume_id}",
    }


def _frames(study_id: str, volume: VolumeStructure) -> pa.Table:
    rows: list[dict[str, object]] = []
    for idx in range(volume.n_frames):
        name = f"{study_id}|{volume.volume_id}|{idx}".encode()
        rows.append(
            {
                "study_id": study_id,
                "volume_id": volume.volume_id,
                "idx": idx,
                "slice": idx // volume.n_phases,
                "phase": idx % volume.n_phases,
                "height": 256,
                "width": 256,
                "channels": 1,
                "pixels": b"\0",
                "digest": pixel_digest(name, 256, 256, 1),
            }
        )
    return tables.from_rows(rows, schemas.FRAMES)


def _write_questions(path: Path) -> None:
    """Write the questions of phantom_ci under new study ids: study k gets those of its study k mod 12."""
    asked: dict[str, list[dict[str, object]]] = {}
    for line in QUESTIONS.read_text().splitlines():
        row = json.loads(line)
        asked.setdefault(row["study_id"], []).append(row)
    sources = list(asked.values())
    with path.open("w") as out:
        for number in range(N_STUDIES):
            study_id = _study_id(number)
            for row in sources[number % len(sources)]:
                qa_id = str(row["qa_id"]).replace(str(row["study_id"]), study_id)
                new = row | {"qa_id": qa_id, "study_id": study_id, "patient_id": study_id}
                out.write(json.dumps(new) + "\n")


if __name__ == "__main__":
    main()
