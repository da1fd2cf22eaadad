"""The pipeline from reports and masks to draft questions, stage by stage."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.config.curation_specs import QuestionsSpec
from cardiolens.curation.questions.draft_reasons import meaning_of
from cardiolens.curation.questions.drafts import automatic_of, compact, refused_lines, settled, truth_of
from cardiolens.curation.questions.from_masks import joined, of_masks
from cardiolens.curation.questions.glossary import headings_of, with_glossary
from cardiolens.curation.questions.model_gate import Gate
from cardiolens.curation.questions.numbers import sex_of
from cardiolens.curation.questions.report_files import Rejects, Report, read_reports
from cardiolens.curation.questions.rule_extraction import extract
from cardiolens.curation.questions.stage_files import Record, Stages, read_lines, write_lines
from cardiolens.protocol.tasks.catalogue import Catalogue, load_catalogue
from cardiolens.report_text.sections import pieces_of
from cardiolens.study.manifest import Study, read_studies
from cardiolens.study.same_pixels import HashedFrames, hashes_of, same_studies

Rows = Sequence[Sequence[object]]
Duplicates = Mapping[str, list[str] | None]
"""Of each study, those that show the same pictures; None if its images cannot be read."""


def fill_duplicates(stages: Stages, folders: Iterable[Path]) -> Duplicates:
    """Write into the records of stage 6 which studies of the draft show the same pictures; return them."""
    paths = sorted(stages.out.glob("6-automatic*.jsonl"))
    records_of = {path: read_lines(path) for path in paths}
    drafted = {
        record["study_id"] for records in records_of.values() for record in records if record["checked"]
    }
    every = {name: study for folder in folders for name, study in read_studies(folder, "studies").items()}
    duplicates = _duplicates(stages, {name: every[name] for name in sorted(drafted & every.keys())})
    for path, records in records_of.items():
        for record in records:
            for state in record["checked"].values():
                state["duplicate"] = duplicates.get(record["study_id"])
        write_lines(path, records)
    return duplicates


def reviewed_whole(line: Record, duplicates: Duplicates) -> Record:
    """Return a line of questions, in full review if another study of the draft shows its pictures."""
    if not duplicates.get(line["study"]):
        return line
    return {**line, "verification": {**line["verification"], "queue": "full"}}


def _duplicates(stages: Stages, studies: Mapping[str, Study]) -> dict[str, list[str] | None]:
    inputs = [{"study_id": name, "report_id": study.manifest_sha256} for name, study in studies.items()]
    records = stages.run(
        "6-frames", "frames-1", inputs, lambda record: {"frames": _frames(studies[record["study_id"]])}
    )
    read = {record["study_id"]: record["frames"] for record in records}
    hashes = HashedFrames.of(
        [(name, volume, digits) for name, frames in read.items() for volume, digits in frames or ()]
    )
    rivals_of: dict[str, set[str]] = {name: set() for name in read}
    for first, second in same_studies(hashes, hashes):
        rivals_of[first].add(second)
    return {name: sorted(rivals_of[name]) if frames is not None else None for name, frames in read.items()}


def _frames(study: Study) -> list[Any] | None:
    """Return the volume and the hash of each frame of a study; None if its images cannot be read."""
    try:
        return [[volume, digits] for _, volume, digits in hashes_of(study)]
    except InputError:
        return None


Reader = Callable[[Sequence[Record], Catalogue], list[tuple[list[Record], Rejects]]]
"""A second extractor: reports with their ids in, findings and rejects of each out, in the same order."""


def questions(spec: QuestionsSpec, second: Reader | None = None, gate: Gate | None = None) -> int:
    """Make draft questions from reports, masks or both; return 0 if there is at least one, else 1.

    What the second extractor alone reads is drafted only if it passed the gate.
    """
    started = time.monotonic()
    catalogue = with_glossary(load_catalogue(spec.protocol), spec.words)
    stages = Stages(spec.stages, catalogue.sha256)
    lines, rejects = _of_reports(spec, stages, catalogue, second, gate)
    if spec.masks is not None:
        disk.make_folder(spec.stages)
        lines, more = _with_masks(spec, spec.masks, stages, catalogue, lines)
        rejects += more
    folders = [folder for folder in (spec.studies, spec.masks) if folder is not None]
    duplicates = fill_duplicates(stages, folders)
    lines = [reviewed_whole(line, duplicates) for line in lines]
    rejects.sort(
        key=lambda reject: (reject["stage"], reject.get("study_id") or "", reject.get("subtask") or "")
    )
    write_lines(spec.stages / "questions.jsonl", lines)
    write_lines(spec.stages / "rejects.jsonl", rejects)
    left_out = reasons(rejects)
    page = counts_page(stages.counts, stages.made, left_out, by_subtask(lines, rejects, catalogue))
    disk.write_text(spec.stages / "counts.html", page)
    for name, number in stages.counts.items():
        of_what = "studies" if name.endswith(".mask") or name == "6-frames" else "reports"
        say(f"{name}: {number} {of_what}, {stages.made[name]} made now")
    for words in _compared(duplicates):
        say(words)
    for stage, code, times, meaning in left_out:
        say(f"left out in stage {stage}: {times} x {code}: {meaning}")
    sampled = sum(line["verification"]["queue"] == "sampling" for line in lines)
    say(
        f"{_read(stages)}: {len(lines)} draft questions, {sampled} to sampling, "
        f"{len(lines) - sampled} to full review, {len(rejects)} left out "
        f"({time.monotonic() - started:.1f} s): {spec.stages}"
    )
    return 0 if lines else 1


def reasons(rejects: Rejects) -> Rows:
    """Count the rejects by stage and reason, the most frequent first."""
    counted = Counter((int(line["stage"]), str(line["reason"])) for line in rejects)
    return [(stage, code, number, meaning_of(code)) for (stage, code), number in counted.most_common()]


def by_subtask(lines: Sequence[Record], rejects: Rejects, catalogue: Catalogue) -> Rows:
    """Count the questions of each subtask by review queue, and those left out."""
    queued = Counter((line["subtask"], line["verification"]["queue"]) for line in lines)
    n_rejected = Counter(line["subtask"] for line in rejects if line.get("subtask") and line["stage"] >= 3)
    return [
        (name, subtask.question, queued[name, "sampling"], queued[name, "full"], n_rejected[name])
        for name, subtask in catalogue.subtasks.items()
        if subtask.answer_type != "report"
    ]


def counts_page(stages: Mapping[str, int], n_made: Mapping[str, int], left_out: Rows, by_name: Rows) -> str:
    """Render the counts as an HTML page, without any report's text, name or number."""
    from cardiolens.show.page.page_rendering import templates

    tables = (
        ("Stages", ("stage", "records", "made now"), [(name, stages[name], n_made[name]) for name in stages]),
        ("Questions", ("subtask", "question", "to sampling", "to full review", "left out"), by_name),
        ("Left out", ("stage", "reason", "number", "meaning"), left_out),
    )
    return templates().get_template("counts.html").render(tables=tables)


