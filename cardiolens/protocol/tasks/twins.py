"""Twins: studies of the same hearts without their lesions, known by their names (control lesion)."""

LESION = "lesion"  # the control that asks the questions on twins, which no other arm asks
_SUFFIX = "-without-lesion"
TWIN = f"{_SUFFIX}$"  # regular expression of the studies that are twins


def twin_of(study_id: str) -> str:
    """Return the name of a study's twin."""
    return study_id + _SUFFIX


def is_twin(study_id: str) -> bool:
    """Return whether a study is another one's twin."""
    return study_id.endswith(_SUFFIX)


def original_of(twin: str) -> str:
    """Return the study that a twin was made from, or the question that a question on a twin repeats."""
    return twin.replace(_SUFFIX, "", 1)
