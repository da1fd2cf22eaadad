"""Letters that end a text: "... walls are B and D.", "function is mildly reduced (B)"."""

from cardiolens.report_text.reply_lexicon import words
from cardiolens.score.verdicts.lists import leading
from cardiolens.score.verdicts.option_text import OptionTexts
from cardiolens.score.verdicts.reading import UNREADABLE, NotReadableError, Reading
from cardiolens.score.verdicts.reply_clauses import Statement, clauses, polarity
from cardiolens.score.verdicts.reply_tokens import Token

_NO_CHOICE = frozenset(
    {*words().not_options, *words().commits.denies, "option", "options", "choices", "选项"}
)


def closing_letters(tokens: list[Token], texts: OptionTexts) -> Reading | None:
    """Read the only letters of a reply, at the end of its last sentence ("... walls are B and D.")."""
    opening = next((at for at, token in enumerate(tokens) if token.kind == "key" and token.text.isupper()), 0)
    before = clauses(tokens[:opening])
    sentence = before[-1] if before else []
    if sentence and sentence[-1].kind == "open":
        return _letters_in_brackets(sentence[:-1], tokens[opening - 1 :], texts)
    if not sentence or not _announces(sentence[-1]) or polarity(sentence) in {"no", "open"}:
        return None
    if any(token.kind == "either" or token.text.lower() in _NO_CHOICE for token in sentence):
        return None
    reading = leading_alone(tokens[opening:], texts)
    earlier_keys = {token.key for token in sentence if token.key}
    return None if earlier_keys and (reading is None or not earlier_keys <= set(reading.keys)) else reading


def concluding_texts(option_statements: list[Statement], texts: OptionTexts) -> Reading | None:
    """Read the texts that end a concluding statement: "Thus the enhancing walls are the septum and ..."."""
    if not option_statements:
        return None
    clause, stance = option_statements[-1]
    opening = next(at for at, token in enumerate(clause) if token.key)
    before = [token for token in clause[:opening] if token.kind != "label"]
    concludes = any(token.text.lower() in words().conclusions for token in before)
    if (
        not concludes
        or not _announces(before[-1])
        or stance in {"no", "open"}
        or clause[opening].kind != "text"
    ):
        return None
    reading = leading_alone(clause[opening:], texts)
    affirmed = {token.key for other, polarity in option_statements if polarity == "yes" for token in other}
    is_all = reading is not None and reading.readable and affirmed - {""} <= set(reading.keys)
    return reading if is_all else None


def leading_alone(tokens: list[Token], texts: OptionTexts) -> Reading | None:
    """Read a list that is the whole text; None if other text follows or there is no list."""
    try:
        list_and_end = leading(tokens, texts, several=True)
    except NotReadableError:
        return UNREADABLE
    return list_and_end[0] if list_and_end and list_and_end[1] else None


def _announces(token: Token) -> bool:
    return token.kind in {"verb", "colon"} or token.text in words().conclusions


def _letters_in_brackets(sentence: list[Token], rest: list[Token], texts: OptionTexts) -> Reading | None:
    """Read letters in brackets that end a reply whose sentence names nothing else: "reduced function (C)"."""
    reading = leading_alone(rest, texts)
    if not sentence or reading is None or not reading.readable or polarity(sentence) == "open":
        return None
    others = {token.key for token in sentence if token.key} - set(reading.keys)
    return None if others or any(token.kind in {"either", "not", "no"} for token in sentence) else reading
