"""Benchmark of page and case viewer: time, memory and size for 24 arms x about 19,500 items, 670 patients.

Verdicts are random; prompts and replies are as long as real ones. The time does not include scoring.

python -m bench.page [--items 19500]
"""

import argparse
import json
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.bootstrap import arms, verdicts
from cardiolens.base import disk
from cardiolens.score.claims.parts_of_cohort import Groups
from cardiolens.score.run_results.run_analyses import analyses_of, write_analyses
from cardiolens.score.statistics.items import ArmAnswers
from cardiolens.score.statistics.scores import compute_scores
from cardiolens.score.statistics.statistic import Settings
from cardiolens.score.statistics.verdict_rows import Verdicts
from cardiolens.show.page.write import write_page
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run, Store

PATIENTS = 670
PART_ROWS = 16_384
KEY = "model-key"
REPLY = "The left ventricle is of normal size; its wall moves evenly. " * 7 + "ANSWER: A"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=19_500, help="of each arm")
    items = parser.parse_args().items
    with tempfile.TemporaryDirectory() as folder:
        with ProcessPoolExecutor(1) as elsewhere:  # so that the peak is the page's own
            run = elsewhere.submit(make_run, Path(folder), items).result()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        started, worked = time.perf_counter(), time.process_time()
        write_page(run, [run])
        seconds, worked = time.perf_counter() - started, time.process_time() - worked
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        viewer = sum(path.stat().st_size for path in run.viewer.rglob("*") if path.is_file())
        chunks = sum(path.stat().st_size for path in (run.root / "page").glob("*"))
        print(f"verdicts: {24 * items:,}")
        print(f"page and viewer: {seconds:.1f} s, of these {worked:.1f} s of processor")
        print(f"peak {peak / 2**20:.2f} GiB ({before / 2**20:.2f} before)")
        print(f"index.html {run.page.stat().st_size / 1e6:.2f} MB, tables beside it {chunks / 1e6:.1f} MB")
        index = (run.viewer / "index.html").stat().st_size
        print(f"viewer/index.html {index / 1e6:.2f} MB, all of the viewer {viewer / 1e6:.0f} MB")


def make_run(folder: Path, items: int) -> Run:
    """Write a finished run and its store."""
    run, store = Run(folder / "outputs" / "bench-00000000"), Store(folder / "store")
    asked = arms()
    judged = verdicts(PATIENTS, [arm.arm_id for arm in asked], items).cast(schemas.VERDICTS)
    answers = ArmAnswers.of(judged)
    settings = Settings(5, 50, 1)
    results = compute_scores(answers, asked, settings)
    tables.replace(run.verdicts, judged, schemas.VERDICTS)
    tables.replace(run.scores, results.scores, schemas.SCORES)
    tables.replace(run.comparisons, results.comparisons, schemas.COMPARISONS)
    write_analyses(
        run,
        analyses_of(Verdicts.of(judged), answers, results.scores, asked, groups=Groups(), settings=settings),
    )
    for start in range(0, judged.num_rows, PART_ROWS):
        rows = requests(judged.slice(start, PART_ROWS))
        tables.write_part(run.requests("model"), rows, schemas.REQUESTS)
    tables.replace(store.completions(KEY), completions(judged), schemas.COMPLETIONS)
    tables.replace(store.questions, questions(judged.slice(0, items)), schemas.QUESTIONS)
    write_record(run, store, folder)
    return run


