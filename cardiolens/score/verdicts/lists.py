"""The grammar of a list of options after a mark (protocol 16.2): it is parsed completely or not at all.

list    = lead entry {separator entry} [tail]
entry   = letter [its own text, bare, after a delimiter or in brackets] | option text [its own letter]
tail    = a reason, a clause against the list, a further sentence: nothing that may add an option
"""

import contextlib
from collections.abc import Collection

from cardiolens.report_text.reply_lexicon import words
from cardiolens.score.verdicts.option_text import OptionTexts
from cardiolens.score.verdicts.reading import NotReadableError, Reading, reading_of
from cardiolens.score.verdicts.reply_clauses import (
    NAMES,
    Clause,
    clauses,
    denies,
    further_options,
    is_open,
    polarity,
)
from cardiolens.score.verdicts.reply_tokens import Kind, Token

_LEAD = frozenset(
    {"open", "colon", "dash", "label", "newline", "stop", "close", "bar", "verb", "subject", "bullet"}
)
_BETWEEN = frozenset(
    {"comma", "semicolon", "join", "newline", "stop", "close", "open", "label", "bar", "bullet"}
)
_AFTER_LETTER = frozenset({"close", "stop", "colon", "dash"})
_OPENS_REASON = frozenset({"reason", "but", "verb"})
_STOPS = frozenset({"stop", "semicolon", "newline"})
_AFTER_FULL_STOP = frozenset({"stop", "query", "comma", "join", "either", "perhaps"})  # "A., ..."
_SETS_OFF = frozenset({"colon", "dash"})
_WITHIN_SUBJECT = frozenset({"join", "comma", "subject", "label", "open", "close"})
_LIST_SIGNS = frozenset({"comma", "join", "either"})
_PREDICATE = frozenset({"verb", "yes", "no", "not", "perhaps"})
_SAYS = frozenset({"yes", "no", "not"})
_UP_TO = frozenset({"to", "through", "bis", "..", "到", "至"})
_LEAST_RANGE = 3  # options: "A to B" may be a slip for "A or B"
_SETS_OFF_ENTRY = frozenset({*_STOPS, "comma", "but", "reason"})
_LIKELIHOODS = frozenset({"confident", "confidence", "probability", "likelihood", "likely", "chance", "sure"})
_WHOLE = 105  # per cent that likelihoods of options add up to at most; certainties of each add up to more
_ENDS_RANGE = frozenset({None, "stop", "newline", "close", "reason", "verb"})
_ADDING = frozenset({"also", "perhaps", "either"})
_WOULD = frozenset({"would", "would have"})


def leading(
    tokens: list[Token], texts: OptionTexts, *, several: bool, ranges: bool = False, alone: bool = False
) -> tuple[Reading, bool] | None:
    """Parse the list at the start of tokens; also return whether nothing follows. None without a list.

    `several`: the question takes several options, so that the text after the list may add one. A list that
    cannot be read completely is a NotReadableError. `ranges`: "A-D" names what lies between as well.
    `alone`: what stands behind the list's sentence does not count.
    """
    reader = _ListReader(tokens, texts, several, ranges=ranges, alone=alone)
    return reader.read()


def first_entries(tokens: list[Token], texts: OptionTexts) -> tuple[tuple[str, ...], int] | None:
    """The option or letters, set off, with which tokens begin, and where the text after them begins."""
    at = next((at for at, token in enumerate(tokens) if token.kind not in {"open", "label", "bullet"}), 0)
    if not tokens or tokens[at].kind not in {"key", "text"} or not tokens[at].text[0].isupper():
        return None
    if tokens[at].kind == "text" and [token.kind for token in tokens[at + 1 : at + 2]] == ["subject"]:
        return None  # "Normal RV." speaks of something
    reader = _ListReader(tokens[at:], texts, several=False)
    try:
        keys = reader.entries()
    except NotReadableError:
        return None
    rest = tokens[at + reader.entries_end :] if reader.entries_end else []
    ends = _SETS_OFF_ENTRY if len(keys) == 1 else _STOPS
    if not keys or not set(keys) < texts.keys or not rest or rest[0].kind not in ends:
        return None
    return tuple(dict.fromkeys(keys)), rest[0].start


