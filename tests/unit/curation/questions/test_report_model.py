"""A language model as second extractor: what it says is believed only with evidence from the report."""

import json
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from report_folders import lines, write_reports
from scripted_engine import answering

from cardiolens.base.errors import InputError
from cardiolens.config.command_words import read_words
from cardiolens.config.curation_specs import QuestionsSpec
from cardiolens.curation.asking import ask_texts
from cardiolens.curation.asking.ask_texts import asking_spec
from cardiolens.curation.questions.draft_questions import questions
from cardiolens.curation.questions.draft_reasons import Reason
from cardiolens.curation.questions.drafts import merged
from cardiolens.curation.questions.extraction_truth import settle
from cardiolens.curation.questions.model_gate import gate_record, read_gate
from cardiolens.curation.questions.model_guards import Guards
from cardiolens.curation.questions.model_reader import (
    NOT_STATED,
    Group,
    groups,
    read_reply,
    read_with_model,
)
from cardiolens.phantom.roster import catalogue
from cardiolens.protocol.tasks.legal import constraint_of

CATALOGUE = catalogue()
GROUPS = {group.name: group for group in groups(CATALOGUE)}
LGE = GROUPS["lge"]
OF_FIELD = {(group.sequence, name): group for group in GROUPS.values() for name in group.fields}
TEXT = (
    "LGE Imaging Centre, St Elsewhere\nHistory: known scar.\n"
    "Findings: No late gadolinium enhancement. LVEF 60 %. LV not dilated. RV possibly dilated."
)
NO_LGE = "No late gadolinium enhancement"
OTHERS = {"quote": "", "value": NOT_STATED}


def reply(group: Group, **stated: Any) -> str:
    """A reply that states some fields, and no other."""
    empty = {
        name: {**OTHERS, "value": []} if subtask.answer_type == "multi" else OTHERS
        for name, subtask in group.fields.items()
    }
    return json.dumps({**empty, **stated})


def entry(quote: str, value: Any = "Absent") -> dict[str, Any]:
    return {"quote": quote, "value": value}


def read(text: str, written: str | None, group: Group = LGE) -> tuple[dict[str, str | None], list[str]]:
    """The believed values by subtask, and the reasons of what was dropped."""
    found, lost = read_reply(written, group, Guards.of(text, None, CATALOGUE))
    assert all(text[one.start : one.end] == one.quote for one in found)
    settle(text, found, CATALOGUE)
    return {one.subtask: one.value for one in found}, [str(one.reason) for one in lost]


def test_a_finding_with_its_evidence_is_believed() -> None:
    assert read(TEXT, reply(LGE, enhancement=entry(NO_LGE))) == ({"L01": "Absent"}, [])
    text = "LGE: transmural  scar of the basal inferior wall."
    whole = reply(
        LGE,
        enhancement=entry("transmural scar", "Present"),
        levels=entry("scar of the basal inferior wall", ["Basal segment"]),
        regions=entry("basal inferior wall", ["Inferior wall"]),
        layers=entry("transmural scar", ["Transmural"]),
    )
    values, lost = read(text, whole)
    assert values == {"L01": "Present", "L02": "Basal segment", "L03": "Inferior wall", "L05": "Transmural"}
    assert not lost


@pytest.mark.parametrize(
    ("field", "quote", "value", "reason"),
    [
        ("enhancement", "No LGE", "Absent", Reason.NOT_QUOTED),
        ("enhancement", "o late gadolinium enhancemen", "Absent", Reason.NOT_QUOTED),
        ("enhancement", ". ", "Absent", Reason.NOT_QUOTED),
        ("enhancement", "", "Absent", Reason.NOT_QUOTED),
        ("enhancement", "LGE Imaging Centre", "Present", Reason.NAMES_NO_FINDING),
        ("enhancement", "known scar", "Present", Reason.SILENT_SECTION),
        ("enhancement", NO_LGE, "Present", Reason.CONTRADICTION),
        ("enhancement", NO_LGE, "None", Reason.NO_SUCH_OPTION),
        ("regions", NO_LGE, ["Septal wall"], Reason.NAMES_NO_FINDING),
        ("lv_systolic", "LVEF 60 %", "Severely reduced", Reason.NUMBER_AGAINST_WORDS),
        ("lv_size", "LV not dilated", "Markedly dilated", Reason.CONTRADICTION),
        ("rv_size", "RV possibly dilated", "Markedly dilated", Reason.UNCERTAIN),
        ("rv_size", "LV not dilated", "Normal size", Reason.NAMES_NO_FINDING),
        ("etiology", "LGE Imaging Centre", "Normal", Reason.NAMES_NO_FINDING),
    ],
)
def test_what_the_report_does_not_bear_out_is_dropped_with_its_reason(
    field: str, quote: str, value: Any, reason: Reason
) -> None:
    group = next(one for (_, name), one in OF_FIELD.items() if name == field)
    values, lost = read(TEXT, reply(group, **{field: entry(quote, value)}), group)
    assert (values, lost) == ({}, [reason])


