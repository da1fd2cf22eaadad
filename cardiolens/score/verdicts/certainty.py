"""Whether a reading without an explicit mark is certain: what is not counts as unread (protocol 17.16)."""

import functools
import re
from collections.abc import Iterator
from difflib import get_close_matches
from itertools import pairwise

from cardiolens.report_text.reply_lexicon import words
from cardiolens.score.verdicts.elimination import NORMAL
from cardiolens.score.verdicts.explained_away import is_another_cause
from cardiolens.score.verdicts.option_text import OptionTexts
from cardiolens.score.verdicts.reading import Keys
from cardiolens.score.verdicts.reply_clauses import NAMES, Clause, clauses, polarity
from cardiolens.score.verdicts.reply_tokens import Token
from cardiolens.score.verdicts.topics import Topics

_OF_STATEMENTS = frozenset({"enumeration", "heading"})
_IN_OWN_WORDS = frozenset({"option_text", "answer_phrase", "heading"})
_SUPPOSES = frozenset({"had", "were"})
_DEGREES = frozenset({"low", "high", "less", "more", "least", "most"})
_PERCEIVED = frozenset({"seen", "visible", "visualised", "covered", "assessable"})
_ONE_OF = frozenset({"an", "another", "one"})
_MEDIA = frozenset({"image", "images", "frame", "frames", "loop", "cine", "stack"})
_OF_ANSWER = frozenset({"confidence", "certainty"})
_STEM = 5  # letters that two forms of a word share
_ALIKE = 0.75  # of a misspelled word and its own


class Certainty:
    """Judges the readings of replies to one question."""

    def __init__(self, question: str, texts: OptionTexts, *, several: bool) -> None:
        self._topics = Topics.of(question)
        self._texts = texts
        self._several = several
        self._own_words = ["answer", *frozenset().union(*texts.own.values())]
        self._stems = tuple({word[:_STEM] for word in re.findall(r"\w{4,}", question.lower())})

    def holds(self, tokens: list[Token], keys: Keys, rule: str, *, is_marked: bool) -> bool:
        """Return whether each option is named by a clause of the question's topics and of known words.

        A clause in words that no rule knows may say anything of its options: "the claim that B moves".
        """
        supported: set[str] = set()
        named: set[str] = set()
        all_clauses = clauses(tokens)
        entries = [clause for clause in all_clauses if any(token.kind in NAMES for token in clause)]
        is_prose = rule in _IN_OWN_WORDS or (
            rule == "enumeration"
            and len(entries) == 1
            and all(token.key in keys for token in entries[0] if token.kind in NAMES)
        )
        for clause, before in _naming(all_clauses, frozenset(keys)):
            keys_of_clause = {token.key for token in clause if token.kind in NAMES}
            named |= keys_of_clause
            is_headed = bool(before) and before[-1].kind == "colon" and rule not in _OF_STATEMENTS
            is_obscure = (is_prose and self._is_obscure(clause)) or (is_headed and self._has_unknown(before))
            is_clear = is_marked or not (
                is_obscure or (rule == "enumeration" and self._only_sees(clause, tokens))
            )
            if is_clear and not self._is_foreign(clause, before, rule):
                supported |= keys_of_clause
        return (named & set(keys)) <= supported and not (
            (rule == "option_text" and self._is_contradicted(tokens, keys))
            or (not is_marked and self._has_other_columns(tokens, rule))
        )

    def _has_other_columns(self, tokens: list[Token], rule: str) -> bool:
        """Return whether the head of a table says that its marks are not those of the question."""
        if not any(token.kind == "bar" for token in tokens):
            return False
        head = next(iter(clauses(tokens)), [])
        is_head = len(head) > 1 and not any(token.key for token in head)
        return is_head and (
            any(token.kind == "no" or token.text.lower() in _PERCEIVED for token in head)
            or is_another_cause(head)
            or (rule == "enumeration" and self._topics.are_left_by(_text(head)))
            or (rule == "answer_phrase" and self._has_unknown(head))
        )

    def introduces(self, tokens: list[Token], keys: Keys) -> bool:
        """Return whether options that a text names stand behind a known word: "so D", not "against D"."""
        openings = [
            clause[: next(at for at, token in enumerate(clause) if token.kind in NAMES)][-1:]
            for clause, _ in _naming(clauses(tokens), frozenset(keys))
        ]
        return not openings or any(not self._has_unknown(opening) for opening in openings)

    def _is_contradicted(self, tokens: list[Token], keys: Keys) -> bool:
        """Return whether a reply that names the normal option has a finding: "No LGE; LGE in the septum"."""
        if len(keys) != 1 or not NORMAL.match(dict(self._texts.options).get(keys[0], "")):
            return False
        return any(
            not any(token.key in keys for token in clause)
            and self._finds(clause)
            and not is_another_cause(clause)
            and not self._topics.are_left_by(_text(clause))
            for clause in clauses(tokens)
        )

    def _finds(self, clause: Clause) -> bool:
        """Return whether a clause states a finding, and neither denies it nor leaves it open."""
        stance = polarity(clause)
        finds = any(token.text.lower() in words().findings or token.key for token in clause)
        return stance == "yes" or (stance == "bare" and finds)

    def _is_foreign(self, clause: Clause, before: Clause, rule: str) -> bool:
        """Return whether a clause speaks of something else than the question."""
        at = next(at for at, token in enumerate(clause) if token.kind in NAMES)
        head = before + _since_conclusion(clause[:at])
        is_whole = rule in _OF_STATEMENTS or (self._several and rule != "answer_phrase")
        is_said_of = [token.kind for token in clause[at + 1 : at + 2]] == ["verb"]
        if is_whole or is_said_of or clause[at].kind != "key":
            head = head + _up_to_comma(clause[at:], brackets=not self._several)
        by_letter = clause[at].kind == "key" and at > 0 and clause[at - 1].kind in {"colon", "verb", "key"}
        return self._topics.are_left_by(_text(head)) or (
            by_letter and self._topics.is_of_other_places(_text(head))
        )

    def _only_sees(self, clause: Clause, tokens: list[Token]) -> bool:
        """Return whether a clause says that an option is seen, of a reply that does not say what of it."""
        if not self._topics.asks_for_places:
            return False
        affirming = {token.text.lower() for token in clause if token.kind == "yes"}
        return bool(affirming) and affirming <= _PERCEIVED and not self._topics.are_in(_text(tokens))

    def _is_obscure(self, clause: Clause) -> bool:
        """Return whether a clause has words around its options that are not known."""
        at = next(at for at, token in enumerate(clause) if token.kind in NAMES)
        if clause[0].text.lower() in _SUPPOSES:
            return True  # "had the study been gated, B"
        spoken = _since_conclusion(clause[:at], at_commas=not self._several and clause[at].kind == "key")
        if clause[at].kind == "text" and (
            any(token.text.lower() in words().commits.hedges for token in clause)
            or (at and clause[at - 1].text.lower() in _DEGREES)
        ):
            return True  # "mildly reduced means ...", "low normal"
        if clause[at].kind == "text" and _subject_of(clause, at) in _MEDIA:
            return True  # "the images are present"
        if not self._several and any(
            token.text.lower() == "only" and following.text.lower() in words().commits.before
            for token, following in pairwise(clause)
        ):
            return True  # "I'd only choose C with an EF below 40 %"
        if self._several and any(
            token.text.lower() == "most" and following.kind == "yes" for token, following in pairwise(clause)
        ):
            return True  # "most abnormal: B" may leave others
        if [token.text.lower() for token in spoken[-1:]] in (["was"], ["were"]) and clause[at].kind == "key":
            return True  # "my first pick was C"
        if {token.kind for token in clause if token.key == clause[at].key} >= {"key", "text"}:
            spoken = []  # named twice: "systolic outflow jet (B)"
        if (
            spoken
            and spoken[-1].kind == "colon"
            and spoken[-2:-1]
            and (spoken[-2].text.isdigit() or spoken[-2].text.lower() in _OF_ANSWER)
        ):
            return True  # "answer 2: B", "confidence: B"
        behind = _up_to_comma(clause[at + 1 :])
        if any(token.text.lower() in _ONE_OF for token in behind):
            return True  # "C is an option"
        spoken = spoken + behind
        return self._has_unknown(spoken)

    def _has_unknown(self, spoken: Clause) -> bool:
        return any(token.kind == "word" and not self._is_known(token.text.lower()) for token in spoken)

    def _is_known(self, word: str) -> bool:
        if "_" in word:
            return all(map(self._is_known, word.split("_")))
        return (
            word in _known()
            or (self._stems != () and word.startswith(self._stems))
            or not word.isascii()
            or not any(sign.isalpha() for sign in word)
            or "answer" in word
            or ("-" in word and all(map(self._is_known, word.split("-"))))
            or bool(get_close_matches(word, self._own_words, 1, _ALIKE))
        )


