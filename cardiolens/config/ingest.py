"""Configuration of an import: from an export of images to study folders."""

import re
from typing import Annotated, Literal

from pydantic import Field, model_validator

from cardiolens.config.base import GivenPath, Spec


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
        None  # a regular expression of a patient's name in paths of NIfTI; null: folders tell
    )
    cohort: tuple[str, ...] = ()  # names of cohorts to which every study is added

    @model_validator(mode="after")
    def _has_expression(self) -> "IngestSpec":
        try:
            re.compile(self.subject or "")
        except re.error as error:
            raise ValueError(
                f"subject={self.subject}: is no regular expression ({error}); correct it"
            ) from None
        return self

    @model_validator(mode="after")
    def _apart(self) -> "IngestSpec":
        source, out = self.source.resolve(), self.out.resolve()
        if out == source or out.is_relative_to(source) or source.is_relative_to(out):
            raise ValueError(
                "source and out lie within each other; name an out elsewhere, as source is never changed"
            )
        for name, path in (("key", self.key), ("links", self.links)):
            for folder in (out, source) if path is not None else ():
                if path is not None and path.resolve().is_relative_to(folder):
                    raise ValueError(
                        f"{name} lies in source or out; name a file elsewhere, as it identifies patients"
                    )
        return self
