"""Draft questions from masks, stage by stage, and their merge with the questions from reports."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.curation.masks.labels import label_map
from cardiolens.curation.masks.mask_findings import has_masks, mask_findings
from cardiolens.curation.questions.checks import violations
from cardiolens.curation.questions.draft_reasons import Reason
from cardiolens.curation.questions.drafts import (
    OF_DRAFTS,
    Item,
    compact,
    legal_and_silent,
    refused_lines,
    settled,
)
from cardiolens.curation.questions.report_files import Rejects, reject
from cardiolens.curation.questions.stage_files import Record, Stages
from cardiolens.protocol.tasks.catalogue import OPEN, Catalogue
from cardiolens.study.manifest import Study, read_studies
from cardiolens.study.nifti import read_file, sha256

Lines = list[Item]


def of_masks(
    masks: Path,
    labels: str,
    protocol: str,
    stages: Stages,
    catalogue: Catalogue,
    *,
    chosen: Sequence[Study] | None = None,
) -> tuple[Lines, Rejects, list[str]]:
    """Return question lines of studies with usable masks, the rejects, and the problems with masks.

    `chosen` are the studies that are read; by default all below `masks`. InputError if no study has a mask
    that the label map applies to.
    """
    convention = label_map(labels)
    studies = read_studies(masks, "masks") if chosen is None else {study.study_id: study for study in chosen}
    able = {study_id: study for study_id, study in studies.items() if has_masks(study.manifest, convention)}
    if not able:
        raise InputError(
            f"masks={masks}: none of its {len(studies)} studies has a short-axis mask of "
            f"{' or '.join(convention.sequences)}, which labels={labels} is for; add mask to the volume in "
            "study.json, or name another label map"
        )
    rejects: Rejects = [
        reject(1, Reason.NO_MASK, study_id=study_id) for study_id in studies if study_id not in able
    ]
    inputs = [_inputs_of(study, labels, protocol) for study in able.values()]
    records = stages.run("2-findings.mask", "findings-1", inputs, partial(_measured, studies=able))
    problems = [f"{record['study_id']}: {record['unfit']}" for record in records if record["unfit"]]
    rejects += [
        reject(2, Reason.MASK_UNFIT, study_id=record["study_id"]) for record in records if record["unfit"]
    ]
    fit = [
        {**record, "findings": {"mask": measured_record["items"]}}
        for record, measured_record in zip(inputs, records, strict=True)
        if not measured_record["unfit"]
    ]
    lines, more = _settled(stages, fit, catalogue)
    return lines, rejects + more, problems


def _inputs_of(study: Study, labels: str, protocol: str) -> Record:
    """Return the inputs of a study's mask findings: manifest, label map, and digests of the masks."""
    stored = {
        volume.mask.path: _digest(study.folder / volume.mask.path, volume.most_bytes)
        for volume in study.manifest.volumes
        if volume.mask is not None
    }
    return {
        "study_id": study.study_id,
        "report_id": f"M-{digest_of(stored)[:16]}",
        "manifest": study.manifest_sha256,
        "masks": stored,
        "labels": labels,
        "protocol": protocol,
        "sequences": list(dict.fromkeys(volume.sequence for volume in study.manifest.volumes)),
    }


def _digest(path: Path, most: int) -> str:
    try:
        return sha256(read_file(path, most))
    except InputError:  # the stage that measures it says what is wrong
        return "unreadable"


def _measured(record: Record, studies: Mapping[str, Study]) -> Mapping[str, Any]:
    """Build a `findings-1` body; an unusable mask gives no items but an error in `unfit`."""
    try:
        items = mask_findings(
            studies[record["study_id"]].folder, record["labels"], protocol=record["protocol"]
        )
    except InputError as error:
        return {"items": [], "unfit": str(error)}
    return {"items": items, "unfit": None}