def end_of_list(tokens: list[Token], texts: OptionTexts, keys: Collection[str]) -> int | None:
    """The position in the text after the list of `keys` at the start of tokens; None without such a list."""
    reader = _ListReader(tokens, texts, several=True)
    with contextlib.suppress(NotReadableError):  # of what follows the list
        reader.read()
    after = reader.entries_end
    if after is None or set(reader.keys) != set(keys):
        return None
    return tokens[after].start if after < len(tokens) else tokens[-1].start + len(tokens[-1].text)


class _ListReader:
    def __init__(
        self,
        tokens: list[Token],
        texts: OptionTexts,
        several: bool,
        *,
        ranges: bool = False,
        alone: bool = False,
    ) -> None:
        self._alone = alone
        self._tokens = tokens
        self._texts = texts
        self._several = several
        self._ranges = ranges
        self._at = 0
        self.keys: list[str] = []
        self._likelihoods: list[int] = []  # of entries, in brackets
        self.entries_end: int | None = None  # the token after the entries
        self._kinds: list[Kind | None] = [*(token.kind for token in tokens), None]

    def read(self) -> tuple[Reading, bool] | None:
        self._skip(_LEAD - {"verb"})
        if letters := self._run_of_letters():
            return letters
        if of_range := self._range():
            return reading_of(of_range), self._tail(of_range)
        if self._kind() == "verb" and "subject" in self._kinds[: self._at]:
            return None  # "the function is normal" is a sentence
        self._skip(_LEAD)
        denied = self._kind() == "not"
        if denied:
            self._skip_denial()
        if self._kind() not in NAMES:
            return None
        if denied:
            self._entries()
            self._after_denial()
        keys = self._affirmed()
        is_all = self._tail(keys)
        return reading_of(keys), is_all

    def _range(self) -> list[str]:
        """Parse a range that is the whole list ("A-D", "B to D"): its options, in their order."""
        ahead = self._tokens[self._at : self._at + 3]
        if not (self._several and self._ranges) or [token.kind for token in ahead[::2]] != ["key", "key"]:
            return []
        first, sign, last = ahead
        own = [key for key, _ in self._texts.options]
        is_range = sign.kind == "dash" or sign.text.lower() in _UP_TO
        if not is_range or not {first.text, last.text} <= set(own):
            return []
        letters = own[own.index(first.key) : own.index(last.key) + 1]
        rest = clauses(self._tokens[self._at + 3 :])
        is_affirmed = self._kinds[self._at + 3] != "verb" or polarity(rest[0]) == "yes"
        if len(letters) < _LEAST_RANGE or self._kinds[self._at + 3] not in _ENDS_RANGE or not is_affirmed:
            return []
        self._at += 3
        self.keys, self.entries_end = letters, self._at
        return letters

    def entries(self) -> list[str]:
        """Parse the entries at the start, whatever follows them."""
        keys = self._entries()
        self.entries_end = self._at
        return keys

    def _affirmed(self) -> list[str]:
        keys = self.entries()
        foreign = [key for key in keys if key not in self._texts.keys]
        if foreign:
            raise NotReadableError(f"{foreign} are not options")
        return keys

    def _after_denial(self) -> None:
        """Advance to the list after "not A", which must be separated from it: "not A but B", "Not A. B"."""
        if self._kind() not in _STOPS | {"but", "comma"}:
            raise NotReadableError("nothing affirmed")
        self._at += 1
        self._skip(_LEAD)
        if self._kind() not in NAMES:
            raise NotReadableError("nothing affirmed")

    def _entries(self) -> list[str]:
        self.keys = []
        self._entry()
        while self._next_entry():
            self._entry()
        return self.keys

    def _next_entry(self) -> bool:
        """Skip the separator between two entries, if there is another entry."""
        at = self._at
        between: list[Kind] = []
        while self._kind() in _BETWEEN:
            between.append(self._take().kind)
        if self._kind() in NAMES and not self._begins_sentence(at, between):
            return True
        if "join" in between and self._kind() not in {"not", "reason"}:
            raise NotReadableError("a list that ends in its middle")
        self._at = at
        return False

    def _begins_sentence(self, at: int, between: list[Kind]) -> bool:
        """Return whether the next option is the subject of a new sentence ("A. B is spared")."""
        if not _STOPS & set(between):
            return False
        start = self._at + 2 if self._kinds[self._at + 1] in {"stop", "close"} else self._at
        following = (token for token in self._tokens[start:] if token.kind not in NAMES | _WITHIN_SUBJECT)
        first = next(following, None)
        if first is None or (first.kind == "perhaps" and not first.text[:1].isalpha()):
            return False  # "a; b, ..." is a list that goes on
        predicate = first.kind
        ahead = self._tokens[start : self._tokens.index(first, start)]
        if predicate == "word" and "label" in between:
            # ". The inferior (C) and lateral (D) walls measure 9 mm", but not "\noption B, and the fifth one"
            return bool(ahead) and ahead[-1].kind in NAMES | {"close", "subject"}
        if predicate == "perhaps" and {"join", "comma"} & {token.kind for token in ahead}:
            return False  # "b\nc and some of the rest", "b; c, etc."
        if predicate in _SETS_OFF and "open" in between and self._kinds[self._at + 2] == "word":
            return True  # "B, C. (A: artefact. D: ...)"
        return predicate in _PREDICATE or (
            predicate in _SETS_OFF | {"word"} and denies(clauses(self._tokens[self._at :])[0])
        )

    def _entry(self) -> None:
        token = self._take()
        self.keys.append(token.key)
        if token.kind == "key":
            self._own_text(token.key)
            if self._at_letter_in_brackets() and self._tokens[self._at - 1] is token:
                raise NotReadableError("a letter with another letter in brackets")
        else:
            self._skip({"subject"})
            self._own_letter(token.key)
        self._bracket(token.key)

    def _own_text(self, key: str) -> None:
        """Skip the text that belongs to a letter; the text of another option is a contradiction."""
        at = self._at
        self._skip(_AFTER_LETTER | {"open"})
        if self._kind() in {"text", "short"}:
            if self._tokens[self._at].key != key and self._kinds[self._at - 1] == "open":
                self._at = at  # a remark
                return
            if self._tokens[self._at].key != key:
                raise NotReadableError("a letter with the text of another option")
            is_bracket = self._kinds[self._at - 1] == "open"
            self._at += 1
            self._skip({"subject"})
            if is_bracket:
                self._own_remark(key)
            self._skip({"close"}, most=1)
        elif not self._own_words(key):
            self._at = at

    def _own_remark(self, key: str) -> None:
        """Skip the rest of a bracket that says no more than the option's text: "(increased - oedema)"."""
        rest = self._tokens[self._at :]
        end = next((at for at, token in enumerate(rest) if token.kind == "close"), 0)
        if all(token.key == key or token.kind in _SETS_OFF for token in rest[:end]):
            self._at += end

    def _own_words(self, key: str) -> bool:
        """Skip words that all belong to the option's text, if they end an entry."""
        at = self._at
        option_words = self._texts.own.get(key, frozenset())
        while (token := self._peek()) and (token.text in option_words or token.kind == "subject"):
            self._at += 1
        stepped = {token.kind for token in self._tokens[at : self._at]}
        # "A: no" says no of A, also where its text is "No abnormality"
        if stepped <= _SAYS | {"subject"} or self._kind() not in _BETWEEN | {None}:
            self._at = at
            return False
        return True

    def _own_letter(self, key: str) -> None:
        """Skip the letter after a text, in brackets or behind a dash, which must be that option's."""
        if self._kind() in _SETS_OFF and self._kinds[self._at + 1] == "key":
            self._at += 1 if self._tokens[self._at + 1].key != key else 2
        if not self._at_letter_in_brackets():
            return
        if self._tokens[self._at + 1].key != key:
            raise NotReadableError("a text with the letter of another option")
        self._at += 3

    def _at_letter_in_brackets(self) -> bool:
        return self._kinds[self._at : self._at + 3] == ["open", "key", "close"]

    def _bracket(self, key: str) -> None:
        """Skip a remark in brackets, which may deny other options but not name them."""
        if self._kind() != "open" or self._at_letter_in_brackets():
            return
        kinds = self._kinds[self._at : -1]
        end = kinds.index("close") if "close" in kinds else len(kinds)
        remark = self._tokens[self._at + 1 : self._at + end]
        spoken = {token.text.lower() for token in remark if not token.text.isdigit()}
        if "%" in spoken and (spoken == {"%"} or spoken & _LIKELIHOODS):
            self._likelihoods.append(sum(int(t.text) for t in remark if t.text.isdigit()))
        is_told = len(spoken) > 1 or sum(self._likelihoods) <= _WHOLE
        if len(self._likelihoods) > 1 and is_told:
            raise NotReadableError("a likelihood of each option")
        is_repeated = {token.key for token in remark if token.kind in NAMES} == set(self.keys)
        self._check_remark(remark, self.keys if is_repeated else [key])
        self._at = min(self._at + end + 1, len(self._tokens))  # one that is never closed goes to the end

    def _check_remark(self, remark: list[Token], keys: list[str]) -> None:
        for clause in clauses(remark):
            shorts = [token for token in clause if token.kind == "short" and token.key not in keys]
            if (
                is_open(clause)
                or further_options(clause, keys)
                or (shorts and not denies(clause))
                or (denies(clause) and (_predicate_alone(clause) or _denies_own(clause, self.keys)))
            ):
                raise NotReadableError("a remark that leaves the list open")

    def _run_of_letters(self) -> tuple[Reading, bool] | None:
        """Parse letters written together ("bd", "ACD") with nothing else in the text."""
        token = self._peek()
        if token is None or token.kind in NAMES or not (token.text.isalpha() and len(token.text) > 1):
            return None
        letters = list(token.text.upper())
        if len(set(letters)) < len(letters) or not set(letters) <= self._texts.keys:
            return None
        self._at += 1
        if self._only_punctuation():
            self.entries_end = self._at
            return reading_of(letters), True
        self._at -= 1
        return None

    def _tail(self, keys: list[str]) -> bool:
        """Check the text after the list, and return whether there is none."""
        self._skip({"close", "subject", "label"})
        if self._kinds[self._at : self._at + 2] == ["pronoun", "verb"]:  # "C it is"
            self._skip({"pronoun", "verb"} if self._kinds[self._at + 2] in {"stop", None} else set())
        if self._only_punctuation():
            return True
        while self._kind() == "stop" and self._kinds[self._at + 1] in _AFTER_FULL_STOP:
            self._at += 1
        first = self._tokens[self._at].kind
        ahead = self._kinds[self._at : self._at + 2]
        if ahead == ["dash", None] or (self._several and ahead == ["newline", "bullet"]):
            raise NotReadableError("an entry that is no option, a minus sign, or a list that breaks off")
        if first in {"comma", "join"}:
            self._at += 1
            if first == "comma" and self._kinds[self._at : self._at + 2] == ["join", "not"]:
                self._at += 1
            if self._kind() not in _OPENS_REASON | {"not"} and (self._several or first == "join"):
                raise NotReadableError("a list that goes on")
        elif first not in _STOPS | _OPENS_REASON | {"colon", "dash", "not", "open", "bar"}:
            raise NotReadableError("no end of a list")
        if first in {"stop", "newline"} and self._alone:
            return False
        rest = clauses(self._rest_to_check())
        if first in _SETS_OFF and self._opens_range() and not (self._is_apart() and denies(rest[0])):
            raise NotReadableError("a range of options")
        if first in {"verb", "colon", "dash", "comma"} and rest and self._refuses(first, rest[0]):
            raise NotReadableError("a list that is denied")
        for clause in rest:
            self._check_further(clause, keys, sentence=first in _STOPS)
        return False

    def _rest_to_check(self) -> list[Token]:
        """The tokens behind a list, or those up to the end of its sentence."""
        rest = self._tokens[self._at :]
        end = next((at for at, token in enumerate(rest) if token.kind in {"stop", "newline"}), len(rest))
        is_judged = polarity(rest[:end]) in {"yes", "no"}  # "A: yes"
        return rest[:end] if self._alone and not is_judged else rest

    def _opens_range(self) -> bool:
        """Return whether an option follows the sign behind a list: "A-C"."""
        return bool(self._tokens[self._at + 1 :]) and self._tokens[self._at + 1].key != ""

    def _is_apart(self) -> bool:
        """Return whether the sign behind a list stands between spaces: "B, C - A and D are nulled"."""
        before, sign, following = self._tokens[self._at - 1 : self._at + 2]
        return sign.start > before.start + len(before.text) and following.start > sign.start + 1

    def _refuses(self, first: Kind, predicate: Clause) -> bool:
        """Return whether a predicate denies a list or leaves it open; after a comma, only the latter."""
        stance = polarity(predicate)
        if {"not", "no"} <= (kinds := {token.kind for token in predicate}) and "perhaps" not in kinds:
            return False  # "A, B, C: no wall is spared"
        if first == "dash" and stance == "no" and [token.text for token in predicate[1:2]] == ["the"]:
            return False  # "A - the septum is normal" speaks of something else
        if first == "comma":
            return stance == "open" and (self._several or not _weighs(predicate))
        return stance in {"no", "open"}

    def _check_further(self, clause: Clause, keys: list[str], sentence: bool) -> None:
        """Refuse a clause after the list that may add or withdraw an option."""
        further = further_options(clause, keys)
        if self._several and sentence:  # "The normal septum ..." is no choice of "Normal"
            further = [token for token in further if token.kind == "key" or " " in token.text.strip()]
        elif not self._several:
            further = [token for token in further if token.kind == "key"]
        adds_option = polarity(clause) == "yes" or any(
            token.kind in _ADDING and token.text.lower() not in _WOULD for token in clause
        )
        if not self._several and _weighs(clause):
            adds_option = False
        is_retracted = denies(clause) and any(token.kind == "key" and token.key in keys for token in clause)
        # "A, not B, C": does the denial end before C?
        unbounded = clause[0].kind == "not" and {"comma"} == {token.kind for token in clause} & _LIST_SIGNS
        if is_retracted or (self._several and unbounded) or (further and (adds_option or self._several)):
            raise NotReadableError("a list that is not all of the answer")

    def _skip_denial(self) -> None:
        self._skip({"not"} | _LEAD)

    def _only_punctuation(self) -> bool:
        rest = {token.kind for token in self._tokens[self._at :]}
        if self._kinds[self._at :] == ["comma", None]:
            return True
        return (
            rest <= {"stop", "newline", "close", "semicolon", "bar", "dash", "bullet"}
            and not self._dangling()
        )

    def _dangling(self) -> bool:
        return self._kind() == "dash"

    def _peek(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _kind(self) -> Kind | None:
        return self._kinds[self._at]

    def _take(self) -> Token:
        self._at += 1
        return self._tokens[self._at - 1]

    def _skip(self, kinds: Collection[str], most: int = 1000) -> None:
        last = self._at + most
        while self._at < last and self._kinds[self._at] in kinds:
            self._at += 1


def _weighs(clause: Clause) -> bool:
    """Return whether a sentence leaves the option open that it begins with: "C is also possible"."""
    kinds = [token.kind for token in clause if token.kind not in {"label", "subject", "word"}]
    is_preferred = any(token.text.lower() in words().commits.after for token in clause[1:])
    is_sentence = kinds[:1] == ["key"] and "perhaps" in kinds
    return is_sentence and not is_preferred and not {"yes", "either", "query"} & set(kinds)


def _denies_own(clause: Clause, keys: Collection[str]) -> bool:
    """Return whether a remark takes back an entry by its letter: "B, C (not B)"."""
    return any(token.kind == "key" and token.text.isupper() and token.key in keys for token in clause)


def _predicate_alone(clause: Clause) -> bool:
    """Return whether a remark is nothing but a denial: "A (no)", "A (not enhancing)"."""
    return all(token.kind in {"no", "not", "verb", "yes", "subject"} for token in clause)
