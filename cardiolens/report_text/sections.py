"""Sections and sentences of a report (protocol 9, stage 1)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cardiolens.protocol.tasks.lexicon import Phrase
from cardiolens.report_text.grammar import grammar

_NO_HEADINGS: Mapping[Phrase, str] = {}

# Short forms whose full stop ends no sentence: `No sig. LGE`.
_SHORT = (
    *("vs", "approx", "max", "min", "incl", "excl", "esp", "sig"),
    *("signif", "poss", "prob", "prev", "susp"),
)
_ABBREVIATED = "".join(rf"(?<!\b(?i:{word}))" for word in _SHORT)
_BREAK = re.compile(rf"{_ABBREVIATED}[.!](?=\s|$)|(?<=[^\s:(=])\?(?=\s*$|\s+[A-Z\n])|\n+")
_HEADING = re.compile(r"[\s\-*•#=~_|\d.)]*([^\W_][^:\n.;,]{0,45}?)[\s=~_|*#]*(:|\n|\s[-–—]\s)")
_ITEM = re.compile(r"\s*(?:[-*•]|\d+[.)])\s*")  # mark before a list item
_ARROW = re.compile(r"\s*(?:[=-]+>|→|⇒)")  # before a conclusion
_BRACKET = re.compile(r"\([^()]*\)")
_LINE = re.compile(r"^[ \t\-*•#=~_|\d.)]*([^\W_][^:\n.;,]{0,45}?)[\s=~_|*#]*(?::|$)", re.MULTILINE)
_ENDS = frozenset(".?!")
_SILENT = ("silent", "silent_line")
_LABEL = re.compile(r"[^:\n]{0,80}(?=[:\n]|$)")
_RULE = re.compile(r"\s*[-=*_#]{2,}")  # sets a heading off from the line before it
_LONGEST = 1500  # characters of a sentence
# What a line says that is more than a label: `no prior studies`, `compared with the last study`.
_SENTENCE = re.compile(
    r"[.,;]\s|\b(?:no|not|none|nil|without|compar\w+|is|are|was|were|has|have|see|unchanged)\b", re.IGNORECASE
)
_ON_VENTRICLE = re.compile(
    r"(?:(?:The|Non-?dilated|Normal(?:ly sized)?|Dilated) )?(?:(?:left|right) ventric\w+|[LR]V)\b(?!\s*\d)",
    re.IGNORECASE,
)
_WHOLE = re.compile(r"The (?:left|right) ventricle (?:is|has|shows) (?!known)[a-z]", re.IGNORECASE)
_QUOTES = re.compile(
    r"\b(?:reports?|reads?|show\w*|copied|stat\w+|letter|mother|father|brother|sister)\b|[:,(]$",
    re.IGNORECASE,
)
_AGE = re.compile(r"\b(?:year|month|week|day)s?[- ]old\b")
_OF_PAST = re.compile(
    r"\b(?:(?:19|20)\d\d|echo\w*|was|were|had|known|prev\w*|prior|last|outside|ago|years?|months?)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+")
# Lines that a mark sets off as another text: two or more, or one below a colon. Rows of tables have more.
_MARKED = r"[ \t]*(?:>|\|)[^|\n]*(?:\n|\Z)"
_SET_OFF = re.compile(rf"^(?:{_MARKED}){{2,}}|(?<=:\n){_MARKED}", re.MULTILINE)
# A line that was copied from a dated report: `>> carried over from CMR 18.06.2022: "LVEF 29 %."`
_CARRIED = re.compile(
    r"[ \t>*-]*(?:(?:carried over|copied|pasted|taken) from|from (?:the )?report of)\b[^\n:\"]*"
    r"(?:19|20)\d\d[^\n:\"]{0,8}:(?P<text>[^\n]*)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Heading:
    """The span of a heading, and whether it has a line of its own."""

    start: int
    end: int
    alone: bool


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, within one section."""

    start: int
    end: int
    section: str  # a sequence, "silent", or "any" where no heading names one
    opens: bool  # whether it begins with the heading of a section
    asks: bool  # whether it ends with a question mark
    topic: Heading | None  # the heading above it, or earlier in its line
    part: Heading | None = None  # the ventricle whose form a line goes on with: `size: normal`
    concludes: bool = False  # whether it stands below the heading of a conclusion


@dataclass(slots=True)
class _Quoted:
    """What is of an earlier report: all that follows, or one line. Its own headings open nothing."""

    is_earlier: bool = False
    line_end: int = -1

    def holds(self, text: str, start: int, examination: str | None) -> bool:
        """Return whether a sentence, with which an examination may begin, is of an earlier report."""
        if examination == "remark":
            self.line_end = f"{text}\n".index("\n", start)
        elif examination:
            self.is_earlier = examination == "earlier"
        return self.is_earlier or start < self.line_end


