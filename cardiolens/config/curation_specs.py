"""Configuration of an import of images, and of questions from reports and masks."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from cardiolens.config.base import GivenPath, Spec
from cardiolens.config.command_words import Listed


class IngestSpec(Spec):
    """An export, the folder to write, and the rules of the conversion."""

    source: GivenPath  # a folder or a file
    out: GivenPath  # a folder outside source, for studies and proposals
    key: GivenPath | None = None  # file with the secret key of all ids; null: <out>.key beside out
    links: GivenPath | None = None  # output file that maps each id to its patient and source file
    decisions: GivenPath | None = None  # a person's decisions, as `confirm` writes them
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.8  # least confidence of a volume that needs no person
    lge: Literal["magnitude", "psir"] = "magnitude"  # which of the two images of an inversion recovery to use
    layout: str | None = (
        None  # a name of conf/layout, the path of such a file, or none; null: the one that fits
    )
    subject: str | None = (
        None  # a regular expression of a patient, or of a visit with a group for the patient; null: folders
    )
    cohort: Annotated[tuple[str, ...], Listed] = ()  # names of cohorts to which every study is added

    def _problems(self) -> Iterator[str]:
        try:
            re.compile(self.subject or "")
        except re.error as error:
            yield f"subject={self.subject}: is no regular expression ({error}); correct it"
        source, out = self.source.resolve(), self.out.resolve()
        if _overlap(source, out):
            yield "source and out lie within each other; name an out elsewhere, as source is never changed"
        for name, path in (("key", self.key), ("links", self.links)):
            if path is not None and any(path.resolve().is_relative_to(folder) for folder in (out, source)):
                yield f"{name} lies in source or out; name a file elsewhere, as it identifies patients"


def _overlap(first: Path, second: Path) -> bool:
    return first.is_relative_to(second) or second.is_relative_to(first)


class QuestionsSpec(Spec):
    """Reports, masks or both, the studies they belong to, and the folder of all stages."""

    reports: GivenPath | None = None  # a folder of text files or a CSV file
    studies: GivenPath | None = None  # the folder of the studies that the reports describe
    masks: GivenPath | None = None  # a folder of studies with masks
    labels: str | None = None  # name of the masks' label convention
    out: GivenPath | None = None  # a folder outside the inputs, for the stages
    draft: GivenPath | None = None  # drafts of this folder are asked without images; null: draft questions
    words: GivenPath | None = None  # a glossary of a group: synonyms and headings
    gate: GivenPath | None = None  # the record of a blind test of the model: what it reads alone is drafted
    links: GivenPath | None = None  # a table that maps accession numbers to studies
    protocol: str = "openprotocol-1"  # a packaged protocol, or a folder of one

    @property
    def stages(self) -> Path:
        """The folder of the stages, which every draft has."""
        assert self.out is not None, "checked by _consistent"
        return self.out

    def _problems(self) -> Iterator[str]:
        if self.draft is None and self.out is None:
            yield "out= is not given; give out=..., a folder for the stages, or draft=..., to ask drafts"
        if self.draft is not None and self.out is not None:
            yield "out is where drafts are written, and draft asks those of a folder; give one of them"
        if self.draft is not None:
            return
        if self.reports is None and self.masks is None:
            yield "neither reports nor masks has a value; give one: reports=... or masks=..."
        if (self.reports is None) != (self.studies is None):
            yield (
                "reports and studies go together: studies is the folder that the reports describe; give "
                "both, or masks=... and labels=... alone"
            )
        if (self.masks is None) != (self.labels is None):
            yield "masks and labels go together: labels names the convention of masks; give both"
        for name, value in (("reports", self.reports), ("studies", self.studies), ("masks", self.masks)):
            if value is not None and _overlap(value.resolve(), self.stages.resolve()):
                yield f"{name} and out lie within each other; name an out elsewhere"
