"""A second reading of the reports that models wrote, by a language model instead of the rules.

The score of a report's text is based on entities extracted by rules. Here a model chosen by the user reads
the same texts with the extractor for hospital reports, and both are compared. Verdicts and scores are not
changed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.digest import digest_of
from cardiolens.config.sweep import StatisticsSpec, SweepSpec
from cardiolens.curation.questions.report_files import Rejects
from cardiolens.curation.questions.stage_files import Record
from cardiolens.curation.questions.statement import ReportStatement
from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.report_text.entities import ReportForm, entity_counts
from cardiolens.report_text.extract import Entity, settled
from cardiolens.score.statistics.answers import ArmAnswers
from cardiolens.score.statistics.arm_statistics import arm_statistics
from cardiolens.score.statistics.statistic import Resampling, Settings, as_row
from cardiolens.score.verdicts.case_verdict import CaseReply, case_of
from cardiolens.score.verdicts.final_completions import finals
from cardiolens.score.verdicts.report_verdict import texts
from cardiolens.storage import documents, schemas, tables
from cardiolens.storage.places import Run, Store
from cardiolens.storage.run_place import store_of
from cardiolens.storage.schemas import VERDICTS

METRIC, SCOPE = "text_entity_f1", "tier:2"
_REPLIES = ("request_key", "text", "status", "finish_reason", "written_at")


@dataclass(frozen=True, slots=True)
class ReportTexts:
    """The judged reports of a run: the rules' verdict on each, and its text."""

    verdicts: pa.Table
    sections: tuple[str, ...]  # of each verdict: the id of its text in `records`
    records: Mapping[str, Record]  # distinct texts, as the extractor takes them


def texts_of(run: Run, spec: SweepSpec, catalogue: Catalogue) -> ReportTexts:
    """Return the judged reports of a run, for the models in its manifest."""
    models = documents.read_manifest(run)["models"].values()
    return written_reports(run, store_of(run, spec), [facts["model_key"] for facts in models], catalogue)


def written_reports(run: Run, store: Store, model_keys: Sequence[str], catalogue: Catalogue) -> ReportTexts:
    """Return the judged texts of tier 2, without refusals and empty replies."""
    verdicts = tables.read(run.verdicts, VERDICTS)
    of_text = pc.and_(pc.equal(verdicts["channel"], "text"), pc.equal(verdicts["status"], "judged"))
    rows = verdicts.filter(of_text)
    questions = tables.read(store.questions, schemas.QUESTIONS)
    questions = questions.filter(pc.is_in(questions["qa_id"], pc.unique(rows["qa_id"])))
    cases = {row["qa_id"]: case_of(row, catalogue.protocol) for row in questions.to_pylist()}
    replies: dict[str, Mapping[str, Any]] = {}
    for key in model_keys:
        final = finals(tables.read(store.completions(key), schemas.COMPLETIONS, _REPLIES))
        final = final.filter(pc.is_in(final["request_key"], pc.unique(rows["request_key"])))
        replies |= {row["request_key"]: row for row in final.to_pylist()}
    kept, sections, records = [], [], {}
    for place, row in enumerate(rows.select(["qa_id", "request_key", "sequence"]).to_pylist()):
        reply = replies.get(row["request_key"])
        if reply is None or row["qa_id"] not in cases:
            continue
        refused, is_truncated = reply["status"] == "refused", reply["finish_reason"] == "length"
        _, text = texts(cases[row["qa_id"]], CaseReply(reply["text"] or "", refused, is_truncated, ()))
        if text:
            record = {"text": text, "sequence": row["sequence"]}
            number = digest_of(record)
            records[number] = {**record, "study_id": number, "report_id": number, "sex": None}
            kept.append(place)
            sections.append(number)
    return ReportTexts(rows.take(pa.array(kept, pa.int64())), tuple(sections), records)


