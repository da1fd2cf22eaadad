"""Slices that show a phantom's lesions, by its masks: evidence of answers about late enhancement and T2.

Perfusion has none: its masks do not say in which phases of the first pass a defect is seen.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from cardiolens.phantom import codes
from cardiolens.phantom.planes import Size
from cardiolens.phantom.render import Rendered
from cardiolens.protocol.tasks.catalogue import Catalogue

SEQUENCES = ("lge", "t2")  # of one frame a slice
LEAST_MM2 = 20.0  # of lesion, by which a slice shows it

Slices = Mapping[str, list[dict[str, Any]]]  # evidence slices by sequence


def lesion_slices(rendered: Rendered, size: Size) -> list[dict[str, Any]]:
    """Return the evidence slices of one volume; none without masks, or of a sequence with phases."""
    if rendered.masks is None or rendered.view.sequence not in SEQUENCES:
        return []
    lesion = (rendered.masks >= codes.LESION) & (rendered.masks < codes.DARK_RIM)
    areas = lesion.sum(axis=(1, 2)) * size.spacing_mm**2
    return [
        {"volume_id": rendered.view.code, "slice": rank}
        for rank, area in enumerate(areas)
        if area >= LEAST_MM2
    ]


def with_slices(
    records: Iterable[dict[str, Any]], catalogue: Catalogue, slices: Slices
) -> list[dict[str, Any]]:
    """Add evidence slices to the `qa-1` records whose answer is a lesion that was seen."""
    return [
        record | {"evidence_slices": slices[record["sequence"]]}
        if slices.get(record["sequence"]) and _is_lesion(record, catalogue)
        else record
        for record in records
    ]


def _is_lesion(record: Mapping[str, Any], catalogue: Catalogue) -> bool:
    """Whether the answer is an abnormality of tissue; what is normal is seen on no single slice."""
    normal = {option.key for option in catalogue[record["subtask"]].options if option.normal}
    return bool(record.get("answer")) and not normal & set(record["answer"])