def _of_reports(
    spec: QuestionsSpec, stages: Stages, catalogue: Catalogue, second: Reader | None, gate: Gate | None
) -> tuple[list[Record], Rejects]:
    """Return the lines and rejects of reports; both are empty if no reports are configured."""
    if spec.reports is None or spec.studies is None:
        return [], []
    reports, rejects = read_reports(spec.reports, spec.studies, spec.links)
    disk.make_folder(spec.stages)
    given = [_given(report) for report in reports]
    stages.run("1-sections", "sections-1", given, partial(_sections, catalogue=catalogue))
    findings = {
        "rules": stages.run("2-findings.rules", "findings-1", given, partial(_by_rules, catalogue=catalogue))
    }
    if second is not None:
        findings["model"], more = _second(stages, given, catalogue, second)
        rejects += more
    inputs = [
        {**record, "trusted": gate is not None}
        | {"findings": {name: records[place]["items"] for name, records in findings.items()}}
        for place, record in enumerate(given)
    ]
    drafts, checked = settled(stages, inputs, truth_of, automatic_of, catalogue)
    lines: list[Record] = []
    for draft, check in zip(drafts, checked, strict=True):
        lines += compact(draft, check["checked"], catalogue)
        rejects += refused_lines(draft, check)
    if gate is not None:
        lines = [_with_gate(line, gate) for line in lines]
    return lines, rejects


