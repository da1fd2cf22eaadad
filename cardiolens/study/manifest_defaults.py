"""Fill fields that an entry of study.json leaves out, from sequence, view or the file's header."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.study.nifti import Header
from cardiolens.study.sequences import sequences

HeaderOf = Callable[[str], Header]  # reads the header of a volume by path

_ALIKE = 0.01  # largest relative difference of two spacings that count as equal


def completed(entry: Mapping[str, Any], header_of: HeaderOf | None) -> dict[str, Any]:
    """Return an entry with `volume_id`, `shape` and `spacing_mm` filled in.

    Without `header_of`, fill only `volume_id`. Values of the wrong type pass through; the manifest model
    rejects them. InputError if a header lacks a value.
    """
    filled = dict(entry)
    if filled.get("volume_id") is None:
        filled["volume_id"] = _volume_id(entry.get("sequence"), entry.get("view"))
    path = entry.get("path")
    missing = [name for name in ("shape", "spacing_mm") if filled.get(name) is None]
    if missing and header_of is not None and isinstance(path, str):
        try:
            header = header_of(path)
        except InputError as error:
            raise InputError(f"{missing[0]} is left out, and {path}: {error}") from None
        if "shape" in missing:
            filled["shape"] = list(header.shape)
        if "spacing_mm" in missing:
            filled["spacing_mm"] = _spacing(path, header, entry)
    return filled


def check_spacing(declared: tuple[float, ...], header: Header, *, slices_alone: bool) -> None:
    """Raise InputError if a declared spacing differs from the header's.

    The third axis is compared only with `slices_alone`: if it also holds phases, its spacing means nothing.
    """
    spacing = header.spacing_mm
    if spacing is None:
        return
    axes = 3 if slices_alone else 2
    if not all(math.isclose(a, b, rel_tol=_ALIKE) for a, b in zip(declared[:axes], spacing, strict=False)):
        raise InputError(
            f"its spacing is {list(spacing[:axes])} mm; expected {list(declared[:axes])} as declared; "
            "correct spacing_mm or file, or leave spacing_mm out"
        )


def _volume_id(sequence: object, view: object) -> str:
    rule = sequences().get(sequence) if isinstance(sequence, str) else None
    return "" if rule is None else rule.volume_id(str(view))


def _spacing(path: str, header: Header, entry: Mapping[str, Any]) -> list[float]:
    if header.spacing_mm is None:
        raise InputError(
            f"spacing_mm is left out, and the header of {path} declares none; expected three lengths in mm; "
            "give spacing_mm"
        )
    if not _holds_slices_alone(header.shape, entry):
        raise InputError(
            f"spacing_mm is left out, and the third axis of {path} holds phases too, so its header does "
            "not give the distance of slices; expected three lengths in mm; give spacing_mm"
        )
    return list(header.spacing_mm)


def _holds_slices_alone(shape: tuple[int, ...], entry: Mapping[str, Any]) -> bool:
    """Return whether the third axis holds slices alone, according to the declaration."""
    if len(shape) > 3 and shape[3:] != (1,):
        return True
    sequence, layout = entry.get("sequence"), entry.get("layout")
    layout = layout if isinstance(layout, Mapping) else {}
    if layout.get("n_phases") is not None:
        return bool(layout["n_phases"] == 1)
    if layout.get("order") == "explicit":
        frames = layout.get("frames")
        return isinstance(frames, list) and not any(isinstance(at, list) and any(at[1:]) for at in frames)
    rule = sequences().get(sequence) if isinstance(sequence, str) else None
    return layout.get("order") == "static" or rule is None or rule.over_time == "nothing"
