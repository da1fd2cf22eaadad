"""Whether the clause that names an answer is in words that are known (protocol 17.16)."""

import functools
import re
from difflib import get_close_matches
from itertools import pairwise

from cardiolens.report_text.reply_lexicon import kinds, words
from cardiolens.score.verdicts.option_text import OptionTexts
from cardiolens.score.verdicts.reply_clauses import NAMES, Clause

_SUPPOSES = frozenset({"had", "were"})
_PAST = frozenset({"was", "were"})
_DEGREES = frozenset({"low", "high", "less", "more", "least", "most"})
_ONE_OF = frozenset({"an", "another", "one"})
_MEDIA = frozenset({"image", "images", "frame", "frames", "loop", "cine", "stack"})
_OF_ANSWER = frozenset({"confidence", "certainty"})
_STEM = 5  # letters that two forms of a word share
_ALIKE = 0.75  # of a misspelled word and its own


class KnownWords:
    """The words that a clause may have around the options of one question."""

    def __init__(self, question: str, texts: OptionTexts, *, several: bool) -> None:
        self._several = several
        self._own_words = ["answer", *frozenset().union(*texts.own.values())]
        self._stems = tuple({word[:_STEM] for word in re.findall(r"\w{4,}", question.lower())})

    def hide(self, clause: Clause) -> bool:
        """Return whether a clause that names options may say anything of them: "the claim that B moves"."""
        at = next(at for at, token in enumerate(clause) if token.kind in NAMES)
        behind = up_to_comma(clause[at + 1 :])
        is_letter = clause[at].kind == "key"
        head = since_conclusion(clause[:at], at_commas=not self._several and is_letter)
        if {token.kind for token in clause if token.key == clause[at].key} >= {"key", "text"}:
            head = []  # named twice: "systolic outflow jet (B)"
        return (
            clause[0].text.lower() in _SUPPOSES  # "had the study been gated, B"
            or any(token.text.lower() in _ONE_OF for token in behind)  # "C is an option"
            or (_limits_letter(clause[:at]) if is_letter else _turns_text(clause, at))
            or self._is_partial(clause)
            or self.lack(head + behind)
        )

    def lack(self, clause: Clause) -> bool:
        """Return whether a clause has a word that is not known."""
        return any(token.kind == "word" and not self._have(token.text.lower()) for token in clause)

    def _is_partial(self, clause: Clause) -> bool:
        """Return whether a clause limits what it chooses: "most abnormal: B", "I'd only choose C if"."""
        return any(
            (token.text.lower() == "most" and following.kind == "yes")
            if self._several
            else (token.text.lower() == "only" and following.text.lower() in words().commits.before)
            for token, following in pairwise(clause)
        )

    def _have(self, word: str) -> bool:
        if "_" in word:
            return all(map(self._have, word.split("_")))
        return (
            word in _known()
            or (self._stems != () and word.startswith(self._stems))
            or not word.isascii()
            or not any(sign.isalpha() for sign in word)
            or "answer" in word
            or ("-" in word and all(map(self._have, word.split("-"))))
            or bool(get_close_matches(word, self._own_words, 1, _ALIKE))
        )


def _limits_letter(before: Clause) -> bool:
    """Return whether a letter is that of a past choice or of something numbered: "my first pick was C"."""
    last, *further = [token.text.lower() for token in reversed(before[-2:])] or [""]
    return last in _PAST or (
        bool(further)
        and before[-1].kind == "colon"
        and (further[0].isdigit() or further[0] in _OF_ANSWER)  # "answer 2: B", "confidence: B"
    )


def _turns_text(clause: Clause, at: int) -> bool:
    """Return whether a text is defined, graded or said of images: "low normal", "the images are present"."""
    before = [token.text.lower() for token in clause[max(at - 2, 0) : at]]
    judges = kinds().get(clause[at].text.lower()) in {"yes", "no"}
    return (
        any(token.text.lower() in words().commits.hedges for token in clause)
        or before[-1:] in [[degree] for degree in _DEGREES]
        or (judges and len(before) > 1 and clause[at - 1].kind == "verb" and before[0] in _MEDIA)
    )


def since_conclusion(before: Clause, *, at_commas: bool = True) -> Clause:
    """What stands before an option since the last comma or word that concludes."""
    ends = [
        at
        for at, token in enumerate(before)
        if (at_commas and token.kind == "comma") or token.text.lower() in words().conclusions
    ]
    return before[ends[-1] + 1 :] if ends else before


def up_to_comma(rest: Clause, *, brackets: bool = False) -> Clause:
    """Options and what is said of them, up to a reason, a bracket or a comma before no option."""
    for at, token in enumerate(rest):
        if token.kind == "reason" or (token.kind == "open" and not brackets):
            return rest[:at]
        if token.kind == "comma" and not any(after.key for after in rest[at + 1 :]):
            return rest[:at]
    return rest


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