def hostile_replies() -> list[str]:
    """Replies that are none of the form that is asked for, or quote what they may not."""
    draw = random.Random(62)
    quotes = [
        "", "\n", "LGE", "History", "known scar", TEXT * 30, NO_LGE * 2, "x" * 2_000_000, "\u202eLGE",
        "\u041d\u0435\u0442", "\x00", "\ud800", '"', "\\", "(?:.*)+$", "gadolinium", "No late\xa0gadolinium",
    ]  # fmt: skip
    values: list[Any] = ["Absent", "Present", None, 3, [], ["Absent"], {"a": 1}, NOT_STATED, True]
    texts = [reply(LGE, enhancement=entry(quote, draw.choice(values[:2]))) for quote in quotes]
    texts += [reply(LGE, enhancement=entry(NO_LGE, value)) for value in values]
    texts += [reply(LGE, levels=entry(draw.choice(quotes[:9]), value)) for value in values]
    texts += [
        reply(LGE, regions=entry(NO_LGE, value * 5000)) for value in (["Septal wall"], [["Septal wall"]])
    ]
    texts += ["", "null", "[]", "{}", "3", "ANSWER: A", "{" * 50_000, "[" * 50_000, "\x00", '{"a": NaN}']
    texts += ['{"enhancement": {}, "enhancement": {}}', "```json\n{}\n```", '{"a": 1e999}']
    texts += [json.dumps({"enhancement": one}) for one in (None, 1, "x", [], {}, {"quote": 1, "value": 2})]
    texts += [json.dumps({"findings": [{"field": "L01"}] * 10_000}), json.dumps({"x" * 100_000: {}})]
    whole = reply(LGE, enhancement=entry(NO_LGE))
    texts += [whole[:at] for at in sorted(draw.sample(range(1, len(whole) - 1), 20))]
    return texts + ["".join(draw.sample(whole, len(whole))) for _ in range(10)]


@pytest.mark.parametrize("text", [TEXT, "[ ] LGE\n\nNo late gadolinium enhancement.", "[ ] LGE [ ] scar"])
def test_no_reply_ends_the_reading(text: str) -> None:
    for written in hostile_replies():
        values, _ = read(text, written)
        assert values in ({}, {"L01": "Absent"}), written[:200]


def test_a_bad_reply_costs_its_group_alone() -> None:
    values, lost = read(TEXT, "no JSON", GROUPS["t2"])
    assert (values, lost) == ({}, [Reason.NO_JSON])
    assert read(TEXT, None) == ({}, [Reason.NO_REPLY])
    both = reply(LGE, enhancement=entry(NO_LGE), levels=entry("made up", ["Apex"]))
    assert read(TEXT, both) == ({"L01": "Absent"}, [Reason.NOT_QUOTED])


def test_all_before_the_report_is_the_same_text_for_all_reports() -> None:
    for group in GROUPS.values():
        first, second = group.prompt(TEXT), group.prompt("Findings: LVEF 35 %.")
        n_shared = next(at for at, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1])
        shared = first[:n_shared]
        assert all(f"- {name}: " in shared for name in group.fields)
        assert "Example of a reply" in shared
        assert first.index(TEXT[:20]) > len(shared)


def test_all_fields_are_required_and_the_quote_stands_before_the_value() -> None:
    for group in GROUPS.values():
        schema = json.loads(group.schema)
        assert schema["required"] == list(group.fields)
        assert all(list(one["properties"]) == ["quote", "value"] for one in schema["properties"].values())
        constraint = constraint_of("schema", "report", (group.schema,), ())
        assert constraint.schema == group.schema
    asked = [subtask.id for group in GROUPS.values() for subtask in group.fields.values()]
    assert sorted(asked) == sorted(
        one.id for one in CATALOGUE.subtasks.values() if one.answer_type != "report"
    )


