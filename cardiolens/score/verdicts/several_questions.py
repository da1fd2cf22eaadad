"""The part of a reply that answers its own question, where it answers several (protocol 17.16)."""

import re

from cardiolens.score.verdicts.option_text import OptionTexts
from cardiolens.score.verdicts.subject import Subject
from cardiolens.score.verdicts.topics import Topics

_CODE = re.compile(r"(?:^|\n|[.;] )[^\w\n]*([A-Z]\d{2})\b[^\w\n(]*")  # of a question: "C10: B"
_CODED = re.compile(r"\W*([A-Z]\d{2})\b\W*(?:answer\W*)?\(?[A-HZ]\b", re.IGNORECASE)
_HEAD = re.compile(
    r"(?:^|\n|[.;] |[.?]\" )[^\w\n]*(?:\d{1,2}[.)] *)?"
    r"\"?(?P<head>[A-Za-z][\w /-]{1,50}?)(?P<sign>\?\"?:?|:)(?=\s)"
)
_ASKED_FOR = re.compile(
    r"\b(?:which|what) (?:[\w-]+ )?(levels|walls|layers|atria)\b|\bhow is [^?]*(distributed)\b", re.IGNORECASE
)
_THINGS = ("level", "wall", "layer", "atri", "distribut")
_SAYS_NOTHING = frozenset(
    {"the", "of", "with", "affected", "involved", "abnormal", "enhancing", "which", "pattern"}
)
_VALUE = re.compile(
    r"\s*(?:\(?[A-HZ](?:\s*(?:,|and|&)\s*[A-HZ])*\)?(?=\s*(?:[.;(\n]|\Z))|[^.;:\n]{1,50}\([A-HZ]\)(?=\s*(?:[.;\n]|\Z)))"
)
_QUESTION_MARK = re.compile(r"(?:\A|\n)\s*Q\d*[:.)][ \t]*")
_REPLY_MARK = re.compile(r"\A\s*A\d*[:.)][ \t]*")
_ANSWER_LINE = re.compile(r"^[^\w\n]*(?:final )?answer\s*:", re.IGNORECASE | re.MULTILINE)


def own_part(plain: str, question: str, code: str, texts: OptionTexts) -> str:
    """A visible reply without what it says under the codes, wordings or subjects of other questions."""
    if code and (coded := _CODED.match(plain)) and len({*_CODE.findall(plain)}) < 2:
        return plain[coded.end(1) :].lstrip(" :.)–-") if coded[1] == code else ""  # "C12: B"
    codes = list(_CODE.finditer(plain)) if code and code in plain else []
    if len({match[1] for match in codes}) > 1 and code in {match[1] for match in codes}:
        return _part(plain, [(match[1], match.start(), match.end()) for match in codes], code)
    if "?" in plain and question and (part := _behind_wording(plain, question)):
        return part
    if not question or not (plain.count(":") > 1 or "?" in plain):
        return plain
    has_answer_line = "ANSWER:" in plain or _ANSWER_LINE.search(plain) is not None  # a quick look first
    return plain if has_answer_line else _by_heads(plain, question, texts)


def _by_heads(plain: str, question: str, texts: OptionTexts) -> str:
    """What stands under the head of what a question asks, where other heads are of other questions."""
    wording = _ASKED_FOR.search(question)
    spoken = {*re.findall(r"\w+", question.lower()), *_SAYS_NOTHING}
    heads = [(_thing(head["head"], spoken), head.start(), head.end()) for head in _HEAD.finditer(plain)]
    things = [thing for thing, _, _ in heads]
    own_thing = _thing(wording[1] or wording[2], spoken) if wording else ""
    is_headed = own_thing != "" and own_thing in things
    if (
        not is_headed
        and plain.count(":") > 1
        and (letters := _under_own_head(plain, Subject(question, texts), Topics.of(question)))
    ):
        return letters
    if not is_headed and len({*things} - {""}) > 1:
        return ""  # of levels and walls, where neither is asked for
    is_sorted = (
        is_headed and things.count(own_thing) == 1 and any(thing not in {"", own_thing} for thing in things)
    )
    return _part(plain, heads, own_thing) if is_sorted else plain


def _under_own_head(plain: str, subject: Subject, topics: Topics) -> str:
    """The letters behind the head that says most of what a question asks, and nothing else, if any."""
    heads = [head for head in _HEAD.finditer(plain) if _VALUE.match(plain, head.end())]
    shared = [
        (0 if topics.is_of_other_places(head["head"]) else subject.shared_words(head["head"]), head)
        for head in heads
    ]
    most = max((count for count, _ in shared), default=0)
    own_heads = [head for count, head in shared if count == most]
    if len(heads) < 2 or not most or len(own_heads) != 1:
        return ""
    value = _VALUE.match(plain, own_heads[0].end())
    return value[0].strip() if value else ""


def _part(plain: str, heads: list[tuple[str, int, int]], own_name: str) -> str:
    """What stands behind the last head of a name, up to the next head."""
    ends = [start for _, start, _ in heads[1:]] + [len(plain)]
    parts = [plain[end:stop] for (name, _, end), stop in zip(heads, ends, strict=True) if name == own_name]
    return parts[-1].strip() if parts else ""


def _thing(head: str, spoken: set[str]) -> str:
    """What a heading says that its entries are, beside words of the question only: not "walls assessed"."""
    things = [thing for thing in _THINGS if thing in head.lower()]
    other_words = [
        word for word in re.findall(r"\w+", head.lower()) if not word.startswith(tuple(things or " "))
    ]
    return things[0] if len(things) == 1 and spoken.issuperset(other_words) else ""


def _behind_wording(plain: str, question: str) -> str:
    """What stands on the line of a question's wording, where other lines ask and answer other questions."""
    blocks = _QUESTION_MARK.split(plain)
    own_blocks = [block for block in blocks if question.casefold() in block.casefold()]
    if len(blocks) > 2 and len(own_blocks) == 1:
        return _REPLY_MARK.sub(
            "", own_blocks[0][own_blocks[0].casefold().index(question.casefold()) + len(question) :]
        ).strip()
    lines = [line for line in plain.split("\n") if "?" in line and line.rpartition("?")[2].strip()]
    wording = question.casefold()
    own_lines = [line for line in lines if wording in line.casefold()]
    return own_lines[0].rpartition("?")[2].strip() if len(own_lines) == 1 and len(lines) > 1 else ""
