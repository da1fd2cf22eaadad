"""Draft questions from the answers of one or two extractors: of both, of one alone, or disputed."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from cardiolens.curation.questions.checks import Violation, violations
from cardiolens.curation.questions.draft_reasons import Reason
from cardiolens.curation.questions.extraction_truth import Answer, settle
from cardiolens.curation.questions.report_files import Rejects, reject
from cardiolens.curation.questions.rule_extraction import extract
from cardiolens.curation.questions.stage_files import Record, Stages, body
from cardiolens.curation.questions.statement import ReportStatement
from cardiolens.protocol.tasks.catalogue import Catalogue, Subtask

ALWAYS_FULL = frozenset({"D01", "D02"})  # reviewed whole, whoever agrees (protocol 9, stage 7)
OF_DRAFTS = (Reason.EXTRACTORS_DISAGREE, Reason.MODEL_ALONE, Reason.NO_SEQUENCE, Reason.AGAINST_TRUTH)
Item = dict[str, Any]


def settled(
    stages: Stages,
    inputs: Sequence[Record],
    truth: Callable[..., Mapping[str, Any]],
    automatic: Callable[..., Mapping[str, Any]],
    catalogue: Catalogue,
    *,
    suffix: str = "",
) -> tuple[list[Record], list[Record]]:
    """Run stages 3 to 6: truth, checks, drafts, automatic verification; return the last two."""
    records: list[list[Record]] = []
    for name, schema, make in (
        ("3-truth", "truth-1", truth),
        ("4-checks", "check-1", check_of),
        ("5-drafts", "draft-1", drafts_of),
        ("6-automatic", "auto-1", automatic),
    ):
        records.append(stages.run(f"{name}{suffix}", schema, inputs, partial(make, catalogue=catalogue)))
        inputs = [given | body(made) for given, made in zip(inputs, records[-1], strict=True)]
    return records[2], records[3]


def refused_lines(draft: Record, check: Record, of_drafts: Collection[str] = OF_DRAFTS) -> Rejects:
    """Return the rejects of one study; reasons in `of_drafts` are of stage 5, all others of stage 3."""
    lines = []
    for name, reason in draft["refused"].items():
        disputed = draft["disputed"].get(name)
        more = {} if disputed is None else {"answers": disputed}
        stage = 5 if reason in of_drafts else 3
        lines.append(reject(stage, reason, study_id=draft["study_id"], subtask=name, **more))
    return lines + [
        reject(6, Reason.LEAKS, study_id=draft["study_id"], subtask=name)
        for name, state in check["checked"].items()
        if state["verdict"] != "pass"
    ]


def truth_of(record: Mapping[str, Any], catalogue: Catalogue) -> dict[str, Any]:
    """Build a `truth-1` body: answers, doubts and evidence by extractor."""
    extractors: dict[str, Any] = {}
    for extractor, items in record["findings"].items():
        extraction = settle(record["text"], [ReportStatement.of(item) for item in items], catalogue)
        extractors[extractor] = {
            "answers": {name: list(keys) for name, keys in extraction.answers.items()},
            "indeterminate": dict(sorted(extraction.undetermined.items())),
            "provenance": {
                name: [items[place]["id"] for place in places] for name, places in extraction.evidence.items()
            },
        }
    return {"extractors": extractors}


def merged(
    extractors: Mapping[str, Any], catalogue: Catalogue, *, trusted: bool = False
) -> tuple[dict[str, Item], dict[str, str]]:
    """Merge extractors: items by subtask, and a Reason for each subtask mentioned without an answer.

    An item says who drafted it: both extractors, or one. An answer of the model alone is an item only if the
    model is trusted, because it passed the gate.
    """
    items: dict[str, Item] = {}
    refused: dict[str, str] = {}
    for subtask in catalogue.subtasks:
        answers = {
            name: extraction["answers"][subtask]
            for name, extraction in extractors.items()
            if subtask in extraction["answers"]
        }
        doubts = [
            extraction["indeterminate"][subtask]
            for extraction in extractors.values()
            if subtask in extraction["indeterminate"]
        ]
        distinct = {tuple(keys) for keys in answers.values()}
        if len(distinct) > 1:
            refused[subtask] = Reason.EXTRACTORS_DISAGREE
        elif answers.keys() == {"model"} and not trusted:
            refused[subtask] = doubts[0] if doubts else Reason.MODEL_ALONE
        elif distinct:
            both = len(answers) > 1
            items[subtask] = {
                "answer": list(next(iter(distinct))),
                "by": "both" if both else next(iter(answers)),
                "queue": "sampling" if both and subtask not in ALWAYS_FULL else "full",
            }
        elif doubts:
            refused[subtask] = doubts[0]
    return items, refused


def check_of(record: Mapping[str, Any], catalogue: Catalogue) -> dict[str, Any]:
    """Build a `check-1` body: the consistency rules that the merged answers break."""
    items, _ = merged(record["extractors"], catalogue, trusted=record.get("trusted", False))
    broken = violations({name: tuple(item["answer"]) for name, item in items.items()})
    if items.get("D01", {}).get("answer") == ["A"] and any(
        _is_abnormal(item, catalogue) for found in record["findings"].values() for item in found
    ):
        broken.append(Violation("a normal study with an abnormal finding", ("D01",)))
    return {
        "violations": [
            {"rule": violation.rule, "fields": list(violation.fields), "severity": "error"}
            for violation in broken
        ]
    }


def _is_abnormal(item: Mapping[str, Any], catalogue: Catalogue) -> bool:
    """Return whether a finding contradicts a normal study, even if it gives no answer."""
    normal = {option.text for option in catalogue[item["subtask"]].options if option.normal}
    if catalogue[item["subtask"]].quantity is not None:
        return False
    return item["certainty"] == "certain" and item["value"] is not None and item["value"] not in normal


def drafts_of(record: Mapping[str, Any], catalogue: Catalogue) -> dict[str, Any]:
    """Build a `draft-1` body: items with their evidence, and the refused subtasks with reasons."""
    items, refused = merged(record["extractors"], catalogue, trusted=record.get("trusted", False))
    blocked = {name for violation in record["violations"] for name in violation["fields"]}
    for name in blocked & items.keys():
        del items[name]
        refused[name] = Reason.AGAINST_TRUTH
    for name in list(items):
        if reason := _not_asked(catalogue[name], items, record["sequences"]):
            del items[name]
            refused[name] = reason
    for name, item in items.items():
        extractors = record["extractors"] if item["by"] == "both" else [item["by"]]
        provenance = [record["extractors"][extractor]["provenance"].get(name, []) for extractor in extractors]
        item["evidence"] = [identity for ids in provenance for identity in ids]
    disputed = {
        name: {extractor: truth["answers"][name] for extractor, truth in record["extractors"].items()}
        for name, reason in refused.items()
        if reason == Reason.EXTRACTORS_DISAGREE
    }
    return {"items": items, "refused": dict(sorted(refused.items())), "disputed": disputed}


def _not_asked(subtask: Subtask, items: Mapping[str, Item], sequences: Sequence[str]) -> str | None:
    if subtask.sequence != "multi" and subtask.sequence not in sequences:
        return Reason.NO_SEQUENCE
    if subtask.parent is None:
        return None
    parent = items.get(subtask.parent)
    if parent is None:
        return Reason.PARENT_UNKNOWN
    return None if set(parent["answer"]) & set(subtask.parent_answers) else Reason.AGAINST_TRUTH


def automatic_of(record: Mapping[str, Any], catalogue: Catalogue) -> dict[str, Any]:
    """Build an `auto-1` body: per item, the back-check from its quotes, legal options, and leaks.

    Blind probes need models, and duplicates the images of all studies: both are filled in afterwards.
    """
    quotes = {finding["id"]: finding["quote"] for items in record["findings"].values() for finding in items}
    checked: dict[str, Any] = legal_and_silent(record, catalogue)["checked"]
    for name, item in record["items"].items():
        subtask = catalogue[name]
        again = _from_quotes(record, [quotes[qa_id] for qa_id in item["evidence"]], subtask, catalogue)
        checked[name]["backcheck"] = again == tuple(item["answer"])
    return {"checked": checked}


def legal_and_silent(record: Mapping[str, Any], catalogue: Catalogue) -> dict[str, Any]:
    """Build an `auto-1` body without back-check: only whether options are legal and no id leaks."""
    checked: dict[str, Any] = {}
    for name, item in record["items"].items():
        subtask = catalogue[name]
        leaks = _leaks(record["study_id"], subtask, item["answer"])
        legal = _legal(subtask, tuple(item["answer"]))
        checked[name] = {
            "backcheck": None,
            "legal": legal,
            "leakage": leaks,
            "probe": None,
            "duplicate": None,
            "verdict": "fail" if leaks or not legal else "pass",
        }
    return {"checked": checked}


def _from_quotes(
    record: Mapping[str, Any], quotes: Sequence[str], subtask: Subtask, catalogue: Catalogue
) -> Answer | None:
    """Return the rules' answer from the quoted evidence alone."""
    gates = [
        item["quote"]
        for items in record["findings"].values()
        for item in items
        if item["subtask"] == subtask.parent and item["certainty"] == "certain"
    ]
    quoted_text = "\n".join(f"{quote}." for quote in dict.fromkeys([*gates, *quotes]))
    return settle(quoted_text, extract(quoted_text, record["sex"], catalogue), catalogue).answers.get(
        subtask.id
    )


