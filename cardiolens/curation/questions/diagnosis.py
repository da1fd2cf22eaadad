"""Diagnoses stated in a report, and the wording that makes a diagnosis uncertain (protocol 4)."""

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cardiolens.curation.questions.draft_reasons import Reason
from cardiolens.curation.questions.statement import ReportStatement
from cardiolens.curation.questions.strict_patterns import has
from cardiolens.protocol.tasks.catalogue import Catalogue, Subtask
from cardiolens.report_text.grammar import grammar
from cardiolens.report_text.sections import Sentence
from cardiolens.study.anatomy import read_yaml

_LABEL = re.compile(r"\W*(?P<label>[^:\n.]{1,40}?)[ =~_|*#]*(?P<end>:|\)|\n|$|\s[-–]\s|\s{3,})")
_LEAST_SENTENCES = 3  # of a report that may end with the name of a diagnosis alone
_LETTERS = re.compile(r"[a-z]+")
_OF_HEADINGS = frozenset(
    {"final", "main", "overall", "mri", "cmr", "cardiac", "and", "the", "in", "diagnostic", "category"}
)
_SUMS_UP = re.compile(r"\s*(?:=+>?|-+>)\s+")  # `= DCM`
_OF_REMARK = ({"remark"}, {"remarks"}, {"free", "text"}, {"comprehensive", "judgment"})


@functools.cache
def _words() -> Mapping[str, Any]:
    return read_yaml(Path(__file__).parent / "diagnosis.yaml")


def diagnoses(text: str, sentences: Sequence[Sentence], catalogue: Catalogue) -> Iterator[ReportStatement]:
    """Yield the statements on etiology and subtype, sentence by sentence."""
    if not {"D01", "D02"} <= set(catalogue.subtasks):
        return
    concludes = False
    spoken = [sentence for sentence in sentences if sentence.section != "silent"]
    for sentence in sentences:
        label = _LABEL.match(text, sentence.start, sentence.end)
        letters = set(_LETTERS.findall(label["label"].lower())) if label else set()
        is_heading = bool(letters & grammar().concluding) and letters <= grammar().concluding | _OF_HEADINGS
        is_heading = is_heading or (
            letters in _OF_REMARK and len(_before(sentence, spoken)) >= _LEAST_SENTENCES
        )
        is_other = sentence.opens or (label is not None and label["end"].strip() in (":", "-", "–"))
        concludes = is_heading or (concludes and not is_other)
        if sentence.section != "silent":
            ends = len(spoken) > _LEAST_SENTENCES and sentence is spoken[-1] and _is_alone(text, sentence)
            is_summed_up = concludes or ends or _SUMS_UP.match(text, sentence.start) is not None
            for statement in _of_sentence(text, sentence, catalogue, concludes=is_summed_up):
                is_open = statement.certainty == "certain" and _has_rival(text, sentence, spoken)
                yield replace(statement, certainty="uncertain") if is_open else statement


def _before(sentence: Sentence, spoken: Sequence[Sentence]) -> Sequence[Sentence]:
    return [one for one in spoken if one.start < sentence.start]


def _has_rival(text: str, sentence: Sentence, spoken: Sequence[Sentence]) -> bool:
    """Return whether findings are only consistent with a diagnosis, and something competes with it."""
    words = _words()
    if not has(words["linked"], text[sentence.start : sentence.end]):
        return False
    others = [(text[other.start : other.end], other.concludes) for other in spoken if other is not sentence]
    return any(
        has(words["rivals"], phrase) or (concludes and has(words["rivals_concluded"], phrase))
        for phrase, concludes in others
    )


def _is_alone(text: str, sentence: Sentence) -> bool:
    """Return whether a sentence is nothing but a diagnosis, with which a report may end: `DCM.`"""
    words = _words()
    classes = "|".join(words["classes"].values())
    pattern = rf"\W*(?:(?:{words['leads']})\W+)*(?:{classes})\W*"
    return re.fullmatch(pattern, text[sentence.start : sentence.end], re.IGNORECASE) is not None


def _of_sentence(
    text: str, sentence: Sentence, catalogue: Catalogue, *, concludes: bool
) -> Iterator[ReportStatement]:
    phrase, words = text[sentence.start : sentence.end], _words()
    classes = [name for name, pattern in words["classes"].items() if has(pattern, phrase)]
    names_others = has(words["others"], phrase)
    if not classes and not names_others:
        return
    if len(classes) > 1 and "nicm" in classes and {*classes} <= {"nicm", *words["nicm"]}:
        classes.remove("nicm")  # its subtype says it
    rest = re.sub(words["behind"], "", phrase, flags=re.IGNORECASE) if len(classes) == 1 else phrase
    denied = classes != ["normal"] and has(words["denial"], rest if _names(rest, classes) else phrase)
    unsure = (
        has(words["doubt"], phrase) or sentence.asks or not _is_stated(phrase, classes, concludes=concludes)
    )
    past = has(words["past"], phrase)
    certainty = "uncertain" if unsure else "historical" if past else "certain"
    start = sentence.start + len(phrase) - len(phrase.lstrip())
    end = sentence.start + len(phrase.rstrip())
    doubt = Reason.NO_OPTION if names_others else Reason.SEVERAL_VALUES if len(classes) > 1 else None

    def found(subtask: Subtask, value: str | None) -> ReportStatement:
        polarity = "negated" if denied else "affirmed"
        return ReportStatement(
            subtask.id, value, start, end, text[start:end], sentence.section, polarity, certainty,
            "rules", doubt=doubt,
        )  # fmt: skip

    etiology, subtype = catalogue["D01"], catalogue["D02"]
    if denied and not names_others:
        return  # an excluded diagnosis says which one it is not, and no more
    for name in classes or [""]:
        cause = "nicm" if name in (*words["nicm"], "nicm") else name
        yield found(etiology, _text(etiology, cause))
        if name in words["nicm"]:
            yield found(subtype, _text(subtype, name))


def names_diagnosis(subtask: Subtask, value: str, phrase: str) -> bool:
    """Return whether a phrase names the diagnosis that an option stands for."""
    words = _words()
    names = [name for name in words["classes"] if _text(subtask, name) == value]
    if value == _text(subtask, "nicm"):
        names += words["nicm"]
    return _names(phrase, names)


def _names(phrase: str, classes: Sequence[str]) -> bool:
    return any(has(_words()["classes"][name], phrase) for name in classes)


def _is_stated(phrase: str, classes: Sequence[str], *, concludes: bool) -> bool:
    """Return whether a sentence states a diagnosis and nothing of it: not `HCM protocol`, nor `LGE of HCM`.

    Below the heading of a conclusion the name alone states it; elsewhere words such as `in summary` must.
    """
    words = _words()
    head = rf"(?:^(?:[^:\n]*(?:[:\n]|\s[-–]\s|\s{{3,}}))?|[,;])[\W\d]*(?P<lead>(?:(?:{words['leads']})\W+)*)"
    is_summed_up = concludes or has(words["stating"], phrase)
    return all(
        any(
            is_summed_up and re.match(rf"\W*$|\s*[,;(]|\s*(?:{words['tails']})\b", phrase[match.end() :])
            for match in re.finditer(rf"{head}(?:{words['classes'][name]})", phrase, re.IGNORECASE)
        )
        for name in classes
    )


def _text(subtask: Subtask, value: str) -> str | None:
    return next((option.text for option in subtask.options if value in option.values), None)
