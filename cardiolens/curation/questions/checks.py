"""Consistency checks on a report's answers: combinations that cannot be right (protocol 9, stage 4)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cardiolens.curation.questions.extraction_truth import Answer

Answers = Mapping[str, Answer]


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken consistency rule; the subtasks in `fields` lose their answers."""

    rule: str
    fields: tuple[str, ...]


def _is(answers: Answers, subtask: str, *keys: str) -> bool:
    return bool(set(answers.get(subtask, ())) & set(keys))


_RULES: tuple[tuple[str, tuple[str, ...], Callable[[Answers], bool]], ...] = (
    (
        "normal function with akinesia everywhere",
        ("C06", "C09", "C10"),
        lambda a: _is(a, "C10", "A") and _is(a, "C06", "C", "D") and _is(a, "C09", "A"),
    ),
    (
        "severely reduced function with normal motion",
        ("C06", "C10"),
        lambda a: _is(a, "C10", "D") and _is(a, "C06", "A"),
    ),
    ("a subtype without NICM", ("D01", "D02"), lambda a: "D02" in a and not _is(a, "D01", "C")),
    (
        "a normal study with an abnormal finding",
        ("D01",),
        lambda a: (
            _is(a, "D01", "A")
            and (_is(a, "L01", "B") or _is(a, "T01", "B") or _is(a, "P01", "B") or _is(a, "C10", "C", "D"))
        ),
    ),
    (
        "ischaemic cardiomyopathy with enhancement away from the endocardium only",
        ("D01",),
        lambda a: _is(a, "D01", "B") and "L05" in a and not _is(a, "L05", "A", "D"),
    ),
    (
        "a territory with all levels and walls",
        ("P03", "P04"),
        lambda a: _is(a, "P04", "A", "B") and len(a.get("P03", ())) == 4,
    ),
    (
        "dilated cardiomyopathy with a left ventricle of normal size",
        ("C01", "D02"),
        lambda a: _is(a, "D02", "B") and _is(a, "C01", "A"),
    ),
    (
        "hypertrophic cardiomyopathy with normal walls",
        ("C02", "D02"),
        lambda a: _is(a, "D02", "A") and _is(a, "C02", "A"),
    ),
)


def violations(answers: Answers) -> list[Violation]:
    """Return every consistency rule that the answers break."""
    broken_rules = [Violation(name, fields) for name, fields, broken in _RULES if broken(answers)]
    for gate, details in (("C02", "C03 C04 C05"), ("C06", "C07 C08 C09"), ("L01", "L02 L03 L04 L05")):
        placed = tuple(name for name in details.split() if name in answers)
        if _is(answers, gate, "A") and placed:
            broken_rules.append(Violation("places of a finding that is denied", (gate, *placed)))
    if set(answers.get("L03", ())) == {"E"} and set(answers.get("L05", ())):
        broken_rules.append(Violation("layers of a right ventricular lesion", ("L05",)))
    return broken_rules
