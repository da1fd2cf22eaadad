"""A run as one partitioned Arrow dataset, with a data card that describes its columns."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

from cardiolens.base import disk
from cardiolens.score.run_results.stored_replies import item_of
from cardiolens.score.statistics.factors import FACTORS, ArmFactors
from cardiolens.score.verdicts.final_completions import finals
from cardiolens.show.page.case_viewer.withheld import public_reply
from cardiolens.show.page.page_data import Header, read_header
from cardiolens.storage import schemas, tables
from cardiolens.storage.documents import release_of
from cardiolens.storage.places import Run, store_of

_COUNTS = pa.list_(pa.struct([("name", pa.string()), ("value", pa.float64())]))
_VERDICT = [name for name in schemas.VERDICTS.names if name != "counts"]
_REQUEST = ("frames_study_id", "frames", "system", "template", "answer_format", "option_keys", "flags")
_COMPLETION = ("finish_reason", "prompt_tokens", "cached_tokens", "output_tokens", "seconds")
_ASKED = ("arm_id", "qa_id", "request_key", "prompt", *_REQUEST)
_REPLY = ("request_key", "status", "written_at", "text", *_COMPLETION)
_FACTORS = [name for name in FACTORS if name != "model"]
_STAGES = ("request_key", "stage", "frames", "not_shown", "status")  # of chains, without prompts and replies
_PROVENANCE = ("protocol", "dataset", "cardiolens", "questions_sha256", "cohort_digest")

# Columns of `answers` that none of the joined tables has: type and description.
_OWN = {
    "model": (pa.string(), "name of the model; the partition"),
    **{name: (pa.string(), "of the arm") for name in _FACTORS},
    "question": (pa.string(), "as the questions table has it"),
    "options": (pa.list_(schemas.OPTION), "as the questions table has them"),
    "prompt_text": (pa.string(), "user message; U+FFFC marks each frame, those of solved examples first"),
    "reply": (pa.string(), "text of the completion that counts; withheld where it repeats a report"),
    "counts": (_COUNTS, "what the scores add up"),
}


def answers_schema(*, patient_ids: bool) -> pa.Schema:
    """Columns of the dataset's files; `model` is the partition key in their folder names."""
    verdict_columns = [name for name in _VERDICT if patient_ids or name != "patient_id"]
    fields = [schemas.VERDICTS.field(name) for name in verdict_columns]
    fields += [pa.field(name, kind) for name, (kind, _) in _OWN.items() if name != "model"]
    fields += [schemas.REQUESTS.field(name) for name in _REQUEST]
    fields += [schemas.COMPLETIONS.field(name) for name in _COMPLETION]
    return pa.schema(fields)


def write_dataset(run: Run, *, patient_ids: bool) -> Path:
    """Rewrite `export/dataset` of a judged run and return its path; memory holds the replies of one model."""
    header = read_header(run, [run])
    folder = run.root / "export" / "dataset"
    disk.remove_tree(folder)
    schema, rows = answers_schema(patient_ids=patient_ids), 0
    for model in header.manifests[0]["models"]:
        arms = [arm for arm in header.arms if arm.model == model]
        for number, part in enumerate(answers_of(run, header, arms, patient_ids=patient_ids)):
            rows += part.num_rows
            _write(folder / "answers" / f"model={model}" / f"part-{number:05d}.parquet", part)
    extra_tables = {
        "scores": tables.read(run.scores, schemas.SCORES),
        "comparisons": tables.read(run.comparisons, schemas.COMPARISONS),
    }
    if run.seen.exists():
        extra_tables["seen"] = tables.read(run.seen, schemas.SEEN, _STAGES)
    for name, table in extra_tables.items():
        _write(folder / name / f"{name}.parquet", table)
    disk.write_text(folder / "README.md", card_of(header, schema, rows, sorted(extra_tables)))
    return folder


