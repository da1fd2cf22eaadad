"""Train the small reader in two stages: tissues in frames, then questions about frames.

Stage `see`: image encoder and connector learn the tissue of each pixel of a frame, and the amount of each
tissue per image token, from the phantom's masks. Stage `read`: the language model learns to answer packs with
the requests of a sweep, while the image encoder is frozen. A checkpoint has the complete state, so a stopped
run continues as if it had not been stopped.
"""

import json
import math
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch import Tensor, nn

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.inference.models.chat import Chat
from train_reader.batches import IGNORED, PackTensors, Tokens, normalised, pack_tensors
from train_reader.examples import Cohort
from train_reader.network import JOINED, make_network, make_processor, save
from train_reader.recipe import ReaderSpec, StageSpec
from train_reader.tiny import IMAGE_SIDE, PATCH
from train_reader.tissues import KINDS, LESIONS, WALLS, WEIGHTS, concept_weights, concepts

STATE = "state.pt"
CURVE = "curve.jsonl"  # one line per checkpoint
_VOLUMES = 3  # volumes per worker and step of stage `see`
_FREE = {"out", "device", "checkpoint"}  # options that may change when a training continues


class Heads(nn.Module):
    """The head that predicts each pixel's tissue from its patch; discarded after training."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.patch = nn.Linear(network.config.vision_config.hidden_size, PATCH * PATCH * len(KINDS))

    def pixels(self, patches: Tensor) -> Tensor:
        """Return logits of each pixel's tissue kind, (frame, kind, row, column)."""
        side = IMAGE_SIDE // PATCH
        predictions: Tensor = self.patch(patches).reshape(-1, side, side, PATCH, PATCH, len(KINDS))
        return predictions.permute(0, 5, 1, 3, 2, 4).reshape(-1, len(KINDS), IMAGE_SIDE, IMAGE_SIDE)


