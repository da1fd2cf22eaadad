"""Run an import: read all headers once, then import study by study; both on all cores."""

import json
import time
from pathlib import Path

from cardiolens.base import disk
from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.config.curation_specs import IngestSpec
from cardiolens.curation.ingest import write
from cardiolens.curation.ingest.decisions import Decisions, read_decisions
from cardiolens.curation.ingest.deidentify import Pseudonyms, read_key
from cardiolens.curation.ingest.export_reading import Export, read_export
from cardiolens.curation.ingest.import_report import report, report_decisions, report_study, write_links
from cardiolens.curation.ingest.layouts.convention import Convention
from cardiolens.curation.ingest.layouts.layout_file import write_layout
from cardiolens.curation.ingest.study_import import StudyTask, import_or_reuse, import_without_deadly_files
from cardiolens.runtime.processes import spread

_MOST_REASONS = 8  # that a message names
_WORTH = 400  # files from which further processes save more time than they take to start


def ingest(spec: IngestSpec) -> int:
    """Import an export; return 0 if at least one study has a volume and no study failed, else 1."""
    return ingest_by_layout(spec)[0]


def ingest_by_layout(spec: IngestSpec) -> tuple[int, Convention | None]:
    """Import an export; return what `ingest` returns, and the layout that said what each file is."""
    started = time.monotonic()
    names = Pseudonyms(read_key(_key_of(spec)))
    decisions = read_decisions(spec.decisions) if spec.decisions is not None else Decisions()
    export = read_export(spec, names)
    names = export.pseudonyms or names
    _check_found(spec, export)
    spec.out.mkdir(parents=True, exist_ok=True)
    rejects, builds = list(export.rejects), []
    layout = None if export.convention is None else digest_of(export.convention.model_dump(mode="json"))
    tasks = [
        StudyTask(
            spec,
            study_id,
            images,
            export.files[study_id],
            names,
            decisions.of(study_id),
            layout,
            masks=export.masks.get(study_id, ()),
        )
        for study_id, images in sorted(export.studies.items())
    ]
    for outcome in spread(
        import_or_reuse, tasks, worth=export.n_files >= _WORTH, lost=import_without_deadly_files
    ):
        builds.append(outcome.build)
        rejects += outcome.rejects
        export.names |= outcome.names
        report_study(outcome.build)
    rejects.sort(key=lambda line: (line["file"], line["frame"]))
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in rejects)
    disk.write_text(spec.out / write.REJECTS_NAME, text)
    if export.convention is not None:
        write_layout(spec.out, export.convention)
    if spec.links is not None:
        write_links(spec.links, export, names)
    if spec.decisions is not None:
        report_decisions(decisions, builds)
    return report(spec, builds, rejects, export, time.monotonic() - started), export.convention


def _key_of(spec: IngestSpec) -> Path:
    """Return the path of the key: as configured, else beside `out`."""
    return spec.key or spec.out.with_name(f"{spec.out.resolve().name}.key")


def _check_found(spec: IngestSpec, export: Export) -> None:
    if not export.n_files:
        raise InputError(
            f"source={spec.source}: holds no files; expected an export of DICOM or NIfTI; correct source"
        )
    if not export.studies:
        reasons = sorted({f"{line['reason']}: {line['message']}" for line in export.rejects})
        raise InputError(
            f"source={spec.source}: none of its {export.n_files} files is a usable MR image in DICOM "
            f"or NIfTI ({'; '.join(reasons[:_MOST_REASONS])}); correct source"
        )