def entities(items: Sequence[Mapping[str, Any]], sequence: str, catalogue: Catalogue) -> frozenset[Entity]:
    """Return the entities of a text from its certain findings, reduced as for the rules."""
    statements = [ReportStatement.of(dict(item)) for item in items]
    sure = [
        statement
        for statement in statements
        if statement.certainty == "certain" and statement.value is not None
    ]
    of_sequence = [candidate for candidate in catalogue.subtasks.values() if candidate.sequence == sequence]
    return frozenset(
        (subtask.field, value)
        for subtask in of_sequence
        for value in settled([statement for statement in sure if statement.subtask == subtask.id], subtask)
    )


@dataclass(frozen=True, slots=True)
class Readings:
    """Verdicts on the texts that both read: rules, model, and the model against the rules."""

    rules: pa.Table
    model: pa.Table
    agreement: pa.Table
    n_unread: int  # texts, each time that they were written, without a usable reply of the model

    def scores(self, statistics: StatisticsSpec) -> dict[str, dict[str, dict[str, object]]]:
        """Return each arm's entity F1 with its interval, by `rules`, `model` and `agreement`."""
        tables_of = {"rules": self.rules, "model": self.model, "agreement": self.agreement}
        return {name: _scores(table, statistics) for name, table in tables_of.items()}


def _scores(verdicts: pa.Table, statistics: StatisticsSpec) -> dict[str, dict[str, object]]:
    arm_answers = ArmAnswers.of(verdicts)
    if not arm_answers.patients:
        return {}
    settings = Settings(statistics.min_n, statistics.resamples, statistics.seed)
    sampling = Resampling.of(settings, len(arm_answers.patients))
    key = (METRIC, SCOPE)
    return {
        arm: as_row(key, arm_statistics(arm_answers.judged(arm), sampling)[key], sampling.method)
        for arm in arm_answers.arms
    }


def readings(
    report_texts: ReportTexts, results: Mapping[str, tuple[Sequence[Record], Rejects]], catalogue: Catalogue
) -> Readings:
    """Return both readings of the texts; a text without a usable reply of the model is in neither."""
    unread = {
        number
        for number, (_, rejects) in results.items()
        if any(not reject_record.get("subtask") for reject_record in rejects)
    }
    read = [place for place, number in enumerate(report_texts.sections) if number not in unread]
    of_rules = report_texts.verdicts.take(pa.array(read, pa.int64()))
    of_model, against = [], []
    for place, row in zip(read, of_rules.to_pylist(), strict=True):
        items, _ = results[report_texts.sections[place]]
        form = ReportForm.of(catalogue, row["subtask"])
        entities_read = entities(items, row["sequence"], catalogue)
        of_model.append(_verdict(row, form, _entities(row["gold"]), entities_read))
        against.append(_verdict(row, form, _entities(row["parsed"]), entities_read))
    return Readings(
        of_rules,
        tables.from_rows(of_model, VERDICTS),
        tables.from_rows(against, VERDICTS),
        len(report_texts.sections) - len(read),
    )


def _verdict(
    row: Mapping[str, Any], form: ReportForm, gold: frozenset[Entity], entities_read: frozenset[Entity]
) -> dict[str, Any]:
    """Return a verdict with replaced gold and parsed entities; its text overlap counts are kept."""
    counts = dict(row["counts"]) | entity_counts(form, gold, entities_read)
    return {
        **row,
        "rule": "second_reading",
        "gold": _named(gold),
        "parsed": _named(entities_read),
        "correct": gold == entities_read,
        "counts": list(counts.items()),
    }


def _named(entities: frozenset[Entity]) -> list[str]:
    return sorted(f"{field}: {value}" for field, value in entities)


def _entities(texts: Sequence[str]) -> frozenset[Entity]:
    """Parse entities as verdicts write them: `field: value`."""
    pairs = (text.partition(": ") for text in texts)
    return frozenset((field, value) for field, _, value in pairs)
