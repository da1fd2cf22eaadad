"""A pack's tree against the plain sequence: training sees what an engine will see, question by question."""

import numpy as np
import pytest
import torch

from cardiolens.reader.batches import IGNORED, Tokens, normalised, pack_tensors
from cardiolens.reader.examples import Pack, PackQuestion
from cardiolens.reader.network import make_network, make_processor
from cardiolens.storage.schemas import FRAME

PROTOCOL = "openprotocol-1"
WORDS = "\nQuestion: {}\nA. Absent\nB. Present\nFinish with one line: ANSWER: <letter>\nAssistant:"


@pytest.fixture(scope="module")
def processor():
    return make_processor(PROTOCOL)


@pytest.fixture(scope="module")
def network(processor):
    return make_network(processor.tokenizer, seed=3).eval()


def pack(n_frames: int) -> Pack:
    pictures = np.random.default_rng(7).integers(0, 256, (n_frames, 64, 64)).astype(np.uint8)
    shown = "<bos>User: " + "".join(f"Frame {number}: cine\n<image>\n" for number in range(1, n_frames + 1))
    questions = ("Is there enhancement?", "Which walls enhance? (regional)", "Is the T2 signal normal?")
    return Pack(
        shown.rstrip("\n") if n_frames else "",
        pictures,
        tuple(PackQuestion("L01", WORDS.format(one), ("ANSWER: B, C", "B, C")) for one in questions),
    )


def alone(network, processor, pack: Pack, asked: PackQuestion, reply: str) -> torch.Tensor:
    """Logits at the places that predict a reply, as the library computes them for one plain prompt."""
    text = f"{pack.shown}{asked.words}{reply}"
    from PIL import Image

    images = [Image.fromarray(one).convert("RGB") for one in pack.pictures]
    if images:
        inputs = processor(text=text, images=[images], return_tensors="pt")
    else:
        inputs = processor.tokenizer(text, return_tensors="pt", add_special_tokens=False)
        inputs.pop("token_type_ids", None)
    said = len(processor.tokenizer(reply, add_special_tokens=False).input_ids)
    with torch.no_grad():
        logits = network(**inputs).logits[0]
    return logits[-said - 1 :]


@pytest.mark.full
@pytest.mark.parametrize("n_frames", [0, 1, 5])
def test_a_question_in_a_tree_is_answered_as_it_is_alone(network, processor, n_frames):
    from cardiolens.reader.learn import answered

    one = pack(n_frames)
    tokens = Tokens(processor)
    inside, labels, _ = answered(network, pack_tensors(one, tokens), tokens.image)
    at = 0
    for asked in one.asked:
        for reply in asked.replies:
            expected = alone(network, processor, one, asked, reply)
            found = inside[at : at + len(expected)]
            torch.testing.assert_close(found, expected, atol=2e-4, rtol=1e-3)
            said = processor.tokenizer(reply, add_special_tokens=False).input_ids
            assert labels[at : at + len(expected)].tolist() == [*said, tokens.end]
            at += len(expected)
    assert at == len(labels)


def test_what_depends_on_the_answer_weighs_most(processor):
    tree = pack_tensors(pack(1), Tokens(processor))
    told = tree.labels != IGNORED
    heavy = {
        processor.tokenizer.decode([token])
        for token, weight in zip(tree.labels[told].tolist(), tree.weights[told].tolist(), strict=True)
        if weight >= 0.5
    }
    assert heavy == {"B", "C", ", ", "<end_of_utterance>"}


def test_frames_are_normalised_as_the_processor_does(processor):
    from PIL import Image

    pictures = pack(2).pictures
    images = [Image.fromarray(one).convert("RGB") for one in pictures]
    expected = processor.image_processor(images=[images], return_tensors="pt").pixel_values[0]
    torch.testing.assert_close(normalised(pictures), expected, atol=1e-5, rtol=0)


def test_tokens_never_join_a_caption_with_its_number(processor):
    """The plan counts `Frame 12:` and the words after it apart; a token across them would make it wrong."""
    tokenizer = processor.tokenizer
    caption = "Frame 12: cine, short axis, slice 2 of 10 (base to apex), phase 1 of 25\n"
    number, _, words = caption.partition(":")
    whole = tokenizer(caption).input_ids
    assert whole == [*tokenizer(f"{number}:").input_ids, *tokenizer(words).input_ids]
    assert FRAME not in caption
    assert len(whole) < 12


def test_any_text_survives_the_tokenizer(processor):
    tokenizer = processor.tokenizer
    for text in ("naïve Köhler 37 °C ≥ 12.5 %", "A, B and C\n\n  tabs\t", "慢性心不全 🫀", "ANSWER: A, C"):
        assert tokenizer.decode(tokenizer(text, add_special_tokens=False).input_ids) == text


def test_packs_with_and_without_frames_change_the_same_weights(network, processor):
    from cardiolens.reader.learn import answered

    tokens = Tokens(processor)
    learned = {*network.model.text_model.parameters(), *network.lm_head.parameters()}
    for n_frames in (0, 2):
        network.zero_grad(set_to_none=True)
        logits, labels, _ = answered(network, pack_tensors(pack(n_frames), tokens), tokens.image)
        torch.nn.functional.cross_entropy(logits, labels).backward()
        assert {one for one in network.parameters() if one.grad is not None} == learned
    network.zero_grad(set_to_none=True)
