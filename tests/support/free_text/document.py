"""Build the text of a report piece by piece and record the position of every sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.support.free_text.sentence_builder import Sentence


@dataclass(frozen=True, slots=True)
class PlacedSentence:
    """A sentence and its position: text[start:end]."""

    sentence: Sentence
    start: int
    end: int
    section: str


class Document:
    """A text and its sentences; `spelling` replaces words in sentences, never in identities."""

    def __init__(self, spelling: Mapping[str, str]) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._spelling = spelling
        self.sentences: list[PlacedSentence] = []

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def raw(self, text: str) -> None:
        """Add text that is no sentence: headings, identities, line breaks."""
        self._parts.append(text)
        self._length += len(text)

    def say(
        self, sentences: Sequence[Sentence], section: str, *, between: str = " ", bullet: str = ""
    ) -> None:
        """Add sentences in order."""
        for number, sentence in enumerate(sentences, start=1):
            self.raw((between if number > 1 else "") + bullet.format(number))
            text = sentence.text
            for british, american in self._spelling.items():
                text = text.replace(british, american)
            start = self._length
            self.raw(text)
            self.sentences.append(PlacedSentence(sentence, start, self._length, section))
