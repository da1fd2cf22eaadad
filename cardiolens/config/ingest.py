"""Configuration of the import of an export."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from cardiolens.config.base import GivenPath, Spec


class IngestSpec(Spec):
    """An export, the folder that it becomes, and what decides on the way."""

    source: GivenPath  # a folder, a zip file or a file
    out: GivenPath  # a folder elsewhere, for studies and proposals
    key: GivenPath | None = None  # the file of the key of all ids; null: <out>.key beside out
    links: GivenPath | None = None  # a file to be written that says which patient and file each id is
    decisions: GivenPath | None = None  # the file that confirm writes: what a person decided
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.8  # confidence from which a volume needs no person
    lge: Literal["magnitude", "psir"] = (
        "magnitude"  # which of the two images of one inversion recovery is taken
    )
    cohort: tuple[str, ...] = ()  # names of cohorts that every study is put into

    @model_validator(mode="after")
    def _apart(self) -> "IngestSpec":
        source, out = self.source.resolve(), self.out.resolve()
        if out == source or out.is_relative_to(source) or source.is_relative_to(out):
            raise ValueError(
                "source and out lie within each other; name an out elsewhere, as source is not touched"
            )
        for name, path in (("key", self.key), ("links", self.links)):
            for folder in (out, source) if path is not None else ():
                if path is not None and path.resolve().is_relative_to(folder):
                    raise ValueError(
                        f"{name} lies in source or out; name a file elsewhere, it leads back to patients"
                    )
        return self
