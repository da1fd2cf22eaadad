"""Judge a report: its fields and its text are separate channels."""

import json
from collections.abc import Mapping

from cardiolens.protocol.replies import objects, visible_text
from cardiolens.report_text.entities import Entity, ReportForm, entity_counts, fields_equal
from cardiolens.score.verdicts.case_verdict import Case, CaseReply, Judgement
from cardiolens.score.verdicts.text_metrics import overlap_counts

_TEXTS = ("findings", "impression")


def judge_fields(case: Case, reply: CaseReply) -> Judgement:
    """Judge the fields of a report; without readable JSON the entity set is empty."""
    form = _form(case)
    gold = form.entities(_fields(_reference(case)))
    json_report = _json_report(form, reply)
    predicted = form.entities(_fields(json_report)) if json_report else frozenset()
    counts = entity_counts(form, gold, predicted)
    counts["fields"] = len(form.fields)
    counts["fields_equal"] = fields_equal(form, gold, predicted) if json_report else 0
    return Judgement(
        parse_status="ok" if json_report else reply.failure(),
        rule="json" if json_report else "none",
        parsed=_entity_names(predicted),
        gold=_entity_names(gold),
        correct=gold == predicted,
        counts=counts,
    )


def judge_text(case: Case, reply: CaseReply) -> Judgement:
    """Judge findings and impression, or the whole reply if it has no JSON with the fields."""
    # Its patterns take a second to compile, and most verbs judge no report.
    from cardiolens.report_text.extract import extract

    form, catalogue = _form(case), case.catalogue
    json_report = _json_report(form, reply)
    reference, text = texts(case, reply)
    gold = form.entities(_fields(_reference(case)))
    predicted = extract(text, catalogue[case.subtask].sequence, catalogue)
    return Judgement(
        parse_status="ok" if text else reply.failure(),
        rule="json" if json_report else "whole_reply",
        parsed=_entity_names(predicted),
        gold=_entity_names(gold),
        correct=gold == predicted,
        counts=entity_counts(form, gold, predicted) | overlap_counts(reference, text),
    )


def texts(case: Case, reply: CaseReply) -> tuple[str, str]:
    """The text of the reference, and the text of the reply to compare with it."""
    json_report = _json_report(_form(case), reply)
    text = _prose(json_report) if json_report else "" if reply.refused else visible_text(reply.text)
    return _prose(_reference(case)), text


def _form(case: Case) -> ReportForm:
    return ReportForm.of(case.catalogue, case.subtask)


def _reference(case: Case) -> Mapping[str, object]:
    value: Mapping[str, object] = json.loads(case.reference or "{}")
    return value


def _json_report(form: ReportForm, reply: CaseReply) -> Mapping[str, object] | None:
    """The last JSON object of a reply that has the fields of the form, at its top or under `fields`."""
    values = [placed.value for placed in objects(visible_text(reply.text))]
    candidates = [value for value in values if set(form.fields) & set(_fields(value))]
    return candidates[-1] if candidates and not reply.refused else None


def _fields(report: Mapping[str, object]) -> Mapping[str, object]:
    fields = report.get("fields")
    return fields if isinstance(fields, dict) else report


def _prose(report: Mapping[str, object]) -> str:
    return " ".join(text for name in _TEXTS if isinstance(text := report.get(name), str)).strip()


def _entity_names(entities: frozenset[Entity]) -> tuple[str, ...]:
    # a JSON escape can give half a surrogate pair, which no table can hold
    return tuple(sorted(f"{field}: {value}".encode(errors="replace").decode() for field, value in entities))
