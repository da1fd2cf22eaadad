"""Logs of a run for the viewer of Inspect: one JSON file per arm, a sample per question."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cardiolens.base import disk
from cardiolens.score.statistics.factors import FACTORS, ArmFactors
from cardiolens.show.export.dataset_export import answers_of
from cardiolens.show.page.page_data import Header, read_header, usage_of
from cardiolens.storage.documents import release_of
from cardiolens.storage.places import Run

_VERSION = 2  # of Inspect's log format
_NEVER = datetime.fromtimestamp(0, UTC)  # of a run without a reply
_SCORER = "cardiolens"
_STOP_REASONS = {"stop": "stop", "length": "max_tokens"}  # finish reason -> Inspect's stop reason
Row = Mapping[str, Any]


def write_inspect_logs(run: Run, *, patient_ids: bool) -> Path:
    """Rewrite `export/inspect` of a judged run and return its path; memory holds the answers of one arm."""
    header = read_header(run, [run])
    folder = run.root / "export" / "inspect"
    disk.remove_tree(folder)
    last_reply = max((of["last_at"] for of in usage_of(header) if of["last_at"]), default=_NEVER)
    written_at = last_reply.astimezone(UTC).replace(microsecond=0)
    for arm in header.arms:
        parts = answers_of(run, header, [arm], patient_ids=patient_ids)
        rows = [row for part in parts for row in part.to_pylist()]
        name = f"{written_at:%Y-%m-%dT%H-%M-%S}_{header.name}_{arm.arm_id}.json"
        disk.write_text(folder / name, json.dumps(log_of(header, arm, rows, written_at), ensure_ascii=False))
    return folder


def log_of(header: Header, arm: ArmFactors, rows: Sequence[Row], written_at: datetime) -> dict[str, Any]:
    """The log of an arm; its one number is the share of right answers among those judged."""
    by_question: dict[str, list[Row]] = {}
    for row in rows:
        by_question.setdefault(row["qa_id"], []).append(row)
    samples = [_sample(arm, verdicts) for verdicts in by_question.values()]
    manifest, at = header.manifests[0], written_at.isoformat()
    release = release_of(manifest)
    channels = sorted({row["channel"] for row in rows})
    return {
        "version": _VERSION,
        "status": "success",
        "eval": {
            "run_id": header.name,
            "eval_id": arm.arm_id,
            "task_id": arm.arm_id,
            "created": at,
            "task": header.name,
            "dataset": {
                "name": manifest["dataset"],
                "samples": len(samples),
                "sample_ids": list(by_question),
            },
            "model": arm.model,
            "config": {},
            "task_args": {name: str(getattr(arm, name)) for name in FACTORS if name != "model"},
            "packages": {_SCORER: manifest["cardiolens"]},
            "metadata": {
                **{"arm_id": arm.arm_id, "protocol": manifest["protocol"]},
                **({"release": str(release)} if release else {}),
            },
        },
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {
            "total_samples": len(samples),
            "completed_samples": sum(row["reply"] is not None for row, *_ in by_question.values()),
            "scores": [_channel_score(rows, channel) for channel in channels],
        },
        "stats": {"started_at": at, "completed_at": at, "model_usage": {}},
        "samples": samples,
    }


def _channel_score(rows: Sequence[Row], channel: str) -> dict[str, Any]:
    correct = [row["correct"] for row in rows if row["channel"] == channel and row["correct"] is not None]
    share = {"accuracy": {"name": "accuracy", "value": sum(correct) / len(correct)}} if correct else {}
    return {"name": channel, "scorer": _SCORER, "scored_samples": len(correct), "metrics": share}


def _sample(arm: ArmFactors, verdicts: Sequence[Row]) -> dict[str, Any]:
    """One question under the arm; each channel of its verdict is a score."""
    row = verdicts[0]
    reply = {"role": "assistant", "content": row["reply"] or "", "model": arm.model, "source": "generate"}
    prompt = [{"role": "system", "content": row["system"]}] if row["system"] else []
    prompt.append({"role": "user", "content": row["prompt_text"]})
    stop_reason = _STOP_REASONS.get(row["finish_reason"] or "", "unknown")
    usage = {"input_tokens": row["prompt_tokens"] or 0, "output_tokens": row["output_tokens"] or 0}
    usage["total_tokens"] = usage["input_tokens"] + usage["output_tokens"]
    choices = [] if row["reply"] is None else [{"message": reply, "stop_reason": stop_reason}]
    columns = ("study_id", "subtask", "sequence", "tier", "status", "frames", "frames_study_id", "flags")
    patient = {"patient_id": row["patient_id"]} if "patient_id" in row else {}
    return {
        "id": row["qa_id"],
        "epoch": 1,
        "input": row["prompt_text"],
        "choices": [option["text"] for option in row["options"] or []] or None,
        "target": row["gold"] or [],
        "messages": [*prompt, *([reply] if choices else [])],
        "output": {"model": arm.model, "choices": choices, "usage": usage, "time": row["seconds"]},
        "scores": {verdict["channel"]: _score(verdict) for verdict in verdicts},
        "metadata": {name: row[name] for name in columns} | patient,
        "model_usage": {arm.model: usage},
        "total_time": row["seconds"],
    }


def _score(row: Row) -> dict[str, Any]:
    """`C` correct, `I` incorrect, `N` not judged."""
    value = {True: "C", False: "I", None: "N"}[row["correct"]]
    reasons = [row["parse_status"] or row["status"], row["rule"]]
    explanation = ", ".join(word for word in reasons if word)
    return {"value": value, "answer": ", ".join(row["parsed"] or []), "explanation": explanation}