def requests(judged: pa.Table) -> pa.Table:
    """Requests with as many frames as the arm's budget, with captions."""
    rows = []
    prompts = {k: prompt(k) for k in (8, 16, 32, 64)}
    frames = {k: [{"volume_id": "cine_sax", "idx": idx} for idx in range(k)] for k in prompts}
    columns = [judged[name].to_pylist() for name in ("arm_id", "qa_id", "study_id", "subtask", "request_key")]
    for arm, qa_id, study, subtask, key in zip(*columns, strict=True):
        budget = int(arm.split("-")[1])
        rows.append(
            {
                "arm_id": arm,
                "qa_id": qa_id,
                "study_id": study,
                "frames_study_id": study,
                "subtask": subtask,
                "frames": frames[budget],
                "system": "You read cardiac MRI.",
                "prompt": f"{prompts[budget]}{subtask}: which of these is shown? A. One B. Two C. Three",
                "option_keys": ["A", "B", "C"],
                "flags": [],
                "status": "planned",
                "request_key": key,
            }
        )
    return tables.from_rows(rows, schemas.REQUESTS)


def prompt(frames: int) -> str:
    return "".join(
        f"Frame {n}: cine, short axis, slice {n} of {frames}\n\ufffc\n" for n in range(1, frames + 1)
    )


def completions(judged: pa.Table) -> pa.Table:
    keys = judged["request_key"].unique()
    n = len(keys)
    dice = np.random.default_rng(1)
    columns = {
        "request_key": keys,
        "text": pa.array([f"{number}. {REPLY}" for number in dice.integers(0, 10**6, n)]),
        "finish_reason": pa.repeat("stop", n),
        "prompt_tokens": pa.array(np.full(n, 3000, np.int32)),
        "cached_tokens": pa.array(np.full(n, 2000, np.int32)),
        "output_tokens": pa.array(np.full(n, 90, np.int32)),
        "seconds": pa.array(np.ones(n)),
        "status": pa.repeat("ok", n),
        "written_at": pa.repeat(pa.scalar(datetime.now(UTC), pa.timestamp("us", "UTC")), n),
    }
    columns |= {name: pa.nulls(n) for name in schemas.COMPLETIONS.names if name not in columns}
    return pa.table({name: columns[name] for name in schemas.COMPLETIONS.names}).cast(schemas.COMPLETIONS)


def questions(judged: pa.Table) -> pa.Table:
    rows = [
        {
            "qa_id": row["qa_id"],
            "study_id": row["study_id"],
            "patient_id": row["patient_id"],
            "tier": 1,
            "subtask": row["subtask"],
            "sequence": row["sequence"],
            "question": "Which of these is shown?",
            "answer_type": row["answer_type"],
            "options": [{"key": key, "text": f"Option {key}"} for key in "ABCDE"],
            "answer": row["gold"],
        }
        for row in judged.to_pylist()
    ]
    return tables.from_rows(rows, schemas.QUESTIONS)


def write_record(run: Run, store: Store, folder: Path) -> None:
    """Write the parts of configuration and manifest that a page reads."""
    named = {"name": "model", "source": "packaged/tiny"}
    configuration = {
        "name": "bench",
        "dataset": {"name": "bench", "studies": str(folder), "questions": str(folder / "questions.jsonl")},
        "model": [named],
        "selector": [{"name": "clinical", "kind": "clinical"}],
        "budget": [8],
        "prompt": [{"name": "standard", "style": "standard", "max_tokens": 64}],
        "store": str(store.root),
        "outputs": str(run.root.parent),
    }
    manifest = {
        "schema": "manifest-1",
        "experiment": "bench",
        **dict.fromkeys(("questions_digest", "questions_sha256", "catalogue_sha256", "cohort_digest"), "0"),
        "protocol": "openprotocol-1",
        "dataset": "bench",
        "studies": PATIENTS,
        "cardiolens": "bench",
        "git_commit": None,
        "packages": {},
        "models": {"model": {"model_key": KEY}},
        "arms": [
            {
                name: getattr(arm, name)
                for name in ("arm_id", "model", "selector", "budget", "prompt", "control")
            }
            for arm in arms()
        ],
        "requests": {"executed": 0, "reused": 0},
        "seconds": {"load": 0.0, "generate": 0.0},
        "frames": {},
        "tokens": {},
    }
    disk.write_text(run.configuration, json.dumps(configuration))
    disk.write_text(run.manifest, json.dumps(manifest))


if __name__ == "__main__":
    main()
