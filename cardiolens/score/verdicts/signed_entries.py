"""Entries of options that one sign each judges, whatever their words: "B – DCM: dilated. ✔" (protocol 17.16)."""

import re

from cardiolens.score.verdicts.elimination import NORMAL
from cardiolens.score.verdicts.reading import Reading, reading_of
from cardiolens.score.verdicts.reply_clauses import NAMES, statements
from cardiolens.score.verdicts.reply_tokens import Tokenizer

_TICKS = frozenset("✓✔☑✅🟢🟩")
_SIGN = re.compile("[✓✔☑✅🟢🟩✗✘❌☐❎🔴🟥✖]")
_BEFORE_NAME = frozenset({"bullet", "open", "label", "bar"})


def signed_entries(text: str, tokenizer: Tokenizer) -> Reading | None:
    """The ticked options of lines that each begin with an option and have one sign; None for other texts.

    A sign that contradicts the words of its line may mean another thing than "this is an answer".
    """
    if not _SIGN.search(text):
        return None
    ticked: dict[str, bool] = {}
    for line in text.split("\n"):
        key = _first_option(_SIGN.sub(" ", line), tokenizer)
        signs = _SIGN.findall(line)
        if key is None:
            if signs:
                return None
            continue
        if (
            len(signs) != 1
            or not key
            or key in ticked
            or _contradicts(line, key, signs[0] in _TICKS, tokenizer)
        ):
            return None
        ticked[key] = signs[0] in _TICKS
    is_judged = len(ticked) > 1 and set(ticked) <= tokenizer.texts.keys and not all(ticked.values())
    return reading_of([key for key, is_ticked in ticked.items() if is_ticked]) if is_judged else None


def _first_option(line: str, tokenizer: Tokenizer) -> str | None:
    """The option that a line begins with; empty where it names several."""
    opening = [token for token in tokenizer.tokens(line) if token.kind not in _BEFORE_NAME]
    if not opening or opening[0].kind not in NAMES:
        return None
    named = {token.key for token in opening if token.kind in NAMES}
    return opening[0].key if len(named) == 1 else ""


def _contradicts(line: str, key: str, is_ticked: bool, tokenizer: Tokenizer) -> bool:
    """Return whether the words of an entry say the opposite of its sign."""
    if NORMAL.match(dict(tokenizer.texts.options).get(key, "")):
        return False  # "A ✗ (abnormal)"
    words_of_line = statements(tokenizer.tokens(_SIGN.sub(" ", line)))
    return any(statement.polarity == ("no" if is_ticked else "yes") for statement in words_of_line[:1])
