"""Values of marks: parse the text after a mark to options."""

import functools
from dataclasses import dataclass

from cardiolens.score.verdicts.closing_letters import closing_letters
from cardiolens.score.verdicts.complement import complement
from cardiolens.score.verdicts.enumerations import enumeration
from cardiolens.score.verdicts.lists import leading
from cardiolens.score.verdicts.prose import prose
from cardiolens.score.verdicts.reading import DENIAL, UNREADABLE, NotReadableError, Reading, reading_of
from cardiolens.score.verdicts.reply_clauses import NAMES, statements
from cardiolens.score.verdicts.reply_tokens import Token, Tokenizer

_SHORT = 60  # characters
_UNDECIDED = frozenset({"either", "perhaps", "not", "unsure"})
_NAMES_OPTION = frozenset(
    {"letter", "letters", "option", "options", "key", "keys", "choice", "choices", "id"}
)
_AFFIRMED = frozenset({"true", "yes", "1", "selected", "present"})


@dataclass(frozen=True, slots=True)
class Values:
    """Parses the values of marks for one question; `several`: it takes several options."""

    tokenizer: Tokenizer
    several: bool

    def line(self, text: str) -> Reading | None:
        """Parse a list, an enumeration or a sentence; None if it neither names nor denies options."""
        return _read_again(self, text) if len(text) <= _SHORT else self.read(text)

    def read(self, text: str) -> Reading | None:
        """Parse a line as `line` does, without its memory."""
        tokens = self.tokenizer.tokens(text)
        if self.several and (others := complement(tokens, self.tokenizer.texts)):
            return others
        reading = self._list(tokens)
        if reading is UNREADABLE:
            return enumeration(statements(tokens)) or UNREADABLE
        return reading or enumeration(statements(tokens)) or self._sentence(tokens)

    def phrase(self, text: str) -> Reading | None:
        """Parse a list after "the answer is"; None if there is no list."""
        tokens = self.tokenizer.tokens(text)
        reading = self._list(tokens)
        if reading is None and tokens and tokens[0].kind in _UNDECIDED:
            return UNREADABLE if _names(tokens) else None
        return reading

    def from_json(self, value: object) -> Reading | None:
        """Parse the value of an answer key: a text, a list of texts, or options with yes and no."""
        if isinstance(value, str):
            return self.line(value)
        if isinstance(value, dict):
            named = next((value[key] for key in value if key.casefold() in _NAMES_OPTION), None)
            if named is None and len(value) == 1:
                named = next(iter(value.values()))
                reading = self.line(named) if isinstance(named, str) else None
                return reading if reading and reading.readable else self._ticked(value)
            if isinstance(named, list):
                return self.from_json(named)
            return self.line(named) if isinstance(named, str) else self._ticked(value)
        if isinstance(value, list) and value:
            return self._entries(value)
        return UNREADABLE if value not in (None, []) else None

    def _list(self, tokens: list[Token]) -> Reading | None:
        try:
            list_and_end = leading(
                tokens, self.tokenizer.texts, several=self.several, ranges=True, alone=True
            )
        except NotReadableError:
            return UNREADABLE
        return list_and_end[0] if list_and_end else None

    def _sentence(self, tokens: list[Token]) -> Reading | None:
        letters = any(token.kind == "key" and token.text.isupper() for token in tokens)
        reading = (
            None if letters else prose(statements(tokens), several=self.several, brief=True, after_mark=True)
        )
        if reading or not tokens:
            return reading
        if _names(tokens):
            return closing_letters(tokens, self.tokenizer.texts) or UNREADABLE
        return DENIAL if any(token.kind in {"not", "perhaps"} for token in tokens) else None

    def _ticked(self, value: dict[str, object]) -> Reading | None:
        affirmed = [
            key
            for key, mark in value.items()
            if str(mark).casefold() in _AFFIRMED or self.tokenizer.texts.key_of(str(mark)) == (key, True)
        ]
        return self._entries(list(affirmed)) if affirmed else UNREADABLE

    def _entries(self, entries: list[object]) -> Reading:
        keys: list[str] = []
        for entry in entries:
            reading = self.from_json(entry) if isinstance(entry, str) or _is_named(entry) else None
            if not reading or not reading.readable:
                return UNREADABLE
            keys.extend(reading.keys)
        return reading_of(keys)


@functools.lru_cache(maxsize=1 << 14)
def _read_again(values: Values, text: str) -> Reading | None:
    """Parse a short line, such as "A, B": they repeat."""
    return values.read(text)


def _is_named(entry: object) -> bool:
    """Return whether an entry of JSON is an option with its text, and says nothing else of it."""
    return isinstance(entry, dict) and {key.casefold() for key in entry} <= _NAMES_OPTION | {"text", "name"}


def _names(tokens: list[Token]) -> bool:
    return any(token.kind in NAMES | {"unsure"} for token in tokens)
