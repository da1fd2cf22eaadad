"""What counts of a reply: its text outside reasoning and calls of tools, in plain characters."""

import re
import unicodedata

from cardiolens.protocol.replies.reply_words import ANSWER_TAGS, HIDDEN, NEXT_TURN, REFUSALS

# Private-use characters around an answer in a box or a tag; replies do not contain them.
BOX, TAG, END = "\ue000", "\ue001", "\ue002"

SIGN = re.compile(f"[{BOX}{TAG}{END}]")
_HIDDEN = tuple((re.compile(start, re.IGNORECASE), re.compile(end, re.IGNORECASE)) for start, end in HIDDEN)
_NEXT_TURN = re.compile(NEXT_TURN)
_OPENING_TAG = re.compile(rf"<(?:{ANSWER_TAGS})>|<\|begin_of_box\|>", re.IGNORECASE)
_CLOSING_TAG = re.compile(rf"</(?:{ANSWER_TAGS})>|<\|end_of_box\|>", re.IGNORECASE)
_REFUSAL = re.compile(REFUSALS, re.IGNORECASE)
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
        text = _CLOSING_TAG.sub(END, _OPENING_TAG.sub(TAG, text))
        text = _HTML.sub("", text) if "</" in text else text
    return _MARKUP.sub("", text).strip()


def visible_text(reply: str) -> str:
    """The text of a reply that may hold its answer, without the marks of boxes and tags."""
    return SIGN.sub(" ", visible(reply)).strip()


def refuses(text: str) -> bool:
    """Whether a visible reply declines to answer."""
    return _REFUSAL.search(text) is not None


def _without_hidden(text: str) -> str:
    for opening, closing in _HIDDEN:
        before = ""
        while opened := opening.search(text):
            before += closing.split(text[: opened.start()])[-1]
            closed = closing.search(text, opened.end())
            text = text[closed.end() :] if closed else ""
        text = before + closing.split(text)[-1]
    return text


def _up_to_next_turn(text: str) -> str:
    turn = _NEXT_TURN.search(text)
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
