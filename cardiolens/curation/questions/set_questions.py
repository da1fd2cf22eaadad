"""Questions of public sets: diagnoses by the sets' groups, and findings by their masks.

Nobody verified these answers for this purpose: their verification says `label of the set`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.curation.ingest.conventions import Convention
from cardiolens.curation.masks.labels import label_map, quantities
from cardiolens.curation.masks.mask_findings import has_masks
from cardiolens.curation.questions.drafts import Item
from cardiolens.curation.questions.from_masks import joined, of_masks
from cardiolens.curation.questions.report_files import Rejects
from cardiolens.curation.questions.stage_files import Stages, read_lines, write_lines
from cardiolens.protocol.tasks.catalogue import Catalogue, load_catalogue
from cardiolens.study.manifest import read_study

STATUS = "label of the set"
_NO_GROUP = "no group"
QUESTIONS = "questions"  # folder below an import's out
PROTOCOL = "openprotocol-1"


@dataclass(frozen=True, slots=True)
class SetQuestions:
    """What was drafted for one import."""

    lines: list[Item]
    rejects: Rejects
    by_group: Mapping[str, int]  # studies by group
    unanswered: Mapping[str, str]  # groups without an answer, and why
    problems: list[str]


def write_set_questions(out: Path, convention: Convention) -> SetQuestions:
    """Write `out/questions/<layout>/questions.jsonl` for the studies of an import by a layout."""
    catalogue = load_catalogue(PROTOCOL)
    folder = out / QUESTIONS / convention.name
    records = dict(_set_records(out, convention.name))
    groups = {study: str(each["group"]) for study, each in records.items()}
    by_group = [
        line
        for study, each in records.items()
        for line in (
            *_of_group(study, groups[study], convention, catalogue),
            *_of_volumes(study, each, convention, catalogue),
        )
    ]
    masks, rejects, problems = _of_masks(out, groups, convention, folder, catalogue)
    lines, against = joined(by_group, masks, catalogue)
    for line in lines:
        kept = {name: value for name, value in line["verification"].items() if name.startswith("mask")}
        line["verification"] = {"status": STATUS, "layout": convention.name, **kept}
    write_lines(folder / "questions.jsonl", lines)
    write_lines(folder / "rejects.jsonl", [*rejects, *against])
    counts = Counter(group or _NO_GROUP for group in groups.values())
    unanswered = {
        group: convention.group_meanings.get(
            group, "no class of the catalogue, and none of the layout's groups"
        )
        for group in counts
        if group not in convention.groups and (convention.groups or group != _NO_GROUP)
    }
    return SetQuestions(lines, [*rejects, *against], counts, unanswered, problems)


def write_all_questions(out: Path) -> None:
    """Write `out/questions/questions.jsonl`: the questions of all sets in a folder, and what was measured."""
    folders = sorted(path.parent for path in (out / QUESTIONS).glob("*/questions.jsonl"))
    lines: list[Item] = []
    for folder in folders:
        words = _measurements(folder)
        for line in read_lines(folder / "questions.jsonl"):
            quotes = [words.get((line["study"], name), name) for name in line["evidence"]]
            lines.append({**line, "evidence": quotes})
    write_lines(out / QUESTIONS / "questions.jsonl", lines)


def _measurements(folder: Path) -> dict[tuple[str, str], str]:
    """Return what each mask finding was measured as, by study and id."""
    return {
        (record["study_id"], item["id"]): item["quote"] or item["id"]
        for record in read_lines(folder / "2-findings.mask.jsonl")
        for item in record["items"]
    }


def _set_records(out: Path, layout: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each study with volumes, and what the import noted of its set's own labels."""
    for path in sorted(out.glob("proposals/*/build.json")):
        try:
            build: dict[str, Any] = read_json(path)
            of_set = build["set"]
            if build["volumes"] and of_set is not None and of_set["layout"] == layout:
                yield str(build["study_id"]), of_set
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(f"{path}: is no record of this version; run the import again") from None


def _of_group(study: str, group: str, convention: Convention, catalogue: Catalogue) -> Iterator[Item]:
    for subtask, key in convention.groups.get(group, {}).items():
        if key not in catalogue[subtask].keys:
            raise InputError(
                f"layout={convention.name}: group {group} answers {subtask} by {key}; expected of "
                f"{', '.join(catalogue[subtask].keys)}; correct the layout"
            )
        yield _line(study, subtask, [key], f"group {group} of {convention.name}")


def _of_volumes(
    study: str, record: Mapping[str, Any], convention: Convention, catalogue: Catalogue
) -> Iterator[Item]:
    """Yield the grade of the ejection fraction of a set that measured volumes, where it is certain."""
    edv, esv = record.get("lv_edv_ml"), record.get("lv_esv_ml")
    if not isinstance(edv, float) or not isinstance(esv, float) or esv >= edv:
        return
    ejection = 100 * (edv - esv) / edv
    quantity = quantities()["lv_ejection"]
    value = quantity.grade(ejection, None)
    for subtask in catalogue.subtasks.values():
        keys = [option.key for option in subtask.options if value in option.values]
        if subtask.finding == quantity.finding and keys:
            words = f"LVEF ({edv:.1f} - {esv:.1f}) / {edv:.1f} mL = {ejection:.1f} % of {convention.name}"
            yield _line(study, subtask.id, keys, words)


def _line(study: str, subtask: str, answer: list[str], words: str) -> Item:
    about = {"study": study, "subtask": subtask, "answer": answer, "evidence": [words]}
    return {**about, "origin": "set", "verification": {}}


def _of_masks(
    out: Path, groups: Mapping[str, str], convention: Convention, folder: Path, catalogue: Catalogue
) -> tuple[list[Item], Rejects, list[str]]:
    studies = out / "studies"
    if convention.labels is None or not studies.is_dir():
        return [], [], []
    labels = label_map(convention.labels)
    ours = [read_study(studies / name) for name in sorted(groups)]
    if not any(has_masks(study.manifest, labels) for study in ours):
        return [], [], []
    return of_masks(studies, labels.name, PROTOCOL, Stages(folder, catalogue.sha256), catalogue, chosen=ours)
