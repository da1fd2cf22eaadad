"""A question about a text, as a model is asked it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextRequest:
    """A question about a text; its reply is JSON that conforms to a schema."""

    text_id: str
    name: str  # of the question, among those on the same text
    system: str
    prompt: str
    schema: str
