"""Fill fields that an entry of study.json leaves out, from sequence, view or the file's header."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.study.anatomy import Anatomy, Sequence
from cardiolens.study.nifti import Header
from cardiolens.study.voxel_lengths import ALIKE, in_words

_BOTH = (
    "correct spacing_mm or file, or, if the length of the third axis is not the distance of slices, add "
    '"confirmed": ["spacing"]'
)
HeaderOf = Callable[[str], Header]  # reads the header of a volume by path


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading a manifest may use besides its text."""

    anatomy: Anatomy
    header_of: HeaderOf | None = None


def completed(entry: Mapping[str, Any], reading: Reading) -> dict[str, Any]:
    """Return an entry with `volume_id`, `shape` and `spacing_mm` filled in.

    Without `header_of`, fill only `volume_id`. Values of the wrong type pass through; the manifest model
    rejects them. InputError if a header lacks a value.
    """
    filled, header_of = dict(entry), reading.header_of
    kind = _kind(entry, reading.anatomy)
    if filled.get("volume_id") is None:
        filled["volume_id"] = "" if kind is None else kind.volume_id(str(entry.get("view")))
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
            filled["spacing_mm"] = _spacing(path, header, entry, kind)
    return filled


def check_spacing(
    declared: tuple[float, float, float], header: Header, *, slices_alone: bool, confirmed: bool = False
) -> None:
    """Raise InputError if a declared spacing differs from the header's, or if the header contradicts itself.

    Without `slices_alone` the third axis holds phases too: then its length is not compared if it is 1, a
    writer's default. `confirmed`: a person decided between the lengths of a header that contradicts itself,
    or that the length of such an axis is not the distance of slices.
    """
    is_filled = header.spacing_mm is not None and header.spacing_mm[2] != 1
    axes = 3 if slices_alone or (is_filled and not confirmed) else 2
    places = [lengths for lengths in (header.lengths.sform, header.lengths.pixdim) if lengths is not None]
    if header.lengths.contradicted and not _alike(places[0], places[1], axes):
        if confirmed and any(_alike(declared, lengths, axes) for lengths in places):
            return
        raise InputError(
            f"its header contradicts itself ({header.lengths.words}), and study.json says "
            f"{in_words(declared)}; expected one voxel size; find the right one out, state it in spacing_mm "
            "and add "
            '"confirmed": ["spacing"]'
        )
    if not confirmed and (doubt := header.lengths.doubt(declared)):
        raise InputError(
            f"{doubt}; expected lengths in mm; correct spacing_mm and file, or, if they are right, add "
            '"confirmed": ["spacing"]'
        )
    spacing = header.spacing_mm
    if spacing is not None and not _alike(declared, header.lengths.sheared(spacing, declared), axes):
        raise InputError(
            f"its spacing is {list(spacing[:axes])} mm; expected {list(declared[:axes])} as declared; "
            + ("correct spacing_mm or file, or leave spacing_mm out" if slices_alone else _BOTH)
        )


def check_turned(header: Header, *, confirmed: bool) -> None:
    """Raise InputError if sform and qform place the voxels differently, unless a person saw the display."""
    if header.lengths.turned and not confirmed:
        raise InputError(
            "its sform and qform place the voxels differently, so its header tells no orientation; expected "
            'one position in the patient; look at it (jobs/show_study.py) and add "confirmed": ["display"]'
        )


def _alike(first: tuple[float, ...], second: tuple[float, ...], axes: int) -> bool:
    return all(math.isclose(a, b, rel_tol=ALIKE) for a, b in list(zip(first, second, strict=False))[:axes])


def _kind(entry: Mapping[str, Any], anatomy: Anatomy) -> Sequence | None:
    sequence = entry.get("sequence")
    return anatomy.sequences.get(sequence) if isinstance(sequence, str) else None


def _spacing(path: str, header: Header, entry: Mapping[str, Any], kind: Sequence | None) -> list[float]:
    if header.spacing_mm is None:
        raise InputError(
            f"spacing_mm is left out, and the header of {path} declares none; expected three lengths in mm; "
            "give spacing_mm"
        )
    if header.lengths.contradicted:
        raise InputError(
            f"spacing_mm is left out, and the header of {path} contradicts itself ({header.lengths.words}); "
            'find the right lengths out, give them as spacing_mm and add "confirmed": ["spacing"]'
        )
    if not _holds_slices_alone(header.shape, entry, kind):
        raise InputError(
            f"spacing_mm is left out, and the third axis of {path} holds phases too, so its header does "
            "not give the distance of slices; expected three lengths in mm; give spacing_mm"
        )
    return list(header.spacing_mm)


def _holds_slices_alone(shape: tuple[int, ...], entry: Mapping[str, Any], kind: Sequence | None) -> bool:
    """Return whether the third axis holds slices alone, according to the declaration."""
    if len(shape) > 3 and shape[3:] != (1,):
        return True
    layout = entry.get("layout")
    layout = layout if isinstance(layout, Mapping) else {}
    if layout.get("n_phases") is not None:
        return bool(layout["n_phases"] == 1)
    if layout.get("order") == "explicit":
        frames = layout.get("frames")
        return isinstance(frames, list) and not any(isinstance(at, list) and any(at[1:]) for at in frames)
    return layout.get("order") == "static" or kind is None or kind.over_time == "nothing"
