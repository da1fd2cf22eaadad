"""The visible text of a reply in plain characters (protocol 7.6)."""

import functools
import re
import unicodedata
from typing import Literal

from cardiolens.report_text.reply_lexicon import words
from cardiolens.score.verdicts.quotations import without_quotations

# Private-use characters around the marked answer of a reply; replies do not contain them.
BOX, TAG, END = "\ue000", "\ue001", "\ue002"

_EMOJI = str.maketrans({"🅰": "A", "🅱": "B", "\ufe0f": ""})
_NO_SIGNS = str.maketrans("", "", BOX + TAG + END)
_TAG_FLAGS = re.IGNORECASE
_INVISIBLE = re.compile(r"[\u200b-\u200f\u2060\ufeff]")
_LATEX_SIGN = re.compile(r"\\[()\[\],;:! ]")
_LATEX_TEXT = re.compile(r"\\(?:text|textbf|textrm|mathrm|mathbf|mathsf|operatorname)\s*\{([^{}]*)\}")
_LATEX_BOX = re.compile(r"(?:\\f?box(?:ed)?|(?<![A-Za-z])boxed)\s*\{")
_HTML = re.compile(
    r"</?(?:strong|em|p|br|span|div|li|ul|ol|code|pre|font|h\d|t[dhr]|thead|tbody|table|option|item|letter)\b[^<>]*>",
    re.IGNORECASE,
)
_HTML_CELL, _HTML_ROW = re.compile(r"</t[dh]>", re.IGNORECASE), re.compile(r"</tr>", re.IGNORECASE)
_TAGGED = re.compile(
    r"<(answer|result|response|final|final_answer|output)>(.*?)</\1>", re.IGNORECASE | re.DOTALL
)
_LETTERS_TAG = re.compile(r"<(letters?|option)>([^<>]*)</\1>", re.IGNORECASE)
_LEAF = re.compile(
    r"<(?!(?:strong|em|p|br|span|div|li|ul|ol|code|pre|font|h\d|t[dhr]|thead|tbody|table|option|item|letter)>)"
    r"(\w{3,})>([^<>\n]*)</\1>",
    re.IGNORECASE,
)
_EMPTY_CELL = re.compile(r"\|[ \t]*\|[ \t]*(?=\n|\Z)")
_ASKED_BEFORE = re.compile(r"\A\s*Q:[^\n]*\n+A:\s*")
_EMPHASIS = re.compile(r"(?<!\w)_(?=\w)|(?<=[^\W_])_(?!\w)")
_SWITCH = re.compile(r"\A\s*/(?:no_?)?think\b")
_NEXT_TURN = re.compile(
    r"<\|(?:endoftext|im_end|eot_id|end_of_text)\|>|<eos>|<end_of_turn>|\n\s*(?:User|Human|Next question)\s*:"
)
_NEXT_QUESTION = re.compile(r"\n\s*(?:\*\*)?Question(?: \d+)?\s*:")
_FEWEST_WORDS = 3  # of a thought before an answer
_ANSWERED = re.compile(r"^\W*(?:final )?answer\s*:", re.IGNORECASE | re.MULTILINE)
_CALL = re.compile(  # "zoom(region='A')"
    r"\b(?!\w*(?:answer|submit))[a-z]\w*\((?![^()\n]*answer)[^()\n]*\w *= *[^()\n]*\)"
)
_STRUCK = re.compile(r"~~[^~\n]{1,200}~~|<(del|s|strike)>[^<\n]{0,200}</\1>", re.IGNORECASE)
_HTML_LETTER, _HTML_LETTER_END = (
    re.compile(r"</?([biu])>", re.IGNORECASE),
    re.compile(r"</([biu])>", re.IGNORECASE),
)
_CONTROL = re.compile(
    r"<\|start\|>assistant|<\|/?[a-z_]+\|?>|<[a-z_]+\|>|</?s>|<(?:end|start)_of_turn>|<eos>", re.IGNORECASE
)


def visible(text: str) -> str:
    """Return a reply's text outside its reasoning, in NFKC, without Markdown and LaTeX."""
    return visible_with_boxes(text).translate(_NO_SIGNS)


def visible_with_boxes(text: str) -> str:
    """Return a reply's visible text, boxed answers between BOX and END, tagged ones between TAG and END."""
    if "~~" in text or "</" in text:
        text = _STRUCK.sub(" ", text)
    plain = without_quotations(without_residue(without_thought(text)))
    plain = _up_to_next_turn(plain)
    if not plain.isascii():
        plain = _INVISIBLE.sub("", unicodedata.normalize("NFKC", plain)).replace("’", "'").translate(_EMOJI)
    if "<" in plain:
        plain = _without_html(_CONTROL.sub(" ", _tagged(plain)))
    if "\\" in plain or "boxed{" in plain:
        plain = _without_latex(plain)
    if "i.e" in plain:
        plain = plain.replace("i.e.", "ie ").replace("i.e ", "ie ")
    for sign in ("*", "`", "__", "$", "\r"):
        plain = plain.replace(sign, "")
    if "_" in plain:
        plain = _EMPHASIS.sub("", plain)
    if "|" in plain:
        plain = _EMPTY_CELL.sub("| - |", plain)
    if plain.startswith("Q:") and plain.count("\nQ:") == 0:
        plain = _ASKED_BEFORE.sub("", plain)
    if switch := _SWITCH.match(plain):
        plain = plain[switch.end() :]
    return plain.strip()


