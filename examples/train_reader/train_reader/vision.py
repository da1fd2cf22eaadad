"""Initial weights of the image encoder: sinusoidal positions, and attention that starts at the patch itself.

A randomly initialised transformer must learn which patches are neighbours before it can learn from them. With
initial weights after Trockman and Kolter (Mimetic initialization of self-attention layers, 2023) the encoder
sees lesions after hundreds of steps; without them it saw none after thousands (bench/results/reader.md).
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

_POSITION = 0.5  # amplitude of position waves; scale of patch weights
_SEEK, _CARRY = 0.7, 0.4  # weight of identity and noise in query-key products, and in value-output products
_LONGEST = 2.0  # wavelength of the slowest wave, in sides of a frame
_SHORTEST = 4.0  # wavelength of the fastest wave, in patches


@torch.no_grad()
def localise(vision: Any) -> None:
    """Set the initial weights of an image encoder; torch's random state determines the noise."""
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
    """Return sines and cosines of the row and column of each patch, (patch, width)."""
    slowest, fastest = math.log10(2 * math.pi / (_LONGEST * side)), math.log10(2 * math.pi / _SHORTEST)
    rates = torch.logspace(slowest, fastest, width // 4)
    rows, columns = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    turns = [place.reshape(-1, 1) * rates for place in (rows, columns)]
    return torch.cat([wave for turn in turns for wave in (turn.sin(), turn.cos())], dim=1)


def _near(width: int, weight: float, sign: float) -> Tensor:
    """Return weighted noise plus or minus the identity."""
    return weight * (torch.randn(width, width) / math.sqrt(width) + sign * torch.eye(width))


def _factors(product: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """Return two factors of the best approximation of a matrix by one of the given rank."""
    left, sizes, right = torch.linalg.svd(product)
    roots = sizes[:rank].sqrt()
    return left[:, :rank] * roots, right[:rank] * roots[:, None]
