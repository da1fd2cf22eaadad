"""Blind probes of drafts by two or more models: asked, scored, and written to the stages (stage 6d)."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.config.curation_specs import QuestionsSpec
from cardiolens.curation.asking.ask_texts import ask, asking_spec
from cardiolens.curation.probes.probe_scores import (
    SETTINGS,
    Replies,
    SubtaskProbe,
    answered_blind,
    probe_scores,
    probes_of,
)
from cardiolens.curation.questions.draft_reasons import Reason
from cardiolens.curation.questions.report_files import reject
from cardiolens.curation.questions.stage_files import Record, read_lines, write_lines
from cardiolens.protocol.prompts.text_request import TextRequest
from cardiolens.protocol.tasks.catalogue import Catalogue, load_catalogue
from cardiolens.protocol.tasks.questions import Question, given_questions

PROBES = "probes.json"
Ask = Callable[[Sequence[TextRequest]], list[str | None]]
"""A model: requests in, replies out, in their order."""


def probe(spec: QuestionsSpec, words: Sequence[str]) -> int:
    """Probe the drafts of a folder with the models that the words name; return 0."""
    if spec.draft is None:
        raise AssertionError("checked by the configuration")
    names = _models(words)
    others = [word for word in words if not word.startswith("model=")]
    models: dict[str, Ask] = {}
    for name in names:
        place = spec.draft / "probes" / name
        models[name] = partial(ask, asking_spec(spec.draft, place, spec.protocol, [f"model={name}", *others]))
    return probe_drafts(spec.draft, load_catalogue(spec.protocol), models)


def probe_drafts(folder: Path, catalogue: Catalogue, models: Mapping[str, Ask]) -> int:
    """Ask each draft of each model without images, and write what they tell; return 0."""
    path = folder / "questions.jsonl"
    rows = [row for row in given_questions(path, catalogue) if row.question.options]
    if not rows:
        raise InputError(f"draft={folder}: questions.jsonl holds no question with options; draft some first")
    questions = [row.question for row in rows]
    probes = [probe for question in questions for probe in probes_of(question.qa_id, question)]
    replies: dict[str, dict[str, list[Any]]] = {}
    requests = [probe.request() for probe in probes]
    for name, ask_model in models.items():
        choices = [probe.answer(reply) for probe, reply in zip(probes, ask_model(requests), strict=True)]
        replies[name] = {setting: choices[at :: len(SETTINGS)] for at, setting in enumerate(SETTINGS)}
    _check_read(replies)
    scores = probe_scores(questions, replies)
    out = {
        (questions[at].study_id, questions[at].subtask) for at in answered_blind(questions, replies, scores)
    }
    _write(folder, scores, out, replies=replies, questions=questions)
    _say(scores, len(out))
    return 0


def _check_read(replies: Replies) -> None:
    """Raise InputError if fewer than two models answered: who does not answer finds no leak."""
    n_read = {
        model: sum(answer is not None for answers in settings.values() for answer in answers)
        for model, settings in replies.items()
    }
    silent = sorted(model for model, count in n_read.items() if not count)
    if len(n_read) - len(silent) < 2:
        raise InputError(
            f"model: no reply of {', '.join(silent)} holds an answer, and a probe needs two that answer; "
            "nothing was written; name others, or look at their replies in probes/<model>/store"
        )
    for model in silent:
        say(f"{model}: none of its replies holds an answer; it probes nothing")


def _write(
    folder: Path,
    scores: Mapping[str, SubtaskProbe],
    out: set[tuple[str, str]],
    *,
    replies: Replies,
    questions: Sequence[Question],
) -> None:
    """Write the probes into the stage files, the questions and the rejects."""
    right = {
        (question.study_id, question.subtask): {
            model: [settings[name][at] == frozenset(question.answer) for name in SETTINGS]
            for model, settings in replies.items()
        }
        for at, question in enumerate(questions)
    }
    for path in sorted(folder.glob("6-automatic*.jsonl")):
        records = read_lines(path)
        for record in records:
            for subtask, state in record["checked"].items():
                key = record["study_id"], subtask
                if key in right:
                    state["probe"] = {
                        "settings": SETTINGS,
                        "right": right[key],
                        "leaks": scores[subtask].leaks,
                    }
                    state["verdict"] = "fail" if key in out else state["verdict"]
        write_lines(path, records)
    lines = read_lines(folder / "questions.jsonl")
    write_lines(
        folder / "questions.jsonl",
        [_probed(line, scores, len(replies)) for line in lines if _id(line) not in out],
    )
    rejects = [
        line
        for line in read_lines(folder / "rejects.jsonl")
        if line["reason"] != Reason.ANSWERED_BLIND or (line["study_id"], line["subtask"]) not in right
    ]
    rejects += [
        reject(6, Reason.ANSWERED_BLIND, study_id=study, subtask=subtask) for study, subtask in sorted(out)
    ]
    write_lines(folder / "rejects.jsonl", rejects)
    record = {
        "models": sorted(replies),
        "subtasks": {name: score.record() for name, score in scores.items()},
        "out": len(out),
    }
    disk.write_text(folder / PROBES, json.dumps(record, indent=1) + "\n")


def _id(line: Record) -> tuple[str, str]:
    return line.get("study") or line["study_id"], line["subtask"]


def _probed(line: Record, scores: Mapping[str, SubtaskProbe], n_models: int) -> Record:
    """Return a question with what probes tell of its subtask; one that leaks goes to full review."""
    score = scores.get(line["subtask"])
    if score is None:
        return line
    verification = {
        **line.get("verification", {}),
        "probes": n_models,
        "blind_excess": round(score.excess, 4),
    }
    if score.leaks:
        verification["queue"] = "full"
    return {**line, "verification": verification}


def _say(scores: Mapping[str, SubtaskProbe], n_out: int) -> None:
    leaking = {name: score for name, score in scores.items() if score.leaks}
    for name, score in leaking.items():
        why = "; ".join(score.given_away_by) or "no length of an option tells why"
        say(
            f"{name}: blind accuracy exceeds the best constant answer by {score.excess:.0%}, to review: {why}"
        )
    say(
        f"probed: {sum(score.questions for score in scores.values())} questions of {len(scores)} subtasks; "
        f"{len(leaking)} subtasks to review, {n_out} questions out"
    )


def _models(words: Sequence[str]) -> list[str]:
    """Return the names in `model=[a,b]`; InputError for fewer than two."""
    value = next((word.removeprefix("model=") for word in words if word.startswith("model=")), "")
    names = [name.strip() for name in value.strip("[]").split(",") if name.strip()]
    if len(set(names)) < 2:
        raise InputError(
            f"model={value or 'nothing'}: a probe asks two or more models, so that one model's taste is not "
            "taken for a leak; give e.g. model=[qwen3_vl_8b,internvl3_8b]"
        )
    return list(dict.fromkeys(names))
