"""What the import left for a person: proposals of each study, and their volumes as sheets of small frames."""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.curation.ingest.write import PROPOSALS_NAME
from cardiolens.study import nifti

_LARGEST = 160  # pixels of a frame of a sheet
_PCT = (1.0, 99.0)


@dataclass(frozen=True, slots=True)
class ImportedStudy:
    """One study as `out` holds it."""

    study_id: str
    proposals: tuple[dict[str, Any], ...]
    files: tuple[Path | None, ...]  # of their volumes

    def by_stack(self) -> Mapping[str, dict[str, Any]]:
        """Proposals by the ids of their stacks."""
        return {str(proposal["stack"]): proposal for proposal in self.proposals}


def read_imported(out: Path) -> list[ImportedStudy]:
    """Studies below `out` in the order of their ids; InputError where none was imported."""
    folders = sorted(path.parent for path in out.glob(f"proposals/*/{PROPOSALS_NAME}"))
    if not folders:
        raise InputError(f"out={out}: holds no proposals; give the out of a python -m cardiolens.ingest")
    return [_study(out, folder) for folder in folders]


def _study(out: Path, folder: Path) -> ImportedStudy:
    path = folder / PROPOSALS_NAME
    try:
        tree = read_json(path)
        proposals = tuple(dict(each) for each in tree["proposals"])
        files = tuple(_file(out, folder, each) for each in proposals)
        stacks = [str(each["stack"]) for each in proposals]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"{path}: is no list of proposals of this version; run the import again, it changes nothing else"
        ) from None
    unique = proposals if len(set(stacks)) == len(stacks) else ()
    return ImportedStudy(folder.name, unique, files)


def _file(out: Path, folder: Path, proposal: Mapping[str, Any]) -> Path | None:
    if proposal["entry"] is None:
        return None
    name = Path(str(proposal["entry"]["path"])).name
    return (out / "studies" / folder.name if proposal["status"] == "taken" else folder) / name


@lru_cache(maxsize=256)
def sheet_of(path: Path) -> bytes | None:
    """All frames of a volume as one PNG, slices down and phases across.

    Frames stand as DICOM has them, rows down; the page turns them. None where the volume cannot be read.
    """
    from PIL import Image

    try:
        stored = nifti.read_file(path)
        header = nifti.parse_header(stored)
        flat = nifti.voxels(stored, header).astype(np.float32)
        voxels = flat.reshape(header.shape, order="F") * header.slope + header.inter
    except InputError:
        return None
    frames = (voxels[..., None] if voxels.ndim == 3 else voxels).transpose(2, 3, 1, 0)
    step = max(-(-max(frames.shape[2:]) // _LARGEST), 1)
    frames = frames[:, :, ::step, ::step]
    low, high = np.percentile(frames, _PCT)
    grey = np.clip((frames - low) / max(float(high - low), 1e-6) * 255, 0, 255).astype(np.uint8)
    slices, phases, height, width = grey.shape
    sheet = grey.transpose(0, 2, 1, 3).reshape(slices * height, phases * width)
    png = io.BytesIO()
    Image.fromarray(sheet).save(png, "PNG", compress_level=1)
    return png.getvalue()