def sentences(text: str, own_headings: Mapping[Phrase, str] = _NO_HEADINGS) -> Iterator[Sentence]:
    """Yield the sentences of a report in order, by the grammar's headings and those of a group."""
    section, topic = "any", None
    line_end, resumed = -1, "any"  # of a line that a short heading makes silent, and the section after it
    last_heading, last_general = _last_heading(text), _last_heading(text, of_sequences=False)
    is_inline = False  # whether the heading of the section has its text in its own line
    has_concluded = False  # whether the heading of a conclusion has come
    part, concludes = None, False
    quoted, set_off = _Quoted(), _set_off(text)
    for start, end in _pieces(text):
        opens_line = not text[text.rfind("\n", 0, start) + 1 : start].strip()
        examination = _examination(
            text, start, opens_line=opens_line, is_silent=section == "silent", has_concluded=has_concluded
        )
        was_earlier = quoted.is_earlier
        is_set_off = any(first <= start < last for first, last in set_off)
        if is_set_off or quoted.holds(text, start, examination):
            section, topic, line_end = "silent" if quoted.is_earlier else section, None, -1
            yield Sentence(start, end, "silent", opens_line, text[end : end + 1] == "?", None)
            continue
        section = "any" if was_earlier else section  # a current report behind an earlier one
        if topic and not topic.alone and "\n" in text[topic.end : start]:
            topic = None
        heading = _HEADING.match(text, start, min(end + 1, len(text)))
        label = tuple(_WORD.findall(_BRACKET.sub(" ", heading[1].lower()))) if heading else ()
        named = own_headings.get(label) or grammar().headings.get(label)
        has_concluded = has_concluded or bool(named and grammar().concluding & set(label))
        if start >= line_end >= 0:
            section, line_end = resumed, -1
        if is_inline and opens_line and not named and _is_of_other(text[start:end], section):
            section, topic = "any", None
        if section == "silent" and is_inline and opens_line and not named:
            # a form goes on: `Reason for exam: chest pain` in one line, `LV size: normal` in the next
            is_label = bool(heading and heading[2] == ":" and grammar().labels & set(label))
            if is_label or _begins(text, start, end, last_heading, last_general):
                section, named = "any", "any" if is_label else None
        short = named == "silent_line"
        named = "silent" if short else named
        followed = heading and named and heading[2] == ":" and text[heading.end() : end].strip()
        if _ARROW.match(text, start, end):
            named = named or "any"
        elif heading and followed and (short or (section == "any" and _is_item(text, heading.start(1)))):
            line_end, resumed = f"{text}\n".index("\n", start), section
        if named or (heading and heading[2] == ":"):
            section, topic, is_inline = named or section, None, bool(followed)
        is_alone = bool(heading and not text[heading.end() : end].strip())
        names_property = bool(label) and grammar().properties.issuperset(label)
        opened = _ventricle(heading, label) if is_alone else None
        part = opened or (part if names_property or not opens_line else None)
        of_part = part if names_property else None
        concludes = bool(grammar().concluding & set(label)) if named else concludes
        opens = named is not None
        yield Sentence(start, end, section, opens, text[end : end + 1] == "?", topic, of_part, concludes)
        if heading and examination is None and (heading[2] == ":" or is_alone):
            topic = Heading(*heading.span(1), alone=is_alone)


def _set_off(text: str) -> list[tuple[int, int]]:
    """Return the spans of what a report quotes with a mark before each line; none if all of it is marked."""
    own_lines = [line for line in _SET_OFF.sub("", text).splitlines() if line.strip()]
    return [match.span() for match in _SET_OFF.finditer(text)] if len(own_lines) > 1 else []


def _ventricle(heading: re.Match[str] | None, label: tuple[str, ...]) -> Heading | None:
    """Return a heading alone that opens a form of one ventricle."""
    return Heading(*heading.span(1), alone=True) if heading and label in grammar().ventricles else None


def _is_of_other(line: str, section: str) -> bool:
    """Return whether a line below an inline heading is of another sequence: `LGE neg`."""
    words = tuple(_WORD.findall(line.lower()))
    opened = next(filter(None, (grammar().headings.get(words[:count]) for count in (3, 2, 1))), "any")
    is_opened = opened in grammar().owned and section in {*grammar().owned, "cine"} and opened != section
    return is_opened or _is_of_cine(line, section)


def _is_of_cine(line: str, section: str) -> bool:
    """Return whether a line below `LGE: none` is of ventricles or valves: `No pericardial effusion`."""
    if section not in grammar().owned:
        return False
    words = set(_WORD.findall(line.lower()))
    return bool(words & grammar().of_cine) and not any(
        word.startswith(stem) for word in words for stem in grammar().owned[section]
    )


def _begins(text: str, start: int, end: int, last_heading: int, last_general: int) -> bool:
    """Return whether findings begin with a sentence of a silent section, behind the end of another."""
    is_ended = text[max(0, start - 9) : start].rstrip()[-1:] in _ENDS or _is_whole(text, start)
    is_findings = start > last_general and _begins_findings(text[start:end])
    return is_ended and text[start].isupper() and (start > last_heading or is_findings)


