"""Tokens of the grammar of lists and clauses."""

import functools
import re
from typing import Literal, NamedTuple

from cardiolens.report_text.reply_lexicon import WordKind, kinds, words
from cardiolens.score.verdicts.option_text import LATIN, OptionTexts

Kind = (
    WordKind
    | Literal[
        "key",  # a letter, of an option or not
        "text",  # a full spelling of an option
        "short",  # one without its last word
        "part",  # a word that only one option has
        "unsure",  # "A" before the text of another option: an article or a letter
        "word",
        "comma",
        "semicolon",
        "stop",
        "query",
        "colon",
        "dash",
        "open",
        "close",
        "newline",
        "bar",
        "bullet",  # a bullet or number at the head of a line
    ]
)

_PUNCTUATION: dict[str, Kind] = {
    **dict.fromkeys(",、", "comma"),
    **dict.fromkeys("/&+", "join"),
    **dict.fromkeys(".。!", "stop"),
    **dict.fromkeys("?؟", "query"),
    **dict.fromkeys(":=", "colon"),
    **dict.fromkeys("-–—‐", "dash"),
    **dict.fromkeys("([{<「【《", "open"),
    **dict.fromkeys(")]}>」】》", "close"),
    **dict.fromkeys("→⇒~☒≥≤", "perhaps"),
    **dict.fromkeys("✓✔☑✅🟢🟩", "yes"),
    **dict.fromkeys("✗✘❌☐❎🔴🟥✖", "no"),
    **dict.fromkeys("≠¬", "not"),
    "%": "word",
    ";": "semicolon",
    "\n": "newline",
    "|": "bar",
}
_MARKS: dict[str, Kind] = {
    "->": "perhaps",
    "=>": "perhaps",
    "...": "perhaps",
    "..": "perhaps",
    "…": "perhaps",
    "[ ]": "no",
    "( )": "no",
}
_SCORED = (
    r"(?:(?<=[:=|])|(?<=[:=|] )|(?<= [-–—] ))"  # before a plus or minus, a one or nought that judges an entry
)
_SIGNED = r"(?<=[A-Za-z0-9]{2})"  # "LGE+"
_SIGN_ENDS = r"(?=[ \t]*(?:[,;|.]|$))"
_SCORE_ENDS = r"(?=[ \t]*(?:[,;|}]|$|(?<=[ \t])[A-HZ]\b))"
_BEHIND = r"(?<=[\w)] )"  # a filled or an empty circle
_NUMBER = r"\(?(?:\d{1,2}|[ivx]{1,4})[.)][ \t]+"  # of an entry: "1." or "(ii)"
_SIGNS: dict[str, Kind] = {"numbering": "bullet", "plus": "yes", "minus": "no", "decimal": "word"}
_YES_AND_NO: dict[str, Kind] = {"Y": "yes", "N": "no"}
_SPACES = frozenset({"gap", "space"})
_AFTER_PRONOUN = frozenset({"verb", "not", "also", "label"})
_AFTER_ADJECTIVE = frozenset({"word", "subject", "verb", "part"})
_BEFORE_PROSE = frozenset({"word", "subject", "perhaps", "also"})
_VERDICTS = frozenset({"yes", "no", "not"})
ARROWS = frozenset({"->", "=>", "→", "⇒"})
_LEADERS = frozenset({"..", "...", "…"})
_CANNOT = frozenset({"cannot", "can't", "can not"})
_MODALS = frozenset({"would", "may", "might", "could", "cannot", "can't", "can not"})


class Token(NamedTuple):
    """A word, letter, option text or sign; `key` is the option that it denotes, in upper case."""

    kind: Kind
    text: str
    key: str
    start: int