def _naming(all_clauses: list[Clause], keys: frozenset[str]) -> Iterator[tuple[Clause, Clause]]:
    """The clauses that name options and do not deny them, each with the question or heading before it."""
    for at, clause in enumerate(all_clauses):
        names = [
            token for token in clause if token.key in keys and (token.kind != "key" or token.text.isupper())
        ]
        if not any(token.kind in NAMES for token in names) or polarity(clause) == "no":
            continue
        is_reply = at > 0 and all_clauses[at - 1][-1].kind in {"query", "colon"}
        opens = next((token.kind for token in clause if token.kind not in {"bullet", "open", "label"}), "")
        yield clause, all_clauses[at - 1] if is_reply and opens in NAMES else []


def _since_conclusion(before: Clause, *, at_commas: bool = True) -> Clause:
    """What stands before an option since the last comma or word that concludes."""
    ends = [
        at
        for at, token in enumerate(before)
        if (at_commas and token.kind == "comma") or token.text.lower() in words().conclusions
    ]
    return before[ends[-1] + 1 :] if ends else before


def _up_to_comma(rest: Clause, *, brackets: bool = False) -> Clause:
    """Options and what is said of them, up to a reason, a bracket or a comma before no option."""
    for at, token in enumerate(rest):
        if token.kind == "reason" or (token.kind == "open" and not brackets):
            return rest[:at]
        if token.kind == "comma" and not any(after.key for after in rest[at + 1 :]):
            return rest[:at]
    return rest


def _subject_of(clause: Clause, at: int) -> str:
    """The word before the verb of an option's text; empty without a verb."""
    return clause[at - 2].text.lower() if at > 1 and clause[at - 1].kind == "verb" else ""


def _text(tokens: Clause) -> str:
    return " ".join(token.text for token in tokens)


@functools.cache
def _known() -> frozenset[str]:
    commits = words().commits
    return frozenset(
        {
            *words().plain,
            *words().findings,
            *words().conclusions,
            *words().familiar,
            *words().headings["yes"],
            *words().headings["no"],
            *commits.before,
            *commits.after,
            *commits.processes,
            *commits.adds,
        }
    )
