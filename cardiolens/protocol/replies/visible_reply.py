"""What counts of a reply: its text outside reasoning and calls of tools, in plain characters."""

import functools
import re
import unicodedata

from cardiolens.protocol.replies.reply_words import words

# Private-use characters around an answer in a box or a tag; replies do not contain them.
BOX, TAG, END = "\ue000", "\ue001", "\ue002"

_SIGNS = re.compile(f"[{BOX}{TAG}{END}]")
_INVISIBLE = re.compile(r"[\u200b-\u200f\u2060\ufeff\ufe0f]")
_STRUCK = re.compile(r"~~[^~\n]{1,200}~~|<(del|s|strike)>[^<\n]{0,200}</\1>", re.IGNORECASE)
_LATEX_BRACE = re.compile(
    r"(?P<box>\\f?box(?:ed)?\s*\{)|(?P<text>\\(?:text|textbf|textrm|mathrm|mathbf|mathsf|operatorname)\s*\{)"
    r"|(?<!\\)[{}]"
)
_LATEX_SIGN = re.compile(r"\\[()\[\],;:!{} ]|\\quad")
_HTML = re.compile(
    r"</?(?:strong|em|p|br|span|div|li|ul|ol|code|pre|b|i|u|h\d)\b[^<>]{0,200}>", re.IGNORECASE
)
_MARKUP = re.compile(
    r"[*`$\r]|__|^[ \t]*(?:#{1,6}|>)[ \t]*|<br ?/?>|<\|start\|>assistant|<\|/?\w{1,40}\|?>",
    re.IGNORECASE | re.MULTILINE,
)


def visible(reply: str) -> str:
    """The text of a reply that may hold its answer; boxes and tags are marked by BOX, TAG and END."""
    text = _up_to_next_turn(_without_hidden(_STRUCK.sub(" ", reply)))
    text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).replace("’", "'")
    if "\\" in text or "$" in text:
        text = _without_latex(text)
    if "<" in text:
        opening, closing = _tags()
        text = closing.sub(END, opening.sub(TAG, text))
        text = _HTML.sub("", text) if "</" in text else text
    return _MARKUP.sub("", text).strip()


def visible_text(reply: str) -> str:
    """The text of a reply that may hold its answer, without the marks of boxes and tags."""
    return _SIGNS.sub(" ", visible(reply)).strip()


def refuses(text: str) -> bool:
    """Whether a visible reply declines to answer."""
    return _refusal().search(text) is not None


def _without_hidden(text: str) -> str:
    for opening, closing in _hidden():
        before = ""
        while opened := opening.search(text):
            before += closing.split(text[: opened.start()])[-1]
            closed = closing.search(text, opened.end())
            text = text[closed.end() :] if closed else ""
        text = before + closing.split(text)[-1]
    return text


def _up_to_next_turn(text: str) -> str:
    turn = _next_turn().search(text)
    return text[: turn.start()] if turn and text[: turn.start()].strip() else text


def _without_latex(text: str) -> str:
    """Mark boxes and unwrap text commands, by one walk over the braces."""
    pieces, closings, position = list[str](), list[str](), 0
    for brace in _LATEX_BRACE.finditer(text):
        pieces.append(text[position : brace.start()])
        position = brace.end()
        if brace[0] == "}":
            pieces.append(closings.pop() if closings else "}")
        else:
            opening, closing = (BOX, END) if brace["box"] else ("", "") if brace["text"] else ("{", "}")
            pieces.append(opening)
            closings.append(closing)
    return _LATEX_SIGN.sub(" ", "".join([*pieces, text[position:]]))


@functools.cache
def _hidden() -> list[tuple[re.Pattern[str], re.Pattern[str]]]:
    return [
        (re.compile(block.open, re.IGNORECASE), re.compile(block.close, re.IGNORECASE))
        for block in words().hidden
    ]


@functools.cache
def _next_turn() -> re.Pattern[str]:
    return re.compile("|".join(words().next_turn))


@functools.cache
def _tags() -> tuple[re.Pattern[str], re.Pattern[str]]:
    names = "|".join(words().answer_tags)
    return (
        re.compile(rf"<(?:{names})>|<\|begin_of_box\|>", re.IGNORECASE),
        re.compile(rf"</(?:{names})>|<\|end_of_box\|>", re.IGNORECASE),
    )


@functools.cache
def _refusal() -> re.Pattern[str]:
    return re.compile("|".join(words().refusals), re.IGNORECASE)
