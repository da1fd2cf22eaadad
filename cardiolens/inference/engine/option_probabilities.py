"""Log-probability of each option of a question, from the tokens of its constrained reply.

A reply of one letter is one token, with the probability of each letter. Below: replies of several letters.

Structured decoding masks every token that cannot continue a legal reply, and the probabilities of the
remaining tokens sum to 1 at each step. The letters of a reply ascend. So a reply decides on the options in
turn: it names an option, or passes the option over by naming a later one or by ending.

Example. Options A, B, C may be named in any combination; the model writes "A, C" in four tokens. At each step
the engine reports the probability of every possible token:

    step   written so far   chosen token   probabilities
    1      ""               "A"            "A" 0.60    "B" 0.30    "C" 0.10
    2      "A"              ","            "," 0.80    end 0.20
    3      "A,"             " C"           " B" 0.25   " C" 0.75
    4      "A, C"           end            end 1.00

    A   Decided at step 1: 0.60 names it, 0.30 + 0.10 begin with a later letter.
        P(A) = 0.60, log -0.511
    B   Among replies that name A, as the reply does, since A is decided before B. Step 1 gives "A" 0.60.
        Named:  "A" "," " B"  = 0.60 * 0.80 * 0.25 = 0.12
        Passed: "A" end       = 0.60 * 0.20        = 0.12
                "A" "," " C"  = 0.60 * 0.80 * 0.75 = 0.36
        P(B) = 0.12 / (0.12 + 0.48) = 0.20, log -1.609
    C   Among replies that name A but not B; "A, B" and "A, B, C" no longer count.
        Named:  "A" "," " C"  = 0.36
        Passed: "A" end       = 0.12
        P(C) = 0.36 / (0.36 + 0.12) = 0.75, log -0.288

The reply follows a single path. A token that was not chosen leads to several legal replies whose individual
probabilities are unknown; they share the token's probability equally. If the reply above had ended after "A",
"," would have led to "A, B", "A, C" and "A, B, C", with 0.80 / 3 each.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

ENDED = "ended"


@dataclass(frozen=True, slots=True)
class TokenStep:
    """One token of a reply, with the log-probability of each possible token text at this step."""

    said: str
    logprobs: Mapping[str, float]


def letter_logprobs(steps: Sequence[TokenStep], text: str, legal: Collection[str]) -> dict[str, float]:
    """Return the log-probability of each letter that may be the reply, from the token that is the reply.

    The probabilities sum to 1, because decoding masked all other tokens; letters without a finite value are
    left out. Empty unless the whole output is that token and an end token: a model that thinks writes
    reasoning first, whose tokens are not masked.
    """
    if not steps or len(steps) > 2 or steps[0].said != text:
        return {}
    logprobs = steps[0].logprobs
    return {letter: logprobs[letter] for letter in legal if math.isfinite(logprobs.get(letter, math.nan))}


def set_logprobs(steps: Sequence[TokenStep], legal: Collection[str]) -> dict[str, float]:
    """Return the log-probability that each letter is named, given the decisions on all earlier letters.

    Exact up to the last letter named. For a later letter, only the probability that the reply continues is
    known, and the legal continuations share it equally. Letters that no legal reply could still name are left
    out. Empty for a reply that was cut off or is not legal.
    """
    replies = _Replies.of(legal)
    path = replies.path(steps)
    if path is None or path[-1] != ENDED:
        return {}
    logprobs = {}
    for letter in replies.letters:
        letter_probability, passed = _decision(letter, steps, path, replies)
        if letter_probability > 0:
            logprobs[letter] = math.log(letter_probability / (letter_probability + passed))
    return logprobs


@dataclass(frozen=True, slots=True)
class _Replies:
    """Legal replies without spaces, and the letters that each reply names.

    Spaces are dropped because tokenizers attach them to different tokens: "," + " C" or ", " + "C".
    """

    named: Mapping[str, frozenset[str]]  # letters by reply

    @staticmethod
    def of(legal: Collection[str]) -> "_Replies":
        bare = [reply.replace(" ", "") for reply in legal]
        return _Replies({reply: frozenset(reply.split(",")) for reply in bare})

    @property
    def letters(self) -> list[str]:
        return sorted(frozenset().union(*self.named.values()))

    def after(self, prefix: str, token: str) -> str | None:
        """Return the text, without spaces, after a token follows `prefix`.

        ENDED if the token ends a whole legal reply, None if no legal reply continues this way.
        """
        text = prefix + token.replace(" ", "")
        if token and any(reply.startswith(text) for reply in self.named):
            return text
        # Decoding allows only legal tokens, so any other token after a whole reply is an end-of-text token.
        return ENDED if prefix in self.named else None

    def possible(self, prefix: str, token: str) -> list[frozenset[str]]:
        """Return the letters of each legal reply that is still possible after a token follows `prefix`."""
        text = self.after(prefix, token)
        if text == ENDED:
            return [self.named[prefix]]
        return [
            reply_letter
            for reply, reply_letter in self.named.items()
            if text is not None and reply.startswith(text)
        ]

    def path(self, steps: Sequence[TokenStep]) -> list[str] | None:
        """Return the text before each step and after the last step; None if a token does not fit."""
        path = [""]
        for step in steps:
            text = None if path[-1] == ENDED else self.after(path[-1], step.said)
            if text is None:
                return None
            path.append(text)
        return path


def _decision(
    letter: str, steps: Sequence[TokenStep], path: Sequence[str], replies: _Replies
) -> tuple[float, float]:
    """Return the probabilities that a letter is named and that it is passed over.

    Both count only replies that name the same earlier letters as this reply, so they do not sum to 1.
    """
    earlier = _earlier(letter, replies.named[path[-2]])
    reached, letter_probability, passed = 1.0, 0.0, 0.0  # reached: probability of all tokens chosen so far
    for step, prefix in zip(steps, path, strict=False):
        # After this token, either all possible replies name the letter or none does.
        decided = len({letter in reply for reply in replies.possible(prefix, step.said)}) == 1
        for token, logprob in step.logprobs.items():
            if token == step.said and not decided:
                continue  # the next steps divide the probability of the chosen token
            possible = replies.possible(prefix, token)
            comparable = [reply for reply in possible if _earlier(letter, reply) == earlier]
            share = reached * math.exp(logprob) / max(len(possible), 1)
            letter_probability += share * sum(letter in reply for reply in comparable)
            passed += share * sum(letter not in reply for reply in comparable)
        if decided:
            break
        reached *= math.exp(step.logprobs[step.said])
    return letter_probability, passed


def _earlier(letter: str, letters: frozenset[str]) -> frozenset[str]:
    return frozenset(earlier for earlier in letters if earlier < letter)
