"""Comparison of two runs: configuration, paired differences, flips; changes from judging a run again."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.errors import InputError
from cardiolens.config.sweep import StatisticsSpec
from cardiolens.score.run_results.run_analyses import read_judged
from cardiolens.score.statistics.answers import ArmAnswers
from cardiolens.score.statistics.bootstrap import FEWEST_FOR_CLAIM
from cardiolens.score.statistics.scores import compute_scores
from cardiolens.score.statistics.statistic import Settings
from cardiolens.score.statistics.verdict_rows import Verdicts
from cardiolens.storage import documents, schemas, tables
from cardiolens.storage.documents import check_one_release
from cardiolens.storage.places import Run, deciding

_FACTORS = ("model", "selector", "budget", "prompt", "control")
_WORDING = "wording"  # absent from manifests of earlier versions
_ALIKE = ("protocol", "catalogue_sha256", "questions_digest")
_KEY = ("arm_id", "qa_id", "channel")
_OUTCOME = ("status", "parse_status", "parsed", "correct")
_MAX_CHANGES = 20  # configuration changes that are listed


@dataclass(frozen=True, slots=True)
class ArmDifference:
    """One arm on one tier: b minus a on the items judged in both runs, and the numbers of flips."""

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
        """Return whether b is lower by more than a margin: the whole interval lies below it."""
        return self.n_patients >= FEWEST_FOR_CLAIM and self.high < -margin


def configuration_changes(first: Run, second: Run) -> Iterator[str]:
    """Describe the configuration entries that affect scores and differ between two runs."""
    trees = (_flat(deciding(documents.as_written(run))) for run in (first, second))
    old, new = ({name: value for name, value in tree} for tree in trees)
    changed = [name for name in sorted(old | new) if old.get(name) != new.get(name)]
    for name in changed[:_MAX_CHANGES]:
        yield f"{name}: {old.get(name)!r} to {new.get(name)!r}"
    if len(changed) > _MAX_CHANGES:
        yield f"and {len(changed) - _MAX_CHANGES} more"


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


def compare_runs(first: Run, second: Run) -> list[ArmDifference]:
    """Paired differences (b minus a) of every arm that both runs have, on every tier.

    InputError if the runs have different releases or questions, were judged by different rules, or have no
    arm in common.
    """
    manifests = [documents.read_manifest(run) for run in (first, second)]
    check_one_release((first, second), manifests)
    for name in _ALIKE:
        if manifests[0][name] != manifests[1][name]:
            raise InputError(
                f"{second.root}: {name} is not that of {first.root}; compare runs of one question file"
            )
    rules, other_rules = (read_judged(run)[0] for run in (first, second))
    if rules != other_rules:
        raise InputError(
            f"{second.root}: was judged by rules {other_rules}, {first.root} by {rules}; what changed would "
            "be the reading of replies: judge both by one version: python -m cardiolens.judge run=..."
        )
    old, new = ({_setting(arm): arm["arm_id"] for arm in manifest["arms"]} for manifest in manifests)
    common = [setting for setting in old if setting in new]
    if not common:
        raise InputError(f"{second.root}: shares no arm with {first.root}; compare runs of the same arms")
    settings = documents.read_configuration(first).statistics
    rows: list[ArmDifference] = []
    for setting in common:
        verdicts = pa.concat_tables(
            _verdicts(run, arm, side)
            for run, arm, side in ((first, old[setting], "a"), (second, new[setting], "b"))
        )
        rows += _differences(" / ".join(setting), verdicts, settings)
    return rows


def _setting(arm: Mapping[str, Any]) -> tuple[str, ...]:
    wording, shots = arm.get(_WORDING, 0), arm.get("shots", 0)
    return (
        *(str(arm[name]) for name in _FACTORS),
        *([f"wording {wording}"] if wording else []),
        *([f"{shots} shots"] if shots else []),
        *(["cine as video"] if arm.get("cine") == "video" else []),
    )


def _verdicts(run: Run, arm: str, side: str) -> pa.Table:
    """Verdicts of one arm, with the arm_id replaced by the side ("a" or "b")."""
    every = tables.read(run.verdicts, schemas.VERDICTS)
    of_arm = every.filter(pc.equal(every["arm_id"], arm))
    names = pa.array([side] * of_arm.num_rows, pa.string())
    return of_arm.set_column(0, schemas.VERDICTS.field("arm_id"), names)


def _differences(arm: str, verdicts: pa.Table, settings: StatisticsSpec) -> list[ArmDifference]:
    judged = verdicts.filter(pc.equal(verdicts["status"], "judged"))
    if len(pc.unique(judged["arm_id"])) < 2:
        return []
    chosen = Settings(settings.min_n, settings.resamples, settings.seed)
    results = compute_scores(ArmAnswers.of(verdicts), (), chosen, {"runs": [("b", "a")]})
    flips = _flips(judged)
    rows = []
    for row in results.tables[1].to_pylist():
        tier = f"tier:{row['tier']}"
        gained, lost = flips.get(tier, (0, 0))
        numbers = row["difference"], row["low"], row["high"], row["n_patients"], row["n_items"]
        rows.append(ArmDifference(arm, tier, *numbers, gained, lost))
    return rows


def _flips(judged: pa.Table) -> dict[str, tuple[int, int]]:
    """Count the items that became right and that became wrong, by tier, without the texts of reports."""
    names = ["qa_id", "channel", "tier", "correct"]
    items = judged.filter(pc.not_equal(judged["channel"], "text"))
    old, new = (items.filter(pc.equal(items["arm_id"], side)).select(names) for side in ("a", "b"))
    pairs = old.join(new, ["qa_id", "channel", "tier"], right_suffix="_b", join_type="inner").to_pylist()
    tiers: Sequence[int] = sorted({row["tier"] for row in pairs})
    return {
        f"tier:{tier}": (
            sum(row["tier"] == tier and bool(row["correct_b"]) and not row["correct"] for row in pairs),
            sum(row["tier"] == tier and bool(row["correct"]) and not row["correct_b"] for row in pairs),
        )
        for tier in tiers
    }


_Values = tuple[object, ...]


@dataclass(slots=True)
class Changes:
    """Number of verdicts, and of changed verdicts by their outcome before and after."""

    total: int
    new: int  # without an earlier verdict
    gone: int  # earlier verdicts without a later one
    kinds: Counter[tuple[str, str]]  # changed verdicts by outcome before and after

    @property
    def changed(self) -> int:
        return sum(self.kinds.values())


def changes(before: Verdicts, after: Verdicts) -> Changes:
    """Compare the verdicts of one run before and after, one arm at a time."""
    found = Changes(0, 0, 0, Counter())
    for arm in dict.fromkeys([*before.arms, *after.arms]):
        old, new = (_by_key(of_run.of_arm(arm, (*_KEY, *_OUTCOME))) for of_run in (before, after))
        found.total += len(new)
        found.new += len(new.keys() - old.keys())
        found.gone += len(old.keys() - new.keys())
        differing = [key for key in new.keys() & old.keys() if old[key] != new[key]]
        found.kinds.update((_kind(old[key]), _kind(new[key])) for key in differing)
    return found


def _by_key(verdicts: pa.Table) -> dict[_Values, _Values]:
    rows = zip(*(verdicts[name].to_pylist() for name in (*_KEY, *_OUTCOME)), strict=True)
    return {row[:3]: (*row[3:5], row[5] and tuple(row[5]), row[6]) for row in rows}


def _kind(outcome: _Values) -> str:
    """Outcome in words: `right` or `wrong` (with the parse status unless `ok`), or the status if unjudged."""
    status, parse_status, _, correct = outcome
    if status != "judged":
        return str(status)
    grade = "right" if correct else "wrong"
    return grade if parse_status == "ok" else f"{grade} ({parse_status})"
