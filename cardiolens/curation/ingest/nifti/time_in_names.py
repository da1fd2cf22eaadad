"""What the name of a file tells of the time of its frames."""

from pathlib import PurePosixPath

from cardiolens.curation.ingest.names import Name
from cardiolens.curation.ingest.words import words_of
from cardiolens.study.anatomy import sequences


def tells_no_time(name: Name) -> bool:
    """Return whether a file's name declares one phase, or only sequences that are still pictures."""
    return meanings(name) == {"nothing"} or is_one_phase(name)


def is_one_phase(name: Name) -> bool:
    """Return whether a file's name declares a phase or a moment."""
    return name.phase is not None or bool(name.moment)


def meanings(name: Name) -> set[str]:
    """What the frames of the sequences that a file's name tells are of over time."""
    sequence_names = words_of(name.words, PurePosixPath(name.folder).name).sequences
    kinds = [sequences().get(sequence) for sequence in sequence_names]
    return {"nothing" if kind is None else kind.over_time for kind in kinds}
