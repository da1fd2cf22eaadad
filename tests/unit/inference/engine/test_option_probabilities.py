"""What an engine decoded: probabilities of options, and reasoning apart from the answer."""

import math
from itertools import product

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from cardiolens.base.errors import RunError
from cardiolens.config.model import ModelSpec
from cardiolens.inference.engine.decoding import ReasoningSplit, TokenStep, letter_logprobs, set_logprobs
from cardiolens.protocol.tasks.legal import legal_replies

END = "<eos>"


class Model:
    """A model of random taste: a probability for each next token after each beginning of a legal reply."""

    def __init__(self, legal: tuple[str, ...], tokens: tuple[str, ...], seed: int) -> None:
        self.legal, self.tokens, self.dice = legal, tokens, np.random.default_rng(seed)
        self.known: dict[str, dict[str, float]] = {}

    def next(self, begun: str) -> dict[str, float]:
        if begun not in self.known:
            fits = [t for t in self.tokens if any(reply.startswith(begun + t) for reply in self.legal)]
            fits += [END] if begun in self.legal else []
            shares = self.dice.dirichlet(np.ones(len(fits)))
            self.known[begun] = dict(zip(fits, map(float, shares), strict=True))
        return self.known[begun]

    def probability(self, reply: str, begun: str = "") -> float:
        """Of a reply, over every way to write it in tokens."""
        ended = self.next(begun).get(END, 0.0) if begun == reply else 0.0
        return ended + sum(
            share * self.probability(reply, begun + token)
            for token, share in self.next(begun).items()
            if token != END and reply.startswith(begun + token)
        )

    def steps(self, reply: str) -> list[TokenStep]:
        """The reply written with the longest tokens."""
        steps, begun = [], ""
        while begun != reply:
            fits = [t for t in self.next(begun) if t != END and reply.startswith(begun + t)]
            steps.append(self.step(begun, max(fits, key=len)))
            begun += steps[-1].said
        return [*steps, self.step(begun, END)]

    def step(self, begun: str, said: str) -> TokenStep:
        logprobs = {token: math.log(share) for token, share in self.next(begun).items()}
        return TokenStep(said, logprobs | {"masked": -math.inf})


def given_those_before(model: Model, letter: str, reply: str) -> float:
    """By enumeration of all legal replies."""
    named = set(reply.split(", "))
    alike = [
        (set(other.split(", ")), model.probability(other))
        for other in model.legal
        if {key for key in other.split(", ") if key < letter} == {key for key in named if key < letter}
    ]
    return sum(share for other, share in alike if letter in other) / sum(share for _, share in alike)


@pytest.mark.parametrize(("seed", "exclusive"), list(product(range(4), [(), ("A",), ("D",)])))
def test_up_to_the_last_letter_named_probabilities_are_exact(seed: int, exclusive: tuple[str, ...]) -> None:
    legal = legal_replies("multi", tuple("ABCD"), exclusive)
    model = Model(legal, ("A", "B", "C", "D", ", "), seed)
    for reply in legal:
        found = set_logprobs(model.steps(reply), legal)
        for letter in "ABCD"["ABCD".index(reply[0]) :]:
            if letter <= reply[-1]:
                wanted = given_those_before(model, letter, reply)
                assert math.exp(found[letter]) == pytest.approx(wanted)


def logs(**probabilities: float) -> dict[str, float]:
    return {token: math.log(share) for token, share in probabilities.items()}


def test_the_worked_example_of_the_module() -> None:
    """The reply "A, C" to options A, B, C, with the numbers of the module's docstring."""
    legal = legal_replies("multi", tuple("ABC"), ())
    steps = [
        TokenStep("A", logs(A=0.60, B=0.30, C=0.10)),
        TokenStep(",", logs(**{",": 0.80, END: 0.20})),
        TokenStep(" C", logs(**{" B": 0.25, " C": 0.75})),
        TokenStep(END, logs(**{END: 1.0})),
    ]
    rounded = {letter: round(value, 3) for letter, value in set_logprobs(steps, legal).items()}
    assert rounded == {"A": -0.511, "B": -1.609, "C": -0.288}


