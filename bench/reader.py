"""What the small reader reads on phantoms that it never saw (bench/results/reader.md has the tables).

    python -m bench.reader --seed 51001 --studies 120 --size ci --out build/reader
    python -m bench.reader --reader /data/reader        # one that examples/train_reader made, in its folder

Two sweeps with real vLLM on CPU: one selection under every control and both prompts, and selectors x budgets.
The numbers are the product's own: scores of the run, differences with intervals by patient, the best constant
answer of the same items (chosen in hindsight, which flatters the constant), and skill, the share of what that
leaves that the reader takes.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cardiolens
from cardiolens.score.statistics.comparisons import reversed_row

CONTROLS = ("none", "blind", "blank", "other_patient", "shuffled_options", "reversed_options")
CHOSEN = "reader_small/clinical/16/standard"


def main() -> int:
    """Sweep and print; 1 if a sweep fails."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--reader", type=Path)
    words.add_argument("--seed", type=int, default=51001)
    words.add_argument("--studies", type=int, default=120)
    words.add_argument("--size", choices=("ci", "default"), default="ci")
    words.add_argument("--out", type=Path, default=Path("build/reader"))
    words.add_argument("--words", nargs="*", default=[], help="of both sweeps")
    asked = words.parse_args()
    asked.out = asked.out.absolute()
    sweep(asked, "controls", f"control=[{','.join(CONTROLS)}]", "budget=[16]", "prompt=[standard,reasoning]")
    controls(read(asked, "controls"))
    sweep(asked, "selection", "selector=[clinical,stratified,random]", "budget=[4,8,16,32]")
    selection(read(asked, "selection"))
    return 0


def sweep(asked: argparse.Namespace, name: str, *words: str) -> None:
    """Run one sweep in the folder of the benchmark."""
    cohort = f"reader_{asked.seed}_{asked.size}"
    subprocess.run(
        [
            *(sys.executable, "-m", "cardiolens.sweep", "dataset=phantom_ci", f"name={name}"),
            *(f"dataset.name={cohort}", f"dataset.phantom.seed={asked.seed}"),
            *(f"dataset.phantom.n_sampled={asked.studies}", f"dataset.phantom.size={asked.size}"),
            *(f"dataset.studies={asked.out}/data/{cohort}/studies", f"store={asked.out}/stores/{cohort}"),
            *(f"dataset.questions={asked.out}/data/{cohort}/questions.jsonl", f"outputs={asked.out}/outputs"),
            *("model=[reader_small]", "answer_format=choice", "tracker=none", *words, *asked.words),
        ],
        check=True,
        cwd=asked.reader,  # whose conf/ describes a model of its own
    )


def read(asked: argparse.Namespace, name: str) -> Any:
    """The last run of a name."""
    folders = sorted(asked.out.glob(f"outputs/{name}-*"), key=lambda path: path.stat().st_mtime)
    return cardiolens.read_run(folders[-1])


def controls(run: Any) -> None:
    """Print what images add, by subtask, and what each control takes away."""
    arms = labels(run)
    own, blind = arms[CHOSEN], arms[f"{CHOSEN}/blind"]
    print("\n| scope | n | images | blind | images - blind | best constant | skill |")
    print("|---|---|---|---|---|---|---|")
    for scope in scopes(run):
        seen, closed = one(run, scope, own), one(run, scope, blind)
        if seen is None or closed is None:
            continue
        best, beyond = (one(run, scope, own, metric=f"primary.{name}") for name in ("constant", "skill"))
        print(
            f"| {scope} | {seen['n_items']} | {told(seen)} | {closed['value']:.1f} | "
            f"{difference(run, scope, own, blind)} | {best['value']:.1f} | {told(beyond)} |"
        )
    print("\n| arm | tier 1 | tier 3 |\n|---|---|---|")
    for label, arm in arms.items():
        print(f"| {label} | {told(one(run, 'tier:1', arm))} | {told(one(run, 'tier:3', arm))} |")


def selection(run: Any) -> None:
    """Print scores of selectors and budgets, of tier 1 and of what is localised."""
    arms = labels(run)
    wanted = ("tier:1", "subtask:L02", "subtask:L03", "subtask:P02", "subtask:C10")
    print(f"\n| arm | {' | '.join(wanted)} |\n|---|{'---|' * len(wanted)}")
    for label, arm in arms.items():
        print(f"| {label} | {' | '.join(told(one(run, scope, arm)) for scope in wanted)} |")


def labels(run: Any) -> dict[str, str]:
    """Ids of the run's arms by what they vary; selectors are named with their seed."""
    parts = ("model", "selector", "budget", "prompt")
    return {
        "/".join([*(str(arm[part]) for part in parts), *({arm["control"]} - {"none"})]): arm["arm_id"]
        for arm in run.manifest["arms"]
    }


def scopes(run: Any) -> Iterator[str]:
    """Tiers, then subtasks, as the run has them."""
    found = sorted(set(run.scores["scope"].to_pylist()))
    yield from (scope for scope in found if scope.startswith("tier:"))
    yield from (scope for scope in found if scope.startswith("subtask:"))


def one(run: Any, scope: str, arm: str, metric: str = "primary") -> Any:
    """The row of a score; None where the run has none."""
    return rows_of(run).get((metric, scope, arm))


def difference(run: Any, scope: str, arm: str, versus: str) -> str:
    """The difference of two arms in words, on tiers with its interval."""
    for row in run.comparisons.to_pylist():
        if (row["metric"], f"tier:{row['tier']}") == ("primary", scope) and row["arm_id"] is not None:
            seen = row if row["arm_id"] == arm else reversed_row(row)
            if (seen["arm_id"], seen["versus_arm_id"]) == (arm, versus):
                return f"{seen['difference']:.1f} ({seen['low']:.1f}, {seen['high']:.1f})"
    return f"{one(run, scope, arm)['value'] - one(run, scope, versus)['value']:.1f}"


def rows_of(run: Any) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Rows of the scores by what they are of, made once."""
    if "rows" not in run.__dict__:
        run.__dict__["rows"] = {
            (row["metric"], row["scope"], row["arm_id"]): row for row in run.scores.to_pylist()
        }
    return run.__dict__["rows"]


def told(row: Any) -> str:
    """A value with its interval."""
    return "-" if row is None else f"{row['value']:.1f} ({row['low']:.1f}, {row['high']:.1f})"


if __name__ == "__main__":
    sys.exit(main())
