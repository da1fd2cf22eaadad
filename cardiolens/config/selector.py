"""Selectors as a sweep's configuration names them: the rule that chooses frames, and its settings."""

from typing import Annotated, Literal

from pydantic import Discriminator, Tag, model_validator

from cardiolens.base.entry_points import is_word
from cardiolens.config.base import GivenPath, Positive, Seed, Spec
from cardiolens.config.plugin_words import OURS, Options, PluginSelector, whose

OwnSelector = Literal[
    "random", "stratified", "clinical", "uniform", "all", "kcenter", "kmedoids", "relevance", "self"
]

SelectorKind = Annotated[Annotated[OwnSelector, Tag(OURS)] | PluginSelector, Discriminator(whose)]


class SelectorSpec(Spec):
    """One protocol that selects frames."""

    name: str  # name in arms and tables
    # the selection rule; docs/selection.md; package.name: of another package
    kind: SelectorKind
    seeds: tuple[Seed, ...] = ()  # random and stratified: one arm per seed
    pool: Literal["routed", "sequence"] = "routed"  # candidate frames; not for clinical and stratified
    lax_small_k: Literal["temporal", "spatial"] = "temporal"  # clinical: long-axis frames at small budgets
    encoder: GivenPath | None = None  # folder of the image encoder for kcenter, kmedoids, relevance
    order: Literal["presented", "nested"] = "presented"  # nested: smaller budgets first, a shared prefix
    rounds: Positive = 2  # self: most requests for frames before the answer
    options: Options = ()  # of a kind of another package, by name

    @model_validator(mode="after")
    def _seeded(self) -> "SelectorSpec":
        if not self.plugged and (self.kind in ("random", "stratified")) != bool(self.seeds):
            raise ValueError("a random or stratified selector needs seeds, e.g. [2026]; no other has any")
        if self.kind == "stratified" and self.pool != "routed":
            raise ValueError("kind stratified has clinical's quotas of the routed views; leave out pool")
        if len(set(self.seeds)) != len(self.seeds):
            raise ValueError(f"seeds {list(self.seeds)} contain a seed twice; give each once")
        if self.kind == "relevance" and self.encoder is None:
            raise ValueError("kind relevance needs encoder, the local folder of a CLIP type model")
        if self.encoder is not None and not self.looks_at_pixels:
            raise ValueError(
                f"kind {self.kind} looks at no frames; encoder goes with kcenter, kmedoids, relevance"
            )
        return self

    @model_validator(mode="after")
    def _by_the_reader(self) -> "SelectorSpec":
        if self.kind != "self" and self.rounds != type(self).model_fields["rounds"].default:
            raise ValueError(
                f"rounds are requests for frames by readers of kind self, not {self.kind}; leave them out"
            )
        if self.kind == "self" and self.order != "presented":
            raise ValueError("kind self has no smaller budgets to show first; leave out order")
        return self

    @model_validator(mode="after")
    def _optional(self) -> "SelectorSpec":
        if self.options and not self.plugged:
            raise ValueError(
                f"options {[name for name, _ in self.options]} are for kinds of other packages, and "
                f"{self.kind} is ours; leave them out"
            )
        return self

    @property
    def plugged(self) -> bool:
        """True if the rule is a part of another package."""
        return is_word(self.kind)

    @property
    def looks_at_pixels(self) -> bool:
        """True if the selector uses features of the frames, which must be computed first."""
        return self.kind in ("kcenter", "kmedoids", "relevance")
