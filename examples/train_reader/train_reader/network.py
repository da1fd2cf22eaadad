"""The small reader's files and network: Idefics3 with a few million parameters, and its phrase tokenizer.

A caption such as `, slice 3 of 10 (base to apex)` is a handful of tokens, because merges may cross words.
Numbers and single letters are never merged, so that `B` is the same token in an option list and an answer.
"""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from cardiolens.protocol.prompts.question import AskedQuestion, words
from cardiolens.protocol.prompts.template import question_block, template_for
from cardiolens.protocol.tasks.catalogue import Catalogue, load_catalogue
from cardiolens.study.anatomy import heart
from train_reader.tiny import IMAGE_SIDE, PATCH, SPECIAL, config, finished, processor
from train_reader.vision import localise

JOINED = 4  # patches per side of an image token: 2 x 2 tokens per frame
VOCABULARY = 2048
# Text never merged with its neighbours: numbers (except totals, "of 25"), option letters, colons, line ends.
_ALONE = r"(?<! of )(?<!\d)\d+|\b[A-H]\b|[:\n]"
_VISION = {"hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 5, "num_attention_heads": 4}
_TEXT = {"hidden_size": 192, "intermediate_size": 512, "num_hidden_layers": 4, "num_attention_heads": 6}
_SPREAD = 0.07  # of initial weights: inverse root of the width; the library's 0.02 is for wider networks
_QUIET = 0.005  # of the connector's initial weights, whose tokens should carry tissues and little else
_FRAME_NUMBERS = 65
_TOTALS = (3, 5, 8, 10, 12, 20, 25, 30, 40, 50)  # usual numbers of slices, layers, phases and beats


def make_processor(protocol: str) -> Any:
    """Make the processor: the phrase tokenizer of a protocol's prompts, and frames of 64 pixels."""
    return processor(_tokenizer(load_catalogue(protocol)), (IMAGE_SIDE // PATCH // JOINED) ** 2)


def make_network(tokenizer: Any, seed: int) -> Any:
    """Make the untrained network in float32; the seed determines its weights."""
    import torch
    from transformers import Idefics3ForConditionalGeneration

    torch.manual_seed(seed)
    text = {**_TEXT, "initializer_range": _SPREAD}
    settings = config(tokenizer, _VISION, text, JOINED, tie_word_embeddings=False)
    network = Idefics3ForConditionalGeneration(settings)
    localise(network.model.vision_model)
    torch.nn.init.normal_(network.model.connector.modality_projection.proj.weight, std=_QUIET)
    return network


def save(network: Any, tokenizer: Any, folder: Path) -> None:
    """Write network (as bfloat16) and tokenizer for vLLM; the network itself is not changed."""
    import copy

    import torch

    folder.mkdir(parents=True, exist_ok=True)
    copy.deepcopy(network).to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _tokenizer(catalogue: Catalogue) -> Any:
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_ALONE), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(_corpus(catalogue), trainer)
    return finished(core)


def _corpus(catalogue: Catalogue) -> Iterator[str]:
    """Yield the texts of prompts for tokenizer training: captions repeatedly, then each question."""
    for _ in range(20):
        yield from _captions()
        yield "System: \nUser: \nAssistant: "
        yield from ["ANSWER: A, B\n1. seen\n2. seen"] * 20
    for subtask in catalogue.subtasks.values():
        if subtask.answer_type == "report":
            continue
        for question, style, back in product(
            (subtask.question, *subtask.wordings), ("standard", "reasoning"), (False, True)
        ):
            options = tuple((option.key, option.text) for option in subtask.options)
            asked = AskedQuestion(
                subtask=subtask.id,
                sequence=subtask.sequence,
                question=question,
                answer_type=subtask.answer_type,
                options=options[::-1] if back else options,
                exclusive=subtask.exclusive,
                checklist=subtask.checklist,
                reversed=back and subtask.answer_type == "ordinal",
            )
            template = template_for(asked, "standard" if style == "standard" else "reasoning")
            yield template.system
            yield question_block(asked, 16, template)
            blind = template_for(asked, "standard", display="nothing")
            yield blind.system
            yield question_block(asked, 0, blind)


def _captions() -> Iterator[str]:
    anatomy = heart()
    sequence_words = [kind.words for kind in anatomy.sequences.values()]
    sequence_words += [anatomy.words, *words()["sequences"].values()]
    for sequence, view in product(sequence_words, [view.words for view in anatomy.views.values()]):
        yield f" {sequence}, {view}, slice "
        yield f" {sequence}, {view}, layer "
        yield f" {sequence}, {view}"
    for total in _TOTALS:
        yield f"slice 1 of {total} (base to apex), phase "
        yield f"slice 1 of {total} (base to apex), time "
        yield f"slice 1 of {total} (base to apex)"
        yield f"layer 1 of {total}, phase 1 of {total}"
        yield f"time 1 of {total}"
    yield from (f"Frame {number}: {number} of {number}\n" for number in range(_FRAME_NUMBERS))
