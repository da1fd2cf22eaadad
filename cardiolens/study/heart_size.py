"""The size of a human heart, to tell a wrong voxel size."""

CAVITY_MM = (
    20.0,
    110.0,
)  # width of the left ventricle's cavity at its widest in end-diastole, children included
LENGTH_MM = (25.0, 180.0)  # from the first to the last slice with a cavity, of stacks of four and more


def has_heart_size(cavity_mm: float | None, length_mm: float | None = None) -> bool:
    """Return whether measures may be a human heart's; unknown ones may."""
    measures = ((cavity_mm, CAVITY_MM), (length_mm, LENGTH_MM))
    return all(value is None or low <= value <= high for value, (low, high) in measures)
