"""Measurements in a report, classified into options by sex and body size."""

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cardiolens.curation.questions.draft_reasons import Reason
from cardiolens.curation.questions.statement import ReportStatement
from cardiolens.report_text.sections import Sentence, heading_above
from cardiolens.study.anatomy import read_yaml

_NUMBER = r"(?P<low>\d{1,3}(?:[.,]\d+)?)(?:\s*%?\s*(?:-|–|to)\s*(?P<high>\d{1,3}(?:[.,]\d+)?))?\s*"
_ENDS_SHARE = r"(?![\d\w]|[.,]\d|\s*(?:%|[-–/±<>]|to\b|z\b|points?\b|per ?cent|m[lm]\b|cm\b))"
_ENDS_INDEX = r"(?=[),;]|\.(?!\d)|$)"  # and no blank, where a bracket may have stood
_CHAMBER = re.compile(r"\b(?:lv|rv|left ventric\w*|right ventric\w*|ventricles)\b", re.IGNORECASE)
_LEFT_CHAMBER = re.compile(r"\b(?:lv|left ventric\w*)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.;]\s")
_CHAMBERS = {
    "C01": r"\b(rv|right)\b",
    "C02": r"\b(rv|right|aort\w*|atri\w*)\b",
    "C10": r"\b(rv|right|la|ra|atri\w*|left atri\w*|emptying|regurg\w*|valve\w*)\b",
    "C12": r"\b(lv|left)\b",
    "C15": r"\b(lv|left)\b",
}

Band = tuple[float, float, str]


@dataclass(frozen=True, slots=True)
class Reading:
    """The option that a measurement falls into, or the options that it lies between."""

    value: str | None
    near: tuple[str, ...] = ()


@functools.cache
def ranges() -> Mapping[str, Any]:
    """Load the packaged names, units and reference ranges once."""
    return read_yaml(Path(__file__).parent / "ranges.yaml")


def sex_of(text: str, stated_sex: str | None) -> str | None:
    """Return the declared sex, else the sex that the text names if it names only one."""
    if stated_sex in ("male", "female"):
        return stated_sex
    sexes = [sex for sex, words in ranges()["sexes"].items() if re.search(words, text, re.IGNORECASE)]
    return sexes[0] if len(sexes) == 1 else None


def read_number(quantity: str, low: float, high: float, sex: str | None) -> Reading:
    """Classify a measurement; if sex is unknown, only if both reference ranges agree."""
    bands: Mapping[str, list[Band]] = ranges()["quantities"][quantity]["bands"]
    bands_read = [_of_bands(bands[either_sex], low, high) for either_sex in ([sex] if sex else sorted(bands))]
    values = {band.value for band in bands_read}
    if len(values) == 1 and None not in values:
        return bands_read[0]
    return Reading(
        None, tuple(dict.fromkeys(name for band in bands_read for name in (band.value, *band.near) if name))
    )


def measured(text: str, sentences: Sequence[Sentence], sex: str | None) -> Iterator[ReportStatement]:
    """Yield statements from the measurements in a text, from sections about the current examination."""
    body = re.search(ranges()["body_surface"], text, re.IGNORECASE)
    surface = float(body[1].replace(",", ".")) if body else None
    for sentence in sentences:
        if sentence.section != "silent" and not sentence.asks:
            for quantity in ranges()["quantities"]:
                yield from _of_sentence(text, sentence, quantity, sex, surface)


def _of_sentence(
    text: str, sentence: Sentence, quantity: str, sex: str | None, surface: float | None
) -> Iterator[ReportStatement]:
    entry = ranges()["quantities"][quantity]
    phrase = text[sentence.start : sentence.end]
    sibling = _CHAMBERS.get(entry["subtask"])
    for indexed, names in ((True, entry["names"]), (True, entry["bare"]), (False, entry.get("absolute", []))):
        is_bare = names is entry["bare"] and sibling is not None
        if not names or (is_bare and _is_of_sibling(text, sentence, phrase, sibling or "")):
            continue
        unit = ranges()["units"][entry["unit"] if indexed else "ml"]
        first = _first(phrase, names, unit)
        if first is None and entry["unit"] == "%" and (bare := _without_sign(phrase, names)):
            first, unit = bare, r"(?=\W|$)"
        if first is None and entry["unit"] == "ml/m2" and indexed and (bare := _without_unit(phrase, names)):
            first, unit = bare, _ENDS_INDEX
            phrase = phrase[: bare.end()]
        if first is None or (not indexed and surface is None):
            continue
        values = list(_values(phrase, first, unit))
        scale = 1.0 if indexed or surface is None else 1 / surface
        now = [value for value in values if not value[2]]
        if not values or (not now and values):
            continue
        span = sentence.start + first.start(), sentence.start + max(value[1] for value in values)
        make = functools.partial(
            ReportStatement,
            entry["subtask"],
            start=span[0],
            end=span[1],
            quote=text[slice(*span)],
            section=sentence.section,
            polarity="affirmed",
            certainty="certain",
            extractor="rules",
            measured=True,
        )
        if len(now) > 1:
            yield make(value=None, doubt=Reason.SEVERAL_NUMBERS)
        else:
            low, high = (number * scale for number in now[0][0])
            reading = read_number(quantity, low, high, sex)
            yield make(value=reading.value, near=reading.near)
        return


