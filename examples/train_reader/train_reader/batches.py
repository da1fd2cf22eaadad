"""Convert a pack to tensors: a tree of tokens in which a question sees the frames but no other question.

    frames ─┬─ question 1 ─┬─ "ANSWER: B"
            │              └─ "B"
            └─ question 2 ─┬─ ...

Every branch has the positions that it would have alone, so that training matches the later requests.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from train_reader.examples import Pack, PackQuestion
from train_reader.tiny import IMAGE_SIDE

IGNORED = -100  # label of a prompt token
_ROUTINE = 0.1  # weight of a reply token that is the same for every answer


@dataclass(frozen=True, slots=True)
class PackTensors:
    """The network's input for one pack; token tensors have a leading dimension of one."""

    tokens: Tensor  # (1, place)
    positions: Tensor  # (1, place)
    seen: Tensor  # bool (1, 1, place, place): attention mask, which token sees which
    labels: Tensor  # (1, place): the next token, or IGNORED
    weights: Tensor  # (1, place): weight in the loss
    pictures: Tensor  # float (frame, 3, row, column), as from the image processor
    letters: tuple[tuple[int, str], ...]  # (place whose label is an answer's first letter, subtask)

    def to(self, device: str) -> "PackTensors":
        """Return the tensors moved to a device."""
        parts = ("tokens", "positions", "seen", "labels", "weights", "pictures")
        return replace(self, **{part: getattr(self, part).to(device) for part in parts})


@dataclass(slots=True)
class _Tree:
    """The tokens of one pack, each with its position, branch, label and weight."""

    tokens: list[int]
    positions: list[int]
    branches: list[int]
    labels: list[int]
    weights: list[float]
    above: list[int]  # per branch: its parent branch, -1 for the root
    letters: list[tuple[int, str]]


class Tokens:
    """The tokenizer, which expands `<image>` to all tokens of an image."""

    def __init__(self, processor: Any) -> None:
        self._tokenizer = processor.tokenizer
        self._image = (
            "<fake_token_around_image><global-img>"
            + "<image>" * processor.image_seq_len
            + "<fake_token_around_image>"
        )
        self.image = processor.tokenizer.convert_tokens_to_ids("<image>")
        self.end = processor.tokenizer.eos_token_id
        self._letters = {processor.tokenizer.convert_tokens_to_ids(letter) for letter in "ABCDEFGH"}

    def of(self, text: str) -> list[int]:
        """Return the token ids of a part of a prompt."""
        full_text = text.replace("<image>", self._image)
        return list(self._tokenizer(full_text, add_special_tokens=False).input_ids)

    def telling(self, token: int) -> bool:
        """Return whether a reply token is an option letter, which depends on the answer."""
        return token in self._letters


def pack_tensors(pack: Pack, tokens: Tokens) -> PackTensors:
    """Convert a pack to tensors."""
    tree = _tree(pack, tokens)
    return PackTensors(
        tokens=torch.tensor([tree.tokens]),
        positions=torch.tensor([tree.positions]),
        seen=_seen(tree)[None, None],
        labels=torch.tensor([tree.labels]),
        weights=torch.tensor([tree.weights]),
        pictures=normalised(pack.pictures),
        letters=tuple(tree.letters),
    )


def normalised(pictures: Any) -> Tensor:
    """Convert grey frames as the image processor does: three channels from -1 to 1."""
    grey = torch.from_numpy(np.ascontiguousarray(pictures)).float() / 127.5 - 1
    return grey.reshape(-1, 1, IMAGE_SIDE, IMAGE_SIDE).expand(-1, 3, -1, -1)


def _tree(pack: Pack, tokens: Tokens) -> _Tree:
    tree = _Tree([], [], [], [], [], [], [])
    root = _grow(tree, -1, 0, tokens.of(pack.shown) if pack.shown else [])
    for question in pack.asked:
        _ask(tree, root, question, tokens)
    return tree


def _ask(tree: _Tree, root: tuple[int, int], asked: PackQuestion, tokens: Tokens) -> None:
    *words, last = tokens.of(asked.words)
    question = _grow(tree, *root, words)
    for reply in asked.replies:
        reply_tokens = [*tokens.of(reply), tokens.end]
        share = 1 / len(asked.replies)
        weights = [
            share * (1.0 if _decides(tokens, reply_tokens, at) else _ROUTINE)
            for at in range(len(reply_tokens))
        ]
        at = len(tree.tokens)  # each reply repeats the question's last token: a token predicts only one other
        _grow(tree, *question, [last, *reply_tokens[:-1]])
        tree.labels[at:] = reply_tokens
        tree.weights[at:] = weights
        place = next(place for place, token in enumerate(reply_tokens) if tokens.telling(token))
        if "\n" not in reply:
            tree.letters.append((at + place, asked.subtask))


def _decides(tokens: Tokens, reply_tokens: Sequence[int], at: int) -> bool:
    """Return whether a token is a letter, or follows one, where another letter would be possible."""
    return tokens.telling(reply_tokens[at]) or (at > 0 and tokens.telling(reply_tokens[at - 1]))


def _grow(tree: _Tree, above: int, position: int, ids: Sequence[int]) -> tuple[int, int]:
    """Add a branch below `above`; return its index and the position after it."""
    branch = len(tree.above)
    tree.above.append(above)
    tree.tokens += ids
    tree.positions += range(position, position + len(ids))
    tree.branches += [branch] * len(ids)
    tree.labels += [IGNORED] * len(ids)
    tree.weights += [0.0] * len(ids)
    return branch, position + len(ids)


def _seen(tree: _Tree) -> Tensor:
    """Return the attention mask: a token sees earlier tokens of its own branch and of its ancestors."""
    below = np.eye(len(tree.above), dtype=bool)
    for branch, above in enumerate(tree.above):
        if above >= 0:
            below[branch] |= below[above]
    branches = np.array(tree.branches)
    return torch.from_numpy(below[branches][:, branches] & np.tri(len(branches), dtype=bool))
