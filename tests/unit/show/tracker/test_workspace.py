"""The saved W&B workspace and report, as they arrive at a server of ours; how W&B shows them is untested."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_run import finished, small_spec
from small_cohort import make_cohort

from cardiolens.base.errors import InputError
from cardiolens.show.tracker.run_tables import VIEWS
from cardiolens.storage.places import Run
from tests.wandb_server import ENTITY, wandb_server

pytest.importorskip("wandb_workspaces", reason="make test installs it")

from cardiolens.show.tracker.workspace import save_workspace

pytestmark = pytest.mark.filterwarnings(
    "ignore::pydantic.warnings.PydanticDeprecatedSince20"  # of wandb_workspaces, when it is imported
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return finished(small_spec(make_cohort(tmp_path_factory.mktemp("workspace"), 3), "workspace"))


def found(tree: Any, name: str) -> Iterator[Any]:
    """Every value under a name, at any depth."""
    if isinstance(tree, dict):
        if name in tree:
            yield tree[name]
        tree = list(tree.values())
    for inner in tree if isinstance(tree, list) else ():
        yield from found(inner, name)


@pytest.mark.full
def test_one_command_saves_a_workspace_and_a_report_on_one_sweep(run: Run) -> None:
    with wandb_server() as server:
        command = [sys.executable, "-m", "cardiolens.track", "workspace", f"run={run.root}"]
        environment = os.environ | server.environment
        done = subprocess.run(
            [*command, f"entity={ENTITY}"], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        workspace, report = server.views
    assert re.search(r"workspace: \S+\nreport: \S+\n", done.stdout), done.stdout
    for view in (workspace, report):
        assert (view["entityName"], view["projectName"]) == (ENTITY, "cardiolens")
        text = json.dumps(view)
        assert run.root.name in list(found(view, "value")), "the runs of this sweep alone"
        tables_shown = {name for name in found(view, "val") if isinstance(name, str)}
        assert {*VIEWS, "answers", "findings", "scores", "differences", "confusion"} <= tables_shown
        metrics = {name for names in found(view, "metrics") for name in names}
        assert {"tier_1", "tier_2", "tier_3", "requests_per_second"} <= metrics
        assert "requests/done" in set(found(view, "xAxis"))
        assert not re.search(r"PH-\d", text)
        assert str(run.root.parent) not in text
        assert str(Path.cwd()) not in text
    assert "Which model reads best?" in json.dumps(report)


def test_without_a_login_nothing_is_sent(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(InputError, match="wandb login"):
        save_workspace(run, "team")
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    with pytest.raises(InputError, match="add entity="):
        save_workspace(run, None)
