"""A saved workspace and a report of a sweep in Weights & Biases: headlines, and a view for each question."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cardiolens.base.errors import InputError, RunError
from cardiolens.base.sanitize import one_line
from cardiolens.show.page.further_answers import further_answers
from cardiolens.show.page.headline_answers import answers
from cardiolens.show.page.page_data import Facts, read_facts
from cardiolens.show.tracker.run_group import check_tracker
from cardiolens.show.tracker.run_summary import tier_name
from cardiolens.show.tracker.run_tables import tables_of_run
from cardiolens.show.tracker.tracked_progress import DONE
from cardiolens.show.tracker.wandb_runs import part_names
from cardiolens.storage import documents
from cardiolens.storage.places import Run

_SERIES = (  # over the requests done, of the runs of models
    "requests/failed",
    "requests_per_second",
    "tokens_per_second",
    "machine/cpu_percent",
    "machine/gpu0_percent",
)
_VIEWS: Mapping[str, Sequence[str]] = {  # the tables of each section
    "Answers and findings": ("answers", "findings"),
    "Slice selection and budget": ("selector_x_budget",),
    "Prompt": ("prompt",),
    "Images": ("images",),
    "Collapse": ("collapse",),
    "All scores": ("scores", "differences", "confusion"),
}


@dataclass(frozen=True, slots=True)
class Saved:
    """The addresses of a saved workspace and a saved report."""

    workspace: str
    report: str


def save_workspace(run: Run, entity: str | None) -> Saved:
    """Save workspace and report of a run that is in W&B; InputError without extra, login or entity."""
    try:
        import wandb_workspaces  # noqa: F401
    except ImportError:
        raise InputError(
            "a workspace needs wandb-workspaces; run pip install 'cardiolens[workspace]'"
        ) from None

    tracker = documents.read_configuration(run).tracker
    check_tracker(tracker.model_copy(update={"kind": "wandb", "mode": "online"}))
    if not (entity or tracker.entity):
        raise InputError("the run names no entity; add entity= with your user or team name")
    layout = Layout.of(run, entity or str(tracker.entity))
    try:
        return Saved(str(layout.workspace().save().url), str(layout.report().save().url))
    except Exception as error:
        raise RunError(f"the workspace was not saved ({one_line(str(error), 400)})") from error


@dataclass(frozen=True, slots=True)
class Layout:
    """What is shown of a run, as W&B's own panels."""

    group: str
    entity: str
    project: str
    facts: Facts
    shown: Mapping[str, Sequence[str]]  # by table: the tables that W&B shows

    @classmethod
    def of(cls, run: Run, entity: str) -> "Layout":
        """The layout of a judged run."""
        facts = read_facts(run, [run])
        project = documents.read_configuration(run).tracker.project
        shown = {name: part_names(name, table.num_rows) for name, table in tables_of_run(run, facts)}
        return cls(run.root.resolve().name, entity, project, facts, shown)

    @property
    def tiers(self) -> list[str]:
        """The names of the tiers' scores in a summary."""
        return sorted({tier_name(row["scope"]) for row in self.facts.of_arms(["primary"], "tier:")})

    def workspace(self) -> Any:
        """A workspace on the runs of the sweep."""
        import wandb_workspaces.workspaces as ws
        from wandb_workspaces.expr import And

        ends = ("", "/low", "/high")
        pinned = [f"summary:{tier}{end}" for tier in self.tiers for end in ends] + ["summary:percent_read"]
        sections = [ws.Section(name=name, panels=panels, is_open=True) for name, panels in self._sections()]
        return ws.Workspace(
            name=f"CardioLens {self.group}",
            entity=self.entity,
            project=self.project,
            sections=sections,
            runset_settings=ws.RunsetSettings(
                filters=And(ws.Metric("Group") == self.group), pinned_columns=pinned
            ),
        )

    def report(self) -> Any:
        """A report: the answers of the page in words, then the panels of the workspace."""
        import wandb_workspaces.reports.v2 as wr
        from wandb_workspaces.expr import Metric

        blocks: list[Any] = []
        for answer in [*answers(self.facts), *further_answers(self.facts)]:
            blocks += [wr.H2(answer.question), wr.P(f"{answer.verdict}. {answer.sentence}")]
        for name, panels in self._sections():
            runs = wr.Runset(
                entity=self.entity,
                project=self.project,
                name=self.group,
                filters=[Metric("Group") == self.group],
            )
            blocks += [wr.H2(name), wr.PanelGrid(runsets=[runs], panels=panels)]
        return wr.Report(
            entity=self.entity,
            project=self.project,
            title=f"CardioLens {self.group}"[:128],
            description="Answers, each no stronger than its interval, and the tables behind them.",
            blocks=blocks,
        )

    def _sections(self) -> Iterator[tuple[str, list[Any]]]:
        """Yield the panels of each section: headlines as bars, views as tables, progress as lines."""
        import wandb_workspaces.reports.v2 as wr

        yield "Headlines", [wr.BarPlot(title=name, metrics=[name], range_x=(0, 100)) for name in self.tiers]
        for title, names in _VIEWS.items():
            shown = [part for name in names for part in self.shown[name]]
            yield title, [wr.WeavePanelSummaryTable(table_name=part) for part in shown]
        yield "While it ran", [wr.LinePlot(title=name, x=DONE, y=[name]) for name in _SERIES]
