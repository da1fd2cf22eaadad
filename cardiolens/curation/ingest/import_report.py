"""Say what an import did: study by study, decision by decision, and in all; with the links on demand."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cardiolens.base import disk
from cardiolens.base.console import say, shown_word
from cardiolens.config.curation_specs import IngestSpec
from cardiolens.curation.ingest.decisions import Decisions
from cardiolens.curation.ingest.deidentify import Pseudonyms
from cardiolens.curation.ingest.export_reading import Export, Rejects
from cardiolens.curation.ingest.reasons import MEANINGS, Reason

_REFUSED = {
    "decision_refused_two_stacks": "another stack is confirmed as the same volume; confirm one of them",
    "decision_refused_sequence": "cine and perfusion have several phases, others one; correct the sequence",
    "decision_refused_spacing": "the size of its voxels is not settled by it; state spacing in the decision",
    "decision_refused_mask": "no such mask fits the stack, or it says not of which phase it is; correct it",
    "decision_refused_phase": "the stack has no such phase, or is no cycle or first pass; correct its phases",
}


def write_links(path: Path, export: Export, names: Pseudonyms) -> None:
    """Write the links file (id to patient, id to file): the only output that names patients."""
    lines: list[dict[str, str]] = []
    for study_id, images in sorted(export.studies.items()):
        identity = images[0].identity
        lines.append(
            {
                "study_id": study_id,
                "patient_id": names.patient(identity),
                "patient": identity.patient,
                "study": identity.study,
                "accession": identity.accession,
                "date": identity.date,
            }
        )
    lines += [{"file": file, "name": name} for file, name in sorted(export.names.items())]
    text = "".join(json.dumps(line, ensure_ascii=True) + "\n" for line in lines)
    disk.write_private(path, text.encode())


def report_study(build: dict[str, Any]) -> None:
    """Print the volumes of a study, and what a person should look at."""
    flags = f"; look at: {', '.join(build['flags'])}" if build["flags"] else ""
    waiting = f"; waiting for a person: {', '.join(build['waiting'])}" if build["waiting"] else ""
    before = " (unchanged)" if build.get("unchanged") else ""
    say(f"{build['study_id']}: {', '.join(build['volumes']) or 'no volume'}{waiting}{flags}{before}")


def report_decisions(decisions: Decisions, builds: Sequence[dict[str, Any]]) -> None:
    """Print how many decisions were applied, which were refused, and how many fit no stack here."""
    fits, applied = sum(build["decisions"]["fit"] for build in builds), 0
    for build in builds:
        applied += build["decisions"]["applied"]
        for stack, reason in build["decisions"]["refused"].items():
            say(f"{build['study_id']}: decision on {stack} refused: {_REFUSED[reason]}")
    n_others = decisions.count - fits
    say(f"decisions: {applied} applied, {fits - applied} refused, {n_others} fit nothing in this export")


def report(
    spec: IngestSpec, builds: Sequence[dict[str, Any]], rejects: Rejects, export: Export, seconds: float
) -> int:
    """Print what an import left out and made; return 0 if a study has volumes and none failed, else 1."""
    counts: dict[str, int] = {}
    for line in rejects:
        counts[line["reason"]] = counts.get(line["reason"], 0) + 1
    for reason, count in sorted(counts.items()):
        say(f"left out: {count} x {reason}: {MEANINGS[Reason(reason)]}")
    with_volumes = [build for build in builds if build["volumes"]]
    frames = sum(build["frames"] for build in builds)
    say(
        f"{export.n_files} files, {frames} frames, {len(builds)} studies: {len(with_volumes)} with volumes, "
        f"{sum(bool(build['flags'] or build['waiting']) for build in builds)} to look at ({seconds:.1f} s)"
    )
    say(
        f"next: look at {spec.out / 'proposals'}, then python -m cardiolens.prepare dataset=real "
        f"{shown_word('dataset.studies', spec.out / 'studies')} dataset.questions=..."
    )
    failed = any(str(Reason.FAILED) in build["left_out"] for build in builds)
    return 0 if with_volumes and not failed else 1