class Tokenizer:
    """Splits texts of replies to one question into tokens."""

    def __init__(self, texts: OptionTexts, question_word: str = "") -> None:
        self.texts = texts
        self._kinds = {**kinds(), **_reversed(question_word)}
        self._lexeme = re.compile(
            # most lexemes are spaces within a line: match them first, alternatives are tried in order
            r"(?P<gap>(?<=[^\n])[ \t\r]+|[~≈](?=[ \t]*\d))"
            rf"|(?P<option>(?<![{LATIN}-]){texts.pattern}(?![{LATIN}-]))"
            rf"|(?P<script>(?=[^\x00-ɏ])(?:{_other_scripts()}))"
            rf"|(?P<numbering>^[ \t]*(?:[-•·‣#>–]+[ \t]+(?:{_NUMBER})?|{_NUMBER})"
            r"|\((?:\d{1,2}|[ivx]{2,4})\))"
            rf"|(?P<plus>\(\+\)|{_SCORED}[+1]{_SCORE_ENDS}|{_SIGNED}\+{_SIGN_ENDS}|{_BEHIND}●)"
            rf"|(?P<minus>\([-–−]\)|{_SCORED}[-–−0]{_SCORE_ENDS}|{_SIGNED}[-–−]{_SIGN_ENDS}|{_BEHIND}○)"
            rf"|(?P<letter>(?<![{LATIN}])[A-Za-z](?![{LATIN}]|'[A-Za-z]|-(?-i:[a-z]{{2}}|[A-Z]{{2}})))"
            r"|(?P<decimal>\d+\.\d+)"
            rf"|(?P<word>[{LATIN}]+(?:['-][{LATIN}]+)*)"
            r"|(?P<space>[ \t\r]+)"
            r"|(?P<tick>\[[xX✓✔]\]|\([xX✓✔]\)(?=[ \t]))"
            r"|(?P<mark>(?<=\s)>(?=\s)(?![ \t]*\d)"
            r"|(?<=\w)>(?=\w)|->|=>|\.{2}(?=[A-Za-z])|\.{3,}|…|\[ \]|\( \))"
            r"|(?P<other>[\s\S])",
            re.IGNORECASE | re.MULTILINE,
        )

    @staticmethod
    @functools.lru_cache(maxsize=4096)
    def of(texts_of: tuple[tuple[str, str], ...], question_word: str = "") -> "Tokenizer":
        """The (cached) tokenizer of options (key, text), and of a word of the question that turns others."""
        return Tokenizer(OptionTexts.of(texts_of), question_word)

    def tokens(self, text: str) -> list[Token]:
        """Split a text into tokens; spaces and quotes are dropped. Several rules read the same text."""
        return list(_tokens(self, text))

    def split(self, text: str) -> list[Token]:
        """Split a text into tokens as `tokens` does, without its memory."""
        token_list: list[Token] = []
        end_of_phrase = 0
        for lexeme in self._lexeme.finditer(text):
            group, start = lexeme.lastgroup, lexeme.start()
            if group in _SPACES or start < end_of_phrase:
                continue
            text_of_lexeme = lexeme[0]
            phrase = _phrase_at(text, start, text_of_lexeme) if group in {"word", "letter"} else ""
            if group == "word" or phrase:
                token_list.append(self._word(phrase or text_of_lexeme, start))
                end_of_phrase = start + len(phrase)
            elif token := self._token(group or "other", text_of_lexeme, start):
                token_list.append(token)
        return _disambiguate(token_list)

    def _token(self, group: str, text: str, start: int) -> Token | None:
        if group == "option":
            return self._option(text, start)
        if group == "letter":
            return self._letter(text, start)
        if group == "script":
            return self._word(text, start)
        if group == "other":
            return self._sign(text, start)
        if group in _SIGNS:
            return Token(_SIGNS[group], "" if group == "numbering" else text, "", start)
        return Token("yes" if group == "tick" else _MARKS.get(text, "perhaps"), text, "", start)

    def _sign(self, text: str, start: int) -> Token | None:
        kind = _PUNCTUATION.get(text) or ("word" if text.isalnum() else None)
        return Token(kind, text, "", start) if kind else None

    def _letter(self, text: str, start: int) -> Token:
        word = kinds().get(text) if text.upper() not in self.texts.keys else None  # Spanish "A y C"
        if text in _YES_AND_NO and text not in self.texts.keys:
            return Token(_YES_AND_NO[text], text, "", start)
        return Token(word or "key", text, "" if word else text.upper(), start)

    def _option(self, text: str, start: int) -> Token:
        match = self.texts.key_of(text)
        if match is None:
            return self._word(text, start)
        key, full = match
        return Token("text" if full else "short", text, key, start)

    def _word(self, text: str, start: int) -> Token:
        lower = text.lower()
        if " " in lower or "\n" in lower:
            lower = " ".join(lower.split())
        kind = self._kinds.get(lower)
        if kind or lower.endswith("n't"):
            return Token(kind or "not", lower, "", start)
        key = self.texts.parts.get(lower) or (self._part(lower) if "-" in lower else "")
        return Token("part" if key else "word", lower, key, start)

    def _part(self, lower: str) -> str:
        """The option of a compound such as "mid-cavity", by its first word."""
        return self.texts.parts.get(lower.partition("-")[0], "")


