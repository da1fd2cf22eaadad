"""Answers that a reply quotes and does not give, such as the format that the prompt asks for."""

import functools
import re

from cardiolens.report_text.reply_lexicon import words

_QUOTED = re.compile(
    r"\"(?P<double>[^\"\n]{1,120})\"|“(?P<curly>[^“”\n]{1,120})”|„(?P<low>[^„“”\"\n]{1,120})[“”\"]"
    r"|«(?P<guillemet>[^«»\n]{1,120})»|「(?P<corner>[^「」\n]{1,120})」|『(?P<corners>[^『』\n]{1,120})』"
    r"|(?<![`\w])`(?P<code>[^`\n]{1,120})`(?!`)|(?<![\w'])'(?P<single>[^'\n]{1,120})'(?!\w)"
)
_SAYS_WORDS = re.compile(r"[^\W\d_]")
_JSON_BEFORE, _JSON_AFTER = re.compile(r"[{\[,:]\s*$"), re.compile(r"\s*[,}\]:]")


def without_quotations(text: str) -> str:
    """Blank answers that show a format, and those in quotes or code unless a line is nothing else."""
    is_ascii = text.isascii()
    if stems := [stem for stem in _stems(is_ascii) if stem in text]:
        text = _format(tuple(stems)).sub(" ", text)
    if is_ascii and not ('"' in text or "'" in text or "`" in text):
        return text
    return _QUOTED.sub(lambda quoted: " " if _quotes_an_answer(quoted) else quoted[0], text)


def _quotes_an_answer(quoted: re.Match[str]) -> bool:
    inner = quoted[quoted.lastgroup or 0]
    if not _answer().search(inner):
        return False
    text = quoted.string
    start = text.rfind("\n", 0, quoted.start()) + 1
    end = text.find("\n", quoted.end())
    before, after = text[start : quoted.start()], text[quoted.end() : end if end >= 0 else len(text)]
    if "{" in text[: quoted.start()] and _JSON_BEFORE.search(before) and _JSON_AFTER.match(after):
        return False  # a string of JSON
    if before.endswith("print("):
        return False
    return _SAYS_WORDS.search(before + after) is not None


@functools.cache
def _stems(ascii_only: bool) -> tuple[str, ...]:
    return tuple(stem for stem in words().formats if stem.isascii() or not ascii_only)


@functools.cache
def _format(stems: tuple[str, ...]) -> re.Pattern[str]:
    """Pattern of an answer that shows a format, to the end of its line: "Format: ANSWER: A, B"."""
    formats = "|".join(pattern for stem in stems for pattern in words().formats[stem])
    answer = _answer().pattern
    behind = rf"(?:{answer})[^\n.]{{0,60}}?(?:for example|for instance|e\.g\.|zum beispiel|例如)[.)]*[ \t]*$"
    return re.compile(rf"(?:{formats})(?={answer})[^\n]*|{behind}", re.IGNORECASE | re.MULTILINE)


@functools.cache
def _answer() -> re.Pattern[str]:
    """Pattern of an answer with its value ("ANSWER: B", "the answer is B", a box)."""
    nouns = "|".join(noun for nouns in words().answer_nouns.values() for noun in nouns)
    verbs = "|".join(words().answer_verbs)
    return re.compile(rf"(?:{nouns})\s*(?:[:：=]|{verbs})|\\boxed\{{", re.IGNORECASE)
