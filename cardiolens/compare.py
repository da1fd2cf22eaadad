"""`python -m cardiolens.compare a=outputs/... b=outputs/...`: what changed from one run to another.

Arms are matched by model, selection, budget, prompt and control. The exit code is a gate: 0 where no tier of
any arm is shown to be lower in b by more than `margin` points (2 unless given), 1 where one is, 2 where the
runs cannot be compared.
"""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens import record, show, tables
from cardiolens.configure import read_run, tell
from cardiolens.errors import InputError, RunError
from cardiolens.execution_spec import StatisticsSpec
from cardiolens.stats.findings import FEWEST_PATIENTS, signed
from cardiolens.stats.inference import MARGIN
from cardiolens.stats.scores import score
from cardiolens.store import Run, deciding

_FACTORS = ("model", "selector", "budget", "prompt", "control")
_ALIKE = ("protocol", "catalogue_sha256", "questions_digest")
_SAID = 20  # configuration changes that are told


@dataclass(frozen=True, slots=True)
class Compared:
    """One arm at one tier: b minus a, on the items that both judged, and how many flipped."""

    arm: str
    scope: str
    value: float
    low: float
    high: float
    n_patients: int
    n_items: int
    gained: int  # wrong in a, right in b
    lost: int

    def worse(self, margin: float) -> bool:
        """Whether b is shown to be lower by more than a margin: its whole interval lies below."""
        return self.n_patients >= FEWEST_PATIENTS and self.high < -margin


def compare(first: Run, second: Run, margin: float) -> int:
    """Say what changed from the first run to the second; 1 if some tier is shown to be worse."""
    for line in configuration_changes(first, second):
        show.say(f"configuration: {line}")
    found = compared(first, second)
    for one in found:
        interval = "no interval" if math.isnan(one.low) else f"{signed(one.low)} to {signed(one.high)}"
        verdict = "worse" if one.worse(margin) else "not shown to be worse"
        show.say(
            f"{one.arm}, {one.scope.replace(':', ' ')}: {signed(one.value)} points (95 % CI {interval}), "
            f"{one.n_patients} patients, {one.n_items} items, {one.gained} gained, {one.lost} lost: {verdict}"
        )
    worse = sum(one.worse(margin) for one in found)
    show.say(f"{worse} of {len(found)} shown to be worse by more than {margin:g} points")
    return 1 if worse else 0


def configuration_changes(first: Run, second: Run) -> Iterator[str]:
    """What decides numbers and differs, with both values."""
    trees = (_flat(deciding(record.read_configuration(run))) for run in (first, second))
    old, new = ({name: value for name, value in tree} for tree in trees)
    changed = [name for name in sorted(old | new) if old.get(name) != new.get(name)]
    for name in changed[:_SAID]:
        yield f"{name}: {old.get(name)!r} to {new.get(name)!r}"
    if len(changed) > _SAID:
        yield f"and {len(changed) - _SAID} more"


def _flat(tree: Any, path: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(tree, Mapping):
        for name, value in tree.items():
            yield from _flat(value, f"{path}.{name}".lstrip("."))
    elif isinstance(tree, list | tuple):
        for at, value in enumerate(tree):
            name = value.get("name", at) if isinstance(value, Mapping) else at
            yield from _flat(value, f"{path}[{name}]")
    else:
        yield path, tree


def compared(first: Run, second: Run) -> list[Compared]:
    """Paired differences of every arm that both runs have, on every tier; b minus a.

    InputError where the runs asked other questions, or share no arm.
    """
    manifests = [record.read_manifest(run) for run in (first, second)]
    for name in _ALIKE:
        if manifests[0][name] != manifests[1][name]:
            raise InputError(
                f"{second.root}: {name} is not that of {first.root}; compare runs of one question file"
            )
    old, new = ({_setting(arm): arm["arm_id"] for arm in manifest["arms"]} for manifest in manifests)
    shared = [setting for setting in old if setting in new]
    if not shared:
        raise InputError(f"{second.root}: shares no arm with {first.root}; compare runs of the same arms")
    settings = record.read_configuration(first).statistics
    rows: list[Compared] = []
    for setting in shared:
        verdicts = pa.concat_tables(
            _verdicts(run, arm, side)
            for run, arm, side in ((first, old[setting], "a"), (second, new[setting], "b"))
        )
        rows += _differences(" / ".join(setting), verdicts, settings)
    return rows


def _setting(arm: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(arm[name]) for name in _FACTORS)


def _verdicts(run: Run, arm: str, side: str) -> pa.Table:
    """Verdicts of one arm under the name of its side."""
    every = tables.read(run.verdicts, tables.VERDICTS)
    found = every.filter(pc.equal(every["arm_id"], arm))
    names = pa.array([side] * found.num_rows, pa.string())
    return found.set_column(0, tables.VERDICTS.field("arm_id"), names)


def _differences(arm: str, verdicts: pa.Table, settings: StatisticsSpec) -> list[Compared]:
    judged = verdicts.filter(pc.equal(verdicts["status"], "judged"))
    if len(pc.unique(judged["arm_id"])) < 2:
        return []
    scores = score(verdicts, settings.min_n, settings.resamples, settings.seed, {"runs": [("b", "a")]})
    rows = [
        row
        for row in scores.to_pylist()
        if row["metric"] == "primary" and row["versus_arm_id"] and row["scope"].startswith("tier:")
    ]
    flips = _flips(judged)
    return [
        Compared(
            arm,
            row["scope"],
            row["value"],
            row["low"],
            row["high"],
            row["n_patients"],
            row["n_items"],
            *flips.get(row["scope"], (0, 0)),
        )
        for row in rows
    ]


def _flips(judged: pa.Table) -> dict[str, tuple[int, int]]:
    """Items that became right and that became wrong, by tier; the text of a report is no item of its own."""
    names = ["qa_id", "channel", "tier", "correct"]
    items = judged.filter(pc.not_equal(judged["channel"], "text"))
    old, new = (items.filter(pc.equal(items["arm_id"], side)).select(names) for side in ("a", "b"))
    both = old.join(new, ["qa_id", "channel", "tier"], right_suffix="_b", join_type="inner").to_pylist()
    tiers: Sequence[int] = sorted({row["tier"] for row in both})
    return {
        f"tier:{tier}": (
            sum(row["tier"] == tier and bool(row["correct_b"]) and not row["correct"] for row in both),
            sum(row["tier"] == tier and bool(row["correct"]) and not row["correct_b"] for row in both),
        )
        for tier in tiers
    }


def read_words(words: Sequence[str]) -> tuple[Run, Run, float]:
    """The two runs and the margin that the command line names."""
    given = dict(word.split("=", 1) for word in words if "=" in word)
    if not {"a", "b"} <= given.keys() <= {"a", "b", "margin"} or len(given) != len(words):
        raise InputError(
            f"{' '.join(words) or 'no words'}: give a=outputs/... b=outputs/... and, if wanted, margin=2"
        )
    try:
        margin = float(given.get("margin", MARGIN))
    except ValueError:
        margin = math.nan
    if not 0 <= margin < 100:
        raise InputError(
            f"margin={given['margin']}: expected points of score, 0 or more and below 100, e.g. margin=2"
        )
    return read_run([f"run={given['a']}"]), read_run([f"run={given['b']}"]), margin


def main() -> int:
    try:
        return compare(*read_words(sys.argv[1:]))
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
