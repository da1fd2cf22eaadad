"""The mirror in MLflow, in files: the same runs, tables and summaries; a second mirror doubles nothing."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from page_run import finished, small_spec
from small_cohort import make_cohort

from cardiolens.base.errors import InputError
from cardiolens.config.steps import TrackerSpec
from cardiolens.runtime.connect import be_quiet
from cardiolens.show.page.write import write_page
from cardiolens.show.tracker.mirror import track
from cardiolens.show.tracker.run_group import check_tracker
from cardiolens.storage import documents, tables
from cardiolens.storage.places import Run


def test_a_server_that_nobody_named_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cardiolens.show.tracker.run_group.find_spec", lambda name: name)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(InputError, match="MLFLOW_TRACKING_URI names no server"):
        check_tracker(TrackerSpec(kind="mlflow", mode="online"))


def test_without_the_package_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cardiolens.show.tracker.run_group.find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"cardiolens\[mlflow\]"):
        check_tracker(TrackerSpec(kind="mlflow"))


def test_mlflow_calls_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow", reason="it is an extra")
    from mlflow.environment_variables import MLFLOW_DISABLE_TELEMETRY

    monkeypatch.delenv("MLFLOW_DISABLE_TELEMETRY", raising=False)
    be_quiet()
    assert MLFLOW_DISABLE_TELEMETRY.get()


@pytest.mark.filterwarnings("ignore")  # of MLflow, about its own files
def test_every_row_and_every_summary_arrive_once(tmp_path: Path) -> None:
    pytest.importorskip("mlflow", reason="it is an extra")
    from mlflow.tracking import MlflowClient

    made: Run = finished(small_spec(make_cohort(tmp_path / "Fälle 1", 2), "mlflow", control=["none"]))
    write_page(made, [made])
    made.progress("noisy").parent.mkdir()
    series = [{"time": 1.0, "requests/done": 3}, {"time": 2.0, "requests/done": 9}]
    made.progress("noisy").write_text("".join(json.dumps(row) + "\n" for row in series))
    tracker = documents.read_configuration(made).tracker.model_copy(update={"kind": "mlflow"})
    for _ in ("first", "again"):
        assert track(made, tracker)
    client = MlflowClient(tracking_uri=(made.root / "mlruns").as_uri())
    (experiment,) = [one for one in client.search_experiments() if one.name == "cardiolens"]
    runs = client.search_runs([experiment.experiment_id])
    assert sorted(run.data.tags["job_type"] for run in runs) == ["model", "model", "sweep"]
    by_name = {run.info.run_name: run for run in runs}
    assert {run.data.tags["group"] for run in runs} == {made.root.name}
    assert all("tier_1" in run.data.metrics for run in runs)
    arrived = client.get_metric_history(by_name["noisy"].info.run_id, "time")
    assert [(row.step, row.value) for row in arrived] == [(3, 1.0), (9, 2.0)]
    sweep = by_name[made.root.name].info.run_id
    rows = {}
    for name in ("scores", "differences"):
        path = client.download_artifacts(sweep, f"tables/{name}.parquet", str(tmp_path))
        rows[name] = pq.read_metadata(path).num_rows
    assert sum(rows.values()) == tables.count_rows(made.scores)
    assert "index.html" in [one.path for one in client.list_artifacts(sweep)]