def _write(path: Path, table: pa.Table) -> None:
    with disk.atomic(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def answers_of(
    run: Run, header: Header, arms: Sequence[ArmFactors], *, patient_ids: bool
) -> Iterator[pa.Table]:
    """Yield the answers of some arms of one model, a row per verdict, a batch of requests at a time."""
    own = pc.field("arm_id").isin(pa.array([arm.arm_id for arm in arms], pa.string()))
    verdicts = tables.query(run.verdicts, schemas.VERDICTS, schemas.VERDICTS.names, own)
    questions = tables.read(store_of(run, header.specs[0]).questions, schemas.QUESTIONS)
    ((_, completions),) = header.runs_of(arms[0].model)
    by_key = pc.field("request_key").isin(pc.unique(verdicts["request_key"]))
    replies = finals(tables.query(completions, schemas.COMPLETIONS, _REPLY, by_key))
    factors = pa.Table.from_pylist([asdict(arm) for arm in arms]).select(["arm_id", *_FACTORS])
    schema = answers_schema(patient_ids=patient_ids)
    for batch in tables.scan(run.requests(arms[0].model), schemas.REQUESTS, _ASKED, own):
        requests = pa.Table.from_batches([batch])
        place = pc.index_in(item_of(verdicts), value_set=item_of(requests).combine_chunks())
        judged, asked = verdicts.filter(pc.is_valid(place)), requests.take(place.drop_null())
        question = _matching(questions, "qa_id", judged["qa_id"])
        reply = _matching(replies, "request_key", asked["request_key"])
        columns: dict[str, Any] = {
            **{name: asked[name] for name in _REQUEST},
            **{name: reply[name] for name in _COMPLETION},
            **{name: question[name] for name in ("question", "options")},
            **{name: judged[name] for name in _VERDICT},
            **{name: _matching(factors, "arm_id", judged["arm_id"])[name] for name in _FACTORS},
            "prompt_text": asked["prompt"],
            "reply": _public(reply["text"], question["reference"]),
            "counts": pa.array([_pairs(row) for row in judged["counts"].to_pylist()], _COUNTS),
        }
        yield pa.table(columns).select(schema.names).cast(schema)


def _matching(table: pa.Table, key: str, wanted: pa.ChunkedArray) -> pa.Table:
    """The row of a table for each wanted key; null where there is none."""
    return table.take(pc.index_in(wanted, value_set=table[key].combine_chunks()))


def _public(texts: pa.ChunkedArray, references: pa.ChunkedArray) -> pa.Array:
    """Replies; one that repeats its reference report is withheld."""
    if references.null_count == len(references):
        return texts.combine_chunks()
    pairs = zip(texts.to_pylist(), references.to_pylist(), strict=True)
    return pa.array([public_reply(*pair) for pair in pairs], pa.string())


def _pairs(counts: list[tuple[str, float]] | None) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in counts or ()]


def card_of(header: Header, schema: pa.Schema, rows: int, extra_tables: Sequence[str]) -> str:
    """The data card: a YAML header as Hugging Face reads it, how to open the files, and every column.

    `extra_tables`: names of the tables that are stored next to `answers`.
    """
    head = {
        "configs": [
            {"config_name": "answers", "data_files": "answers/*/*.parquet", "default": True},
            *({"config_name": name, "data_files": f"{name}/*.parquet"} for name in extra_tables),
        ],
    }
    manifest = header.manifests[0]
    provenance = ", ".join(f"{name} `{manifest[name]}`" for name in _PROVENANCE)
    if release := release_of(manifest):
        provenance += f", release {release}"
    columns = "\n".join(f"| `{field.name}` | `{field.type}` | {_meaning(field.name)} |" for field in schema)
    seen = ""
    if "seen" in extra_tables:
        seen = " `seen` has the frames that each stage of a chain showed, by `request_key`, and how it ended."
    return f"""---
{yaml.safe_dump(head, sort_keys=False).rstrip()}
---

# CardioLens run {header.name}

{rows:,} judged answers of {len(manifest["models"])} models under {len(header.arms)} arms, one row per arm,
question and channel. Research use only. No licence is named: it is that of the studies and questions, and
whoever passes this on has to add it. Study ids are taken to be pseudonyms. Prompts and replies are in the
files; frames and the texts of reference reports are not.

{provenance}.

```python
duckdb.sql("from read_parquet('answers/*/*.parquet', hive_partitioning=true)")
polars.scan_parquet("answers/**/*.parquet", hive_partitioning=True)
pandas.read_parquet("answers")
pyarrow.dataset.dataset("answers", partitioning="hive")
```

## Columns of `answers`

| column | type | meaning |
|---|---|---|
| `model` | `string` | {_OWN["model"][1]} |
{columns}

`scores` and `comparisons` are the run's tables of these names.{seen}
"""


def _meaning(name: str) -> str:
    if name in _OWN:
        return _OWN[name][1]
    tables_of = (schemas.VERDICTS, schemas.REQUESTS, schemas.COMPLETIONS)
    table = next(schema for schema in tables_of if name in schema.names)
    return f"as in table {table.metadata[b'table'].decode()}"
