"""Reasoning and answer apart, by the parsers of the installed vLLM, on a tokenizer made here."""

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from cardiolens.base.errors import RunError
from cardiolens.config.model import ModelSpec
from cardiolens.inference.engine.decoding import ReasoningSplit

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch, which vLLM's parsers import

MARKS = [
    *("<think>", "</think>", "<|channel>", "<channel|>", "<|turn>", "<turn|>", "<|im_end|>", "<tool_call>"),
    *("</tool_call>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<answer>", "</answer>"),
    *("<|begin_of_box|>", "<|end_of_box|>"),
]
CASES = [
    ("qwen3", "<think>A?</think>\n\nANSWER: B<|im_end|>", "A?", "ANSWER: B"),
    ("qwen3", "<think>A? ANSWER: A", "A? ANSWER: A", ""),
    ("gemma4", "<|channel>thought\nA?<channel|>ANSWER: B<turn|>", "A?", "ANSWER: B"),
    ("gemma4", "ANSWER: B", None, "ANSWER: B"),
    ("glm45", "<think>A?</think><|begin_of_box|>B<|end_of_box|>", "A?", "B"),
    ("hunyuan_a13b", "<think>\nA?\n</think>\n<answer>\nANSWER: B\n</answer>", "A?", "ANSWER: B"),
    ("openai_gptoss", "<|channel|>analysis<|message|>A?", "<|channel|>analysis<|message|>A?", ""),
    ("openai_gptoss", "ANSWER: B", None, "ANSWER: B"),
]


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    bytes_alone = Tokenizer(models.BPE(vocab={letter: at for at, letter in enumerate(letters)}, merges=[]))
    bytes_alone.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_alone.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=bytes_alone, additional_special_tokens=MARKS)


def model(parser: str) -> ModelSpec:
    return ModelSpec(
        name="m", source="a/b", reasoning_parser=parser, template_options={"enable_thinking": True}
    )


@pytest.mark.parametrize(("parser", "text", "reasoning", "answer"), CASES)
def test_reasoning_and_answer_are_apart(
    tokenizer: PreTrainedTokenizerFast, parser: str, text: str, reasoning: str | None, answer: str
) -> None:
    assert ReasoningSplit.of(model(parser), tokenizer)(text) == (reasoning, answer)


@pytest.mark.parametrize(
    ("parser", "words"), [("no_such", "is not one of vLLM's"), ("mistral", "does not fit")]
)
def test_a_parser_that_cannot_work_fails_the_model_before_it_answers(
    tokenizer: PreTrainedTokenizerFast, parser: str, words: str
) -> None:
    unchecked = model("qwen3").model_copy(update={"reasoning_parser": parser})
    with pytest.raises(RunError, match=words):
        ReasoningSplit.of(unchecked, tokenizer)
