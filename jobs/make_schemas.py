"""Write the JSON Schemas of studies and questions into the package: `python jobs/make_schemas.py`."""

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from cardiolens.commands.command import Action, verb
from cardiolens.protocol.tasks.legal import MOST_SEVERAL, UNSHOWN
from cardiolens.protocol.tasks.questions import CompactQuestion, Question
from cardiolens.storage.schemas import FRAME
from cardiolens.study.anatomy import heart, sequences
from cardiolens.study.manifest import MAX_ID_LENGTH, StudyManifest

_LEFT_OUT = ("volume_id", "shape", "spacing_mm")  # optional: they follow from file, sequence and view
_NULL = {"type": "null"}
_EMPTY = {"maxItems": 0}


def schemas() -> dict[Path, str]:
    """Return the text of every schema by its file."""
    made = {
        "cardiolens.study/study.schema.json": study_schema(),
        "cardiolens.protocol.tasks/question.schema.json": question_schema(),
    }
    return {_path(place): json.dumps(tree, indent=1) + "\n" for place, tree in made.items()}


def _path(place: str) -> Path:
    package, name = place.split("/")
    return Path(str(files(package))) / name


def question_schema() -> dict[str, Any]:
    """Return the shipped schema; the reader of the file checks the rules that depend on the catalogue."""
    tree = TypeAdapter(Question | CompactQuestion).json_schema(by_alias=True)
    schema = tree["$defs"]["Question"]
    schema["properties"]["question"]["pattern"] = f"^[^{FRAME}]*$"
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
    named: dict[str, Any] = {"answer_type": {"enum": ["number", "ranking"]}, "options": _EMPTY}
    named |= {"reference": _NULL, "answer": {"minItems": 1}}
    schema["anyOf"] = [
        {"properties": report, "required": ["reference"]},
        {"properties": single_schema, "required": ["options", "answer"]},
        {"properties": many, "required": ["options", "answer"]},
        {"properties": named, "required": ["answer"]},
    ]
    tree["$defs"]["CompactQuestion"]["required"].append("answer")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    head["title"] = "a line of questions.jsonl (qa-1, or compact)"
    return head | tree


def study_schema() -> dict[str, Any]:
    """Return the shipped schema; only the reader checks rules that need files or compare numbers."""
    schema = StudyManifest.model_json_schema(by_alias=True)
    about, volume = schema["properties"], schema["$defs"]["VolumeManifest"]
    about["study_id"] |= {
        "maxLength": MAX_ID_LENGTH,
        "pattern": r"^(?!\.$)(?!.*\.\.)[^/\\\u0000-\u001f\u007f]+$",
    }
    volume["properties"]["spatial_order"] |= {"enum": list(heart().orders)}
    volume["required"] = [name for name in volume["required"] if name not in _LEFT_OUT]
    for name in _LEFT_OUT:
        volume["properties"][name] = {"anyOf": [volume["properties"][name], _NULL]}
    for described in (volume, schema["$defs"]["MaskDeclaration"]):
        described["properties"]["path"]["minLength"] = 1
    volume["allOf"] = [
        {
            "anyOf": [
                _names(sequence, view) for sequence in sequences() for view in sequences()[sequence].views
            ]
        },
        _first_pass(),
    ]
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "study.json (study-1)"}
    return head | {name: value for name, value in schema.items() if name != "title"}


def _names(sequence: str, view: str) -> dict[str, Any]:
    volume_id = sequences()[sequence].volume_id(view)
    names = {
        "sequence": {"const": sequence},
        "view": {"const": view},
        "volume_id": {"enum": [volume_id, None]},
    }
    return {"properties": names}


def _first_pass() -> dict[str, Any]:
    """Return the rule: both first-pass times, in a sequence with a first pass, or neither."""
    timed = {"enum": [name for name, kind in sequences().items() if kind.over_time == "first_pass"]}
    both = {"sequence": timed, "t_on": {"type": "integer"}, "t_peak": {"type": "integer"}}
    neither = {"t_on": _NULL, "t_peak": _NULL}
    return {"anyOf": [{"properties": both} | _required("t_on", "t_peak"), {"properties": neither}]}


def _required(*names: str) -> dict[str, Any]:
    return {"required": list(names)}


def write(words: Sequence[str]) -> int:
    """Write every file."""
    for path, text in schemas().items():
        path.write_text(text, encoding="utf-8")
        print(path)
    return 0


main = verb(__name__, __doc__, Action(None, write))
