"""First weights of the image encoder: positions as waves, and attention that begins at a patch itself.

A transformer that starts at random must learn what a neighbour is before it can learn anything from one. With
first weights in the manner of Trockman and Kolter (Mimetic initialization of self-attention layers, 2023) it
sees lesions after hundreds of steps; without them it had not after thousands (docs/reader.md).
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

_POSITION = 0.5  # size of the waves beside patches
_SEEK, _CARRY = 0.7, 0.4  # weight of identity and of noise in query-key, and in value-output
_LONGEST = 2.0  # wave length of the slowest wave, in sides of a frame
_SHORTEST = 4.0  # and of the fastest, in patches


@torch.no_grad()
def localise(vision: Any) -> None:
    """Set the first weights of an image encoder; the state of torch's generator decides the noise."""
    config = vision.config
    width, side = config.hidden_size, config.image_size // config.patch_size
    vision.embeddings.position_embedding.weight.copy_(_POSITION * _waves(side, width))
    inputs = config.num_channels * config.patch_size**2
    nn.init.normal_(vision.embeddings.patch_embedding.weight, std=_POSITION / math.sqrt(inputs))
    for layer in vision.encoder.layers:
        attention = layer.self_attn
        heads = attention.num_heads
        for query, key in zip(
            attention.q_proj.weight.chunk(heads), attention.k_proj.weight.chunk(heads), strict=True
        ):
            query_side, key_side = _factors(_near(width, _SEEK, 1.0), width // heads)
            query.copy_(query_side.T)
            key.copy_(key_side)
        out_side, value_side = _factors(_near(width, _CARRY, -1.0), width)
        attention.out_proj.weight.copy_(out_side)
        attention.v_proj.weight.copy_(value_side)
        for part in (attention.q_proj, attention.k_proj, attention.v_proj, attention.out_proj):
            nn.init.zeros_(part.bias)
        nn.init.xavier_uniform_(layer.mlp.fc1.weight)
        nn.init.xavier_uniform_(layer.mlp.fc2.weight)


def _waves(side: int, width: int) -> Tensor:
    """Sines and cosines of the row and the column of each patch, (patch, width)."""
    slowest, fastest = math.log10(2 * math.pi / (_LONGEST * side)), math.log10(2 * math.pi / _SHORTEST)
    rates = torch.logspace(slowest, fastest, width // 4)
    rows, columns = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    turns = [place.reshape(-1, 1) * rates for place in (rows, columns)]
    return torch.cat([wave for turn in turns for wave in (turn.sin(), turn.cos())], dim=1)


def _near(width: int, weight: float, sign: float) -> Tensor:
    """Noise plus or minus the identity."""
    return weight * (torch.randn(width, width) / math.sqrt(width) + sign * torch.eye(width))


def _factors(product: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """Two factors of the best approximation of a matrix that has a rank."""
    left, sizes, right = torch.linalg.svd(product)
    roots = sizes[:rank].sqrt()
    return left[:, :rank] * roots, right[:rank] * roots[:, None]
