"""Run an import: read all headers once, then import study by study, on all cores; say what it did."""

import json
import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cardiolens.base import disk, stage_versions
from cardiolens.base.console import say, shown_word
from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError, RunError
from cardiolens.base.phrasing import counted
from cardiolens.base.private_file import read_or_make_key
from cardiolens.base.untrusted.bounded_files import parse_json, read_json, read_text
from cardiolens.config.curation_specs import IngestSpec
from cardiolens.curation.ingest import write
from cardiolens.curation.ingest.conventions import Convention
from cardiolens.curation.ingest.decisions import REFUSED, Decisions, read_decisions
from cardiolens.curation.ingest.export_files import Export, Rejects
from cardiolens.curation.ingest.ids import Pseudonyms
from cardiolens.curation.ingest.pixels import forget
from cardiolens.curation.ingest.reasons import Reason
from cardiolens.curation.ingest.scan import mixed, read_export
from cardiolens.curation.ingest.study import Task, import_study
from cardiolens.curation.ingest.words import vocabulary
from cardiolens.runtime.processes import spread
from cardiolens.study.anatomy import heart

log = logging.getLogger(__name__)

_MOST_REASONS = 8  # that a message names
_RENEWAL = "name another file, or remove this one, to get a new key and new ids"


_Outcome = tuple[dict[str, Any], Rejects]  # build record and rejects of a study


def ingest(spec: IngestSpec) -> int:
    """Import an export; return 0 if at least one study has a volume and no study failed, else 1."""
    return ingest_by_layout(spec)[0]


def ingest_by_layout(spec: IngestSpec) -> tuple[int, Convention | None]:
    """Import an export; return what `ingest` returns, and the layout that said what each file is."""
    started = time.monotonic()
    path = spec.key or spec.out.with_name(f"{spec.out.resolve().name}.key")
    secret = read_or_make_key(path, f"key={path}", "find the patients behind the ids", _RENEWAL)
    decisions = read_decisions(spec.decisions) if spec.decisions is not None else Decisions()
    export = read_export(spec, Pseudonyms(secret))
    _check_found(spec, export)
    spec.out.mkdir(parents=True, exist_ok=True)
    rejects, builds = list(export.rejects), []
    tasks = [_task(spec, export, study_id, decisions) for study_id in sorted(export.studies)]
    for build, left_out in spread(_import_or_reuse, tasks, lost=_outcome_of_a_crash):
        builds.append(build)
        rejects += left_out
        _say_study(build)
    rejects.sort(key=lambda line: (line["file"], line["frame"]))
    disk.write_text(spec.out / write.REJECTS_NAME, write.json_lines(rejects))
    if spec.links is not None:
        lines = "".join(json.dumps(line) + "\n" for line in _links(export, rejects))
        disk.write_private(spec.links, lines.encode())
    if spec.decisions is not None:
        _say_decisions(decisions, builds)
    return _say_all(spec, builds, rejects, export, time.monotonic() - started), export.layout


def _check_found(spec: IngestSpec, export: Export) -> None:
    if not export.candidates:
        raise InputError(
            f"source={spec.source}: holds no files; expected an export of DICOM or NIfTI; correct source"
        )
    if not export.studies:
        reasons = sorted({f"{line['reason']}: {line['message']}" for line in export.rejects})
        raise InputError(
            f"source={spec.source}: none of its {len(export.candidates)} files is a usable MR image in DICOM "
            f"or NIfTI ({'; '.join(reasons[:_MOST_REASONS])}); correct source"
        )


def _task(spec: IngestSpec, export: Export, study_id: str, decisions: Decisions) -> Task:
    """Return the import of one study; an earlier one of the same provenance need not be done again."""
    names, choices, layout = export.names, decisions.of(study_id), export.layout
    files = (f"{name} {size} {stamp}" for name, (size, stamp) in sorted(export.files[study_id].items()))
    chosen = (f"{stack} {choice.model_dump_json()}" for stack, choice in sorted(choices.items()))
    options = spec.model_dump(include={"threshold", "lge", "cohort"}, mode="json")
    options["layout"] = None if layout is None else digest_of(layout.model_dump(mode="json"))
    provenance = {
        "input_sha256": names.digest(files),
        "options": options,
        "decisions_sha256": names.digest(chosen) if choices else None,
        "code": digest_of([stage_versions.IMPORT, heart().digest, vocabulary()]),
    }
    return Task(spec, study_id, export.studies[study_id], names, choices, provenance)


