"""The map of a benchmark: which column of its files holds what, as one YAML file."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field

from cardiolens.base.errors import InputError
from cardiolens.base.paths import PACKAGE
from cardiolens.base.untrusted.bounded_files import read_yaml
from cardiolens.config.base import Spec, describe

MAPS = PACKAGE / "benchmarks" / "maps"
MOST_IMAGES = 64
_MOST_BYTES = 1 << 20

Column = str
"""The name of a column, or the path of a value in it (`conversations.0.value`); with `?` at its end it may be
absent or blank."""

Columns = Column | tuple[Column, ...]
Fault = Literal["few", "twins", "truth"]


class ImageMap(Spec):
    """Columns of a record's images; `{n}` in a name stands for the number of the image, from 1."""

    path: Columns | None = None  # a file below the folder of the data, or a list of them
    bytes: Columns | None = None  # an image, or a list of them, embedded in Parquet
    base64: Columns | None = None  # an image, a list of them, or the id of the record that has it
    caption: Column | None = None  # of one image; withheld
    modality: Column | None = None  # of one image
    count: Column | None = None  # number of images
    most: int = Field(default=MOST_IMAGES, gt=0)
    folders: tuple[str, ...] = ("",)  # folders below which a path is looked for; may hold {patient}


class Choice(Spec):
    """Values of a column: those that are asked, and those that are left out, with the reason."""

    ask: tuple[str, ...]
    leave_out: Mapping[str, str] = {}


class SameText(Spec):
    """A text that stands in no column: the same for every record."""

    text: str


class SameOptions(Spec):
    """Options that stand in no column: the same for every record."""

    text: tuple[str, ...]


class LetteredText(Spec):
    """Options that stand lettered in a text, behind the question."""

    lettered_in: Column


class CaseMap(Spec):
    """Files and columns of a benchmark. A column that no key names is never read into a prompt."""

    name: str
    expects: str  # the folder of the data, in words
    # Globs with {split}, of which the first with a match counts; beside each the column that names the split.
    files: Mapping[str, Column | None]
    splits: Mapping[str, tuple[str, ...]] = {}  # values of that column, by split
    images: ImageMap
    question: Column | SameText
    options: Columns | SameOptions | LetteredText = ()
    # letters, the text of an option, or both ("B. Thinned; C. Normal"); without options a number with its
    # unit, or columns of names that are right in a ranking
    answer: Columns
    subtask: str | None = None  # of the protocol, for questions without options
    multi: Column | bool = False  # whether several options may be right
    id: Column | None = None  # none: a case is named by its row
    patient: Column | None = None  # none: cases with the same images are of one patient
    history: Column | None = None  # text that is shown
    findings: Column | None = None  # text that is withheld, but for settings that give it
    groups: Mapping[str, Columns] = {}  # attributes by which scores are broken down
    only: Mapping[Column, Choice] = {}
    faults: Mapping[Fault, str] = {}  # known faults of the files: left out, and counted by these words

    def _problems(self) -> Iterator[str]:
        if (self.subtask is None) != bool(self.options):
            yield (
                "expected options, or for questions without any the subtask of the protocol that says what "
                "an answer is; give one of them"
            )
        if self.subtask is None and not isinstance(self.answer, str):
            yield "answer has several columns; expected one beside options; give one"

    @property
    def embedded(self) -> tuple[Column, ...]:
        """Return the columns of embedded images in Parquet."""
        return expanded(self.images.bytes, self.images.most)

    @property
    def needed(self) -> list[Column]:
        """Return the columns that every record must have."""
        images = self.images
        parts: list[object] = [self.question, self.options, self.answer, self.multi, self.id, self.patient]
        parts += [self.history, self.findings, images.count, images.base64, *self.groups.values(), *self.only]
        parts += [] if images.bytes else [images.path]
        parts = [part.lettered_in if isinstance(part, LetteredText) else part for part in parts]
        names = [name for part in parts if isinstance(part, str | tuple) for name in expanded(part, 1)]
        return [name for name in names if not name.endswith("?") and "{n" not in name]


def expanded(columns: Columns | None, most: int) -> tuple[Column, ...]:
    """Return columns one by one; a name with `{n}` stands for as many as a record may have images."""
    if not isinstance(columns, str):
        return columns or ()
    return tuple(columns.format(n=n) for n in range(1, most + 1)) if "{n" in columns else (columns,)


def shipped_maps() -> list[str]:
    """Return the names of the maps that come with CardioLens, sorted."""
    return sorted(path.stem for path in MAPS.glob("*.yaml"))


def read_map(name: str) -> CaseMap:
    """Read a map: a shipped one by name, or a file; InputError names the key that is wrong."""
    path = MAPS / f"{name}.yaml" if name in shipped_maps() else Path(name)
    try:
        return CaseMap.model_validate(read_yaml(path, _MOST_BYTES))
    except OSError as error:
        raise InputError(
            f"dataset.map={name}: cannot be read ({error.strerror}); expected a YAML file, or one of the "
            f"shipped maps {', '.join(shipped_maps())}"
        ) from None
    except ValueError as error:
        raise InputError(f"{path}: {describe(error)}") from None
