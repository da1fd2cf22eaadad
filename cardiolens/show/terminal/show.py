"""Terminal output of plan, results and changes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table

from cardiolens.base.console import console, say
from cardiolens.base.phrasing import counted
from cardiolens.config.model import ModelSpec
from cardiolens.inference.placement.placement import Placement
from cardiolens.inference.plan.candidates import Totals
from cardiolens.inference.plan.missing import Missing
from cardiolens.inference.plan.plan import Plan
from cardiolens.score.claims.declared import when_declared
from cardiolens.score.run_results.run_comparison import Changes
from cardiolens.score.statistics.pooled import ASSUMED
from cardiolens.show.page.page_data import Facts
from cardiolens.show.terminal.ending import ending
from cardiolens.storage import documents

_MANY_TOKENS = 1_024  # of a frame: four tiles of 256; no model needs so many for a whole frame of 448 pixels
COLUMNS = ("begins", "model", "tensor parallel", "replicas", "GPUs", "hours", "GPU hours", "at most", "why")
_CAPTION = (
    "begins (at the latest), hours: from declared rates, if each beginning of a prompt is computed once and "
    "replies are as long as expected; at most: GPU hours if no prompt token came from a cache and every "
    "reply were full"
)


def table_of(
    title: str, columns: Sequence[str], caption: str | None = None, words: Sequence[str] = ("model", "why")
) -> Table:
    """Return a table without rows; columns of `words` stand to the left, of numbers to the right."""
    table = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
    for name in columns:
        table.add_column(name, justify="left" if name in words else "right")
    return table


def show_plan(plan: Plan, missing: Mapping[str, Missing], totals: Mapping[str, Totals]) -> None:
    """Print the plan of a sweep, one row per model, and the declared comparison."""
    numbers = ("asked", "unique", "done", "to do", "overflow", "skipped")
    table = table_of(f"plan of {plan.run.root}", ("model", "arms", *numbers, "prompt tokens"))
    notes: list[str] = []
    for name, work in missing.items():
        total, arms = totals[name], [arm for arm in plan.arms if arm.model.name == name]
        about = "about " if arms[0].model.estimates_tokens else ""
        tokens = f"{about}{total.prompt_tokens:,}" if total.prompt_tokens is not None else "-"
        counts = (total.asked, work.unique, work.done, work.left, total.overflow, total.skipped)
        table.add_row(name, str(len(arms)), *(f"{count:,}" for count in counts), tokens)
        notes += _plan_notes(arms[0].model, work, total)
    console.print(table)
    for note in notes:
        say(note)
    if (primary := plan.spec.primary) is not None:
        say(f"primary comparison: {primary.words} on tier {primary.tier}, {_standing(plan, missing)}")


def _plan_notes(model: ModelSpec, work: Missing, total: Totals) -> Iterator[str]:
    """What the row of a model does not say: stages, second turns, tokens that are not counted or many."""
    if total.sent > work.unique:
        yield (
            f"{model.name}: its {work.unique:,} distinct questions are {total.sent:,} requests at most, "
            "in stages"
        )
    if work.second_turns:
        yield (
            f"{model.name}: at most {counted(work.second_turns, 'second turn')}, where a reply cannot be "
            "read and the model is asked back (asks_back: false in a prompt turns this off)"
        )
    if model.http is not None and total.prompt_tokens is None:
        yield (
            f"{model.name}: - prompt tokens, since nothing counts them: give image_tokens (tokens per "
            "frame), or source (the folder of its processor)"
        )
    if total.frame_tokens >= _MANY_TOKENS:
        yield (
            f"{model.name}: a frame takes {total.frame_tokens:,} tokens, so {total.overflow:,} "
            f"of {total.asked:,} exceed its context. A model that cuts frames into tiles can be "
            "asked with one tile a frame, as a model of its own: docs/guides/gpus.md"
        )


def _standing(plan: Plan, missing: Mapping[str, Missing]) -> str:
    """The declared comparison of a plan in words: its time, and whether it is tested alone."""
    n_answered: int | None = sum(missing[name].done for name in plan.spec.compared if name in missing)
    if plan.run.declaration.exists():
        n_answered = documents.answered_before(plan.run, plan.spec)
    alone = " and tested alone at 5 %" if n_answered == 0 else ", so not tested alone"
    return f"{when_declared(n_answered)}{alone}"


def show_power(lines: Sequence[str]) -> None:
    """Print the detectable differences per tier and their assumptions, before the models run."""
    if lines:
        say(f"smallest difference between two arms that this cohort detects with 80 % power ({ASSUMED}):")
    for line in lines:
        say(f"  {line}")


def show_ending(facts: Facts) -> None:
    """Print what a run found: the page's answers, and the models by tier."""
    for line in ending(facts, console.width):
        say(line)


