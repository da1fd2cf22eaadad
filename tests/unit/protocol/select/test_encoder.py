"""Selectors that see with a pretrained image encoder: real, tiny, of random weights."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.compose import read_spec
from cardiolens.config.sweep import SweepSpec, parse
from cardiolens.inference.plan.plan import plan
from cardiolens.protocol.select.feature_store import missing_parts, read_features, relevant, write_features
from cardiolens.protocol.select.features import PIXELS, Encoder, check_encoders, sights_of
from cardiolens.storage import schemas, tables
from cardiolens.study.shards import read_volumes

Sweep = Callable[..., SweepSpec]
SIDE = 32


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CLIP type model: two towers that end in eight features."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import CLIPConfig, CLIPModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("clip")
    tower = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "initializer_factor": 20.0,
    }
    words = {"<pad>": 0, "<unk>": 1, "</s>": 2, "Is": 3, "heart": 4, "the": 5, "wall": 6, "?": 7}
    ids = {"bos_token_id": 3, "eos_token_id": 2, "pad_token_id": 0}
    torch.manual_seed(1)
    config = CLIPConfig(
        text_config=tower | {"vocab_size": len(words), "max_position_embeddings": 16} | ids,
        vision_config=tower | {"image_size": SIDE, "patch_size": 8},
        projection_dim=8,
    )
    CLIPModel(config).save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        model_max_length=16,
    )
    fast.save_pretrained(folder)
    _save_image_processor(folder)
    return folder


@pytest.fixture(scope="module")
def resnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from transformers import ResNetConfig, ResNetModel

    folder = tmp_path_factory.mktemp("resnet")
    torch.manual_seed(1)
    config = ResNetConfig(embedding_size=4, hidden_sizes=[4, 8], depths=[1, 1], layer_type="basic")
    ResNetModel(config).save_pretrained(folder)
    _save_image_processor(folder)
    return folder


def _save_image_processor(folder: Path) -> None:
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    sides = {"height": SIDE, "width": SIDE}
    CLIPImageProcessorPil(size={"shortest_edge": SIDE}, crop_size=sides).save_pretrained(folder)


def frames(seed: int, number: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (number, 40, 44), dtype=np.uint8)


def test_frames_and_questions_become_unit_vectors(clip: Path, resnet: Path):
    sharp, seen = frames(1, 37), Encoder(clip).frames(frames(1, 37))
    assert seen.shape == (37, 8)
    assert np.linalg.norm(seen, axis=1) == pytest.approx(np.ones(37), abs=1e-6)
    assert Encoder(resnet).frames(sharp).shape == (37, 8)
    np.testing.assert_allclose(Encoder(clip).frames(sharp[33:34])[0], seen[33], atol=1e-5)
    assert abs(seen[0] - seen[1]).max() > 1e-3
    asked = Encoder(clip).text("Is the heart wall thick?")
    assert np.linalg.norm(asked) == pytest.approx(1, abs=1e-6)
    assert np.array_equal(asked, Encoder(clip).text("Is the heart wall thick?"))
    assert abs(asked - Encoder(clip).text("the wall " * 40)).max() > 1e-3


def test_relevance_weighs_nearness_against_likeness():
    # Three unit vectors in a plane, by their angle to the question: A 0, B 10 and C 80 degrees.
    angles = np.radians([0.0, 10.0, 80.0])
    distance = 2 * np.sin(abs(angles[:, None] - angles) / 2)
    near = np.cos(angles)
    # After A: B is worth (cos 10 - cos 10) / 2 = 0, C (cos 80 - cos 80) / 2 = 0: a tie goes to the first.
    assert relevant(distance, near, 2) == [0, 1]
    # With B at -10 degrees its worth stays 0, and C's grows once it is as near as 70 degrees from A.
    near[2] = np.cos(np.radians(70))
    assert relevant(distance, near, 2) == [0, 2]
    assert relevant(distance, near, 9) == [0, 2, 1]
    assert relevant(distance, near, 0) == []


def test_a_sweep_selects_by_an_encoder_and_by_the_question(sweep_of: Sweep, clip: Path):
    spec = sweep_of(
        "model=[uniform]",
        "subtask=[C06,C10]",
        "budget=[4]",
        "selector=[kcenter,encoder,relevance]",
        f"selector.encoder.encoder={clip}",
        f"selector.relevance.encoder={clip}",
    )
    check_encoders(spec)
    sights = sights_of(spec)
    assert [sight.encoder for sight in sights] == [None, clip]
    volumes = read_volumes(spec.store)
    for sight in sights:
        (part,) = missing_parts(spec.store, volumes, sight)
        write_features(spec.store, part, sight)
        assert missing_parts(spec.store, volumes, sight) == []
    planned = plan(spec)
    names = {arm.arm_id: arm.selector.name for arm in planned.arms}
    chosen: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for row in tables.read(planned.run.requests("uniform"), schemas.REQUESTS).to_pylist():
        if row["status"] == "planned":
            places = [(frame["volume_id"], frame["idx"]) for frame in row["frames"]]
            chosen[names[row["arm_id"]], row["subtask"]] = places
    assert all(len(places) == 4 for places in chosen.values())
    assert chosen["kcenter", "C10"] != chosen["encoder", "C10"]
    assert chosen["encoder", "C06"] == chosen["encoder", "C10"]  # question-free
    assert chosen["relevance", "C06"] != chosen["relevance", "C10"]


def test_features_belong_to_the_encoders_content(sweep_of: Sweep, clip: Path, resnet: Path):
    one, other = (
        sights_of(sweep_of("selector=[encoder]", f"selector.encoder.encoder={folder}"))[0]
        for folder in (clip, resnet)
    )
    assert len({one.key, other.key, PIXELS.key}) == 3


def test_features_of_an_encoder_are_read_back(sweep_of: Sweep, resnet: Path):
    spec = sweep_of("selector=[encoder]", f"selector.encoder.encoder={resnet}")
    (sight,) = sights_of(spec)
    volumes = read_volumes(spec.store)
    with pytest.raises(InputError, match="prepare again"):
        read_features(spec.store, volumes, sight)
    write_features(spec.store, missing_parts(spec.store, volumes, sight)[0], sight)
    assert read_features(spec.store, volumes, sight) is not None


def test_a_missing_path_is_named_with_its_remedy():
    with pytest.raises(InputError, match=r"selector.encoder.encoder has no value; give one"):
        read_spec(["selector=[encoder]"])


def test_an_encoder_that_cannot_serve_is_refused(sweep_of: Sweep, tmp_path: Path, clip: Path, resnet: Path):
    def refused(kind: str, folder: Path, message: str) -> None:
        with pytest.raises(InputError, match=message):
            check_encoders(sweep_of(f"selector=[{kind}]", f"selector.{kind}.encoder={folder}"))

    refused("encoder", tmp_path / "none", "no folder with a config.json")
    refused("relevance", resnet, "reads no text.* choose kind kcenter")
    (tmp_path / "config.json").write_text('{"model_type": "clip"}')
    refused("encoder", tmp_path, "cannot be loaded")
    bare = tmp_path / "bare"
    bare.mkdir()
    for file in clip.iterdir():
        if not file.name.startswith("tokenizer"):
            (bare / file.name).write_bytes(file.read_bytes())
    check_encoders(sweep_of("selector=[encoder]", f"selector.encoder.encoder={bare}"))
    refused("relevance", bare, "has no tokenizer")


def test_an_encoder_goes_with_kinds_that_look_at_frames(sweep_of: Sweep):
    tree = sweep_of("selector=[clinical]").model_dump(mode="json")
    tree["selector"] = {"clinical": {"kind": "clinical", "encoder": "somewhere"}}
    with pytest.raises(InputError, match="kind clinical looks at no frames"):
        parse(tree)
    tree["selector"] = {"relevance": {"kind": "relevance"}}
    with pytest.raises(InputError, match="kind relevance needs encoder"):
        parse(tree)
