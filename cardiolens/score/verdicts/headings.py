"""Headings that affirm or deny the options under them: "Selected: A, B", "Spared walls:" (protocol 17.16)."""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from cardiolens.report_text.reply_lexicon import words
from cardiolens.score.verdicts.answer_marks import marks
from cardiolens.score.verdicts.json_reply import answers
from cardiolens.score.verdicts.lists import leading
from cardiolens.score.verdicts.reading import UNREADABLE, NotReadableError, Reading, reading_of
from cardiolens.score.verdicts.reply_clauses import NAMES, clauses, polarity
from cardiolens.score.verdicts.reply_tokens import Token, Tokenizer

Stance = Literal["yes", "no", "neutral", "open"]

_MAY_END_HEAD = re.compile(r"[:—–-]")  # one set of signs: alternatives are searched five times as slowly
_SPACES = frozenset(" \t")
_STOPS = ".;。|/"
_BEFORE_HEAD = re.compile(f"[{_STOPS}]")
_ENDS_LINE = frozenset(f"{_STOPS}:")  # no heading without a colon ends with one
_LONGEST_HEAD = 80
_STOP = re.compile(r"(?<=[A-Za-z)])[.;。](?=\s|$)")
_BEFORE_ENTRY = frozenset({"bullet", "open", "label"})
_JSON_SIGNS = re.compile(r"[{}_\"]")
_REMARK = re.compile(r"\([^()\n]{3,}\)")  # in a list of what is denied: "A (artefact), D (nulled)"
_LINE_END = re.compile(r"\n|\Z")
_BULLET = re.compile(r"[ \t]*(?:[-•·‣*–]|\(?\d{1,2}[.)])[ \t]")
_MOST_WORDS = 5  # of a heading without a colon
_MOST_LINES = 30
_SIGN = re.compile(r"(?<=[\w)]) ?\(?([-–−+])\)?\s*\Z")
_NORMAL = re.compile(r"normo\w+|iso(?:intens|enhanc)\w*")
_NEGATING = re.compile(r"(?:non|nicht)[- ]?\w|(?:un|in|im|ir|dis)(?P<stem>\w{3,})")


@dataclass(frozen=True, slots=True)
class Block:
    """The options under one heading."""

    stance: Stance
    keys: tuple[str, ...]
    start: int  # of the heading
    end: int


@dataclass(frozen=True, slots=True)
class Blocks:
    """A reply without the options that its headings deny, and what the headings say of the options."""

    text: str
    denied: frozenset[str]
    reading: Reading | None  # of the headings alone; None where they affirm nothing

    def check(self, reading: Reading) -> Reading:
        """The reading, or UNREADABLE if it names an option that a heading denies."""
        return UNREADABLE if self.denied.intersection(reading.keys) else reading

    def left_over(self, tokenizer: Tokenizer) -> Reading | None:
        """The one option that headings do not deny, of a reply that names no other: "Eliminated: A, B"."""
        left_keys = tokenizer.texts.keys - self.denied
        is_named = any(token.key for token in tokenizer.tokens(self.text))
        return reading_of(list(left_keys)) if self.denied and len(left_keys) == 1 and not is_named else None


def blocks_of(plain: str, tokenizer: Tokenizer) -> Blocks:
    """Read the headings of a visible reply."""
    blocks = _blocks(plain, tokenizer)
    if all(block.stance == "neutral" for block in blocks):
        return Blocks(plain, frozenset(), None)
    text = plain
    spans = [(answer.start, answer.end) for answer in answers(plain)] if "{" in plain else []
    for block in blocks:
        if any(start <= block.start < end for start, end in spans):
            continue  # its object says itself which of its keys holds the answer
        if block.stance == "no":  # of the same length, so that what follows stands where it stood
            text = text[: block.start] + _blank(text[block.start : block.end]) + text[block.end :]
    denied = frozenset(key for block in blocks if block.stance == "no" for key in block.keys)
    return Blocks(text, denied, _affirmed(blocks, denied))


