"""Cached verdicts of a model job; the score job reuses them if their fingerprint matches."""

import json
import socket
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from cardiolens.base import disk, entry_points, stage_versions
from cardiolens.base.digest import digest_of, digest_of_rows, sha256_of
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.config.plugin_words import scoring
from cardiolens.config.sweep import SweepSpec
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.score.run_results.model_replies import ModelReplies, OnDisk
from cardiolens.score.run_results.stages import StageCounts
from cardiolens.score.statistics.verdict_rows import Verdicts
from cardiolens.storage import tables
from cardiolens.storage.places import deciding
from cardiolens.storage.schemas import SCORES, SEEN, VERDICTS

_NOTE = "judged.json"
_PLAN = "plan.json"  # names everything that decided the requests
_AT_ONCE = 4_096  # questions that are Python objects at a time

Fingerprint = Mapping[str, str]


def digest_of_questions(questions: pa.Table) -> str:
    """Digest of a table of questions (32 hex digits), independent of row order."""
    batches = questions.sort_by("qa_id").to_batches(max_chunksize=_AT_ONCE)
    return digest_of_rows(row for batch in batches for row in batch.to_pylist())


def fingerprint_of(files: OnDisk, questions: pa.Table, spec: SweepSpec) -> Fingerprint | None:
    """Fingerprint of all inputs of a model's verdicts; None if its plan was not finished."""
    plan = files.requests / _PLAN
    if not plan.is_file():
        return None
    completions = tables.parts(files.completions)
    return {
        "plan": sha256_of(plan),
        "completions": digest_of([[part.name, part.stat().st_size] for part in completions]),
        "questions": digest_of_questions(questions),
        "configuration": digest_of(deciding(spec)),
        "protocol": load_catalogue(spec.dataset.protocol).sha256,
        "code": stage_versions.VERDICTS,
        **{word: entry_points.code_of(group, word) for group, word in scoring(spec)},
    }


def write_cached(folder: Path, replies: ModelReplies, fingerprint: Fingerprint) -> None:
    """Write verdicts, scores and transcripts; the note is written last and marks the cache as complete."""
    disk.remove(folder / _NOTE)
    of_arms = (replies.verdicts.of_arm(arm, VERDICTS.names) for arm in sorted(replies.verdicts.arms))
    tables.replace_by(folder / "verdicts", of_arms, VERDICTS)
    tables.replace(folder / "beside", replies.reply_scores, SCORES)
    tables.replace(folder / "seen", replies.seen, SEEN)
    note = {
        "mark": fingerprint,
        "node": socket.gethostname(),
        "counts": replies.counts,
        "stages": [asdict(stage) for stage in replies.stages],
        "parts": _sizes(folder),
    }
    disk.write_text(folder / _NOTE, json.dumps(note, indent=1) + "\n")


def read_cached(folder: Path, fingerprint: Fingerprint | None) -> ModelReplies | None:
    """Read the cached verdicts of a model; None unless they are complete and the fingerprint matches."""
    try:
        note: dict[str, Any] = read_json(folder / _NOTE)
        if fingerprint is None or note["mark"] != fingerprint or note["parts"] != _sizes(folder):
            return None
        counts = Counter({str(name): int(number) for name, number in note["counts"].items()})
        stages = tuple(StageCounts(**stage) for stage in note["stages"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # no note, or not one of ours
        return None
    verdicts = Verdicts()
    for rows in tables.read_blocks(folder / "verdicts", VERDICTS):
        verdicts.add(rows)
    reply_scores, seen = tables.read(folder / "beside", SCORES), tables.read(folder / "seen", SEEN)
    return ModelReplies(verdicts, reply_scores, seen, counts, stages)


def _sizes(folder: Path) -> dict[str, dict[str, int]]:
    return {
        name: {part.name: part.stat().st_size for part in tables.parts(folder / name)}
        for name in ("verdicts", "beside", "seen")
    }
