"""The tables of a judged run that a tracker gets: aggregates alone, without a study, patient or question."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.errors import RunError
from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.show.page.further_answers import further_answers
from cardiolens.show.page.headline_answers import answers
from cardiolens.show.page.page_data import Facts
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run

_FACTORS = ("model", "selector", "budget", "prompt", "control", "wording")
_NUMBERS = ("value", "low", "high", "n_items", "n_patients")
_SEPARATOR = "\x1f"  # several answers
VIEWS = ("selector_x_budget", "prompt", "images", "collapse")  # one question each, small enough to be shown


def tables_of_run(run: Run, facts: Facts) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables by name: answers and findings first, then views, then every score and difference.

    RunError if scores and differences are not all rows of the run's scores.
    """
    yield "answers", _answers(facts)
    yield "findings", _findings(facts)
    yield from _views(facts)
    stored = tables.read(run.scores, schemas.SCORES)
    is_single = pc.is_null(stored["versus_arm_id"])
    scores = stored.filter(is_single).drop_columns(["versus_arm_id"])
    differences = stored.filter(pc.invert(is_single))
    if scores.num_rows + differences.num_rows != tables.count_rows(run.scores):
        raise RunError(f"{run.scores}: its rows changed while they were read; track the run again")
    yield "scores", scores
    yield "differences", differences
    yield "confusion", _confusion(run)


def _answers(facts: Facts) -> pa.Table:
    """The answers of the page's first screen, a row for each estimate behind them."""
    columns = ("question", "verdict", "sentence", "of", "value", "low", "high")
    rows: list[tuple[object, ...]] = []
    for answer in [*answers(facts), *further_answers(facts)]:
        words = answer.question, answer.verdict, answer.sentence
        if not answer.estimates:
            rows.append((*words, None, None, None, None))
        rows += [(*words, at.label, at.value, at.low, at.high) for at in answer.estimates]
    kinds = [pa.string()] * 4 + [pa.float64()] * 3
    return _table(columns, kinds, rows)


def _findings(facts: Facts) -> pa.Table:
    """Every sentence of the run, with the decision whether the scores support it."""
    rows = [
        (name, finding.verdict, finding.sentence, finding.simulated)
        for name, analysis in facts.analyses.items()
        for finding in analysis.findings
    ]
    kinds = [pa.string(), pa.string(), pa.string(), pa.bool_()]
    return _table(("analysis", "verdict", "sentence", "simulated"), kinds, rows)


def _views(facts: Facts) -> Iterator[tuple[str, pa.Table]]:
    """Yield tier scores by the options that a question is about, and the indices of collapse."""
    arms = [arm for arm in facts.arms if arm.wording == "0"]
    prompt = arms[0].prompt if arms else ""
    plain = [arm for arm in arms if arm.control == "none"]
    yield "selector_x_budget", _settings(facts, [arm for arm in plain if arm.prompt == prompt])
    yield "prompt", _settings(facts, plain)
    yield "images", _settings(facts, [arm for arm in arms if arm.control in ("none", "blind")])
    rows = facts.analysis("collapse").rows
    yield "collapse", pa.Table.from_pylist([dict(row) for row in rows])


def _settings(facts: Facts, arms: Sequence[ArmFactors]) -> pa.Table:
    by_id = {arm.arm_id: arm for arm in arms}
    rows = []
    for row in facts.of_arms(["primary"], "tier:"):
        if (arm := by_id.get(str(row["arm_id"]))) is not None:
            options = asdict(arm)
            rows.append((*(str(options[name]) for name in _FACTORS), row["scope"], *map(row.get, _NUMBERS)))
    kinds = [pa.string()] * 7 + [pa.float64()] * 3 + [pa.int64()] * 2
    return _table((*_FACTORS, "tier", *_NUMBERS), kinds, rows)


def _table(
    columns: Sequence[str], kinds: Sequence[pa.DataType], rows: Sequence[Sequence[object]]
) -> pa.Table:
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    arrays = [pa.array(list(column), kind) for column, kind in zip(values, kinds, strict=True)]
    return pa.table(dict(zip(columns, arrays, strict=True)))


def _confusion(run: Run) -> pa.Table:
    """Counts of (gold, answered) options by arm and subtask, over questions with one right option."""
    one_right = pc.is_in(pc.field("answer_type"), pa.array(["single", "ordinal"]))
    condition = one_right & (pc.field("status") == "judged")
    counts: Counter[tuple[str, str, str, str]] = Counter()
    for batch in tables.scan(
        run.verdicts, schemas.VERDICTS, ("arm_id", "subtask", "gold", "parsed"), condition
    ):
        replies = {
            name: pc.fill_null(pc.binary_join(batch[name], _SEPARATOR), "") for name in ("gold", "parsed")
        }
        rows = pa.table({"arm_id": batch["arm_id"], "subtask": batch["subtask"], **replies})
        for row in rows.group_by(rows.column_names).aggregate([([], "count_all")]).to_pylist():
            gold, answer = (row[name].partition(_SEPARATOR)[0] for name in ("gold", "parsed"))
            counts[row["arm_id"], row["subtask"], gold, answer or "none"] += row["count_all"]
    kinds = [pa.string()] * 4 + [pa.int64()]
    counted = [(*key, n) for key, n in sorted(counts.items())]
    return _table(("arm_id", "subtask", "gold", "answered", "n"), kinds, counted)