def two_lists(plain: str, tokenizer: Tokenizer) -> Reading | None:
    """UNREADABLE where two headings in unknown words name different options: which of them are chosen?"""
    lists = {
        frozenset(block.keys)
        for head in _heads(plain)
        if not head.is_bare and _stance(head.text, tokenizer, bare=False) == "neutral"
        if (block := _block(plain, head, "neutral", tokenizer))
    }
    return UNREADABLE if len(lists) > 1 else None


def _blank(text: str) -> str:
    return "".join("\n" if sign == "\n" else " " for sign in text)


def _affirmed(blocks: list[Block], denied: frozenset[str]) -> Reading | None:
    sets = {
        stance: list(dict.fromkeys(frozenset(block.keys) for block in blocks if block.stance == stance))
        for stance in ("yes", "neutral", "open")
    }
    if any(not keys <= denied for keys in sets["open"]):
        return UNREADABLE
    affirmed = frozenset().union(*sets["yes"])
    if not affirmed and len(sets["neutral"]) == 1 and denied:
        affirmed = sets["neutral"][0]
    if not affirmed:
        return UNREADABLE if sets["neutral"] else None
    if affirmed & denied or any(not keys <= affirmed for keys in sets["neutral"]):
        return UNREADABLE
    return reading_of(sorted(affirmed))


class _Head(NamedTuple):
    """What may be a heading."""

    text: str
    start: int
    end: int  # after its colon
    is_bare: bool  # ends with its line, without a colon


def _heads(plain: str, start: int = 0, end: int | None = None) -> Iterator[_Head]:
    """What may be headings, line by line: most lines have no colon and end with a full stop."""
    for line in plain[start:end].split("\n"):
        line_end = start + len(line)
        if ":" in line or "-" in line or "–" in line or "—" in line:
            for sign in _MAY_END_HEAD.finditer(plain, start, line_end):
                at = sign.start()
                if (plain[at] == ":" or _is_dash(plain, at, line_end)) and (
                    head := _head(plain, start, at, at + 1)
                ):
                    yield head
        if (
            line
            and line[-1] not in _ENDS_LINE
            and not _BEFORE_HEAD.search(line)
            and line_end != (len(plain) if end is None else end)
        ):
            head = _head(plain, start, line_end, line_end)
            if head and head.text[0] != "(" and head.text[-1] != "}":
                yield head
        start = line_end + 1


def _head(plain: str, line: int, at: int, end: int) -> _Head | None:
    """What stands before the sign `at` on a line from `line` on; None if it is too long for a heading."""
    begin = max(line, at - _LONGEST_HEAD)
    text, offset = _heading(plain[begin:at], is_clipped=begin > line)
    return _Head(text, begin + offset, end, at == end) if text else None


@functools.lru_cache(maxsize=1 << 14)
def _heading(text: str, *, is_clipped: bool) -> tuple[str, int]:
    """The heading at the end of a text and where it starts; empty where its beginning is clipped."""
    offset = 0
    if _BEFORE_HEAD.search(text):
        offset, is_clipped = 1 + max(map(text.rfind, _STOPS)), False
    if (key := text.rfind(', "', offset)) >= 0:  # of JSON on one line
        offset, is_clipped = key + 2, False
    if is_clipped:
        return "", 0
    return _SIGN.sub(_spelled, text[offset:]).strip(" \t>#•·*–—-"), offset


def _is_dash(plain: str, at: int, end: int) -> bool:
    """Return whether a dash stands before a space, and a hyphen between two."""
    before_space = at + 1 < end and plain[at + 1] in _SPACES
    return before_space and (plain[at] != "-" or (at > 0 and plain[at - 1] in _SPACES))


def _spelled(sign: re.Match[str]) -> str:
    """The sign at the end of a heading as the grammar knows it: "LGE-" denies."""
    return " (+)" if sign[1] == "+" else " (-)"