def _import_or_reuse(task: Task) -> _Outcome:
    """Import one study; reuse an earlier import of the same files with the same options."""
    folder = task.spec.out / "proposals" / task.study_id
    if (build := _reusable_build(folder, task.provenance)) is not None:
        rejects = [parse_json(line) for line in read_text(folder / write.REJECTS_NAME).splitlines()]
        return build | {"unchanged": True}, rejects
    try:
        why = mixed(task.images)
        imported = task.left_out(Reason.MIXED_STUDY, why) if why else import_study(task)
        return write.write_study(task, imported)
    except (OSError, MemoryError) as error:
        why = f"stopped ({type(error).__name__}); free disk space or memory, and run it again"
        raise RunError(f"{task.study_id}: {why}") from error
    except Exception as error:  # an unforeseen error in one study must not stop the others
        log.debug("%s failed", task.study_id, exc_info=True)
        return write.write_study(task, task.left_out(Reason.FAILED, type(error).__name__))
    finally:
        forget()


def _outcome_of_a_crash(task: Task) -> _Outcome:
    """Leave out a study after its process ended, by a file that breaks a decoder or for lack of memory."""
    crashed = task.left_out(Reason.FAILED, "the process that imported it ended")
    return write.write_study(replace(task, provenance={"options": {}}), crashed)


def _reusable_build(folder: Path, provenance: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        build: dict[str, Any] = read_json(folder / write.BUILD_NAME)
    except (OSError, ValueError):
        return None
    is_current = all(build.get(name) == value for name, value in provenance.items())
    return build if is_current and write.is_whole(folder, build) else None


def _links(export: Export, rejects: Rejects) -> list[dict[str, str]]:
    """Return the lines of links (id to patient, id to file): the only output that names patients."""
    lines = []
    for study_id, images in sorted(export.studies.items()):
        identity = images[0].identity
        named = {name: getattr(identity, name) for name in ("patient", "study", "accession", "date")}
        lines.append({"study_id": study_id, "patient_id": export.names.patient(identity), **named})
    name_of = {export.names.file(name): name for name in export.candidates}
    rejected = sorted({line["file"] for line in rejects})
    return lines + [{"file": file, "name": name_of[file]} for file in rejected]


def _say_study(build: dict[str, Any]) -> None:
    """Print the volumes of a study, and what a person should look at."""
    waiting = f"; waiting for a person: {', '.join(build['waiting'])}" if build["waiting"] else ""
    flags = f"; look at: {', '.join(build['flags'])}" if build["flags"] else ""
    before = " (unchanged)" if build.get("unchanged") else ""
    say(f"{build['study_id']}: {', '.join(build['volumes']) or 'no volume'}{waiting}{flags}{before}")


def _say_decisions(decisions: Decisions, builds: Sequence[dict[str, Any]]) -> None:
    """Print how many decisions were applied, which were refused, and how many fit no stack here."""
    fits, applied = (sum(build["decisions"][name] for build in builds) for name in ("fit", "applied"))
    for build in builds:
        for stack, reason in build["decisions"]["refused"].items():
            say(f"{build['study_id']}: decision on {stack} refused: {REFUSED[reason]}")
    n_others = sum(len(decisions.of(study_id)) for study_id in decisions.states) - fits
    say(f"decisions: {applied} applied, {fits - applied} refused, {n_others} fit nothing in this export")


def _say_all(
    spec: IngestSpec, builds: Sequence[dict[str, Any]], rejects: Rejects, export: Export, seconds: float
) -> int:
    """Print what an import left out and made; return 0 if a study has volumes and none failed, else 1."""
    counts = Counter(line["reason"] for line in rejects)
    for reason in sorted(Reason):
        if counts[reason]:
            say(f"left out: {counts[reason]} x {reason}: {reason.meaning}")
    n_with_volumes = sum(bool(build["volumes"]) for build in builds)
    frames = sum(build["frames"] for build in builds)
    to_look_at = sum(bool(build["flags"] or build["waiting"]) for build in builds)
    say(
        f"{len(export.candidates)} files, {frames} frames, {len(builds)} studies: "
        f"{n_with_volumes} with volumes, {to_look_at} to look at ({seconds:.1f} s)"
    )
    old_studies = {path.parent.name for path in spec.out.glob("studies/*/study.json")} - export.studies.keys()
    if old_studies:
        count = counted(len(old_studies), "study")
        say(f"{spec.out / 'studies'} holds {count} of other imports, which prepare reads too")
    say(
        f"next: look at {spec.out / 'proposals'}, then python -m cardiolens.prepare dataset=real "
        f"{shown_word('dataset.studies', spec.out / 'studies')} dataset.questions=..."
    )
    failed = any(str(Reason.FAILED) in build["left_out"] for build in builds)
    return 0 if n_with_volumes and not failed else 1