class Training:
    """A training run in a folder; it continues from the last checkpoint."""

    def __init__(self, recipe: ReaderSpec, cohorts: Sequence[Cohort], worker: int = 0) -> None:
        self._recipe, self._folder, self._worker = recipe, recipe.out, worker
        folder = self._folder / "processor"
        processor = make_processor(recipe.protocol)
        self._device = _device(recipe.device)
        self.network = make_network(processor.tokenizer, recipe.seed).to(self._device)
        self._heads = Heads(self.network).to(self._device)
        self._processor = processor
        if worker == 0:
            processor.save_pretrained(folder)
            self.network.config.save_pretrained(folder)
        if recipe.workers > 1:
            dist.barrier()
        self._chat = Chat(folder)
        self._tokens = Tokens(processor)
        self._studies = [(cohort, study) for cohort in cohorts for study in cohort.study_ids]
        self._step, self._seconds = 0, 0.0
        self._curve = list[Mapping[str, object]]()  # one line per checkpoint
        self._optimizer = self._fresh_optimizer()
        self._restore()

    def run(self, until: int | None = None) -> None:
        """Train to the end, or to step `until`; write weights and curve at every checkpoint."""
        recipe = self._recipe
        last = sum(stage.steps for _, stage in self._stages)
        start, before = time.monotonic(), self._seconds
        losses: list[float] = []
        hits: Counter[str] = Counter()
        counts: Counter[str] = Counter()
        while self._step < min(last, until or last):
            draw = Random(f"{recipe.seed} {self._step} {self._worker}")
            name, stage, step = self._place
            if step == 0:
                self._optimizer = self._fresh_optimizer()
            self._set_rate(stage, step)
            self._optimizer.zero_grad(set_to_none=True)
            losses.append(self._see(draw, hits, counts) if name == "see" else self._read(draw, hits, counts))
            self._agree(name)
            nn.utils.clip_grad_norm_(self._parameters(), 1.0)
            self._optimizer.step()
            self._step += 1
            self._seconds = before + time.monotonic() - start
            if self._step % recipe.checkpoint == 0 or self._step == last:
                right = {name: round(hits[name] / counts[name], 3) for name in sorted(counts) if counts[name]}
                line = {
                    "step": self._step,
                    "stage": name,
                    "loss": round(float(np.mean(losses)), 5),
                    "seconds": round(self._seconds, 1),
                    "right": right,
                }
                self._keep(line)
                losses, hits, counts = [], Counter(), Counter()

    def export(self, folder: Path) -> None:
        """Write the model in the form that vLLM loads."""
        save(self.network, self._processor, folder)

    @property
    def _stages(self) -> tuple[tuple[str, StageSpec], ...]:
        recipe = self._recipe
        return ("see", recipe.see), ("read", recipe.read)

    @property
    def _place(self) -> tuple[str, StageSpec, int]:
        """The name and options of the next step's stage, and how many of its steps are done."""
        start = 0
        for name, stage in self._stages:
            if self._step < start + stage.steps:
                return name, stage, self._step - start
            start += stage.steps
        raise AssertionError("a training that is over has no next step")

    def _see(self, draw: Random, hits: Counter[str], counts: Counter[str]) -> float:
        pictures, truths = [], []
        share = self._share(self._recipe.see.size)
        volumes = min(_VOLUMES, share)
        for _ in range(volumes):
            cohort, study = draw.choice(self._studies)
            frames, painted = cohort.volume(study, draw, share // volumes)
            pictures.append(frames)
            truths.append(painted)
        kinds = np.concatenate(truths)
        target = torch.from_numpy(concepts(kinds, IMAGE_SIDE // PATCH // JOINED)).to(self._device)
        truth = torch.from_numpy(kinds).long().to(self._device)
        patches, tokens = encoded(self.network, normalised(np.concatenate(pictures)).to(self._device))
        pixels = self._heads.pixels(patches)
        weigh = torch.from_numpy(concept_weights()).to(self._device)
        error = ((tokens[..., : target.shape[-1]] - target).square() * weigh).mean()
        loss = error + nn.functional.cross_entropy(
            pixels, truth, weight=torch.tensor(WEIGHTS, device=self._device)
        )
        loss.backward()  # type: ignore[no-untyped-call]
        _overlap(pixels.argmax(1), truth, hits, counts)
        return float(loss.detach())

    def _read(self, draw: Random, hits: Counter[str], asked: Counter[str]) -> float:
        losses: list[float] = []
        share = self._share(self._recipe.read.size)
        while len(losses) < share:
            cohort, study = draw.choice(self._studies)
            pack = cohort.pack(study, self._chat, draw)
            if pack is None:
                continue
            batch = pack_tensors(pack, self._tokens).to(self._device)
            logits, labels, counts = answered(self.network, batch, self._tokens.image)
            _count(batch, logits, hits, asked)
            each = nn.functional.cross_entropy(logits, labels, reduction="none")
            loss = (each * counts).sum() / share
            loss.backward()  # type: ignore[no-untyped-call]
            losses.append(float(loss.detach()))
        return sum(losses)

    def _share(self, size: int) -> int:
        """Return the number of a step's packs or frames that one worker processes."""
        return max(1, size // self._recipe.workers)

    def _agree(self, name: str) -> None:
        """Replace gradients by their mean over the workers, which keeps all weights equal."""
        if self._recipe.workers == 1:
            return
        moving = self._moving(name)
        flat = torch.cat([_gradient(parameter).reshape(-1) for parameter in moving])
        dist.all_reduce(flat)
        flat /= self._recipe.workers
        at = 0
        for parameter in moving:
            parameter.grad = flat[at : at + parameter.numel()].view_as(parameter).clone()
            at += parameter.numel()

    def _moving(self, name: str) -> list[nn.Parameter]:
        """Return the parameters that a stage trains."""
        model = self.network.model
        eyes = [*model.vision_model.parameters(), *model.connector.parameters()]
        if name == "see":
            return [*eyes, *self._heads.parameters()]
        return [*model.text_model.parameters(), *self.network.lm_head.parameters()]

    def _parameters(self) -> list[nn.Parameter]:
        return [*self.network.parameters(), *self._heads.parameters()]

    def _fresh_optimizer(self) -> torch.optim.AdamW:
        return torch.optim.AdamW(
            self._parameters(), lr=0.0, betas=(0.9, 0.98), weight_decay=self._recipe.decay
        )

    def _set_rate(self, stage: StageSpec, step: int) -> None:
        """Set the learning rate: in each stage a linear warm-up, then a cosine to a twentieth of the peak."""
        share = 0.05 + 0.95 * (1 + math.cos(math.pi * step / stage.steps)) / 2
        for group in self._optimizer.param_groups:
            group["lr"] = stage.rate * min(1.0, (step + 1) / self._recipe.warm_up) * share

    def _keep(self, line: Mapping[str, object]) -> None:
        self._curve.append(line)
        if self._worker:
            return
        state = {
            "step": self._step,
            "seconds": self._seconds,
            "recipe": self._recipe.model_dump_json(exclude=_FREE),
            "network": self.network.state_dict(),
            "heads": self._heads.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "curve": self._curve,  # a kill between two files would lose a line of it
        }
        with disk.atomic(self._folder / STATE) as temporary:
            torch.save(state, temporary)
        self._write_curve()
        print(json.dumps(line), flush=True)

    def _restore(self) -> None:
        path = self._folder / STATE
        if not path.exists():
            return
        state = torch.load(path, weights_only=True, map_location=self._device)
        self.network.load_state_dict(state["network"])
        self._heads.load_state_dict(state["heads"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._step, self._seconds = state["step"], state["seconds"]
        self._curve = state["curve"]
        if self._worker == 0:
            self._write_curve()

    def _write_curve(self) -> None:
        text = "".join(json.dumps(line) + "\n" for line in self._curve)
        disk.write_text(self._folder / CURVE, text)


def _gradient(parameter: nn.Parameter) -> Tensor:
    assert parameter.grad is not None, "every step of a stage uses all that the stage changes"
    return parameter.grad


def answered(network: Any, batch: PackTensors, image: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return logits, labels and weights of all reply tokens; frames replace the tokens `image`.

    The image encoder stays frozen: no gradient passes through the frames.
    """
    text = network.model.text_model
    words = text.embed_tokens(batch.tokens)
    if len(batch.pictures):
        with torch.no_grad():
            _, frames = encoded(network, batch.pictures)
        words = words.masked_scatter((batch.tokens == image)[..., None].expand_as(words), frames)
    hidden = text(
        inputs_embeds=words, attention_mask=batch.seen, position_ids=batch.positions, use_cache=False
    ).last_hidden_state
    is_labelled = batch.labels != IGNORED
    return network.lm_head(hidden[is_labelled]).float(), batch.labels[is_labelled], batch.weights[is_labelled]


def encoded(network: Any, pictures: Tensor) -> tuple[Tensor, Tensor]:
    """Return the image encoder's patch features, and the image tokens of the connector."""
    vision = network.model.vision_model
    hidden = vision.embeddings.patch_embedding(pictures).flatten(2).transpose(1, 2)
    hidden = hidden + vision.embeddings.position_embedding.weight
    for layer in vision.encoder.layers:
        hidden = layer(hidden, None)
    hidden = vision.post_layernorm(hidden)
    return hidden, network.model.connector(hidden)


def _count(batch: PackTensors, logits: Tensor, hits: Counter[str], counts: Counter[str]) -> None:
    """Count the questions, and those whose correct first letter is the most likely token."""
    positions = (batch.labels[0] != IGNORED).nonzero()[:, 0].tolist()
    row = {place: at for at, place in enumerate(positions)}
    best = logits.argmax(-1)
    for place, subtask in batch.letters:
        counts[subtask] += 1
        hits[subtask] += int(best[row[place]] == batch.labels[0, place])


def _overlap(predicted: Tensor, truth: Tensor, hits: Counter[str], counts: Counter[str]) -> None:
    """Count pixels of lesions and of the wall so that hits / counts is their Dice coefficient."""
    for name, kinds in (("lesion", LESIONS), ("wall", WALLS + LESIONS)):
        mine, true = (
            torch.isin(kinds_map, torch.tensor(kinds, device=kinds_map.device))
            for kinds_map in (predicted, truth)
        )
        hits[name] += 2 * int((mine & true).sum())
        counts[name] += int(mine.sum()) + int(true.sum())


def learn(recipe: ReaderSpec) -> None:
    """Train in `recipe.workers` processes, and write the model to `model` in the recipe's folder."""
    if recipe.workers == 1:
        _work(0, recipe, None)
        return
    with TemporaryDirectory() as folder:
        processes.spawn(  # type: ignore[attr-defined,no-untyped-call]
            _work, (recipe, f"file://{folder}/meeting"), nprocs=recipe.workers
        )


def _work(worker: int, recipe: ReaderSpec, meeting: str | None) -> None:
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // recipe.workers))
    if meeting is not None:
        dist.init_process_group("gloo", init_method=meeting, rank=worker, world_size=recipe.workers)
    training = Training(recipe, [Cohort(recipe, cohort) for cohort in recipe.cohorts], worker)
    training.run()
    if worker == 0:
        training.export(recipe.out / "model")
    if meeting is not None:
        dist.destroy_process_group()


def check(recipe: ReaderSpec) -> None:
    """Raise InputError if the device is missing, or `out` has a training with another recipe."""
    _device(recipe.device)
    path = recipe.out / STATE
    if not path.exists():
        return
    begun = torch.load(path, weights_only=True, map_location="cpu", mmap=True)
    if "curve" not in begun:
        raise InputError(f"{path}: is of a training with an earlier version; give another out")
    if begun["recipe"] != recipe.model_dump_json(exclude=_FREE):
        raise InputError(
            f"{path}: is of a training with another recipe; give the words with which it was begun, or "
            "another out"
        )


def _device(name: str) -> str:
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("device: cuda, and torch finds no GPU; give device=cpu, or device=auto")
    if name != "auto":
        return name
    return "cuda" if torch.cuda.is_available() else "cpu"
