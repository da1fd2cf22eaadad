"""JSON Schema of `study.json`: the fields of the manifest, and rules between fields of one entry."""

from typing import Any

from cardiolens.study.anatomy import heart, sequences
from cardiolens.study.manifest import MAX_ID_LENGTH, StudyManifest

SCHEMA_NAME = "study.schema.json"  # beside this module; jobs/make_schemas.py writes it
_LEFT_OUT = ("volume_id", "shape", "spacing_mm")  # optional: they follow from file, sequence and view
_NULL = {"type": "null"}


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
    schema["$defs"]["LayoutDeclaration"]["anyOf"] = [
        {"properties": {"order": {"const": "explicit"}, "frames": {"type": "array"}}}
        | _required("order", "frames"),
        {"properties": {"order": {"not": {"const": "explicit"}}, "frames": _NULL}},
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