def _blocks(plain: str, tokenizer: Tokenizer) -> list[Block]:
    """The options under headings; none where no heading affirms or denies, as in most replies."""
    blocks: list[Block] = []
    if not _has_judging_head(plain, tokenizer):
        return blocks
    stances = [(head, _stance(head.text, tokenizer, head.is_bare)) for head in _heads(plain)]
    for head, stance in stances:
        if stance and (not blocks or head.start >= blocks[-1].end):
            block = _block(plain, head, stance, tokenizer)
            blocks += [block] if block else []
    return blocks


def _has_judging_head(plain: str, tokenizer: Tokenizer) -> bool:
    """Return whether a heading affirms or denies: a quick look at what stands before each colon and dash."""
    for line in plain.split("\n"):
        colon = line.find(":")
        if colon >= 0 and _judges(
            line[max(0, colon - _LONGEST_HEAD) : colon], tokenizer, colon > _LONGEST_HEAD
        ):
            return True
        if ("-" in line or "–" in line or "—" in line) or (colon >= 0 and line.find(":", colon + 1) >= 0):
            for sign in _MAY_END_HEAD.finditer(line):
                at = sign.start()
                if (line[at] == ":" or _is_dash(line, at, len(line))) and _judges(
                    line[max(0, at - _LONGEST_HEAD) : at], tokenizer, at > _LONGEST_HEAD
                ):
                    return True
        if (
            line
            and line[-1] not in _ENDS_LINE
            and not _BEFORE_HEAD.search(line)
            and _judges(line[-_LONGEST_HEAD:], tokenizer, len(line) > _LONGEST_HEAD, True)
        ):
            return True
    return False


@functools.lru_cache(maxsize=1 << 14)
def _judges(before: str, tokenizer: Tokenizer, is_clipped: bool, bare: bool = False) -> bool:
    """Return whether the heading at the end of a text affirms or denies."""
    text, _ = _heading(before, is_clipped=is_clipped)
    return bool(text) and _stance(text, tokenizer, bare) in {"yes", "no"}


def _block(plain: str, head: _Head, stance: Stance, tokenizer: Tokenizer) -> Block | None:
    line_end = _line_end(plain, head.end)
    is_inline = plain[head.end : line_end].strip() != ""
    if is_inline if head.is_bare else (not is_inline and not _may_begin_entry(plain, line_end)):
        return None
    listed_options = (
        _inline(plain, head.end, line_end, tokenizer, is_denied=stance == "no")
        if is_inline
        else _below(plain, line_end, tokenizer)
    )
    if listed_options is None:
        return None
    keys, end = listed_options
    is_listing = stance == "neutral" and set(keys) == tokenizer.texts.keys
    return None if is_listing else Block(stance, keys, head.start, end)


def _line_end(plain: str, position: int) -> int:
    match = _LINE_END.search(plain, position)
    return match.start() if match else len(plain)


def _may_begin_entry(plain: str, line_end: int) -> bool:
    """A quick look at what stands below a heading: bullets, or a short line."""
    below = plain[line_end : line_end + 400].lstrip("\n \t")
    return _BULLET.match(below) is not None or len(below.partition("\n")[0]) < 80


@functools.lru_cache(maxsize=1 << 14)
def _stance(head: str, tokenizer: Tokenizer, bare: bool) -> Stance | None:
    """What a heading says of the options under it; None if it is no heading."""
    tokens = tokenizer.tokens(_JSON_SIGNS.sub(" ", head))
    if not tokens or any(token.key and token.kind in NAMES for token in tokens):
        return None
    tokens = _last_clause(tokens)
    kinds = [token.kind for token in tokens]
    if {"perhaps", "query", "either"} & set(kinds):
        return "open" if not bare and ("yes" in kinds or kinds == ["perhaps"]) else None
    spelled = [token for token in tokens if token.text[:1].isalpha()]  # "❌ Not enhancing" denies once
    denials = sum(map(_denies, spelled)) or any(map(_denies, tokens))
    affirms = any(token.kind == "yes" or token.text.lower() in _affirming() for token in tokens)
    if denials:
        return "no" if denials % 2 else "yes"
    if affirms or (not bare and _introduces(tokens)):
        return "yes"
    return None if bare or len(tokens) > 2 * _MOST_WORDS else "neutral"


