"""The recipe of a training: `recipe.yaml`, and the words that change it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import Field, ValidationError

from cardiolens.base.errors import InputError
from cardiolens.config.base import GivenPath, Positive, Seed, Spec, describe

RECIPE = Path(__file__).parents[1] / "recipe.yaml"
Rate = Annotated[float, Field(gt=0, lt=1)]


class CohortSpec(Spec):
    """A phantom cohort for training; its seed is used by no shipped cohort."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]  # name of the cohort's folders below out
    seed: Seed  # determines the studies
    studies: Positive  # number of studies
    size: Literal["ci", "default"] = "ci"  # size of frames and number of phases
    difficulty: Literal["easy", "standard", "hard"] = "standard"  # noise and distractors


class StageSpec(Spec):
    """One stage of the training."""

    steps: Positive  # optimizer steps
    size: Positive  # frames (see) or packs (read) per step
    rate: Rate  # peak learning rate


class ReaderSpec(Spec):
    """Everything that determines the weights, and the folder for them."""

    out: GivenPath  # folder of cohorts, shards, checkpoints and the model
    seed: Seed = 2606  # seed of initial weights and of every draw
    protocol: str = "openprotocol-1"  # protocol of the training questions
    cohorts: Annotated[tuple[CohortSpec, ...], Field(min_length=1)]  # training cohorts
    see: StageSpec  # first stage: tissues in patches
    read: StageSpec  # second stage: answers to questions; trains only the language model
    warm_up: Positive = 200  # warm-up steps of each stage
    decay: Annotated[float, Field(ge=0)] = 0.02  # weight decay
    checkpoint: Positive = 250  # steps between checkpoints
    workers: Positive = 2  # processes that share each step; another number gives other weights
    device: Literal["auto", "cpu", "cuda"] = "auto"  # auto: a GPU if there is one


def read_recipe(words: Sequence[str]) -> ReaderSpec:
    """Read the recipe with words as changes, e.g. ['out=/data/reader', 'read.steps=10']."""
    try:
        tree = OmegaConf.merge(OmegaConf.load(RECIPE), OmegaConf.from_dotlist(list(words)))
        content: Any = OmegaConf.to_container(tree)
        return ReaderSpec.model_validate(content)
    except ValidationError as error:
        raise InputError(describe(error)) from None
    except OmegaConfBaseException as error:
        raise InputError(f"{' '.join(words)}: {error}") from None
