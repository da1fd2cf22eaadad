"""`layouts/<name>.json`: the layouts that the imports into one folder used, beside what they wrote."""

from pathlib import Path

from pydantic import ValidationError

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_text
from cardiolens.config.base import describe
from cardiolens.curation.ingest.layouts.convention import Convention

_FOLDER = "layouts"


def write_layout(out: Path, convention: Convention) -> None:
    """Write the layout of an import."""
    disk.make_folder(out / _FOLDER)
    disk.write_text(out / _FOLDER / f"{convention.name}.json", convention.model_dump_json(indent=1) + "\n")


def layouts_of(out: Path) -> dict[str, Convention]:
    """Return the layouts that the imports into a folder used, by name."""
    layouts = {}
    for path in sorted((out / _FOLDER).glob("*.json")):
        try:
            layouts[path.stem] = Convention.model_validate_json(read_text(path))
        except (OSError, ValidationError) as error:
            reason = describe(error) if isinstance(error, ValidationError) else error.strerror
            raise InputError(f"{path}: {reason}; run the import again") from None
    return layouts
