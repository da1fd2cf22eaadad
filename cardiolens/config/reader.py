"""Configuration of the small reader's training."""

from typing import Annotated, Literal

from pydantic import Field

from cardiolens.config.base import GivenPath, Positive, Seed, Spec

Rate = Annotated[float, Field(gt=0, lt=1)]


class CohortSpec(Spec):
    """A phantom cohort that is learned from; its seed is that of no cohort that ships."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]  # of its folders below out
    seed: Seed  # decides its studies
    studies: Positive  # how many
    size: Literal["ci", "default"] = "ci"  # of frames, and phases of a cycle (docs/phantom.md)
    difficulty: Literal["easy", "standard", "hard"] = "standard"  # noise and distractors


class StageSpec(Spec):
    """A stage of the curriculum."""

    steps: Positive  # of the optimizer
    size: Positive  # frames of a step, or packs
    rate: Rate  # of learning, at its height


class ReaderSpec(Spec):
    """Everything that decides the weights, and where they are written."""

    out: GivenPath  # cohorts, shards, checkpoints and the model
    seed: Seed = 2606  # of first weights and of every draw
    protocol: str = "openprotocol-1"  # whose questions are learned
    cohorts: Annotated[tuple[CohortSpec, ...], Field(min_length=1)]  # that are learned from
    see: StageSpec  # tissues in patches
    read: StageSpec  # answers to questions, by the language model alone
    warm_up: Positive = 200  # steps of each stage
    decay: Annotated[float, Field(ge=0)] = 0.02  # of weights
    checkpoint: Positive = 250  # steps between checkpoints
    workers: Positive = 2  # processes that share each step; another number gives other weights
    device: Literal["auto", "cpu", "cuda"] = "auto"  # auto: a GPU where there is one
