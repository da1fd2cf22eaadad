"""How probable each option was, from what an engine said of every token of a constrained reply.

Under structured decoding the probabilities of the tokens that may come next sum to 1 at every step. Letters
of a reply ascend, so a reply to multi-select decides on each option in turn: it names it, or it passes it
over by naming a later letter or by ending.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

ENDED = "ended"


@dataclass(frozen=True, slots=True)
class TokenStep:
    """One token of a reply, with the log-probability of each token text that could have stood there."""

    said: str
    logprobs: Mapping[str, float]


def set_logprobs(steps: Sequence[TokenStep], legal: Collection[str]) -> dict[str, float]:
    """Log-probability that each letter is named, given what the reply says of the letters before it.

    Exact up to the last letter named. Of letters after it only the probability that the reply goes on is
    known; there, and wherever else a reply could have turned to what was not followed, its legal
    continuations count alike. Letters that could not be named are left out; nothing is said of a reply that
    was cut or is not legal.
    """
    replies = _Replies.of(legal)
    path = replies.path(steps)
    if path is None or path[-1] != ENDED:
        return {}
    found = {}
    for letter in replies.letters:
        named, passed = _turn(letter, steps, path, replies)
        if named > 0:
            found[letter] = math.log(named / (named + passed))
    return found


@dataclass(frozen=True, slots=True)
class _Replies:
    """Legal replies without spaces, with the letters that each names."""

    named: Mapping[str, frozenset[str]]

    @staticmethod
    def of(legal: Collection[str]) -> "_Replies":
        bare = [reply.replace(" ", "") for reply in legal]
        return _Replies({reply: frozenset(reply.split(",")) for reply in bare})

    @property
    def letters(self) -> list[str]:
        return sorted(frozenset().union(*self.named.values()))

    def after(self, begun: str, token: str) -> str | None:
        """How a reply stands after a token: ENDED where a whole reply ends; None where none is left."""
        now = begun + token.replace(" ", "")
        if token and any(reply.startswith(now) for reply in self.named):
            return now
        return ENDED if begun in self.named else None

    def left(self, begun: str, token: str) -> list[frozenset[str]]:
        """What the replies name that are possible after a token."""
        now = self.after(begun, token)
        if now == ENDED:
            return [self.named[begun]]
        return [named for reply, named in self.named.items() if now is not None and reply.startswith(now)]

    def path(self, steps: Sequence[TokenStep]) -> list[str] | None:
        """How the reply stood before each step and at the end; None where a token does not fit."""
        path = [""]
        for step in steps:
            now = None if path[-1] == ENDED else self.after(path[-1], step.said)
            if now is None:
                return None
            path.append(now)
        return path


def _turn(
    letter: str, steps: Sequence[TokenStep], path: Sequence[str], replies: _Replies
) -> tuple[float, float]:
    """Probability that a letter is named, and that it is passed over, after the same letters before it."""
    before = _before(letter, replies.named[path[-2]])
    reached, named, passed = 1.0, 0.0, 0.0
    for step, begun in zip(steps, path, strict=False):
        over = len({letter in reply for reply in replies.left(begun, step.said)}) == 1
        for token, logprob in step.logprobs.items():
            if token == step.said and not over:
                continue  # the next steps tell
            left = replies.left(begun, token)
            alike = _alike(letter, before, left)
            share = reached * math.exp(logprob) / max(len(left), 1)
            named += share * sum(letter in reply for reply in alike)
            passed += share * sum(letter not in reply for reply in alike)
        if over:
            break
        reached *= math.exp(step.logprobs[step.said])
    return named, passed


def _alike(letter: str, before: frozenset[str], replies: Sequence[frozenset[str]]) -> list[frozenset[str]]:
    return [named for named in replies if _before(letter, named) == before]


def _before(letter: str, named: frozenset[str]) -> frozenset[str]:
    return frozenset(other for other in named if other < letter)
