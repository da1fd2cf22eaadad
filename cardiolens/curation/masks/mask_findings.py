"""Derive the findings of a study from its masks, as `findings-1` items (protocol 9, stage 2)."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.curation.masks.labels import WALL, LabelMap, MaskReason, Sex, label_map
from cardiolens.curation.masks.mask_answers import Answer, Measures, cine, lesions
from cardiolens.curation.masks.mask_stack import Masked, check_ring, read_masked
from cardiolens.protocol.tasks.catalogue import Subtask, load_catalogue
from cardiolens.protocol.tasks.instantiate import answer as keys_of
from cardiolens.study.anatomy import SHORT_AXIS
from cardiolens.study.manifest import Study, StudyManifest, read_study
from cardiolens.study.volume_manifest import VolumeManifest

ORIGIN = "mask"
_NUMBERS = {  # finding: name in the measures
    "cine.lv_ejection_fraction": "lv_ef_percent",
    "cine.lv_edv": "lv_edv_ml",
    "cine.lv_esv": "lv_esv_ml",
    "cine.ed_phase": "ed_phase",
    "cine.es_phase": "es_phase",
}
_MOTION = (
    *("cine.lv_motion", "cine.lv_motion_levels", "cine.lv_motion_regions", "cine.lv_motion_distribution"),
    *("cine.wall_coordination", "cine.wall_amplitude"),
)


def body_of(manifest: StudyManifest) -> tuple[Sex | None, float | None]:
    """Return a patient's sex and body surface in m2 (Mosteller: sqrt(cm * kg / 3600)), if known."""
    sex: Sex | None = manifest.sex if manifest.sex in ("male", "female") else None
    if manifest.height_cm is None or manifest.weight_kg is None:
        return sex, None
    return sex, math.sqrt(manifest.height_cm * manifest.weight_kg / 3600)


def mask_findings(folder: Path, labels: str, protocol: str = "openprotocol-1") -> list[dict[str, Any]]:
    """Return a record per option that the masks establish, and one with a reason per other subtask.

    InputError if a mask contradicts its label map, or if no short-axis mask has a sequence of the label map.
    """
    measures, every = measure_study(folder, labels), load_catalogue(protocol).subtasks.values()
    subtasks = [subtask for subtask in every if subtask.answer_type != "report"]
    records = [record for subtask in subtasks for record in _records(subtask, measures)]
    return [{"id": f"S{number}", **record} for number, record in enumerate(records, start=1)]


def measure_study(folder: Path, labels: str) -> Measures:
    """Measure the short-axis masks of a study."""
    chosen, study, measures = label_map(labels), read_study(folder), Measures()
    sex, body_surface = body_of(study.manifest)
    volumes = [volume for volume in study.manifest.volumes if is_for(volume, chosen)]
    if not volumes:
        raise InputError(
            f"{folder.name}: no short-axis mask of {' or '.join(chosen.sequences)}, as {labels} needs; "
            "add mask to the volume in study.json, or name another label map"
        )
    for manifest in volumes:
        masked = _checked(study, manifest, chosen)
        if manifest.sequence == "cine":
            cine(masked, sex, body_surface, measures)
            continue
        for kind in chosen.lesions_on(manifest.sequence):
            lesions(masked, kind, chosen, measures)
    return measures


def has_masks(manifest: StudyManifest, labels: LabelMap) -> bool:
    """Return whether any volume of a study has a mask that a label map applies to."""
    return any(is_for(volume, labels) for volume in manifest.volumes)


def is_for(manifest: VolumeManifest, labels: LabelMap) -> bool:
    """Return whether a label map reads the mask of a volume, which may name another one."""
    mask = manifest.mask
    if mask is None or mask.labels not in (None, labels.name):
        return False
    return manifest.view == SHORT_AXIS and manifest.sequence in labels.sequences


def _checked(study: Study, manifest: VolumeManifest, labels: LabelMap) -> Masked:
    assert manifest.mask is not None
    masked = read_masked(study, manifest, labels)
    for stack in (masked.ed, masked.es):
        drawn_whole = stack is masked.ed or (stack is not None and stack.of(WALL).any())
        if stack is not None and drawn_whole:  # some draw the outside of the muscle at end-diastole alone
            check_ring(stack, manifest.mask.path, labels, manifest.sequence)
    return masked


def _number(subtask: Subtask, measures: Measures) -> Answer | None:
    """Return a quantity that the masks measure as its answer; a value outside its range is none."""
    value = measures.numbers.get(_NUMBERS.get(subtask.finding, ""))
    if value is None or subtask.quantity is None:
        return None
    words = subtask.quantity.written(value)
    try:
        subtask.quantity.read(words)
    except ValueError:
        return Answer(reason=MaskReason.NOT_PLAUSIBLE, words=words)
    return Answer((words,), words=words)


def _records(subtask: Subtask, measures: Measures) -> Iterator[dict[str, Any]]:
    answer = measures.answers.get(subtask.finding) if subtask.options else _number(subtask, measures)
    if answer is None:
        reason = MaskReason.NO_MOTION if subtask.finding in _MOTION else MaskReason.NOT_LABELLED
        answer = Answer(reason=reason)
    known = {subtask.finding: answer.values} if answer.values or answer.reason is None else {}
    values = keys_of(subtask, known)
    texts: list[str | None] = [subtask.text(key) if subtask.options else key for key in values]
    if not texts and answer.reason is None:
        return  # a conditional subtask that does not apply
    for text in texts or [None]:
        yield {
            "subtask": subtask.id,
            "value": text,
            "start": None,
            "end": None,
            "quote": answer.words,
            "section": answer.volume_id,
            "polarity": "affirmed",
            "certainty": "certain" if answer.reason is None else "uncertain",
            "extractor": ORIGIN,
            "origin": ORIGIN,
            "measured": True,
            "near": [],
            "doubt": None if answer.reason is None else str(answer.reason),
        }