def test_after_the_last_letter_named_legal_continuations_count_alike() -> None:
    """After "A" the reply goes on with 0.3: to A, B or A, C or A, B, C."""
    legal = legal_replies("multi", tuple("ABC"), ())
    steps = [TokenStep("A", logs(A=0.5, B=0.25, C=0.25)), TokenStep(END, logs(**{END: 0.7, ",": 0.3}))]
    found = {letter: math.exp(value) for letter, value in set_logprobs(steps, legal).items()}
    named_b = 0.3 * 2 / 3
    named_c = (0.3 / 3) / (0.7 + 0.3 / 3)  # without B: A, C against A
    assert found == pytest.approx({"A": 0.5, "B": named_b, "C": named_c})


@pytest.mark.parametrize("reply", ["A", "A, C", "B, C, D", "D"])
def test_however_a_tokenizer_cuts_it_every_reply_is_read(reply: str) -> None:
    legal = legal_replies("multi", tuple("ABCD"), ())
    model = Model(legal, ("A", " B", "B", "C", " C", ", C", "D", " ", " D", ",", ", "), 3)
    found = set_logprobs(model.steps(reply), legal)
    assert set(found) == set("ABCD")
    assert all(value <= 1e-12 for value in found.values())


def test_a_letter_after_an_exclusive_one_cannot_be_named() -> None:
    legal = legal_replies("multi", tuple("ABC"), ("A",))
    steps = [TokenStep("A", logs(A=0.7, B=0.3)), TokenStep(END, {END: 0.0})]
    assert set_logprobs(steps, legal) == pytest.approx(logs(A=0.7))


def test_a_reply_cut_before_a_letters_turn_says_nothing() -> None:
    legal = legal_replies("multi", tuple("ABC"), ())
    for steps in ([TokenStep("A", logs(A=0.7, B=0.3))], [], [TokenStep("no", {"no": 0.0})]):
        assert set_logprobs(steps, legal) == {}


def test_a_letter_after_empty_reasoning_has_no_probability() -> None:
    steps = [TokenStep(said, {"A": -0.2, "B": -2.0}) for said in ("<think>", "</think>", "A")]
    assert letter_logprobs(steps, "A", ("A", "B")) == {}
    assert letter_logprobs(steps[2:], "A", ("A", "B")) == {"A": -0.2, "B": -2.0}


pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch, which vLLM's parsers import

MARKS = [
    *("<think>", "</think>", "<|channel>", "<channel|>", "<|turn>", "<turn|>", "<|im_end|>", "<tool_call>"),
    *("</tool_call>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<answer>", "</answer>"),
    *("<|begin_of_box|>", "<|end_of_box|>"),
]
CASES = [
    ("qwen3", "<think>A?</think>\n\nANSWER: B<|im_end|>", "A?", "ANSWER: B"),
    ("gemma4", "<|channel>thought\nA?<channel|>ANSWER: B<turn|>", "A?", "ANSWER: B"),
    ("gemma4", "ANSWER: B", None, "ANSWER: B"),
    ("glm45", "<think>A?</think><|begin_of_box|>B<|end_of_box|>", "A?", "B"),
    ("hunyuan_a13b", "<think>\nA?\n</think>\n<answer>\nANSWER: B\n</answer>", "A?", "ANSWER: B"),
    ("openai_gptoss", "<|channel|>analysis<|message|>A?", "<|channel|>analysis<|message|>A?", ""),
]


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    bytes_alone = Tokenizer(models.BPE(vocab={letter: at for at, letter in enumerate(letters)}, merges=[]))
    bytes_alone.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_alone.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=bytes_alone, additional_special_tokens=MARKS)


def thinking(parser: str) -> ModelSpec:
    options = {"enable_thinking": True}
    return ModelSpec(name="m", source="a/b", reasoning_parser=parser, template_options=options)


@pytest.mark.parametrize(("parser", "text", "reasoning", "answer"), CASES)
def test_reasoning_and_answer_are_apart(
    tokenizer: PreTrainedTokenizerFast, parser: str, text: str, reasoning: str | None, answer: str
) -> None:
    assert ReasoningSplit.of(thinking(parser), tokenizer)(text) == (reasoning, answer)


@pytest.mark.parametrize(
    ("parser", "words"), [("no_such", "is not one of vLLM's"), ("mistral", "does not fit")]
)
def test_a_parser_that_cannot_work_fails_the_model_before_it_answers(
    tokenizer: PreTrainedTokenizerFast, parser: str, words: str
) -> None:
    unchecked = thinking("qwen3").model_copy(update={"reasoning_parser": parser})
    with pytest.raises(RunError, match=words):
        ReasoningSplit.of(unchecked, tokenizer)
