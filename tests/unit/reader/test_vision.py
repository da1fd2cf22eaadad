"""First weights of the image encoder."""

import pytest
import torch

from cardiolens.reader.learn import encoded
from cardiolens.reader.network import make_network, make_processor


@pytest.fixture(scope="module")
def network():
    return make_network(make_processor("openprotocol-1").tokenizer, 1)


def test_a_patch_begins_by_attending_to_itself_and_its_neighbours(network):
    vision = network.model.vision_model
    places = vision.embeddings.position_embedding.weight.detach()
    layer = vision.encoder.layers[0]
    seen = layer.layer_norm1(places)
    own = layer.self_attn
    heads = [
        torch.softmax(query @ key.T / own.head_dim**0.5, -1)
        for query, key in zip(
            own.q_proj(seen).chunk(own.num_heads, -1), own.k_proj(seen).chunk(own.num_heads, -1), strict=True
        )
    ]
    attention = torch.stack(heads).mean(0)
    side = int(len(places) ** 0.5)
    rows, columns = torch.arange(len(places)) // side, torch.arange(len(places)) % side
    apart = (rows[:, None] - rows).abs().maximum((columns[:, None] - columns).abs())
    near, far = attention[apart <= 1].mean(), attention[apart >= 4].mean()
    assert near > 2 * far


@pytest.mark.full
def test_a_seed_decides_every_weight():
    tokenizer = make_processor("openprotocol-1").tokenizer
    one, same, other = (make_network(tokenizer, seed).state_dict() for seed in (3, 3, 4))
    assert all(torch.equal(one[name], same[name]) for name in one)
    name = "model.vision_model.encoder.layers.0.self_attn.q_proj.weight"
    assert not torch.equal(one[name], other[name])


def test_frames_that_differ_are_seen_to_differ(network):
    frames = torch.rand(2, 1, 64, 64).expand(-1, 3, -1, -1) * 2 - 1
    with torch.no_grad():
        patches, tokens = encoded(network, frames)
    assert torch.isfinite(tokens).all()
    assert (patches[0] - patches[1]).abs().mean() > 0.1
