"""Files of a run besides its tables: configuration, manifest, log."""

import json
import logging
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import BaseModel, Field, ValidationError

from cardiolens import tables
from cardiolens.config.base import describe
from cardiolens.config.sweep import SweepSpec, parse
from cardiolens.digest import digest_of
from cardiolens.errors import InputError, RunError
from cardiolens.record.places import Run

_REMEDY = "another version of CardioLens wrote it, or it was changed: run the sweep again"


def write_configuration(run: Run, spec: SweepSpec) -> None:
    """Write the resolved configuration, which shows every value that applied."""
    tables.write_text(run.configuration, spec.model_dump_json(indent=1) + "\n")


def read_configuration(run: Run) -> SweepSpec:
    """Read the configuration of a run."""
    tree = _read_json(run, run.configuration)
    try:
        return parse(tree)
    except InputError as error:
        raise InputError(f"{run.configuration}: {error}; {_REMEDY}") from None


def _read_json(run: Run, path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{run.root}: is not the folder of a run ({error}); give run=outputs/<name>"
        ) from None


def cohort_digest(volumes: pa.Table) -> str:
    """32 hex digits of the studies of a run: the sources and windows of their volumes."""
    names = ["study_id", "volume_id", "source_sha256", "window_low", "window_high"]
    return digest_of(
        volumes.select(names).sort_by([("study_id", "ascending"), ("volume_id", "ascending")]).to_pylist()
    )


class _Described(BaseModel):
    model_key: Annotated[str, Field(pattern=r"^[^/\\]+$")]  # the name of a folder


class _Manifest(BaseModel):
    """The fields of a manifest that are read again; the others are for people."""

    schema_: Annotated[Literal["manifest-1"], Field(alias="schema")]
    protocol: str
    models: dict[str, _Described]
    questions_digest: str
    questions_sha256: str
    catalogue_sha256: str
    cohort_digest: str


def read_manifest(run: Run) -> dict[str, Any]:
    """Read the manifest of a finished sweep."""
    manifest: dict[str, Any] = _read_json(run, run.manifest)
    try:
        _Manifest.model_validate(manifest)
    except ValidationError as error:
        raise InputError(f"{run.manifest}: {describe(error)}; {_REMEDY}") from None
    return manifest


def log_to(run: Run) -> None:
    """Log everything to the run's log file, and warnings and errors to the terminal."""
    try:
        run.root.mkdir(parents=True, exist_ok=True)
        to_file = logging.FileHandler(run.log)
    except OSError as error:
        reason = error.strerror or error
        raise RunError(
            f"{run.root}: cannot be written ({reason}); free space or check permissions"
        ) from error
    root = logging.getLogger("cardiolens")
    root.setLevel(logging.INFO)
    root.handlers.clear()
    to_terminal = logging.StreamHandler()
    to_terminal.setLevel(logging.WARNING)
    to_file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root.addHandler(to_terminal)
    root.addHandler(to_file)
