"""Make a saved W&B workspace of a run: `python jobs/make_workspace.py run=outputs/... [entity=team]`.

The script needs the run in W&B (`tracker.mode=online`, or `wandb sync`), a login, and the extra `workspace`.
"""

import sys
from collections.abc import Sequence
from typing import Any

import pyarrow.compute as pc

from cardiolens.base.errors import InputError, RunError
from cardiolens.commands.command import begin, tell
from cardiolens.config.command_words import read_words
from cardiolens.show.tracker.mirror import check_tracker, summary_name
from cardiolens.storage import documents, schemas, tables
from cardiolens.storage.places import Run
from cardiolens.storage.run_word import RunWord

_WAYS = (  # series over time, of the runs of models
    "requests/done",
    "requests/failed",
    "requests_per_second",
    "tokens_per_second",
    "machine/cpu_percent",
    "machine/gpu0_percent",
)
_OPTIONS = ("model", "selector", "budget", "prompt", "control")  # keys in the configuration of an arm


def workspace_of(run: Run, entity: str) -> Any:
    """Make a workspace on a run's arms: bars per tier, all options against scores, the sweep's tables."""
    import wandb_workspaces.reports.v2 as wr
    import wandb_workspaces.workspaces as ws
    from wandb_workspaces.expr import And

    scores = headlines(run)
    options = [wr.ParallelCoordinatesPlotColumn(wr.Config(name)) for name in _OPTIONS]
    ends = [wr.ParallelCoordinatesPlotColumn(wr.SummaryMetric(name)) for name in scores]
    bars = [wr.BarPlot(title=name, metrics=[name], range_x=(0, 100)) for name in scores]
    budgets = [wr.ScatterPlot(x=wr.Config("budget"), y=wr.SummaryMetric(name)) for name in scores]
    written = [wr.WeavePanelSummaryTable(table_name=name) for name in ("scores", "confusion")]
    ways = [wr.LinePlot(title=name, x="time", y=[name]) for name in _WAYS]
    intervals = [f"summary:{name}{end}" for name in scores for end in ("", "/low", "/high")]
    return ws.Workspace(
        name=f"CardioLens {run.root.name}",
        entity=entity,
        project=documents.read_configuration(run).tracker.project,
        sections=[
            ws.Section(name="Scores of arms", panels=bars, is_open=True),
            ws.Section(name="What changes them", panels=[wr.ParallelCoordinatesPlot([*options, *ends])]),
            ws.Section(name="Budgets", panels=budgets),
            ws.Section(name="Tables of the sweep", panels=written),
            ws.Section(name="While it ran", panels=ways),
        ],
        runset_settings=ws.RunsetSettings(
            filters=And(ws.Metric("Group") == run.root.name), pinned_columns=intervals
        ),
    )


def headlines(run: Run) -> list[str]:
    """Return the names of the tiers' scores in W&B."""
    scores = tables.read(run.scores, schemas.SCORES, ("metric", "scope"))
    scopes = pc.unique(scores.filter(pc.equal(scores["metric"], "primary"))["scope"]).to_pylist()
    return [summary_name(scope, "primary") for scope in sorted(scopes) if scope.startswith("tier:")]


def make(run: Run, entity: str | None) -> str:
    """Save the workspace, and return its URL."""
    try:
        import wandb_workspaces  # noqa: F401
    except ImportError:
        raise InputError(
            "a workspace needs wandb-workspaces; run pip install 'cardiolens[workspace]'"
        ) from None
    import wandb

    tracker = documents.read_configuration(run).tracker
    check_tracker(tracker.model_copy(update={"kind": "wandb", "mode": "online"}))
    if not (entity or tracker.entity):
        raise InputError("the run names no entity; add entity= with your user or team name")
    workspace = workspace_of(run, entity or str(tracker.entity))
    try:
        return str(workspace.save().url)
    except (wandb.Error, OSError) as error:
        raise RunError(f"the workspace was not saved ({error})") from error


class Words(RunWord):
    """Words of the script."""

    entity: str | None = None  # a user or team of W&B; None: the run's


def main(argv: Sequence[str]) -> int:
    """Make the workspace of the named run; return 2 if the input is wrong, 1 if W&B refuses, else 0."""
    begin()
    try:
        words = read_words(Words, argv)
        print(f"workspace: {make(words.open(), words.entity)}")
    except (InputError, RunError) as error:
        return tell(error)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
