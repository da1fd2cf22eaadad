"""A run as one partitioned Arrow dataset, with a data card that describes its columns."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
_REQUEST = (
    "frames_study_id",
    "frames",
    "system",
    "template",
    "answer_format",
    "option_keys",
    "flags",
)
_COMPLETION = ("text", "finish_reason", "prompt_tokens", "cached_tokens", "output_tokens", "seconds")
_STAGES = ("request_key", "stage", "frames", "not_shown", "status")  # of chains, without prompts and replies
_TABLE_NOTES = {
    "scores": "`scores` and `comparisons` are the run's tables of these names.",
    "comparisons": "",
    "seen": "`seen` has the frames that each stage of a chain showed, by `request_key`, and how it ended.",
}

_PROVENANCE = ("protocol", "dataset", "cardiolens", "questions_sha256", "cohort_digest")

# Columns of `answers` that none of the joined tables has: type and description.
_OWN = {
    "model": (pa.string(), "name of the model; the partition"),
    **{name: (pa.string(), "of the arm") for name in FACTORS if name != "model"},
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
    fields += [schemas.COMPLETIONS.field(name) for name in _COMPLETION if name != "text"]
    return pa.schema(fields)


def write_dataset(run: Run, *, patient_ids: bool) -> Path:
    """Rewrite `export/dataset` of a judged run and return its path; memory holds the replies of one model."""
    header = read_header(run, [run])
    folder = run.root / "export" / "dataset"
    disk.remove_tree(folder)
    schema, rows = answers_schema(patient_ids=patient_ids), 0
    for model in header.manifests[0]["models"]:
        for number, part in enumerate(_answers(run, header, model, schema)):
            rows += part.num_rows
            place = folder / "answers" / f"model={model}" / f"part-{number:05d}.parquet"
            with disk.atomic(place) as temporary:
                pq.write_table(part, temporary, compression="zstd")
    extra_tables = {
        "scores": tables.read(run.scores, schemas.SCORES),
        "comparisons": tables.read(run.comparisons, schemas.COMPARISONS),
    }
    if run.seen.exists():
        extra_tables["seen"] = tables.read(run.seen, schemas.SEEN, _STAGES)
    for name, table in extra_tables.items():
        with disk.atomic(folder / name / f"{name}.parquet") as temporary:
            pq.write_table(table, temporary, compression="zstd")
    disk.write_text(folder / "README.md", card_of(header, schema, rows, sorted(extra_tables)))
    return folder


_REQUEST_COLUMNS = ("arm_id", "qa_id", "request_key", "prompt", *_REQUEST)


def _answers(run: Run, header: Header, model: str, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the answers of a model, one part of its requests at a time."""
    source = _Source.of(run, header, [arm for arm in header.arms if arm.model == model])
    for path in tables.parts(run.requests(model)):
        requests = tables.read_part(path, schemas.REQUESTS, _REQUEST_COLUMNS)
        yield source.answers(requests).select(schema.names).cast(schema)


def answers_of_arm(run: Run, header: Header, arm: ArmFactors, *, patient_ids: bool) -> pa.Table:
    """The answers of one arm, as the dataset has them."""
    own = pc.field("arm_id") == arm.arm_id
    requests = tables.query(run.requests(arm.model), schemas.REQUESTS, _REQUEST_COLUMNS, own)
    schema = answers_schema(patient_ids=patient_ids)
    return _Source.of(run, header, [arm]).answers(requests).select(schema.names).cast(schema)


@dataclass(frozen=True, slots=True)
class _Source:
    """The verdicts, replies and questions of some arms of one model."""

    verdicts: pa.Table
    replies: pa.Table
    questions: pa.Table
    arms: Mapping[str, ArmFactors]

    @staticmethod
    def of(run: Run, header: Header, arms: Sequence[ArmFactors]) -> "_Source":
        store = store_of(run, header.specs[0])
        by_id = {arm.arm_id: arm for arm in arms}
        own = pc.field("arm_id").isin(pa.array(list(by_id), pa.string()))
        verdicts = tables.query(run.verdicts, schemas.VERDICTS, schemas.VERDICTS.names, own)
        key = str(header.manifests[0]["models"][arms[0].model]["model_key"])
        by_key = pc.field("request_key").isin(pc.unique(verdicts["request_key"]))
        columns = ("request_key", "status", "written_at", *_COMPLETION)
        completions = tables.query(store.completions(key), schemas.COMPLETIONS, columns, by_key)
        return _Source(verdicts, finals(completions), tables.read(store.questions, schemas.QUESTIONS), by_id)

    def answers(self, requests: pa.Table) -> pa.Table:
        """The answers to requests, one wide row per verdict."""
        place = pc.index_in(item_of(self.verdicts), value_set=item_of(requests).combine_chunks())
        verdicts, requests = self.verdicts.filter(pc.is_valid(place)), requests.take(place.drop_null())
        reply = _matching(self.replies, "request_key", requests["request_key"])
        question = _matching(self.questions, "qa_id", verdicts["qa_id"])
        arms = [self.arms[arm_id] for arm_id in verdicts["arm_id"].to_pylist()]
        columns: dict[str, Any] = {name: verdicts[name] for name in _VERDICT}
        for name in FACTORS:
            columns[name] = pa.array([str(getattr(arm, name)) for arm in arms], pa.string())
        columns |= {name: question[name] for name in ("question", "options")}
        columns |= {name: requests[name] for name in _REQUEST}
        columns |= {name: reply[name] for name in _COMPLETION if name != "text"}
        columns["prompt_text"] = requests["prompt"]
        columns["reply"] = _public(reply["text"], question["reference"])
        columns["counts"] = pa.array([_pairs(row) for row in verdicts["counts"].to_pylist()], _COUNTS)
        return pa.table(columns)


def _matching(table: pa.Table, key: str, wanted: pa.ChunkedArray) -> pa.Table:
    """The row of a table for each wanted key; null where there is none."""
    return table.take(pc.index_in(wanted, value_set=table[key].combine_chunks()))


def _public(texts: pa.ChunkedArray, references: pa.ChunkedArray) -> pa.Array:
    """Replies; one that repeats its reference report is withheld."""
    if references.null_count == len(references):
        return texts.combine_chunks()
    pairs = zip(texts.to_pylist(), references.to_pylist(), strict=True)
    return pa.array([public_reply(text, {"reference": reference}) for text, reference in pairs], pa.string())


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

{" ".join(_TABLE_NOTES[name] for name in extra_tables)}
"""


def _meaning(name: str) -> str:
    if name in _OWN:
        return _OWN[name][1]
    for table in (schemas.VERDICTS, schemas.REQUESTS, schemas.COMPLETIONS):
        if name in table.names:
            return f"as in table {table.metadata[b'table'].decode()}"
    raise AssertionError(name)