def _is_of_sibling(text: str, sentence: Sentence, phrase: str, sibling: str) -> bool:
    """Return whether a quantity without its chamber is of the other one, beside it or last before it."""
    if re.search(sibling, phrase, re.IGNORECASE):
        return True
    head = heading_above(sentence, text)
    before = text[text.rfind("\n", 0, sentence.start) + 1 : sentence.start]
    for part in reversed(_SENTENCE_END.split(f"{head}. {before}")):
        if _CHAMBER.search(part):
            return re.search(sibling, part, re.IGNORECASE) is not None and not _LEFT_CHAMBER.search(part)
    return False


def _first(phrase: str, names: list[str], unit: str) -> re.Match[str] | None:
    name = "|".join(names)
    pattern = rf"(?<!\w)(?:{name})(?!\w){ranges()['link']}(?:{_NUMBER})(?:{unit})(?!\w)"
    return re.search(pattern, phrase, re.IGNORECASE)


def _without_sign(phrase: str, names: list[str]) -> re.Match[str] | None:
    """A share that leaves out its sign, and has no other number beside it: `EF 63`."""
    name = "|".join(names)
    pattern = rf"(?<!\w)(?:{name})(?:\s|:|=|\bis\b|\bof\b)*(?P<low>\d\d)(?P<high>(?!))?{_ENDS_SHARE}"
    is_only = len(re.findall(r"\d+", phrase)) == 1
    return re.search(pattern, phrase, re.IGNORECASE) if is_only else None


def _without_unit(phrase: str, names: list[str]) -> re.Match[str] | None:
    """An indexed volume that leaves out its unit: `EDVi 112`."""
    name = "|".join(names)
    pattern = rf"(?<!\w)(?:{name})(?:\s|:|=)*(?P<low>\d{{2,3}})(?P<high>(?!))?{_ENDS_INDEX}"
    return re.search(pattern, phrase, re.IGNORECASE)


def _values(phrase: str, first: re.Match[str], unit: str) -> Iterator[tuple[tuple[float, float], int, bool]]:
    """Yield measurements of one unit: (low, high), end offset, and whether it is an earlier one."""
    past = re.compile(rf"\b({'|'.join(ranges()['past'])})\b|{ranges()['limit']}", re.IGNORECASE)
    head = re.split(ranges()["today"], phrase[: first.start()], flags=re.IGNORECASE)[-1]
    told_before = re.search(ranges()["elsewhere"], head, re.IGNORECASE) is not None
    at = first.start()
    for number in re.finditer(rf"(?<![\d.,/]){_NUMBER}(?:{unit})(?!\w)", phrase[at:], re.IGNORECASE):
        between = phrase[at : first.start() + number.start()]
        factor = 10.0 if number.group().lower().endswith("cm") else 1.0
        ends = (number["low"], number["high"] or number["low"])
        low, high = sorted(float(end.replace(",", ".")) * factor for end in ends)  # `60 % to 25 %`
        *before, recent = re.split(ranges()["today"], between, flags=re.IGNORECASE)
        told_before = told_before and not before
        at = first.start() + number.end()
        behind = re.match(ranges()["ago"], phrase[at:], re.IGNORECASE)
        yield (low, high), at, bool(told_before or behind or past.search(recent))


def _of_bands(bands: list[Band], low: float, high: float) -> Reading:
    inside = [value for start, end, value in bands if start <= low and high <= end]
    if inside:
        return Reading(inside[0])
    below = [value for _, end, value in bands if end < high]
    above = [value for start, _, value in bands if start > low]
    return Reading(None, tuple(dict.fromkeys([*below[-1:], *above[:1]])))