def _is_whole(text: str, start: int) -> bool:
    """Return whether a whole sentence on a ventricle stands below a line that is of no other report."""
    before = text[:start].rstrip().rpartition("\n")[2]
    is_quoting = _OF_PAST.search(before) or _QUOTES.search(before)
    return _WHOLE.match(text, start) is not None and not is_quoting


def _begins_findings(sentence: str) -> bool:
    """Return whether a sentence is on a ventricle today: below a question, findings may have no heading."""
    return _ON_VENTRICLE.match(sentence) is not None and _OF_PAST.search(sentence) is None


def _last_heading(text: str, *, of_sequences: bool = True) -> int:
    """Return where the last line with a heading of findings begins, those of a single sequence or not."""
    places = []
    for match in _LINE.finditer(text):
        label = tuple(_WORD.findall(match[1].lower()))
        section = grammar().headings.get(label, "silent")
        is_counted = of_sequences or section not in grammar().owned
        if section not in _SILENT and is_counted and not grammar().concluding & set(label):
            places.append(match.start())
    return max(places, default=-1)


def _examination(
    text: str, start: int, *, opens_line: bool, is_silent: bool, has_concluded: bool
) -> str | None:
    """Return which report begins: "earlier" for `--- Previous report of 12.03.2020 ---`, or "current".

    In a silent section, a label with text behind it opens a "remark" of one line (`Last MRI: scar.`); within
    a line, a label opens nothing.
    """
    label = _LABEL.match(text, start)
    if opens_line and (carried := _CARRIED.match(text, start)):
        is_closed = carried["text"].strip() and carried["text"].count('"') % 2 == 0
        return "remark" if is_closed else "earlier"
    if label is None or not (opens_line or (_RULE.match(text, start) and text[label.end() :][:1] != ":")):
        return None
    line_end = text.find("\n", label.end())
    has_text = bool(text[label.end() + 1 : line_end if line_end >= 0 else len(text)].strip())
    # What a bracket adds may be anything: `Previous report (pasted, 3 May)`.
    bare = _BRACKET.sub(" ", label[0])
    spelled = tuple(_WORD.findall(_AGE.sub(" ", bare.lower())))
    words = set(_WORD.findall(_AGE.sub(" ", label[0].lower())))
    letters = {word for word in words if not word.isdigit()} - {"s"}  # of "today's"
    outside = letters & set(spelled)
    current = grammar().examinations["current"]
    if letters & current["when"] and letters & current["what"]:
        head = set(_WORD.findall(bare.lower().partition(",")[0]))  # of `Current examination 2025, M 54`
        return "current" if outside & head <= set().union(*current.values()) else None
    names_section = spelled in grammar().headings and letters.isdisjoint(current["when"])
    if names_section:
        return None
    for when, kinds in grammar().examinations.items():
        if letters & kinds["when"] and letters & kinds["what"] and outside <= set().union(*kinds.values()):
            return "remark" if has_text and is_silent else when
    is_header = not has_text and not _SENTENCE.search(bare)
    return "earlier" if is_header and _is_of_earlier(letters, words - letters, has_concluded) else None


def _is_of_earlier(letters: set[str], numbers: set[str], has_concluded: bool) -> bool:
    """Return whether a line of its own opens an earlier report: `Report of 14 weeks ago`.

    So does a dated one behind a conclusion, with which a report ends.
    """
    earlier, current = grammar().examinations["earlier"], grammar().examinations["current"]
    if not letters & earlier["what"] or letters & current["when"]:
        return False
    return bool(letters & earlier["when"]) or (has_concluded and bool(numbers))


def _is_item(text: str, place: int) -> bool:
    """Return whether a position starts a list item; a heading there applies to its line only."""
    return _ITEM.fullmatch(text, text.rfind("\n", 0, place) + 1, place) is not None


def pieces_of(text: str, own_headings: Mapping[Phrase, str] = _NO_HEADINGS) -> list[Sentence]:
    """Return the sentences of a report, at least one."""
    whole = Sentence(0, len(text), "any", opens=False, asks=False, topic=None)
    return list(sentences(text, own_headings)) or [whole]


def heading_above(sentence: Sentence, text: str) -> str:
    """Return the heading that a sentence stands below, of the form of a ventricle first."""
    heading = sentence.part or sentence.topic
    return text[heading.start : heading.end] if heading else ""


def sentence_at(pieces: Sequence[Sentence], place: int) -> Sentence:
    """Return the sentence that contains a position of the text; the first one for a position before it."""
    return next((sentence for sentence in reversed(pieces) if sentence.start <= place), pieces[0])


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in _BREAK.finditer(text):
        yield from _cut(text, start, match.start())
        start = match.end()
    yield from _cut(text, start, len(text))


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield a sentence, cut into pieces if it is too long, as in replies that repeat themselves."""
    while end - start > _LONGEST:
        space = text.rfind(" ", start, start + _LONGEST)
        middle = space if space > start else start + _LONGEST
        yield start, middle
        start = middle
    if text[start:end].strip():
        yield start, end
