"""Comparison of two runs: configuration, paired differences, flips; changes from judging a run again."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.errors import InputError
from cardiolens.config.sweep import StatisticsSpec
from cardiolens.score.claims.parts_of_cohort import groups_of
from cardiolens.score.run_results.run_analyses import read_judged
from cardiolens.score.statistics.comparisons import is_reliable
from cardiolens.score.statistics.items import FEWEST_HOSPITALS, ArmAnswers, Bools, Items, Reports
from cardiolens.score.statistics.pairs import compare_arms
from cardiolens.score.statistics.statistic import Resampling, Settings
from cardiolens.score.statistics.verdict_rows import Verdicts
from cardiolens.storage import documents, schemas, tables
from cardiolens.storage.documents import check_one_release
from cardiolens.storage.places import Run, deciding, store_of

_FACTORS = ("model", "selector", "budget", "prompt", "control")
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
    low: float  # NaN where no interval is to rely on
    high: float
    n_patients: int
    n_items: int
    gained: int  # wrong in a, right in b
    lost: int

    def worse(self, margin: float) -> bool:
        """Return whether b is lower by more than a margin: the whole interval lies below it."""
        return self.high < -margin


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

    InputError if the runs have different releases or questions, were judged by different rules, or share no
    arm or judged item; or if hospitals are random and the first one's store is not there.
    """
    manifests = [documents.read_manifest(run) for run in (first, second)]
    check_one_release((first, second), manifests)
    for name in _ALIKE:
        if manifests[0][name] != manifests[1][name]:
            raise InputError(
                f"{second.root}: {name} is not that of {first.root}; compare runs of one question file"
            )
    (rules, analyses), (other_rules, _) = (read_judged(run) for run in (first, second))
    if rules != other_rules:
        raise InputError(
            f"{second.root}: was judged by rules {other_rules}, {first.root} by {rules}; what changed would "
            "be the reading of replies: judge both by one version: python -m cardiolens.judge run=..."
        )
    old, new = ({_setting(arm): arm["arm_id"] for arm in manifest["arms"]} for manifest in manifests)
    common = [setting for setting in old if setting in new]
    if not common:
        raise InputError(f"{second.root}: shares no arm with {first.root}; compare runs of the same arms")
    spec = documents.read_configuration(first)
    hospitals: Mapping[str, str] = {}
    if any(row["hospitals"] >= FEWEST_HOSPITALS for row in analyses.get("hospitals", ())):
        verdicts = (tables.read(run.verdicts, schemas.VERDICTS, ("patient_id",)) for run in (first, second))
        patients = pc.unique(pa.concat_tables(verdicts)["patient_id"]).to_pylist()
        hospitals = groups_of(store_of(first, spec).root, patients).hospitals
    rows: list[ArmDifference] = []
    for setting in common:
        sides = _verdicts(first, old[setting]), _verdicts(second, new[setting])
        rows += _differences(" / ".join(setting), *sides, spec.statistics, hospitals)
    if not rows:
        raise InputError(
            f"{second.root}: no item of a tier was judged there and in {first.root}; finish both runs first "
            "(numbers and rankings are in no tier score)"
        )
    return rows


def _setting(arm: Mapping[str, Any]) -> tuple[str, ...]:
    """The factors of an arm of a manifest; those that few sweeps vary only where it has them."""
    words = [f"wording {arm['wording']}"] if arm["wording"] else []
    words += [f"{arm['shots']} shots"] if arm.get("shots") else []
    words += ["cine as video"] if arm.get("cine") == "video" else []
    return (*(str(arm[name]) for name in _FACTORS), *words)


def _verdicts(run: Run, arm: str) -> pa.Table:
    """The judged verdicts of one arm."""
    of_arm = (pc.field("arm_id") == arm) & (pc.field("status") == "judged")
    return tables.query(run.verdicts, schemas.VERDICTS, schemas.VERDICTS.names, of_arm)


def _differences(
    arm: str, first: pa.Table, second: pa.Table, settings: StatisticsSpec, hospitals: Mapping[str, str]
) -> Iterator[ArmDifference]:
    """Yield the differences of an arm on every tier; none where a run has no judged item of it."""
    column = schemas.VERDICTS.get_field_index("arm_id")
    sides = [
        rows.set_column(column, schemas.VERDICTS.field("arm_id"), pa.repeat(side, rows.num_rows))
        for side, rows in (("a", first), ("b", second))
    ]
    chosen = Settings(settings.min_n, settings.resamples, settings.seed)
    answers = ArmAnswers.of(pa.concat_tables(sides), hospitals)
    if answers.arms != ["a", "b"]:
        return
    sampling = Resampling.of(chosen, len(answers.patients), answers.hospitals)
    then, now = (answers.judged(name) for name in "ab")
    then, now = then.common_with(now), now.common_with(then)
    for *_, row in compare_arms(answers, {}, sampling, ("b", "a")):
        scope = f"tier:{row['tier']}"
        was_right, is_right = (_is_right(side.of_tier(scope)) for side in (then, now))
        low, high = (row["low"], row["high"]) if is_reliable(row) else (math.nan, math.nan)
        numbers = row["difference"], low, high, row["n_patients"], row["n_items"]
        gained, lost = int((is_right & ~was_right).sum()), int((was_right & ~is_right).sum())
        yield ArmDifference(arm, scope, *numbers, gained, lost)


def _is_right(rows: Items | Reports) -> Bools:
    """Whether each answer is exact; of reports, whether all their fields are."""
    equal = rows.gold == (rows.predicted if isinstance(rows, Reports) else rows.parsed)
    is_right: Bools = equal.all(axis=-1) if isinstance(rows, Reports) else equal
    return is_right


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
    counts = Changes(0, 0, 0, Counter())
    for arm in dict.fromkeys([*before.arms, *after.arms]):
        old, new = (_by_key(of_run.of_arm(arm, (*_KEY, *_OUTCOME))) for of_run in (before, after))
        counts.total += len(new)
        counts.new += len(new.keys() - old.keys())
        counts.gone += len(old.keys() - new.keys())
        differing = [key for key in new.keys() & old.keys() if old[key] != new[key]]
        counts.kinds.update((_kind(old[key]), _kind(new[key])) for key in differing)
    return counts


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