def _legal(subtask: Subtask, answer: Answer) -> bool:
    if subtask.quantity is not None:
        return len(answer) == 1
    alone = set(answer) & set(subtask.exclusive)
    is_countable = subtask.answer_type == "multi" or len(answer) == 1
    return (
        bool(answer) and set(answer) <= set(subtask.keys) and is_countable and not (alone and len(answer) > 1)
    )


def _leaks(study_id: str, subtask: Subtask, answer: Sequence[str]) -> bool:
    """Return whether the id of a study contains a word that gives the answer away.

    Questions come from the catalogue and are the same for every answer, so they cannot leak.
    """
    values = {value for option in subtask.options if option.key in answer for value in option.values}
    words = {word for word in re.split(r"[^a-z0-9]+", study_id.lower()) if word}
    return bool(words & {value.lower() for value in values})


def compact(
    draft: Mapping[str, Any], checked: Mapping[str, Any], catalogue: Catalogue, origin: str = "report"
) -> list[Item]:
    """Build the `questions.jsonl` lines of one study from the drafts that passed, in catalogue order."""
    lines = []
    for name in catalogue.subtasks:
        item = draft["items"].get(name)
        if item is None or checked[name]["verdict"] != "pass":
            continue
        sampled = item["queue"] == "sampling" and checked[name]["backcheck"]
        lines.append(
            {
                "study": draft["study_id"],
                "subtask": name,
                "answer": item["answer"],
                "evidence": item["evidence"],
                "origin": origin,
                "verification": {
                    "status": "draft",
                    "stage": 6,
                    "drafted_by": item["by"],
                    "queue": "sampling" if sampled else "full",
                },
            }
        )
    return lines