def _last_clause(tokens: list[Token]) -> list[Token]:
    """What a heading says last: "I am not a doctor, but ANSWER" is no denial."""
    divides = [
        at
        for at, token in enumerate(tokens[:-1])
        if token.kind in {"but", "comma"} or token.text.lower() in words().conclusions
    ]
    return tokens[divides[-1] + 1 :] if divides else tokens


def _denies(token: Token) -> bool:
    if token.kind in {"not", "no"} or token.text.lower() in _denying():
        return True
    if token.kind not in {"word", "part"}:
        return False
    if _NORMAL.fullmatch(token.text.lower()):
        return True
    negated = _NEGATING.match(token.text.lower())
    return negated is not None and (negated["stem"] is None or _affirms(negated["stem"]))


def _affirms(stem: str) -> bool:
    return stem in _affirming() or stem in words().words["yes"]


@functools.cache
def _affirming() -> frozenset[str]:
    return frozenset(words().headings["yes"])


@functools.cache
def _denying() -> frozenset[str]:
    return frozenset(words().headings["no"])


def _introduces(tokens: list[Token]) -> bool:
    """Return whether a sentence ends before the list that completes it: "The enhancing walls are:"."""
    return tokens[-1].kind == "verb" and not any(
        token.text.lower() in {"option", "options", "choices"} for token in tokens
    )


def _inline(
    plain: str, start: int, line_end: int, tokenizer: Tokenizer, *, is_denied: bool
) -> tuple[tuple[str, ...], int] | None:
    """The options after a heading on its line, up to the next heading or sentence."""
    ends = {line_end, *(head.start for head in _heads(plain, start, line_end) if head.start > start)}
    stop = _STOP.search(plain, start, line_end)
    for end in sorted(ends | ({stop.end()} if stop else set()), reverse=True):
        text = plain[start:end]
        keys = _list(_REMARK.sub("", text) if is_denied and _REMARK.search(text) else text, tokenizer)
        if keys:
            return keys, end
    return None


def _below(plain: str, line_end: int, tokenizer: Tokenizer) -> tuple[tuple[str, ...], int] | None:
    """The options that begin the lines below a heading."""
    keys: list[str] = []
    position = end = line_end
    for _ in range(_MOST_LINES):
        if position >= len(plain):
            break
        position += 1
        next_end = _line_end(plain, position)
        line = plain[position:next_end]
        position = next_end
        if not line.strip():
            continue
        if any(mark.rule == "answer_line" for mark in marks(line)):
            break
        entry = _entry(line, tokenizer)
        if entry is None:
            break
        if entry == ():
            return None
        keys += entry
        end = next_end
    return (tuple(dict.fromkeys(keys)), end) if keys else None


def _entry(line: str, tokenizer: Tokenizer) -> tuple[str, ...] | None:
    """The options that a line lists or begins with; () if it judges them itself, None without any."""
    if listed_keys := _list(line, tokenizer):
        return listed_keys
    if ":" in line and not any(token.key for token in tokenizer.tokens(line.partition(":")[0])):
        return None
    first = clauses(tokenizer.tokens(line))
    opening = [
        token for token in (first[0] if first else []) if token.kind not in {"bullet", "open", "label"}
    ]
    if (
        not opening
        or opening[0].kind not in NAMES
        or (opening[0].kind == "key" and opening[0].text.islower())
    ):
        return None
    return () if polarity(first[0]) in {"yes", "no"} and len(line) < 60 else (opening[0].key,)


def _list(text: str, tokenizer: Tokenizer) -> tuple[str, ...]:
    """The options of a text that is nothing but a list; empty for any other text."""
    if len(text) > 200:
        return ()
    try:
        list_and_end = leading(tokenizer.tokens(text.rstrip(" \t/|,;")), tokenizer.texts, several=True)
    except NotReadableError:
        return ()
    return list_and_end[0].keys if list_and_end and list_and_end[1] else ()