def _with_gate(line: Record, gate: Gate) -> Record:
    """Return a line of the model alone with the record of the gate that lets it stand."""
    verification = line["verification"]
    if verification["drafted_by"] != "model":
        return line
    return {**line, "verification": {**verification, "gate": gate}}


def _with_masks(
    spec: QuestionsSpec, masks: Path, stages: Stages, catalogue: Catalogue, of_reports: list[Record]
) -> tuple[list[Record], Rejects]:
    """Return the lines of reports merged with those of masks, and the rejects of masks."""
    measured, rejects, problems = of_masks(masks, str(spec.labels), spec.protocol, stages, catalogue)
    for problem in problems[:1]:
        say(f"masks of {len(problems)} studies cannot be used, e.g. {problem}")
    lines, against = joined(of_reports, measured, catalogue)
    drafted = {(line["study"], line["subtask"]) for line in lines}
    left_out = [each for each in rejects if (each["study_id"], each.get("subtask")) not in drafted]
    return lines, left_out + against


def _read(stages: Stages) -> str:
    """Describe the sources of the questions: `3 reports, 2 studies with masks`."""
    sources = (("1-sections", "reports"), ("2-findings.mask", "studies with masks"))
    return ", ".join(f"{stages.counts[name]} {words}" for name, words in sources if name in stages.counts)


def _compared(duplicates: Duplicates) -> Iterator[str]:
    """Yield what the comparison of pictures found, and what was not compared."""
    n_same = sum(bool(rivals) for rivals in duplicates.values())
    n_unread = sum(rivals is None for rivals in duplicates.values())
    if n_same:
        yield (
            f"{n_same} studies show the pictures of another one; their questions go to full review, and a "
            "release refuses them unless they are named"
        )
    if n_unread:
        yield f"{n_unread} studies have images that cannot be read, and are not compared with others"


def _given(report: Report) -> Record:
    return {
        "study_id": report.study_id,
        "report_id": report.report_id,
        "text": report.text,
        "sex": sex_of(report.text, report.sex),
        "sequences": list(report.sequences),
    }


def _sections(record: Record, catalogue: Catalogue) -> Mapping[str, Any]:
    """Build a `sections-1` body: spans by section, and the inputs of later stages."""
    parts: list[Record] = []
    for sentence in pieces_of(record["text"], headings_of(catalogue)):
        if parts and parts[-1]["name"] == sentence.section and not sentence.opens:
            parts[-1]["end"] = sentence.end
        else:
            parts.append({"name": sentence.section, "start": sentence.start, "end": sentence.end})
    for part in parts:
        part["text"] = record["text"][part["start"] : part["end"]]
    fields = {name: record[name] for name in ("text", "sex", "sequences")}
    return {"sections": parts, **fields}


def _by_rules(record: Record, catalogue: Catalogue) -> Mapping[str, Any]:
    statements = extract(record["text"], record["sex"], catalogue)
    return {"items": [statement.record(number) for number, statement in enumerate(statements, start=1)]}


def _second(
    stages: Stages, given: Sequence[Record], catalogue: Catalogue, second: Reader
) -> tuple[list[Record], Rejects]:
    """Return the findings and rejects of the second extractor; its replies are cached in a store."""
    readings = second(given, catalogue)
    inputs = [
        {**record, "items": items, "rejects": losses}
        for record, (items, losses) in zip(given, readings, strict=True)
    ]
    records = stages.run(
        "2-findings.model",
        "findings-1",
        inputs,
        lambda record: {"items": record["items"], "rejects": record["rejects"]},
    )
    return records, [line for record in records for line in record["rejects"]]
