"""Decoding of answers: legal letters, reasoning apart from the answer, probabilities of options."""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cardiolens.base.errors import RunError
from cardiolens.config.model import ModelSpec, Sampling
from cardiolens.inference.engine.ask import Ask

if TYPE_CHECKING:
    from vllm.reasoning import ReasoningParser


_MAX_LOGPROBS = 20  # per token; vLLM's limit unless configured (max_logprobs)


def structured_output_args(ask: Ask) -> dict[str, str | list[str]]:
    """Return vLLM's structured output arguments: legal reply, text that ends in one, JSON, or frame names."""
    constraint = ask.constraint
    if constraint.naming is not None:
        return {"regex": constraint.naming.pattern}
    if constraint.schema:
        return {"json": constraint.schema}
    return {"regex": constraint.pattern} if constraint.line else {"choice": list(constraint.legal)}


def sampling_of(sampling: Sampling, ask: Ask) -> tuple[float, int | None]:
    """Return temperature and seed of a request: its own if it is one of several samples, else the model's."""
    temperature = sampling.temperature if ask.temperature is None else ask.temperature
    return temperature, sampling.seed if ask.seed is None else ask.seed


def must_be_legal_reply(ask: Ask) -> bool:
    """Return whether the whole reply must be legal, so that its tokens give option probabilities."""
    return bool(ask.constraint.legal) and not ask.constraint.line


def alternatives(ask: Ask) -> int:
    """Return the number of tokens that may come next in a direct reply.

    Each letter with and without a leading space, plus four for comma, space and end; at most 20.
    """
    letters = {letter for reply in ask.constraint.legal for letter in reply if letter.isalpha()}
    return min(2 * len(letters) + 4, _MAX_LOGPROBS)


def one_letter(ask: Ask) -> bool:
    """Return whether each legal reply is one letter, so that the first token gives all probabilities."""
    return must_be_legal_reply(ask) and all(len(reply) == 1 for reply in ask.constraint.legal)


_HARMONY = "openai_gptoss"  # in vLLM it marks where reasoning ends, and does not separate a whole text
_CHANNEL, _MESSAGE = "<|channel|>", "<|message|>"
_FINAL = f"{_CHANNEL}final"
_ANSWER_MARKS = re.compile(r"box|answer")  # marks around the answer itself, by which a reply is read


class ReasoningSplit:
    """Separates the texts of one model, written with their special tokens."""

    def __init__(self, parser: "ReasoningParser | None", special_tokens: Iterable[str]) -> None:
        self._parser = parser  # None: harmony
        self._special_tokens = [token for token in special_tokens if not _ANSWER_MARKS.search(token)]

    @staticmethod
    def of(model: ModelSpec, tokenizer: Any) -> "ReasoningSplit":
        """Make the parser that a model names; RunError if there is none, or if it needs other tokens."""
        from vllm.reasoning import ReasoningParserManager

        special_tokens = tokenizer.all_special_tokens
        if model.reasoning_parser == _HARMONY:
            return ReasoningSplit(None, special_tokens)
        legal = ReasoningParserManager.list_registered()
        if model.reasoning_parser not in legal:
            raise RunError(
                f"model {model.name}: reasoning_parser {model.reasoning_parser!r} is not one of vLLM's: "
                f"{', '.join(sorted(legal))}; correct it in conf/model/{model.name}.yaml"
            )
        kind = ReasoningParserManager.get_reasoning_parser(model.reasoning_parser)
        try:
            parser = kind(tokenizer, chat_template_kwargs=dict(model.template_options))
        except Exception as error:  # parsers raise what they like about a vocabulary without their marks
            raise RunError(
                f"model {model.name}: vLLM's reasoning_parser {model.reasoning_parser!r} does not fit its "
                f"tokenizer ({error}); name the parser of its family"
            ) from error
        return ReasoningSplit(parser, special_tokens)

    def __call__(self, text: str) -> tuple[str | None, str]:
        """Return the reasoning of a text, None without any, and its answer, empty if cut before one."""
        reasoning, answer = self._separate(text)
        return self._without_marks(reasoning) or None, self._without_marks(answer)

    def _separate(self, text: str) -> tuple[str | None, str | None]:
        if self._parser is None:
            reasoning, final, answer = text.rpartition(_FINAL)
            if not final:
                return (text, "") if _CHANNEL in text else (None, text)
            return reasoning, answer.partition(_MESSAGE)[2]
        from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

        reasoning, answer = self._parser.extract_reasoning(text, ChatCompletionRequest(messages=[], model=""))
        return reasoning, answer

    def _without_marks(self, text: str | None) -> str:
        for token in self._special_tokens:
            text = (text or "").replace(token, "")
        return (text or "").strip()


@dataclass(frozen=True, slots=True)
class TokenStep:
    """One token of a reply, with the log-probability of each possible token text at this step."""

    said: str
    logprobs: Mapping[str, float]


def letter_logprobs(steps: Sequence[TokenStep], text: str, legal: Collection[str]) -> dict[str, float]:
    """Return the log-probability of each letter that may be the reply, from the token that is the reply.

    The probabilities sum to 1, because decoding masked all other tokens; letters without a finite value are
    left out. Empty unless the whole output is that token and an end token: a model that thinks writes
    reasoning first, and its tokens are not masked.
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
    # Without spaces, which tokenizers attach to different tokens: "," + " C" or ", " + "C".
    letters_of = {reply.replace(" ", ""): frozenset(reply.split(", ")) for reply in legal}
    reply = "".join(step.said for step in steps[:-1]).replace(" ", "")
    if reply not in letters_of or _possible(letters_of, reply, steps[-1].said) != [reply]:
        return {}
    probability = _reply_probabilities(steps, reply, letters_of)
    logprobs = {}
    for letter in sorted(frozenset[str]().union(*letters_of.values())):
        decided = _earlier(letter, letters_of[reply])
        alike = [
            alternative for alternative, letters in letters_of.items() if _earlier(letter, letters) == decided
        ]
        names_it = sum(probability[alternative] for alternative in alike if letter in letters_of[alternative])
        if names_it > 0:
            logprobs[letter] = math.log(names_it / sum(probability[alternative] for alternative in alike))
    return logprobs


def _reply_probabilities(
    steps: Sequence[TokenStep], reply: str, replies: Collection[str]
) -> Mapping[str, float]:
    """Return the probability of each legal reply, as far as the steps of one of them show it.

    Replies that begin with a token that was not chosen share its probability equally.
    """
    probability = dict.fromkeys(replies, 0.0)
    prefix, reached = "", 1.0  # the reply so far, and the probability of its tokens
    for step in steps:
        for token, logprob in step.logprobs.items():
            possible = [] if token == step.said else _possible(replies, prefix, token)
            for candidate in possible:
                probability[candidate] += reached * math.exp(logprob) / len(possible)
        reached *= math.exp(step.logprobs[step.said])
        prefix += step.said.replace(" ", "")
    probability[reply] += reached
    return probability


def _possible(replies: Collection[str], prefix: str, token: str) -> list[str]:
    """Return the replies that are possible after a token follows a prefix.

    Decoding allows only legal tokens, so a token that continues no reply ends the one that is whole.
    """
    text = prefix + token.replace(" ", "")
    longer = [reply for reply in replies if token and reply.startswith(text)]
    return longer or [reply for reply in replies if reply == prefix]


def _earlier(letter: str, letters: frozenset[str]) -> frozenset[str]:
    return frozenset(earlier for earlier in letters if earlier < letter)
