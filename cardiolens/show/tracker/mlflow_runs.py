"""Runs of MLflow: tables are Parquet files among a run's artifacts; mirroring again replaces the runs."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cardiolens.base import disk
from cardiolens.base.digest import digest_of
from cardiolens.config.steps import TrackerSpec
from cardiolens.show.tracker.tracked_progress import DONE
from cardiolens.show.tracker.tracked_run import JobType, TrackedRun, Value

SERVER = "MLFLOW_TRACKING_URI"  # where runs go online
_KEY = "cardiolens.key"  # the tag by which a run that is mirrored again is found


@dataclass(frozen=True, slots=True)
class MlflowGroup:
    """The runs of MLflow of one sweep: an experiment is a project, and its runs share the tag `group`."""

    folder: Path
    tracker: TrackerSpec
    config: Mapping[str, object]

    def open(
        self,
        job_type: JobType,
        name: str | None = None,
        *,
        key: Sequence[str] = (),
        tags: Sequence[str] = (),
        config: Mapping[str, object] | None = None,
    ) -> TrackedRun:
        """Open a run; one of the same key is deleted first."""
        from mlflow.tracking import MlflowClient

        group = self.folder.resolve().name
        client = MlflowClient(tracking_uri=self._place)
        project = client.get_experiment_by_name(self.tracker.project)
        number = project.experiment_id if project else client.create_experiment(self.tracker.project)
        run_key = digest_of([group, *key])[:16]
        for earlier in client.search_runs([number], filter_string=f"tags.`{_KEY}` = '{run_key}'"):
            client.delete_run(earlier.info.run_id)
        words = {"group": group, "job_type": job_type, _KEY: run_key, **dict.fromkeys(tags, "true")}
        words |= {"mlflow.user": "unnamed", "mlflow.source.name": "cardiolens"}
        run = client.create_run(number, tags=words, run_name=name or group)
        for option, value in {**self.config, **(config or {})}.items():
            client.log_param(run.info.run_id, option, value)
        return MlflowRun(client, run.info.run_id)

    @property
    def _place(self) -> str:
        if self.tracker.mode == "online":
            return os.environ[SERVER]
        os.environ.setdefault(
            "MLFLOW_ALLOW_FILE_STORE", "true"
        )  # its databases need packages beside the client
        return (self.folder / "mlruns").absolute().as_uri()


@dataclass(frozen=True, slots=True)
class MlflowRun:
    """An open run of MLflow."""

    client: Any
    run_id: str

    def log(self, row: Mapping[str, int | float], step: int) -> None:
        """Add a row of a series, at the requests done."""
        for name, value in row.items():
            self.client.log_metric(self.run_id, name, value, step=int(row.get(DONE, step)))

    def summarize(self, values: Mapping[str, Value]) -> None:
        """Set numbers as metrics, and words as tags; what is undefined is left out."""
        for name, value in values.items():
            if isinstance(value, str):
                self.client.set_tag(self.run_id, name, value)
            elif value is not None and not math.isnan(value):
                self.client.log_metric(self.run_id, name, value)

    def add_table(self, name: str, table: pa.Table) -> int:
        """Keep a table as a Parquet file, and count its rows in the file that MLflow has."""
        with TemporaryDirectory(prefix="cardiolens-") as folder:
            path = Path(folder) / f"{name}.parquet"
            with disk.atomic(path) as temporary:
                pq.write_table(table.replace_schema_metadata(None), temporary, compression="zstd")
            self.client.log_artifact(self.run_id, str(path), "tables")
            copied = self.client.download_artifacts(self.run_id, f"tables/{path.name}", folder)
            return int(pq.read_metadata(copied).num_rows)

    def add_page(self, page: Path) -> None:
        """Keep the page, which MLflow shows."""
        self.client.log_artifact(self.run_id, str(page))

    def finish(self, *, failed: bool = False) -> None:
        """End the run."""
        self.client.set_terminated(self.run_id, "FAILED" if failed else "FINISHED")
