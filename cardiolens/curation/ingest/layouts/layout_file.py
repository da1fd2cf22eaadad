"""`layout.json`: the layout that an import used, beside what it wrote."""

from pathlib import Path

from pydantic import ValidationError

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_text
from cardiolens.config.base import describe
from cardiolens.curation.ingest.layouts.convention import Convention

LAYOUT_NAME = "layout.json"


def write_layout(out: Path, convention: Convention | None) -> None:
    """Write the layout of an import; remove that of an earlier one if this has none."""
    if convention is not None:
        disk.write_text(out / LAYOUT_NAME, convention.model_dump_json(indent=1) + "\n")
    elif (out / LAYOUT_NAME).exists():
        disk.remove(out / LAYOUT_NAME)


def layout_of(out: Path) -> Convention | None:
    """Return the layout that an import used; None if it used none."""
    path = out / LAYOUT_NAME
    if not path.is_file():
        return None
    try:
        return Convention.model_validate_json(read_text(path))
    except ValidationError as error:
        raise InputError(f"{path}: {describe(error)}; run the import again") from None