@functools.lru_cache(maxsize=64)
def _tokens(tokenizer: Tokenizer, text: str) -> tuple[Token, ...]:
    return tuple(tokenizer.split(text))


def reversing_word(question: str) -> str:
    """The word of a question that turns the meaning of other words; empty for most questions."""
    return next((word for word in words().reversed_in if word in question.lower()), "")


def _reversed(question_word: str) -> dict[str, Kind]:
    kinds_of = words().reversed_in.get(question_word, {})
    return {entry: kind for kind, entries in kinds_of.items() for entry in entries}


@functools.cache
def _phrases() -> dict[str, re.Pattern[str]]:
    """Patterns of multi-word phrases, by their first word."""
    by_first: dict[str, list[str]] = {}
    for entry in sorted(kinds(), key=len, reverse=True):
        if " " in entry:
            by_first.setdefault(entry.partition(" ")[0], []).append(
                r"\s+".join(map(re.escape, entry.split()))
            )
    return {
        first: re.compile(rf"(?:{'|'.join(entries)})(?![{LATIN}])", re.IGNORECASE)
        for first, entries in by_first.items()
    }


def _phrase_at(text: str, start: int, word: str) -> str:
    pattern = _phrases().get(word.lower())
    match = pattern.match(text, start) if pattern else None
    return match[0] if match else ""


def _other_scripts() -> str:
    """Pattern of words in scripts without spaces, longest first."""
    return "|".join(re.escape(entry) for entry in sorted(kinds(), key=len, reverse=True) if entry[0] > "ɏ")


def _disambiguate(tokens: list[Token]) -> list[Token]:
    """Turn "A" and "I" before a word, and letters of frames, from letters into words."""
    for at in range(len(tokens) - 1, -1, -1):
        token = tokens[at]
        if token.kind == "key":
            tokens[at] = _article(token, tokens[at + 1 : at + 3]) or token
            if tokens[at].kind == "unsure" and token.text == "a" and at and tokens[at - 1].kind == "verb":
                tokens[at] = token._replace(kind="word", key="")  # "there is a mitral regurgitant jet"
        elif token.text in _CANNOT and _is_denied_option(tokens[at + 1 : at + 4]):
            tokens[at] = token._replace(kind="not")  # "it cannot be A"
        elif token.kind == "short" and tokens[at + 1 : at + 2] and tokens[at + 1].text in _NOT_HEADS:
            tokens[at] = Token("word", token.text.lower(), "", token.start)  # "left ventricle" is no atrium
        elif token.text in _LEADERS and _leads(tokens[at - 1] if at else None, tokens[at + 1 : at + 2]):
            tokens[at] = token._replace(kind="dash")  # "Septal wall ... normal"
        elif token.text == "too" and tokens[at + 1 : at + 2] and tokens[at + 1].kind == "word":
            tokens[at] = token._replace(kind="no")  # "too generous"
        elif token.text in ARROWS and _explains(tokens[at - 1] if at else None, tokens[at + 1 : at + 3]):
            tokens[at] = token._replace(kind="dash")
    _unname(tokens)
    _complete(tokens)
    return tokens


