"""Entries of options that one sign each judges: "B – DCM: dilated. ✔" (protocol 17.16)."""

import re

from cardiolens.score.verdicts.elimination import NORMAL
from cardiolens.score.verdicts.reading import Reading, reading_of
from cardiolens.score.verdicts.reply_clauses import NAMES, statements
from cardiolens.score.verdicts.reply_tokens import Tokenizer

_CROSSES = frozenset([*"✗✘❌☐❎🔴🟥✖", "[ ]"])
_SIGN = re.compile(r"[✓✔☑✅🟢🟩✗✘❌☐❎🔴🟥✖]|\[[xX ]\]|<-+|←|\((?:selected|chosen|ticked)\)")
_VERDICT = re.compile(
    r"(?<=[.;–—-] )(?:(not |un|does not |doesn't )?"
    r"(?:applicable|selected|included?|fits?|appl(?:y|ies)))[.!]?\s*$",
    re.IGNORECASE | re.MULTILINE,
)
_BEFORE_NAME = frozenset({"bullet", "open", "label", "bar"})


def signed_entries(text: str, tokenizer: Tokenizer) -> Reading | None:
    """The ticked options of lines that each begin with an option and have one sign; None for other texts.

    A sign that contradicts the words of its line may mean another thing than "this is an answer".
    """
    if not (_SIGN.search(text) or _VERDICT.search(text)):
        return None
    ticked: dict[str, bool] = {}
    unsigned: set[str] = set()
    for line in text.split("\n"):
        key = _first_option(_SIGN.sub(" ", line), tokenizer)
        signs = [sign not in _CROSSES for sign in _SIGN.findall(line)] or _verdict(line)
        if key and not signs:
            unsigned.add(key)
        elif (
            key and len(signs) == 1 and key not in ticked and not _contradicts(line, key, signs[0], tokenizer)
        ):
            ticked[key] = signs[0]
        elif key is not None or signs:
            return None
    return _chosen(ticked, unsigned, tokenizer)


def _chosen(ticked: dict[str, bool], unsigned: set[str], tokenizer: Tokenizer) -> Reading | None:
    """The ticked options, if no other is unsigned but where ticks are the only signs."""
    entries = {*ticked, *unsigned}
    if not ticked or len(entries) < 2 or not entries <= tokenizer.texts.keys or unsigned & ticked.keys():
        return None
    is_told_apart = not all(ticked.values()) if not unsigned else all(ticked.values())
    return reading_of([key for key, is_ticked in ticked.items() if is_ticked]) if is_told_apart else None


def _verdict(line: str) -> list[bool]:
    """What the last sentence of an entry says of it, where it is a word of judgement: "Not applicable."."""
    verdict = _VERDICT.search(line)
    return [verdict[1] is None] if verdict else []


def _first_option(line: str, tokenizer: Tokenizer) -> str | None:
    """The option that a line begins with; empty where it lists several."""
    opening = [token for token in tokenizer.tokens(line) if token.kind not in _BEFORE_NAME]
    if not opening or opening[0].kind not in NAMES:
        return None
    key = opening[0].key
    letters = {token.key for token in opening if token.kind == "key" and token.text.isupper()}
    last = max(at for at, token in enumerate(opening) if token.key == key)
    after = opening[last + 1 : last + 3]
    is_list = len(after) == 2 and after[0].kind in {"comma", "join"} and after[1].key != ""
    return "" if is_list or len({*letters, key}) > 1 else key


def _contradicts(line: str, key: str, is_ticked: bool, tokenizer: Tokenizer) -> bool:
    """Return whether the words of an entry say the opposite of its sign."""
    if NORMAL.match(dict(tokenizer.texts.options).get(key, "")):
        return False  # "A ✗ (abnormal)"
    words_of_line = statements(tokenizer.tokens(_SIGN.sub(" ", line)))
    return any(statement.polarity == ("no" if is_ticked else "yes") for statement in words_of_line[:1])
