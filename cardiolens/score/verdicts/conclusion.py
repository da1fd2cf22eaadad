"""What a clause of a reply comes down to, without premise, interjection or the pair that it chooses from."""

import functools

from cardiolens.report_text.reply_lexicon import words
from cardiolens.score.verdicts.reply_clauses import Clause
from cardiolens.score.verdicts.reply_tokens import ARROWS
from cardiolens.score.verdicts.stance import choosing_words

_PAUSES = frozenset({"...", "…"})
_UNABLE = frozenset({"cannot", "can't", "can not"})


def conclusion(clause: Clause) -> Clause:
    """What a clause comes down to: "... see no jet, so A" without its premise, and without "Actually,"."""
    clause = _without_premise(_without_pair(_without_interjection(_without_inner_arrows(clause))))
    first_name = next((at for at, token in enumerate(clause) if token.key), 0)
    return clause[
        max((at for at in range(first_name) if clause[at].text.lower() in words().conclusions), default=0) :
    ]


def _without_inner_arrows(clause: Clause) -> Clause:
    """A clause without the arrows that lead from an option's text to a letter: "mildly reduced → B"."""
    return [
        token
        for at, token in enumerate(clause)
        if token.text not in ARROWS
        or not any(before.key for before in clause[:at])
        or clause[at - 1].kind in {"key", "query"}
        or [after.kind for after in clause[at + 1 : at + 2]] != ["key"]
    ]


def _without_pair(clause: Clause) -> Clause:
    """A clause without the two options that it chooses from: "between B and C, the rim speaks for C"."""
    comma = next((at for at, token in enumerate(clause) if token.kind == "comma"), 0)
    pair = [token for token in clause[1:comma] if token.kind not in {"label", "join"}]
    is_pair = clause[:1] and clause[0].text.lower() == "between" and len(pair) == 2
    rest = clause[comma + 1 :]
    is_chosen = any(token.key in {name.key for name in pair} for token in rest if token.key)
    return rest if is_pair and is_chosen and all(token.key for token in pair) else clause


def _without_premise(clause: Clause) -> Clause:
    """A clause without what stands before the comma of a commitment: "frame 8 is misread, call it D"."""
    first_name = next((at for at, token in enumerate(clause) if token.key), 0)
    at = max((at for at in range(first_name) if clause[at].kind == "comma"), default=-1)
    premise = clause[: max(at, 0)]
    commits = any(token.text.lower() in choosing_words() for token in clause[at + 1 : first_name])
    is_open = any(
        token.kind in {"query", "either"} or (token.kind == "perhaps" and token.text.lower() not in _UNABLE)
        for token in premise
    )
    return clause[at + 1 :] if commits and premise and not is_open else clause


def _without_interjection(clause: Clause) -> Clause:
    """A clause without "...", "Actually," or "No," at its beginning."""
    while len(clause) > 1 and clause[0].text in _PAUSES:
        clause = clause[1:]
    while (
        len(clause) > 2  # "Yes, and it reaches the border" ends its first clause at the comma
        and clause[0].text.lower() in _interjections()
        and clause[1].kind in {"comma", "colon", "dash"}
    ):
        clause = clause[2:]
    return clause


@functools.cache
def _interjections() -> frozenset[str]:
    return frozenset(words().second_thoughts.interjections)