def test_drafts_say_whose_they_are_and_those_of_the_model_alone_need_the_gate() -> None:
    def one(**answers: list[str]) -> dict[str, Any]:
        return {"answers": answers, "indeterminate": {}}

    both = {
        "rules": one(C10=["A"], L01=["A"], D01=["C"], T01=["A"]),
        "model": one(C10=["A"], L01=["B"], D01=["C"], C19=["B"]),
    }
    items, refused = merged(both, CATALOGUE)
    assert {name: (item["by"], item["queue"]) for name, item in items.items()} == {
        "C10": ("both", "sampling"),
        "D01": ("both", "full"),
        "T01": ("rules", "full"),
    }
    assert refused == {"L01": Reason.EXTRACTORS_DISAGREE, "C19": Reason.MODEL_ALONE}
    trusted, refused = merged(both, CATALOGUE, trusted=True)
    assert (trusted["C19"]["by"], trusted["C19"]["queue"]) == ("model", "full")
    assert refused == {"L01": Reason.EXTRACTORS_DISAGREE}


def scripted(prompt: str) -> str:
    """A model whose findings are written here."""
    stated = {}
    if "- enhancement:" in prompt:
        stated["enhancement"] = entry(NO_LGE)
    if "- lv_systolic:" in prompt and "LVEF" in prompt:
        stated["lv_systolic"] = entry("LVEF 60 %", "Normal")
    group = next(one for one in GROUPS.values() if f"- {next(iter(one.fields))}: " in prompt)
    return reply(group, **stated)


def test_reports_are_read_twice_and_drafts_say_by_whom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through the stream, and once alone: tests/ray/test_report_questions.py."""
    words = write_reports(tmp_path, {"S1": TEXT, "S2": "Findings: Transmural scar of the apex."})
    spec = read_words(QuestionsSpec, words)
    assert spec.studies is not None
    sweep = asking_spec(spec.studies, spec.stages / "model", spec.protocol, ["model=uniform"])
    answer, prompts = answering(scripted)
    monkeypatch.setattr(ask_texts, "execute_plan", answer)
    assert questions(spec, partial(read_with_model, sweep)) == 0
    assert len(prompts) == 2 * len(GROUPS)
    made = lines(tmp_path / "out" / "questions.jsonl")
    by = {(one["study"], one["subtask"]): one["verification"]["drafted_by"] for one in made}
    assert by[("S1", "L01")] == by[("S1", "C10")] == "both"
    assert by[("S1", "C01")] == "rules"
    lost = lines(tmp_path / "out" / "rejects.jsonl")
    assert [(one["study_id"], one["reason"]) for one in lost if one["stage"] == 2] == [("S2", "not_quoted")]


def test_the_gate_is_of_one_model_and_one_prompt_and_at_most_three_per_cent_are_wrong(tmp_path: Path) -> None:
    words = write_reports(tmp_path, {"S1": TEXT})
    spec = read_words(QuestionsSpec, words)
    assert spec.studies is not None
    sweep, other = (
        asking_spec(spec.studies, spec.stages / "model", spec.protocol, [f"model={name}"])
        for name in ("uniform", "constant")
    )
    path = tmp_path / "gate.json"
    record = gate_record(sweep, CATALOGUE, {"reports": 100, "drafts": 200, "wrong": 6})
    path.write_text(json.dumps(record))
    gate = read_gate(path, sweep, CATALOGUE)
    assert gate == {"model": "uniform", "reports": 100, "drafts": 200, "wrong": 6}
    with pytest.raises(InputError, match="model_key"):
        read_gate(path, other, CATALOGUE)
    for changed, words_of in (
        ({"wrong": 7}, "at most 3%"),
        ({"drafts": 99}, "at least 100"),
        ({"prompts": "x"}, "prompts"),
    ):
        path.write_text(json.dumps(record | changed))
        with pytest.raises(InputError, match=words_of):
            read_gate(path, sweep, CATALOGUE)
    path.write_text("{}")
    with pytest.raises(InputError, match="no record"):
        read_gate(path, sweep, CATALOGUE)
