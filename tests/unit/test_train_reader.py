"""The training of the small reader: its recipe is the packaged model's, and a pack is what an engine sees."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from PIL import Image

from cardiolens.base.errors import InputError
from cardiolens.config.compose import read_spec
from cardiolens.config.conf_names import packaged_conf
from cardiolens.inference.models.identity import identify

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "train_reader"
WORDS = "\nQuestion: {}\nA. Absent\nB. Present\nFinish with one line: ANSWER: <letter>\nAssistant:"


@pytest.fixture(scope="module", autouse=True)
def on_path():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLE)
        yield


def test_the_packaged_model_was_trained_by_this_recipe_on_no_cohort_that_ships(tmp_path):
    from train_reader.recipe import read_recipe

    (model,) = read_spec(["model=[reader_small]"]).model
    folder = identify(model, tmp_path).folder
    recipe = read_recipe([f"out={tmp_path}"])
    record = json.loads((folder / "training.json").read_text())
    assert record["recipe"] == recipe.model_dump(mode="json", exclude={"out", "device"})
    datasets = (yaml.safe_load(path.read_text()) for path in (packaged_conf() / "dataset").glob("*.yaml"))
    shipped = {one["phantom"]["seed"] for one in datasets if one.get("phantom")}
    assert shipped
    assert not {cohort.seed for cohort in recipe.cohorts} & shipped


@pytest.mark.parametrize("word", ["sead=3", "read.steps=0", "cohorts=[]", "device=tpu", "see.rate=2"])
def test_a_word_that_cannot_be_used_is_named(word):
    from train_reader.recipe import read_recipe

    with pytest.raises(InputError, match=word.partition("=")[0]):
        read_recipe(["out=/nowhere", word])


def test_a_state_without_a_curve_is_refused_before_anything_is_read(tmp_path):
    from train_reader.learn import STATE, check
    from train_reader.recipe import read_recipe

    torch.save({"recipe": "{}", "step": 100}, tmp_path / STATE)
    with pytest.raises(InputError, match="is of a training with an earlier version; give another out"):
        check(read_recipe([f"out={tmp_path}", "device=cpu"]))


def alone(network, processor, pack, asked, reply):
    """Logits at the places that predict a reply, as the library computes them for one plain prompt."""
    images = [Image.fromarray(one).convert("RGB") for one in pack.pictures]
    text = f"{pack.shown}{asked.words}{reply}"
    inputs = processor(text=text, images=[images], return_tensors="pt")
    said = len(processor.tokenizer(reply, add_special_tokens=False).input_ids)
    with torch.no_grad():
        return network(**inputs).logits[0][-said - 1 :]


@pytest.mark.full
def test_a_question_in_a_pack_is_answered_as_it_is_alone():
    from train_reader.batches import Tokens, pack_tensors
    from train_reader.examples import Pack, PackQuestion
    from train_reader.learn import answered
    from train_reader.network import make_network, make_processor

    processor = make_processor("openprotocol-1")
    network = make_network(processor.tokenizer, seed=3).eval()
    pictures = np.random.default_rng(7).integers(0, 256, (3, 64, 64)).astype(np.uint8)
    shown = "<bos>User: " + "\n".join(f"Frame {number}: cine\n<image>" for number in (1, 2, 3))
    asked = ("Is there enhancement?", "Is the T2 signal normal?")
    replies = ("ANSWER: B, C", "B, C")
    pack = Pack(shown, pictures, tuple(PackQuestion("L01", WORDS.format(one), replies) for one in asked))
    tokens, at = Tokens(processor), 0
    inside, labels, _ = answered(network, pack_tensors(pack, tokens), tokens.image)
    for question in pack.asked:
        for reply in question.replies:
            expected = alone(network, processor, pack, question, reply)
            torch.testing.assert_close(inside[at : at + len(expected)], expected, atol=2e-4, rtol=1e-3)
            said = processor.tokenizer(reply, add_special_tokens=False).input_ids
            assert labels[at : at + len(expected)].tolist() == [*said, tokens.end]
            at += len(expected)
    assert at == len(labels)


def test_the_record_of_a_training_names_its_code(tmp_path):
    from train_reader.__main__ import RECORD, _write_record
    from train_reader.learn import CURVE
    from train_reader.recipe import read_recipe

    (tmp_path / CURVE).write_text('{"seconds": 3600}\n')
    _write_record(read_recipe([f"out={tmp_path}"]), tmp_path)
    assert len(json.loads((tmp_path / RECORD).read_text())["code"]) == 32