def _leads(before: Token | None, ahead: list[Token]) -> bool:
    """Return whether dots stand between an option and what is said of it."""
    return before is not None and before.key != "" and bool(ahead) and ahead[0].kind in {"yes", "no"}


def _is_denied_option(ahead: list[Token]) -> bool:
    """Return whether "be" and an option follow."""
    names = [token for token in ahead[1:] if token.kind != "label"]
    return bool(names) and ahead[0].text == "be" and names[0].key != ""


def _explains(before: Token | None, ahead: list[Token]) -> bool:
    """Return whether an arrow stands before a verdict or an option's own text: "A → no", "B → Small"."""
    is_own = before is not None and before.kind == "key" and bool(ahead) and ahead[0].key == before.key
    verdict = ahead[1:] if ahead[:1] and ahead[0].kind == "label" else ahead
    return is_own or (bool(verdict) and verdict[0].kind in _VERDICTS)


def _article(letter: Token, ahead: list[Token]) -> Token | None:
    """The token of a letter that is an article, a pronoun or ambiguous; None if it is an option."""
    is_share = [token.text for token in ahead[1:2]] == ["%"]  # "A 10 %"
    is_subject = letter.text == "A" and bool(ahead) and ahead[0].text in _MODALS | ARROWS | {">"}
    if (
        letter.key not in {"A", "I"}
        or not ahead
        or ahead[0].start != letter.start + 2
        or is_subject
        or is_share
    ):
        return None
    if letter.text == "I" and ahead[0].kind in _AFTER_PRONOUN:
        return letter._replace(kind="word", key="")
    if ahead[0].key and ahead[0].kind != "key":
        if ahead[1:] and ahead[0].text[0].islower() and ahead[1].kind in _AFTER_ADJECTIVE:
            return letter._replace(kind="word", key="")  # "a normal ventricle"
        if ahead[0].key == letter.key and letter.text.islower():
            return letter._replace(kind="word", key="")
        is_own_letter = ahead[0].key == letter.key
        return None if is_own_letter else letter._replace(kind="unsure")
    is_word = ahead[0].kind in {"yes", "no"} and ahead[1:] and ahead[1].kind in _BEFORE_PROSE | {"part"}
    return letter._replace(kind="word", key="") if is_word or ahead[0].kind in _BEFORE_PROSE else None


def _complete(tokens: list[Token]) -> None:
    """Turn shortened texts of a list into full ones where its end completes them: "basal and mid levels"."""
    is_completed = False
    for at in range(len(tokens) - 1, -1, -1):
        token = tokens[at]
        if token.kind == "short" and is_completed:
            tokens[at] = token._replace(kind="text")
        elif token.kind not in {"join", "comma"}:
            is_completed = token.kind == "text" or token.text in _PLURALS


_PLURALS = frozenset({"segments", "walls", "levels", "layers", "atria"})


def _unname(tokens: list[Token]) -> None:
    """Turn letters after "frame" and similar words, and lists of them, into words."""
    after_frame_word = False
    for at, token in enumerate(tokens):
        if token.kind == "key" and after_frame_word:
            tokens[at] = Token("word", token.text, "", token.start)
        elif token.text in _NOT_OPTIONS:
            after_frame_word = True
        elif token.kind == "open" and at > 1 and tokens[at - 2].key:
            after_frame_word = False  # "the basal slice (A)"
        elif token.kind not in {"join", "comma", "open"} and tokens[at - 1].text not in _ABBREVIATED:
            after_frame_word = False


_ABBREVIATED = frozenset({"fig", "figs"})
_NOT_OPTIONS = frozenset(words().not_options)
_NOT_HEADS = frozenset(words().not_heads)
