"""What is known of a published model, and how well it is known."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from cardiolens.frozen import Positive, Spec

Said = Annotated[str, Field(min_length=1)]


class ModelCard(Spec):
    """A catalogue entry; nothing in it changes what a sweep asks."""

    architecture: str | None = None  # as the pinned vLLM registers it; None: closed
    field: Literal["general", "medical"]
    licence: Said
    context: Positive | None  # tokens that the publisher gives it
    thinking: Literal["never", "always", "off", "on"]  # off, on: as `template_options` asks
    image_rule: Said  # how `image_tokens` was computed
    template: str = ""  # what to know of its chat template
    tensor_parallel: Mapping[Positive, Positive] = {}  # by GiB of a GPU: what auto takes of a node of eight
    verified: Literal["engine", "processor", "config", "none"]  # what of it was really run or read
    note: Said  # where each fact comes from
