"""Replies of one sentence in the words of their question: "All walls enhance.", "No abnormality is seen."."""

import re
from itertools import pairwise

from cardiolens.report_text.reply_lexicon import words
from cardiolens.score.verdicts.elimination import NORMAL
from cardiolens.score.verdicts.enumerations import is_broken_list
from cardiolens.score.verdicts.option_text import OptionTexts
from cardiolens.score.verdicts.reading import Reading, reading_of
from cardiolens.score.verdicts.reply_clauses import Clause, clauses, polarity
from cardiolens.score.verdicts.reply_tokens import Token
from cardiolens.score.verdicts.subject import Subject

_STEM = 5  # letters that two forms of a word share: "enlargement", "enlarged"
_LEFT_SIDE = frozenset({"lv", "left"})
_WELL = frozenset(
    {"normal", "normally", "unremarkable", "unaffected", "uninvolved", "preserved", "intact", "healthy"}
)
_PERCEIVED = frozenset({"seen", "visible", "present"})
_QUANTIFIES = frozenset({"all", "every", "each", "both", "only"})
_ALL = frozenset({"all", "every", "each", "everything"})
_SAYS_NOTHING = frozenset(
    {"label", "subject", "verb", "open", "close", "colon", "dash", "stop", "newline", "comma", "join"}
)
_LEAVES_OPEN = frozenset({"perhaps", "either", "query", "key", "unsure", "neutral", "but", "semicolon"})


class QuestionWords:
    """The words that a question and its options share with a reply, and those that say nothing."""

    def __init__(self, question: str, texts: OptionTexts) -> None:
        self._texts = texts
        self._subject = Subject(question, texts)
        spoken_words = {*re.findall(r"\w{4,}", question.lower()), *words().findings}
        self._stems = frozenset(word[:_STEM] for word in spoken_words) if question else frozenset()
        self._own = [key for key, text in texts.options if not NORMAL.match(text)]
        self._normal = [key for key, text in texts.options if NORMAL.match(text)]

    def answer(self, tokens: list[Token], *, several: bool) -> Reading | None:
        """The options of a sentence that affirms all of them, finds nothing, or only names some."""
        sentence_clauses = clauses([self._as_word(token) for token in tokens])
        if not sentence_clauses or not self._stems:
            return None
        first, further = sentence_clauses[0], sentence_clauses[1:]
        if several and (all_options := self._all(first, further)):
            return all_options
        if further:
            return None
        return self._nothing(first) or self._named_options(first, several=several)

    def _as_word(self, token: Token) -> Token:
        """A word of one option's text that the question has, too, as a word of no option."""
        is_asked = token.kind == "part" and token.text.lower()[:_STEM] in self._stems
        return token._replace(kind="word", key="") if is_asked else token

    def _all(self, clause: Clause, further: list[Clause]) -> Reading | None:
        """All options that "all walls" stands for, without those that a further clause denies."""
        if not any(token.text.lower() in _ALL for token in clause) or polarity(clause) in {"no", "open"}:
            return None
        named_keys = {token.key for token in clause if token.key}
        own_keys = self._own
        is_of_left = any(token.text.lower() in _LEFT_SIDE for token in clause)
        if not is_of_left and self._subject.is_of_others(clause):
            return None
        if is_of_left:
            own_keys = [key for key in own_keys if not dict(self._texts.options)[key].startswith("Right")]
        is_listed = named_keys == set(own_keys) and not any(token.kind == "verb" for token in clause)
        if not named_keys <= set(own_keys) or not (is_listed or self._affirms(clause)):
            return None
        if not self._is_plain([token for token in clause if token.text != "to"]):  # "from base to apex"
            return None
        denied = [token.key for other_clause in further for token in other_clause if token.key]
        if any(polarity(other_clause) != "no" for other_clause in further):
            return None
        return reading_of([key for key in own_keys if key not in denied])

    def _affirms(self, clause: Clause) -> bool:
        """Return whether a clause speaks of a finding: "all walls move" does not."""
        return any(
            (token.kind == "yes" and token.text not in _PERCEIVED) or token.text.lower() in words().findings
            for token in clause
        )

    def _nothing(self, clause: Clause) -> Reading | None:
        """The option that says that nothing was found, of a clause that denies what its question asks for."""
        kinds = [token.kind for token in clause]
        denials = sum(kind in {"not", "no"} for kind in kinds)
        is_denial = denials == 1 and not ("no" in kinds and "yes" in kinds)
        if len(self._normal) != 1 or not is_denial or any(token.key for token in clause):
            return None
        is_part = any(
            token.kind == "not" and after.text.lower() in _QUANTIFIES for token, after in pairwise(clause)
        )
        if is_part or self._subject.is_of_others(clause):
            return None  # "not both atria are enlarged"
        is_well = any(token.text.lower() in _WELL for token in clause)
        is_own = self._is_plain(clause) and (is_well or ("no" not in kinds and self._affirms(clause)))
        return reading_of(self._normal) if is_own else None

    def _named_options(self, clause: Clause, *, several: bool) -> Reading | None:
        """The options that a clause names beside nothing else."""
        named_keys = list(dict.fromkeys(token.key for token in clause if token.key))
        kinds = {token.kind for token in clause}
        is_own = self._is_plain(clause) and not kinds & {"not", "no", "part"}
        if not named_keys or not is_own or not (several or len(named_keys) == 1) or is_broken_list(clause):
            return None
        is_said = "text" in kinds and not self._subject.is_foreign_in([clause])
        if several and not self._normal and not self._affirms(clause):
            return None  # "the septal wall moves"
        return reading_of(named_keys) if is_said else None

    def _is_plain(self, clause: Clause) -> bool:
        """Return whether a clause has no words beyond those of its question and those that say nothing."""
        return all(
            token.key != "" or token.kind in _SAYS_NOTHING | {"yes", "no", "not"} or self._is_own(token)
            for token in clause
            if token.kind != "pronoun"
        ) and not _LEAVES_OPEN & {token.kind for token in clause}

    def _is_own(self, token: Token) -> bool:
        word = token.text.lower()
        return word in _ALL or word in words().plain or (len(word) > 3 and word[:_STEM] in self._stems)
