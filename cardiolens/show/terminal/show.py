"""Terminal output of plan, results and changes."""

from collections.abc import Mapping, Sequence

from rich.table import Table

from cardiolens.base.console import console, say
from cardiolens.base.phrasing import counted
from cardiolens.inference.plan.candidates import Totals
from cardiolens.inference.plan.missing import Missing
from cardiolens.inference.plan.plan import Plan
from cardiolens.score.claims.declared import when_declared
from cardiolens.score.claims.planned_power import ASSUMED
from cardiolens.score.run_results.run_comparison import Changes
from cardiolens.show.page.page_data import Facts
from cardiolens.show.terminal.ending import ending
from cardiolens.storage import documents

_MANY_TOKENS = 1_024  # of a frame: four tiles of 256; no model needs so many for a whole frame of 448 pixels


def show_plan(plan: Plan, missing: Mapping[str, Missing], totals: Mapping[str, Totals]) -> None:
    """Print the plan of a sweep, one row per model, and the declared comparison."""
    table = Table(title=f"plan of {plan.run.root}", title_justify="left")
    columns = ("model", "arms", "asked", "unique", "done", "to do", "overflow", "skipped")
    for name in (*columns, "frames referenced", "distinct", "prompt tokens"):
        table.add_column(name, justify="left" if name == "model" else "right")
    for model, work in missing.items():
        total = totals[model]
        arms = [arm for arm in plan.arms if arm.model.name == model]
        about = "about " if arms[0].model.estimates_tokens else ""
        tokens = f"{about}{total.prompt_tokens:,}" if total.prompt_tokens is not None else "-"
        counts = (total.asked, work.unique, work.done, work.left, total.overflow, total.skipped)
        frames = (total.frames_referenced, total.frames_distinct)
        table.add_row(model, str(len(arms)), *(f"{count:,}" for count in (*counts, *frames)), tokens)
    console.print(table)
    for model, work in missing.items():
        if (n_requests := totals[model].sent) > work.unique:
            say(
                f"{model}: its {work.unique:,} distinct questions are {n_requests:,} requests at most, "
                "in stages"
            )
        if work.second_turns:
            say(
                f"{model}: at most {counted(work.second_turns, 'second turn')}, where a reply cannot be read "
                "and the model is asked back (asks_back: false in a prompt turns this off)"
            )
        total = totals[model]
        served = next(arm.model for arm in plan.arms if arm.model.name == model).http is not None
        if served and total.prompt_tokens is None:
            say(
                f"{model}: - prompt tokens, since nothing counts them: give image_tokens (tokens per frame), "
                "or source (the folder of its processor)"
            )
        if total.frame_tokens >= _MANY_TOKENS:
            say(
                f"{model}: a frame takes {total.frame_tokens:,} tokens, so {total.overflow:,} "
                f"of {total.asked:,} exceed its context. A model that cuts frames into tiles can be "
                "asked with one tile a frame, as a model of its own: docs/guides/gpus.md"
            )
    if (primary := plan.spec.primary) is not None:
        say(f"primary comparison: {primary.words} on tier {primary.tier}, {_standing(plan, missing)}")


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
    ends = {name: counts.get(f"second_{name}", 0) for name in ("answered", "none", "unread", "open")}
    if total := sum(ends.values()):
        say(
            f"asked back: {counted(total, 'reply')} that could not be read: {ends['answered']} answered, "
            f"{ends['none']} gave no answer (N), {ends['unread']} unread again"
        )
    if ends["open"]:
        say(
            f"not asked back: {counted(ends['open'], 'reply')}; they count as unread until the same "
            "sweep is run again"
        )


def show_changes(changes: Changes, score_changes: Sequence[tuple[str, str, float, float]]) -> None:
    """Print what judging again changed: verdicts by their endings, then tier scores."""
    say(f"verdicts: {changes.total} made, {changes.changed} changed, {changes.new} new, {changes.gone} gone")
    for (before, after), number in sorted(changes.kinds.items()):
        say(f"  {number} from {before} to {after}")
    for arm, tier, old, new in score_changes:
        say(f"  {tier.replace(':', ' ')} of {arm}: {old:.1f} to {new:.1f}")
