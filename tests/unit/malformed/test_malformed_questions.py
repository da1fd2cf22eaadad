"""Questions, prompt templates and protocols of the user's own that cannot be asked."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from string import ascii_uppercase
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from refusals import refused, verb
from small_cohort import make_cohort, reader, sweep_spec

from cardiolens.inference.plan.inputs import read_inputs
from cardiolens.inference.plan.plan import plan
from cardiolens.show.page.cards import cautions

MINIATURE = Path(__file__).parents[1] / "miniature"
SECRET = "Jane-Roe-1950"  # whatever of it reaches a message has leaked
VIEWS = "expected of cine_2ch, cine_3ch"


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cohort(tmp_path_factory.mktemp("cohort") / "place", 2)


@pytest.fixture
def place(cohort: Path, tmp_path: Path) -> Path:
    shutil.copytree(cohort, tmp_path / "place")
    return tmp_path / "place"


def planned(place: Path, **changes: Any) -> Callable[[], int]:
    return verb(lambda: plan(sweep_spec(place, reader("uniform"), **changes)))


def lines(records: list[dict[str, Any]]) -> bytes:
    return "\n".join(json.dumps(record) for record in records).encode()


def line(kind: str = "ordinal", **changes: Any) -> Callable[[list[dict[str, Any]]], bytes]:
    """All records, the first of an answer type changed; a change to None leaves the key out."""

    def written(records: list[dict[str, Any]]) -> bytes:
        chosen = next(record for record in records if record["answer_type"] == kind)
        wrong = {name: value for name, value in (chosen | changes).items() if value is not None}
        rest = [record for record in records if record is not chosen]
        return lines([*rest, wrong])

    return written


def twice(records: list[dict[str, Any]], renamed: Callable[[str], str]) -> bytes:
    """One question twice, under an id and another made of it."""
    one = next(record for record in records if record["answer_type"] == "ordinal")
    return lines([one, one | {"qa_id": renamed(one["qa_id"])}])


def reference(**changes: Any) -> Callable[[list[dict[str, Any]]], bytes]:
    def written(records: list[dict[str, Any]]) -> bytes:
        chosen = next(record for record in records if record["answer_type"] == "report")
        return line("report", reference=chosen["reference"] | changes)(records)

    return written


def whole(content: bytes) -> Callable[[list[dict[str, Any]]], bytes]:
    return lambda records: content


TWICE = [{"key": "A", "text": "x"}, {"key": "A", "text": "y"}]
QUESTIONS: list[tuple[str, Callable[[list[dict[str, Any]]], bytes], str]] = [
    ("empty", whole(b""), r"holds no question; expected one qa-1 record a line"),
    ("not JSON", whole(b"qa_id,study_id\n"), r":1: not JSON .*; each line holds one qa-1"),
    ("an array", lambda records: json.dumps(records).encode(), r"is a JSON object, found list"),
    ("deep", whole(b"[" * 100_000), r":1: not JSON \(nested too deeply"),
    ("other bytes", whole(b"{\xff"), r"cannot be read as UTF-8 text \(byte 1 is not UTF-8"),
    ("UTF-16", whole("{}".encode("utf-16")), r"cannot be read as UTF-8 text \(it is UTF-16 or UTF-32"),
    ("half a surrogate", whole(b'{"qa_id": "\\ud800"}'), r":1: .*qa_id: Input should be a valid string"),
    ("no patient", line(patient_id=None), r"patient_id: Field required"),
    (
        "another patient",
        line(patient_id=SECRET),
        r"its patient_id is not that of study PH-0001 in study\.json",
    ),
    ("a name", line(patient_name=SECRET), r"unknown key 'patient_name'; expected only patient_id, answer"),
    (
        "unknown subtask",
        line(subtask="C99"),
        r"subtask 'C99' is not in protocol 'openprotocol-1'; it has C01",
    ),
    ("unknown study", lambda records: line()([records[0] | {"study_id": "X"}]), r"on the 2 prepared studies"),
    ("answer outside", line(answer=["Q"]), r"answer \['Q'\] is outside its options \['A', 'B', 'C'\]"),
    ("keys twice", line(options=TWICE), r"option keys \['A', 'A'\] are not unique"),
    (
        "one text twice",
        line(
            options=[{"key": "A", "text": "Mild  or less"}, {"key": "B", "text": "mild or LESS"}],
            answer=["A"],
        ),
        r"options A and B have the same text except for case and white space; .*; reword or remove one",
    ),
    ("a blank question", line(question=" \n"), r"question is blank; expected the words"),
    (
        "ids that differ in case",
        lambda records: twice(records, str.swapcase),
        r"differs from '.*' on line 1 in case or white space alone",
    ),
    (
        "twenty options",
        line("multi", options=[{"key": key, "text": f"text {key}"} for key in ascii_uppercase[:20]]),
        r"20 options of answer_type multi; expected at most 10",
    ),
    (
        "twice",
        lambda records: lines([*records, records[0]]),
        r"qa_id 'PH-0001:C01' is already on line \d+",
    ),
    ("report without reference", line("report", reference=None), r"reference is missing; a report question"),
    (
        "unknown field",
        reference(fields={"colour": SECRET}),
        r"no field 'colour'; expected of lv_size, lv_wall",
    ),
    ("unknown value", reference(fields={"lv_size": SECRET}), r"fields\.lv_size: expected of \['Markedly"),
]


@pytest.mark.parametrize("row", QUESTIONS, ids=[row[0] for row in QUESTIONS])
def test_questions_that_cannot_be_asked_are_named(row, place, capsys):
    _, content, said = row
    path = place / "questions.jsonl"
    path.write_bytes(content([json.loads(text) for text in path.read_text().splitlines()]))
    message = refused(planned(place), rf"questions\.jsonl.*{said}", capsys, place)
    assert SECRET not in message
    assert "195001011234" not in message


def test_questions_on_studies_that_are_not_prepared_are_counted(place, caplog):
    path = place / "questions.jsonl"
    odd = json.loads(path.read_text().splitlines()[0]) | {"qa_id": "X:C01", "study_id": "X"}
    path.write_text(f"{path.read_text()}{json.dumps(odd)}\n")
    assert planned(place)() == 0
    assert "questions not asked: 1, as studies are not prepared: 1, e.g. X" in caplog.text


ASKED = "{{ question }} {{ options }} "
TEMPLATES = [
    ("question_standard", ASKED + "{{ foo }}", r"uses \['foo'\], which it is not given; it may use"),
    ("question_standard", "{{ question }}", r"never uses \['options'\]; write e\.g\. \{\{ options \}\}"),
    (
        "question_standard",
        ASKED + "{{ 1 / 0 }}",
        r"uses 'div', which prompts do not need; use variables, if, for",
    ),
    ("question_standard", ASKED + "{% include 'x' %}", r"uses 'include', which prompts do not need"),
    ("question_standard", ASKED + "{{ question | nofilter }}", r"uses the filter 'nofilter', which prompts"),
    ("question_standard", ASKED + "\ufffc", r"holds U\+FFFC, which is reserved for frames"),
    ("report_standard", "{{ question }}", r"never uses \['schema'\]"),
    ("questions", ASKED, r"no prompt uses this name; a template is called one of"),
]


@pytest.mark.parametrize(("name", "content", "said"), TEMPLATES, ids=[row[1] for row in TEMPLATES])
def test_templates_that_cannot_be_used_are_named(name, content, said, place, capsys):
    own = place / "templates"
    own.mkdir()
    (own / f"{name}.jinja").write_text(content)
    refused(planned(place, templates=own), rf"templates/{name}\.jinja: {said}", capsys, place)


def subtask(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda tree: tree["subtasks"][0].update(changes)


def head(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda tree: tree.update(changes)


PROTOCOLS: list[tuple[str, str | bytes | Callable[[dict[str, Any]], None], str]] = [
    ("protocol.yaml", "", r"protocol\.yaml: must hold keys and values at its top, found NoneType"),
    ("protocol.yaml", "a: [1", r"protocol\.yaml: not YAML"),
    ("protocol.yaml", head(protocol="openprotocol-1"), r"give your data files a name of their own"),
    ("protocol.yaml", head(protocol="../x"), r"protocol: String should match"),
    (
        "protocol.yaml",
        head(colour=3),
        r"unknown key 'colour'; expected only inherited, inherits, .*, protocol",
    ),
    ("questions.yaml", "subtasks: {a: 1}", r"exactly one key 'subtasks', a list of subtasks"),
    (
        "questions.yaml",
        "subtasks: !!python/object:os.system [1]",
        r"not YAML .*could not determine a construct",
    ),
    (
        "questions.yaml",
        subtask(options="none"),
        r"SCAR: no option set 'none'; protocol\.yaml has \['no_yes'\]",
    ),
    ("questions.yaml", subtask(route={"cine_9ch": 1}), rf"SCAR: route names 'cine_9ch'; {VIEWS}"),
    ("questions.yaml", subtask(sequence="t9"), r"sequence is 't9'; expected one of cine, lge, perfusion"),
    ("questions.yaml", subtask(answer_type="essay"), r"SCAR: answer_type: .* 'ranking', got 'essay'"),
    ("questions.yaml", subtask(parent="NO", parent_answers=["A"]), r"parent 'NO' is not in the catalogue"),
    ("lexicon.yaml", "{}", r"lexicon\.yaml: 'sequences' is missing"),
]


@pytest.mark.parametrize("row", PROTOCOLS, ids=[f"{at}-{row[0]}" for at, row in enumerate(PROTOCOLS)])
def test_protocols_that_cannot_be_asked_are_named(row, place, capsys):
    name, content, said = row
    own = shutil.copytree(MINIATURE, place / "protocol") / name
    if callable(content):
        tree = yaml.safe_load(own.read_text())
        content(tree)
        content = yaml.safe_dump(tree)
    own.write_bytes(content if isinstance(content, bytes) else content.encode())
    dataset = sweep_spec(place, reader("uniform")).dataset.model_copy(update={"protocol": str(own.parent)})
    refused(planned(place, dataset=dataset), said, capsys, place)


def compact(record: dict[str, Any]) -> dict[str, Any]:
    return {"study": record["study_id"], "subtask": record["subtask"], "answer": record["answer"]}


def test_compact_questions_are_planned_as_those_in_full(place):
    path = place / "questions.jsonl"
    records = [json.loads(text) for text in path.read_text().splitlines()]
    full = read_inputs(sweep_spec(place, reader("uniform")))
    short = [record if record["answer_type"] == "report" else compact(record) for record in records]
    path.write_bytes(lines(short))
    again = read_inputs(sweep_spec(place, reader("uniform")))
    assert sum("study" in record for record in short) > 10
    assert again.questions == full.questions
    patients = [inputs.question_table["patient_id"].to_pylist() for inputs in (full, again)]
    assert patients[0] == patients[1]


def test_what_nobody_verified_is_asked_where_it_is_allowed(place, capsys):
    path = place / "questions.jsonl"
    records = [json.loads(text) for text in path.read_text().splitlines()]
    records[0] |= {"origin": "mask", "verification": {"status": "draft"}}
    path.write_bytes(lines(records))
    refused(planned(place), r"1 of its \d+ questions are not verified, e\.g\. PH-0001", capsys, place)
    spec = sweep_spec(place, reader("uniform"))
    allowed = spec.dataset.model_copy(update={"allow": ("unverified",)})
    assert plan(spec.model_copy(update={"dataset": allowed}))
    words = "Answers that nobody verified were allowed (dataset.allow=[unverified])."
    assert words in cautions(_facts(allowed))
    assert words not in cautions(_facts(spec.dataset))


def _facts(dataset: Any) -> Any:
    nothing = {"simulated": frozenset(), "models": ()}
    return SimpleNamespace(
        **nothing,
        specs=[SimpleNamespace(dataset=dataset)],
        manifests=[{"cardiolens": "x"}],
        scores_of=lambda *_: [],
        most=lambda _: 0,
        analysis=lambda _: (),
        n_patients=30,
        patients_in_words="30 patients",
        is_unfinished=False,
    )