def answer_at_end(text: str) -> str:
    """The answer line that ends a reply whose reasoning is never closed; empty without one."""
    thought, _, last = text.strip().rpartition("\n")
    return last if _ANSWERED.match(last) and len(thought.split()) > _FEWEST_WORDS else ""


def _up_to_next_turn(text: str) -> str:
    """A reply up to where its model goes on with the turn of somebody else."""
    if not ("<" in text or "Question" in text or "User" in text or "Human" in text or "Next q" in text):
        return text
    question = _NEXT_QUESTION.search(text)
    if question and _ANSWERED.search(text, 0, question.start()):
        text = text[: question.start()]
    turn = _NEXT_TURN.search(text)
    return text[: turn.start()] if turn and text[: turn.start()].strip() else text


def without_thought(text: str) -> str:
    """Remove the reasoning of a reply.

    An unclosed block extends to the end. A close without an open ends a block that the prompt opened.
    """
    if "<|" in text:
        text = _without_finals(text)
    opening_word = text[:20].lstrip()[:8].lower()
    if "<" in text or "[" in text or "◁" in text or opening_word == "analysis" or opening_word[:4] == "here":
        for opens, closes in _ends("think"):
            text = _without(text, opens, closes, orphans=True)
    return text


def _without_finals(text: str) -> str:
    """Remove the marks around an answer that stands beside marked reasoning."""
    for opening, closing in _ends("finals"):
        opened = opening.search(text)
        closed = closing.search(text, opened.end()) if opened else None
        if opened and closed:
            inner = text[opened.end() : closed.start()]
            text = f"{text[: opened.start()]}\n{inner}\n{text[closed.end() :]}"
    return text


def without_residue(text: str) -> str:
    """Remove calls of tools, their results, and programs."""
    if "(" in text and "=" in text:
        text = _CALL.sub(" ", text)
    if "<" in text or "```" in text:
        for opening, closing in _ends("residue"):
            text = _without(text, opening, closing, orphans=False)
    return text


@functools.cache
def _ends(blocks: Literal["think", "residue", "finals"]) -> list[tuple[re.Pattern[str], re.Pattern[str]]]:
    tags = {"think": words().think, "residue": words().residue, "finals": words().finals}[blocks]
    return [(re.compile(tag.open, _TAG_FLAGS), re.compile(tag.close, _TAG_FLAGS)) for tag in tags]


def _without(text: str, opening: re.Pattern[str], closing: re.Pattern[str], *, orphans: bool) -> str:
    remainder = ""
    while opened := opening.search(text):
        before = text[: opened.start()]
        remainder += _after_orphan(before, closing) if orphans else before
        close = closing.search(text, opened.end())
        text = text[close.end() :] if close else ""
    return remainder + (_after_orphan(text, closing) if orphans else text)


def _after_orphan(text: str, closing: re.Pattern[str]) -> str:
    return closing.split(text)[-1]


@functools.cache
def _tag_ends() -> tuple[re.Pattern[str], re.Pattern[str]]:
    opens = "|".join(re.escape(tag.open) for tag in words().answer_tags)
    closes = "|".join(re.escape(tag.close) for tag in words().answer_tags)
    return re.compile(opens, re.IGNORECASE), re.compile(closes, re.IGNORECASE)


def _tagged(text: str) -> str:
    """Mark tagged answers; of one that holds its letters in tags of their own, these alone count."""
    if "<letter" in text or "<option" in text:
        text = _TAGGED.sub(_letters_alone, text)
    opening, closing = _tag_ends()
    return closing.sub(END, opening.sub(TAG, text))


def _letters_alone(tagged: re.Match[str]) -> str:
    letters = [letter[1] for letter in _LETTERS_TAG.findall(tagged[2])]
    return f"<answer>{', '.join(letters)}</answer>" if letters else tagged[0]


def _without_html(text: str) -> str:
    """Remove HTML tags; "<B>" is a letter unless the text has "</B>"."""
    letters = {tag.lower() for tag in _HTML_LETTER_END.findall(text)}
    text = _HTML_LETTER.sub(lambda tag: "" if tag[1].lower() in letters else tag[0], text)
    if "</" in text:
        text = _LEAF.sub(r"\1: \2\n", text)
    if "<t" in text.lower():
        text = _HTML_ROW.sub("\n", _HTML_CELL.sub(" | ", text))
    return _HTML.sub("", text)


def _without_latex(text: str) -> str:
    """Mark boxes, unwrap text commands and remove escaped braces."""
    text = (
        _LATEX_SIGN.sub("", text)
        .replace("\\{", " ")
        .replace("\\}", " ")
        .replace("\\&", "&")
        .replace("\\quad", " ")
    )
    while (unwrapped := _LATEX_TEXT.sub(r"\1", text)) != text:
        text = unwrapped
    while box := _LATEX_BOX.search(text):
        close = _closing_brace(text, box.end())
        text = f"{text[: box.start()]}{BOX}{text[box.end() : close]}{END}{text[close + 1 :]}"
    return text


def _closing_brace(text: str, position: int) -> int:
    depth = 1
    for brace in re.compile(r"[{}]").finditer(text, position):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.start()
    return len(text)


@functools.cache
def _refusal() -> re.Pattern[str]:
    return re.compile("|".join(words().refusals), re.IGNORECASE)


def refuses(plain: str) -> bool:
    """Return whether a visible reply declines to answer."""
    return _refusal().search(plain) is not None
