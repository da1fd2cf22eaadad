"""Scripts of a served viewer, built per request: endings of an arm, single cases, searches, whole studies."""

from functools import cached_property, lru_cache
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from cardiolens.base.errors import InputError
from cardiolens.show.local_server import number_of
from cardiolens.show.page.case_viewer.cases import case_reader
from cardiolens.show.page.case_viewer.item_sources import Sources
from cardiolens.show.page.case_viewer.sent_frames import EvidenceIndex, evidence_index, shown_under
from cardiolens.show.page.case_viewer.study_layout import lanes, study_layout
from cardiolens.show.page.case_viewer.viewer_files import script_of
from cardiolens.show.page.embed import to_json
from cardiolens.study.anatomy import Anatomy, heart
from cardiolens.study.cohort import read_cohort
from cardiolens.study.shards import read_volumes

MOST_WORDS = 200  # characters of a search
_AS_IT_IS = "!'()*~"  # by the page's encodeURIComponent
_MOST_ARMS = 2  # side by side


class Scripts:
    """Scripts by path.

    `endings/ARM.js`, `shown/ARM.js`, `cases/QUESTION/ARM-ARM.js`, `said/ARM.js` with words to find; of whole
    studies `studies/STUDY.js`, and `sent/QUESTION/ARM.js` with what each selector sent at each budget.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._cases = case_reader(sources, private=True)
        self._endings = lru_cache(maxsize=1024)(sources.endings)
        self._shown = lru_cache(maxsize=1024)(self._shown_under)
        self._layout = lru_cache(maxsize=64)(self._study_layout)

    def __call__(self, path: str, words: str = "") -> str | None:
        """Return the script at a path, None if unknown; it reports a table that cannot be read."""
        address = f"{path}?words={quote(words, safe=_AS_IT_IS)}" if words else path
        try:
            content = self.content(path, words)
        except InputError as error:
            return f"cardiolens.refuse({to_json(address)},{to_json(str(error))});\n"
        return None if content is None else script_of(address, content)

    def content(self, path: str, words: str = "") -> object | None:
        """What the script at a path holds; InputError where a table of the run cannot be read."""
        name, _, kind = path.rpartition(".")
        parts = name.split("/") if kind == "js" else []
        match parts:
            case ["endings", arm] if self._arms(arm):
                return self._endings(self._arms(arm)[0])
            case ["cases", question, arms] if self._arms(arms) and self._question(question):
                return self._cases([(int(question), arm) for arm in self._arms(arms)])
            case ["said", arm] if self._arms(arm) and 0 < len(words) <= MOST_WORDS:
                return self._sources.saying(self._arms(arm)[0], words)
            case _:
                return self._of_studies(parts)

    def _of_studies(self, parts: list[str]) -> object | None:
        """What was shown or left out of studies."""
        match parts:
            case ["shown", arm] if self._arms(arm):
                return self._shown(self._arms(arm)[0])
            case ["studies", study] if 0 <= number_of(study) < len(self._sources.studies):
                return self._layout(int(study))
            case ["sent", question, arm] if self._arms(arm) and self._question(question):
                return lanes(self._sources, int(question), self._arms(arm)[0])
            case _:
                return None

    def _shown_under(self, arm: int) -> str:
        return shown_under(self._sources, arm, self._evidence)

    def _study_layout(self, study: int) -> dict[str, Any]:
        folder = self._sources.header.specs[0].dataset.studies
        return study_layout(self._volumes, folder, self._sources.studies[study], self._anatomy)

    @cached_property
    def _evidence(self) -> EvidenceIndex:
        return evidence_index(self._sources)

    @cached_property
    def _anatomy(self) -> Anatomy:
        cohort = read_cohort(self._sources.header.specs[0].store)
        return heart() if cohort is None else cohort.organ

    @cached_property
    def _volumes(self) -> pa.Table:
        return read_volumes(self._sources.header.specs[0].store)

    def _arms(self, words: str) -> list[int]:
        """Places of arms, e.g. of `3-17`; none where one of them does not exist."""
        arms = [number_of(word) for word in words.split("-", _MOST_ARMS)]
        all_exist = len(arms) <= _MOST_ARMS and all(0 <= arm < len(self._sources.arms) for arm in arms)
        return arms if all_exist else []

    def _question(self, word: str) -> bool:
        return 0 <= number_of(word) < len(self._sources.study)