def truth_of_masks(record: Mapping[str, Any], catalogue: Catalogue) -> dict[str, Any]:
    """Build a `truth-1` body: answers where the masks are certain, otherwise the reason."""
    values: dict[str, set[str]] = {}
    doubts: dict[str, str] = {}
    provenance: dict[str, list[str]] = {}
    for item in record["findings"]["mask"]:
        subtask = item["subtask"]
        provenance.setdefault(subtask, []).append(item["id"])
        if item["doubt"] is not None:
            doubts[subtask] = item["doubt"]
        else:
            values.setdefault(subtask, set()).add(item["value"])
    answers = {
        name: [option.key for option in catalogue[name].options if option.text in values[name]]
        or (sorted(values[name]) if catalogue[name].answer_type in OPEN else [])
        for name in values.keys() - doubts.keys()
    }
    stage_record = {
        "answers": dict(sorted(answers.items())),
        "indeterminate": doubts,
        "provenance": provenance,
    }
    return {"extractors": {"mask": stage_record}}


def _settled(stages: Stages, inputs: Sequence[Record], catalogue: Catalogue) -> tuple[Lines, Rejects]:
    """Run stages 3 to 6 for masks, without the back-check: masks have no quotes."""
    drafts, checked = settled(stages, inputs, truth_of_masks, legal_and_silent, catalogue, suffix=".mask")
    lines: Lines = []
    rejects: Rejects = []
    for draft, check in zip(drafts, checked, strict=True):
        lines += compact(draft, check["checked"], catalogue, origin="mask")
        rejects += refused_lines(draft, check, (*OF_DRAFTS, Reason.PARENT_UNKNOWN))
    return lines, rejects


def joined(of_reports: Lines, masks: Lines, catalogue: Catalogue) -> tuple[Lines, Rejects]:
    """Merge the lines of reports and masks.

    A report's answer that a mask contradicts is kept and goes to full review together with the mask's answer.
    A mask's answer without a report's is rejected if it is inconsistent with the other answers of the report.
    """
    studies = sorted({line["study"] for line in (*of_reports, *masks)})
    from_reports, measured = _by_study(of_reports), _by_study(masks)
    lines: Lines = []
    rejects: Rejects = []
    for study in studies:
        ours, theirs = from_reports.get(study, {}), measured.get(study, {})
        both = {name: _with_mask_answer(ours[name], theirs.get(name)) for name in ours}
        alone = {name: line for name, line in theirs.items() if name not in ours}
        dropped = _cannot_stand(both, alone, catalogue)
        for name in dropped:
            rejects.append(reject(5, Reason.AGAINST_TRUTH, study_id=study, subtask=name))
        together = both | {name: line for name, line in alone.items() if name not in dropped}
        lines += [together[name] for name in catalogue.subtasks if name in together]
    return lines, rejects


def _by_study(lines: Lines) -> dict[str, dict[str, Item]]:
    lines_of: dict[str, dict[str, Item]] = {}
    for line in lines:
        lines_of.setdefault(line["study"], {})[line["subtask"]] = line
    return lines_of


def _with_mask_answer(ours: Item, theirs: Item | None) -> Item:
    """Return a report's line, annotated with the mask's answer to the same question."""
    if theirs is None:
        return ours
    more: dict[str, Any] = {"mask": "agrees"}
    if set(ours["answer"]) != set(theirs["answer"]):
        more = {"mask": "contradicts", "mask_answer": theirs["answer"], "queue": "full"}
    evidence = [*ours["evidence"], *theirs["evidence"]]
    return {**ours, "evidence": evidence, "verification": {**ours["verification"], **more}}


def _cannot_stand(both: dict[str, Item], alone: Mapping[str, Item], catalogue: Catalogue) -> list[str]:
    """Return the mask-only subtasks that the report contradicts; send its own ones to full review."""
    answers = {name: tuple(line["answer"]) for name, line in {**alone, **both}.items()}
    own = {name: tuple(line["answer"]) for name, line in both.items()}
    fields, reports_fields = (
        {name for violation in violations(given) for name in violation.fields} for given in (answers, own)
    )
    for name in (fields - reports_fields) & both.keys():
        both[name]["verification"] = {**both[name]["verification"], "mask": "contradicts", "queue": "full"}
    dropped = [name for name in alone if name in fields]
    for name in catalogue.subtasks:  # parents stand before their children
        parent = catalogue[name].parent
        if name not in alone or name in dropped or parent is None:
            continue
        if parent in dropped or not set(answers.get(parent, ())) & set(catalogue[name].parent_answers):
            dropped.append(name)
    return dropped
