"""The saved W&B workspace as it would be sent: made without a network; what W&B makes of it is not tested."""

import json
import re
from pathlib import Path

import pytest
from page_run import finished, small_spec
from small_cohort import make_cohort

from cardiolens.base.errors import InputError
from cardiolens.storage.places import Run

pytest.importorskip("wandb_workspaces", reason="make test installs it")

from jobs.make_workspace import headlines, make, workspace_of

pytestmark = pytest.mark.filterwarnings(
    "ignore::pydantic.warnings.PydanticDeprecatedSince20"  # of wandb_workspaces, when it is imported
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return finished(small_spec(make_cohort(tmp_path_factory.mktemp("workspace"), 3), "workspace"))


def test_a_workspace_shows_the_arms_of_one_run_by_the_names_they_were_given(run: Run) -> None:
    assert headlines(run) == ["tier_1/primary", "tier_2/primary", "tier_3/primary"]
    sent = json.loads(workspace_of(run, "team")._to_model().model_dump_json(by_alias=True))
    assert (sent["entity"], sent["project"]) == ("team", "cardiolens")
    section = sent["spec"]["section"]
    panels = [panel for part in section["panelBankConfig"]["sections"] for panel in part["panels"]]
    kinds = [panel["viewType"] for panel in panels]
    assert kinds.count("Bar Chart") == 3
    (parallel,) = [panel for panel in panels if panel["viewType"] == "Parallel Coordinates Plot"]
    named = [column["accessor"] for column in parallel["config"]["columns"]]
    options = [f"config:{name}.value" for name in ("model", "selector", "budget", "prompt", "control")]
    assert named == [*options, *(f"summary:{name}" for name in headlines(run))]
    (filtered,) = section["runSets"][0]["filters"]["filters"]
    assert filtered["key"] == {"section": "run", "name": "group"}
    assert filtered["value"] == run.root.name
    assert str(Path.cwd()) not in json.dumps(sent)
    assert not re.search(r"PH-\d", json.dumps(sent))


def test_without_a_login_nothing_is_sent(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(InputError, match="wandb login"):
        make(run, "team")
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    with pytest.raises(InputError, match="add entity="):
        make(run, None)
