"""JSON Schema of one line of `questions.jsonl`: the fields of a record and the rules between them."""

from typing import Any

from pydantic import TypeAdapter

from cardiolens.protocol.tasks.legal import MOST_SEVERAL, UNSHOWN
from cardiolens.protocol.tasks.questions import FRAME_PLACE, CompactQuestion, Question

SCHEMA_NAME = "question.schema.json"  # beside this module; jobs/make_schemas.py writes it
_EMPTY = {"maxItems": 0}
_NULL = {"type": "null"}


def question_schema() -> dict[str, Any]:
    """Return the shipped schema; the reader of the file checks the rules that depend on the catalogue."""
    tree = TypeAdapter(Question | CompactQuestion).json_schema(by_alias=True)
    schema = tree["$defs"]["Question"]
    schema["properties"]["question"]["pattern"] = f"^[^{FRAME_PLACE}]*$"
    tree["$defs"]["QuestionOption"]["properties"]["text"]["pattern"] = rf"^[^{UNSHOWN}]*$(?!\n)"
    schema["properties"]["answer"]["uniqueItems"] = True
    report: dict[str, Any] = {"answer_type": {"const": "report"}, "reference": {"type": "object"}}
    report |= {"options": _EMPTY, "answer": _EMPTY}
    picked: dict[str, Any] = {"reference": _NULL, "options": {"minItems": 2}}
    single_schema = picked | {
        "answer_type": {"enum": ["single", "ordinal"]},
        "answer": {"minItems": 1, "maxItems": 1},
    }
    few = {"options": {"minItems": 2, "maxItems": MOST_SEVERAL}}
    many = picked | few | {"answer_type": {"const": "multi"}, "answer": {"minItems": 1}}
    open_to_all = {"withheld": {"const": False}}
    kept: dict[str, Any] = {"withheld": {"const": True}, "answer": _EMPTY, "reference": _NULL}
    kept_report = kept | {"answer_type": {"const": "report"}, "options": _EMPTY}
    kept_choice = kept | {"answer_type": {"enum": ["single", "ordinal"]}, "options": {"minItems": 2}}
    named: dict[str, Any] = {"answer_type": {"enum": ["number", "ranking"]}, "options": _EMPTY}
    named |= {"reference": _NULL, "answer": {"minItems": 1}}
    kept_named = kept | {"answer_type": {"enum": ["number", "ranking"]}, "options": _EMPTY}
    kept_many = kept | few | {"answer_type": {"const": "multi"}}
    schema["anyOf"] = [
        {"properties": report | open_to_all, "required": ["reference"]},
        {"properties": single_schema | open_to_all, "required": ["options", "answer"]},
        {"properties": many | open_to_all, "required": ["options", "answer"]},
        {"properties": named | open_to_all, "required": ["answer"]},
        {"properties": kept_report, "required": ["withheld"]},
        {"properties": kept_named, "required": ["withheld"]},
        {"properties": kept_choice, "required": ["withheld", "options"]},
        {"properties": kept_many, "required": ["withheld", "options"]},
    ]
    tree["$defs"]["CompactQuestion"]["anyOf"] = [
        {"properties": open_to_all, "required": ["answer"]},
        {
            "properties": {"withheld": {"const": True}, "answer": {"type": "array"} | _EMPTY},
            "required": ["withheld"],
        },
    ]
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    head["title"] = "a line of questions.jsonl (qa-1, or compact)"
    return head | tree
