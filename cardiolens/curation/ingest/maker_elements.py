"""What makers write into elements of their own: intensity scale, component, encoded velocity."""

import math

from pydicom.dataset import Dataset
from pydicom.multival import MultiValue

from cardiolens.curation.ingest.header_values import LARGEST_NUMBER, coded_words, number_of, text_of

_PHILIPS = 0x2005, "Philips MR Imaging DD 001", 0x0D, 0x0E  # group, creator, scale intercept and slope
_PRIVATE_VELOCITY = (  # group, creator, element
    (0x0019, "GEMS_ACQU_01", 0xCC),
    (0x2001, "Philips Imaging DD 001", 0x1A),
)
_GE_COMPONENT = 0x0043, "GEMS_PARM_01", 0x2F
_GE_COMPONENTS = "MPRI"  # by its values 0 to 3


def maker_scale(parts: tuple[Dataset, ...]) -> tuple[float, float] | None:
    """Return slope and intercept that undo Philips' private scaling; None for other vendors.

    A stored value is intensity * scale slope + scale intercept. The rescale slope is chosen per series for
    display on the console and is not comparable between series.
    """
    group, creator, *elements = _PHILIPS
    if not text_of(parts[-1], "Manufacturer").lower().startswith("philips"):
        return None
    for part in parts:
        if not any(tag >> 16 == group for tag in part.keys()):  # noqa: SIM118 - values would be parsed
            continue
        try:
            block = part.private_block(group, creator)
            intercept, slope = (float(block[element].value) for element in elements)
        except (KeyError, TypeError, ValueError):
            continue
        if math.isfinite(slope) and slope > 0 and math.isfinite(intercept):
            return 1 / slope, 0.0 - intercept / slope
    return None


def component_of(parts: tuple[Dataset, ...]) -> str:
    """Return M, P, R or I from ComplexImageComponent, else from the third or later word of ImageType."""
    letters = {"MAGNITUDE": "M", "PHASE": "P", "REAL": "R", "IMAGINARY": "I"}
    for part in parts:
        component = text_of(part, "ComplexImageComponent").upper()
        if component in letters:
            return letters[component]
    words = coded_words(parts, "ImageType")
    letter = next((word for word in words[2:] if word in ("M", "P", "R", "I")), "")
    numbers = _private(parts, *_GE_COMPONENT)
    is_legal = bool(numbers) and numbers[0] in range(len(_GE_COMPONENTS))
    return letter or (_GE_COMPONENTS[int(numbers[0])] if is_legal else "")


def velocity_of(parts: tuple[Dataset, ...]) -> float | None:
    """Return the largest encoded velocity, from the standard's elements or a maker's own."""
    velocities = [
        abs(value)
        for name in ("VelocityEncodingMinimumValue", "VelocityEncodingMaximumValue")
        if (value := number_of(parts, name)) is not None
    ]
    for place in _PRIVATE_VELOCITY:
        velocities += [abs(value) for value in _private(parts, *place)]
    return max(velocities, default=None)


def _private(parts: tuple[Dataset, ...], group: int, creator: str, element: int) -> list[float]:
    """Return the numbers of a maker's own element; none where it is absent or holds no numbers."""
    for part in parts:
        if not any(tag >> 16 == group for tag in part.keys()):  # noqa: SIM118 - values would be parsed
            continue
        try:
            value = part.private_block(group, creator)[element].value
            numbers = [float(each) for each in (value if isinstance(value, list | MultiValue) else [value])]
        except (KeyError, TypeError, ValueError):
            continue
        return [number for number in numbers if abs(number) < LARGEST_NUMBER]
    return []
