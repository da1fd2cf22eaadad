"""Configuration of the way from reports to questions."""

from pydantic import model_validator

from cardiolens.config.base import GivenPath, Spec


class QuestionsSpec(Spec):
    """Reports, the studies that they belong to, and the folder of all stages."""

    reports: GivenPath  # a folder of text files or a CSV file
    studies: GivenPath  # the folder of studies
    out: GivenPath  # a folder elsewhere, for the stages
    links: GivenPath | None = None  # a table of accession numbers and studies
    protocol: str = "openprotocol-1"  # a packaged protocol, or a folder of one

    @model_validator(mode="after")
    def _apart(self) -> "QuestionsSpec":
        out = self.out.resolve()
        for name, given in (("reports", self.reports), ("studies", self.studies)):
            path = given.resolve()
            if out == path or out.is_relative_to(path) or path.is_relative_to(out):
                raise ValueError(f"{name} and out lie within each other; name an out elsewhere")
        return self
