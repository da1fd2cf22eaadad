"""Runs of Weights & Biases with fixed ids: mirroring again replaces them."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from netrc import netrc
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.config.sweep import TrackerSpec

if TYPE_CHECKING:
    from wandb import Run as WandbRun

SHOWN_ROWS = 10_000  # of a table that W&B shows; of a longer one it drops the rest and says nothing
DONE = "requests/done"  # the axis of every series: two runs of one model differ in time, not in requests

_AGENT = ("WANDB_SWEEP_ID", "WANDB_LAUNCH")  # whose one id would be that of every run


@dataclass(frozen=True, slots=True)
class WandbGroup:
    """The runs of W&B of one sweep: one of its own, and one for each model, with a common configuration."""

    folder: Path
    tracker: TrackerSpec
    config: Mapping[str, object]

    @contextmanager
    def opened(self, model: str | None = None, **config: object) -> "Iterator[WandbRun]":
        """Yield the run of the sweep or of a model; its id is a digest of the run's folder and the model.

        It ends as failed where something goes wrong; online, the end waits until all was sent. (W&B's own
        block prints a traceback.) Host name, code and output are left out: a path or a log line may hold a
        patient's name.
        """
        import wandb

        mode = self.tracker.mode
        assert mode != "none", "nothing is mirrored"
        group = self.folder.resolve().name
        run = wandb.init(
            project=_project(),
            entity=os.environ.get("WANDB_ENTITY"),  # else your own
            mode=mode,
            dir=str(self.folder),
            id=digest_of([group, "model", model] if model else [group])[:16],
            name=model or group,
            group=group,
            job_type="model" if model else "sweep",
            tags=[model or "sweep"],
            config={**self.config, **({"model": model} if model else {}), **config},
            # the progress of a model goes on where it stopped; everything else is replaced
            resume="allow" if mode == "online" and model else None,
            reinit="create_new",
            settings=wandb.Settings(
                console="off",
                host="unnamed",
                silent=True,
                disable_git=True,
                disable_code=True,
                x_disable_stats=True,
                x_disable_machine_info=True,
                x_save_requirements=False,
            ),
        )
        if model:  # which has a series; its summary is what is set after the run
            run.define_metric(DONE, summary="none")
            run.define_metric("*", step_metric=DONE, summary="none")
        try:
            yield run
        except BaseException:
            with suppress(Exception):
                run.finish(exit_code=1)
            raise
        run.finish(exit_code=0)


def add_table(run: "WandbRun", name: str, table: pa.Table) -> None:
    """Keep a table whole as a Parquet file of an artifact, and show it if W&B shows all of it."""
    import wandb

    if table.num_rows <= SHOWN_ROWS:
        columns = [_defined(column).to_pylist() for column in table.columns]
        rows = [list(row) for row in zip(*columns, strict=True)]
        run.log({name: wandb.Table(columns=table.column_names, data=rows, allow_mixed_types=True)})
    artifact_name = re.sub(r"[^A-Za-z0-9_.-]", "-", f"{run.group}-{name}")[-128:]
    artifact = wandb.Artifact(artifact_name, type="table")
    with TemporaryDirectory(prefix="cardiolens-") as folder:  # W&B's own is left to the garbage collector
        file = Path(folder, f"{name}.parquet")
        pq.write_table(table.replace_schema_metadata(None), file, compression="zstd")
        artifact.add_file(str(file), name=file.name)
    run.log_artifact(artifact)


def _defined(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column with null in place of NaN, which JSON does not have."""
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)


def _project() -> str:
    """Return the project of the runs; the variable is W&B's own."""
    return os.environ.get("WANDB_PROJECT", "cardiolens")


def check_tracker(tracker: TrackerSpec) -> None:
    """Raise InputError under an agent of W&B, or where W&B is to be written online without a login."""
    if tracker.mode == "none":
        return
    if agents := [name for name in _AGENT if os.environ.get(name)]:
        raise InputError(
            f"{agents[0]}: is set by an agent of W&B, under which all runs would have one id; start "
            "the sweep without an agent, or use tracker=none"
        )
    if tracker.mode == "offline" or os.environ.get("WANDB_API_KEY"):
        return
    try:
        hosts = netrc().hosts
    except (OSError, ValueError):
        hosts = {}
    if not any("wandb" in host for host in hosts):
        raise InputError(
            f"tracker.mode=online for project {_project()!r}, but there is no login; run `wandb login`, "
            "set WANDB_API_KEY, or use tracker.mode=offline"
        )