def show_second_turns(counts: Mapping[str, int]) -> None:
    """Print how many replies were asked back, and how their second turns ended."""
    answered, none, unread, n_open = (
        counts.get(f"second_{end}", 0) for end in ("answered", "none", "unread", "open")
    )
    if total := answered + none + unread:
        say(
            f"asked back: {counted(total, 'reply')} that could not be read: {answered} answered, "
            f"{none} gave no answer (N), {unread} unread again"
        )
    if n_open:
        say(
            f"not asked back: {counted(n_open, 'reply')}; they count as unread until the same "
            "sweep is run again"
        )


def show_changes(changes: Changes, score_changes: Sequence[tuple[str, str, float, float]]) -> None:
    """Print what judging again changed: verdicts by their endings, then tier scores."""
    say(f"verdicts: {changes.total} made, {changes.changed} changed, {changes.new} new, {changes.gone} gone")
    for (before, after), number in sorted(changes.kinds.items()):
        say(f"  {number} from {before} to {after}")
    for arm, tier, old, new in score_changes:
        say(f"  {tier.replace(':', ' ')} of {arm}: {old:.1f} to {new:.1f}")


def show_placement(placement: Placement) -> None:
    """Print one row per model, the estimated total, and the models that cannot run."""
    if placement.waves:
        table = table_of(cluster_of(placement), COLUMNS, _CAPTION)
        for row in placement_rows(placement):
            table.add_row(*row)
        console.print(table)
    if placement.gpu_hours:
        hours = placement.seconds / 3600
        say(f"estimate: {hours:.2g} hours, {placement.gpu_hours:.2g} GPU hours")
    for model, reason in placement.refusals.items():
        say(f"cannot run: {model}: {reason}")


def placement_rows(placement: Placement) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each row in the order of COLUMNS; models in the order in which they get GPUs."""
    begins = 0.0
    for wave in placement.waves:
        for deployment in wave:
            stages = f" x {deployment.pipeline_parallel}" if deployment.spans_nodes else ""
            most = deployment.gpus * deployment.most_seconds / 3600
            hours = (deployment.seconds / 3600, deployment.gpu_hours, most)
            yield (
                f"{begins / 3600:.2g}",
                deployment.model,
                f"{deployment.tensor_parallel}{stages}",
                str(deployment.replicas),
                f"{deployment.gpus:g}",
                *(f"{value:.2g}" if deployment.gpus else "-" for value in hours),
                deployment.reason,
            )
        begins += max(deployment.seconds for deployment in wave)


def cluster_of(placement: Placement) -> str:
    """The title of the table: the GPUs of each node."""
    gpus = [f"{node.gpus} x {node.gpu_memory_gib:g} GiB" for node in placement.nodes]
    return f"Placement on {' + '.join(gpus) or 'no GPU'}"


def show_report_errors(document: Mapping[str, Any]) -> None:
    """Print the errors of reports by arm, and the agreement of both orders and with the rules' entities."""
    for arm, counts in document["arms"].items():
        own = f", written by {document['model']} itself" if arm in document["judges_itself"] else ""
        say(f"{arm}: {counts['errors_per_report']:.2f} errors in each of {counts['reports']} reports{own}")
    orders, entities = document["between_orders"], document["with_entities"]
    say(f"{document['reports']} reports, {document['unusable']} without two usable replies; no score changes")
    say(
        f"between the two orders: F1 of errors {_number(orders['f1'])}, same weight "
        f"{_number(orders['same_weight'])}, equal reports {_number(orders['equal'])}"
    )
    say(
        f"with entity F1 of the rules: Kendall's tau-b {_number(entities['tau_b'])} over "
        f"{entities['reports']} reports (-1 agrees best)"
    )


def _number(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.2f}"
