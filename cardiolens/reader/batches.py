"""A pack as tensors: tokens in the form of a tree, in which a question sees the frames and no other question.

    frames ─┬─ question 1 ─┬─ "ANSWER: B"
            │              └─ "B"
            └─ question 2 ─┬─ ...

Every branch has the positions that it would have alone, so that what is learned is what is asked later.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cardiolens.inference.models.embedded import IMAGE_SIDE
from cardiolens.reader.examples import Pack, PackQuestion

IGNORED = -100  # label of a token that is given
_ROUTINE = 0.1  # weight of a token of a reply that is the same for every answer


@dataclass(frozen=True, slots=True)
class PackTensors:
    """A pack as the network takes it; each tensor has a leading dimension of one."""

    tokens: Tensor  # (1, place)
    positions: Tensor  # (1, place)
    seen: Tensor  # bool (1, 1, place, place): which token sees which
    labels: Tensor  # (1, place): the token that follows, or IGNORED
    weights: Tensor  # (1, place)
    pictures: Tensor  # float (frame, 3, row, column), as the image processor makes them
    letters: tuple[tuple[int, str], ...]  # place whose label is the first letter of an answer; its subtask

    def to(self, device: str) -> "PackTensors":
        """The pack where it is computed."""
        parts = ("tokens", "positions", "seen", "labels", "weights", "pictures")
        return replace(self, **{part: getattr(self, part).to(device) for part in parts})


@dataclass(slots=True)
class _Tree:
    """The tokens of one pack, each with its position, its branch and the token that it is to predict."""

    tokens: list[int]
    positions: list[int]
    branches: list[int]
    labels: list[int]
    weights: list[float]
    above: list[int]  # of each branch: the branch that it grows from
    letters: list[tuple[int, str]]


class Tokens:
    """The tokenizer, with the places that an image takes written out."""

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
        """Token ids of a piece of a prompt."""
        full_text = text.replace("<image>", self._image)
        return list(self._tokenizer(full_text, add_special_tokens=False).input_ids)

    def telling(self, token: int) -> bool:
        """Return whether a token of a reply depends on the answer."""
        return token in self._letters


def pack_tensors(pack: Pack, tokens: Tokens) -> PackTensors:
    """Tensors of a pack."""
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
    """Grey frames as the image processor makes them: three channels from -1 to 1."""
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
        at = len(tree.tokens)  # the question's last token starts each reply: a token predicts one other alone
        _grow(tree, *question, [last, *reply_tokens[:-1]])
        tree.labels[at:] = reply_tokens
        tree.weights[at:] = weights
        place = next(place for place, token in enumerate(reply_tokens) if tokens.telling(token))
        if "\n" not in reply:
            tree.letters.append((at + place, asked.subtask))


def _decides(tokens: Tokens, reply_tokens: Sequence[int], at: int) -> bool:
    """Whether a token is a letter, or stands where another letter could: after one."""
    return tokens.telling(reply_tokens[at]) or (at > 0 and tokens.telling(reply_tokens[at - 1]))


def _grow(tree: _Tree, above: int, position: int, ids: Sequence[int]) -> tuple[int, int]:
    """Add a branch; returns it and the position after it."""
    branch = len(tree.above)
    tree.above.append(above)
    tree.tokens += ids
    tree.positions += range(position, position + len(ids))
    tree.branches += [branch] * len(ids)
    tree.labels += [IGNORED] * len(ids)
    tree.weights += [0.0] * len(ids)
    return branch, position + len(ids)


def _seen(tree: _Tree) -> Tensor:
    """Which token sees which: earlier ones of its own branch and of those that it grows from."""
    below = np.eye(len(tree.above), dtype=bool)
    for branch, above in enumerate(tree.above):
        if above >= 0:
            below[branch] |= below[above]
    branches = np.array(tree.branches)
    return torch.from_numpy(below[branches][:, branches] & np.tri(len(branches), dtype=bool))
