"""Understanding: whether every word of a sentence has a role that the grammar knows, and which word has none.

What a sentence says that holds an unknown word is not known, whatever finding it names.
"""

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.protocol.tasks.lexicon import Tag
from cardiolens.protocol.tasks.phrases import Phrase
from cardiolens.protocol.tasks.segments import LEVELS, WALLS
from cardiolens.report_text.ambiguity import unclear_mark, unclear_sense
from cardiolens.report_text.assertion import MARKS
from cardiolens.report_text.fragments import governing_gap, is_finite
from cardiolens.report_text.grammar import grammar
from cardiolens.report_text.mentions import Mention, Reader, reader
from cardiolens.report_text.report_layout import plain
from cardiolens.report_text.sections import Sentence, sentences
from cardiolens.report_text.tokens import respelled, tokens, unfolded

# Roles of words that leave a sentence open, or put it in the past, in the future or in another person.
_DOUBTS = frozenset(
    {"uncertain", "uncertain_behind", "historical", "hypothetical", "technique"}
    | {"exceptions", "sparing", "spared"}
)
_SAYING = frozenset({"place", "grade", "predicate", "verb", "negated", "negated_behind", "measure"})
# Words of phrases without meaning that yet turn, date or grade what their sentence says.
_TURNING = "no not nothing without previous prior last earlier older since than versus vs normal range"
_TURNS = frozenset(_TURNING.split())
_OF_SEQUENCES = frozenset({"enhancement", "signal", "perfusion"})
_HALF_SAID = frozenset({"has regressed", "have regressed"})  # less than before, and not absent
_TWO_MEANINGS = frozenset({"ai"})  # aortic insufficiency, or who drew the contours
_HEART = frozenset({"lv", "rv"})
_EXAMINATIONS = frozenset(
    {"echo", "echocardiography", "echocardiogram", "tte", "ecg", "ct", "pet", "spect", "angiography"}
    | {"mri", "cmr", "scan", "study", "report", "reports", "examination", "biopsy", "catheterisation"}
)
_PREPOSITIONS = frozenset({"of", "in", "at", "within"})
_LEAST_LETTERS = 9  # of a word that is understood in spite of a wrong letter
# Words of a title that names this examination and says nothing of it.
_TITLE = frozenset(
    {
        "mri",
        "cmr",
        "mr",
        "mrt",
        "cardiac",
        "heart",
        "stress",
        "study",
        "scan",
        "examination",
        "exam",
        "report",
    }
    | {"imaging", "with", "and", "without", "contrast", "iv", "of", "the", "today", "current", "findings"}
)
_OR = re.compile(r"\bor\b", re.IGNORECASE)
_DENIALS = frozenset({"negated", "negated_behind"})
_ARROW = re.compile(r"\s*(?:[=-]+>|→|⇒)")  # before a conclusion
_ITEM = re.compile(r"\s*[A-Z]?\d{1,2}(?:\.\d{1,2})*[.)]?\s+(?=[A-Z][^:.\n]{0,40}:)")  # `5.2 LGE: none`
_LETTERS = re.compile(r"[^\W_]+")
_LABEL_ENDS = re.compile(r"[ =~_|*#]*:")
_POINTS_BACK = re.compile(
    r"\W*(?:this|these|it|they|which|such|those|the (?:above|latter|former|same))\b", re.IGNORECASE
)


_IS = re.compile(r"\s*(?:is|are)\b(?: also\b)?", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The phrases of all sequences and of the grammar, with the role of each."""

    reader: Reader
    aliases: Mapping[str, Phrase]
    fillers: frozenset[Phrase]
    tags: Mapping[Phrase, Tag]

    def unknown(self, text: str, start: int, end: int) -> str | None:
        """Return the first word, mark or number of a span that keeps it from being understood."""
        if mark := _ARROW.match(text, start, end) or _ITEM.match(text, start, end):
            start = mark.end()
        mentions = self.mentions(text, start, end)
        if _OR.search(text, start, end) and not any(mention.kind in _DENIALS for mention in mentions):
            return "or"
        return (
            unclear_mark(text[start:end])
            or self._unknown_word(mentions)
            or unclear_sense(mentions)
            or governing_gap(mentions)
        )

    def names_only(self, text: str, start: int, end: int) -> bool:
        """Return whether a span names a finding and says nothing of it: `LGE`, `Scar:`."""
        mentions = self.mentions(text, start, end)
        kinds = [mention.kind for mention in mentions]
        head, _, _ = " ".join(kinds).partition(" colon ")
        is_headed = len(head) < len(" ".join(kinds)) and "state" in kinds[len(head.split()) :]
        return _SAYING.isdisjoint(kinds) and not (is_headed and {"state", "name"} & {*head.split()})

    def interprets(self, text: str, start: int, end: int) -> bool:
        """Return whether a span says what is in a place: `septum bright, consistent with oedema`."""
        kinds = {mention.kind for mention in self.mentions(text, start, end)}
        return {"lasting", "place"} <= kinds

    def names_other_organ(self, text: str, start: int, end: int) -> bool:
        """Return whether a span names an organ whose findings no report of ours has."""
        return any("other" in mention.names for mention in self.mentions(text, start, end))

    def names_finding(self, text: str, start: int, end: int) -> bool:
        """Return whether a span names a finding or a structure of ours."""
        return any(
            mention.kind in ("name", "state", "structure") for mention in self.mentions(text, start, end)
        )

    def adds_finding(self, text: str, start: int, end: int) -> bool:
        """Return whether a span gives a finding of its own and denies nothing."""
        kinds = {mention.kind for mention in self.mentions(text, start, end)}
        return "state" in kinds and kinds.isdisjoint(_DENIALS)

    def has_verb(self, text: str, start: int, end: int) -> bool:
        """Return whether a span is a whole sentence, with a verb."""
        return any(is_finite(mention) for mention in self.mentions(text, start, end))

    def introduces(self, text: str, start: int, end: int) -> bool:
        """Return whether a span tells of whom the fragments behind it speak: `Her twin was scanned.`"""
        mentions = self.mentions(text, start, end)
        if any(mention.name == "relatives" for mention in mentions):
            return True
        if self.names_finding(text, start, end):
            return False
        is_of_examination = any(_EXAMINATIONS & {*mention.text.split()} for mention in mentions)
        return is_of_examination or self.has_verb(text, start, end)

    def names_other_structure(self, text: str, start: int, end: int) -> bool:
        """Return whether a span names a structure that is no ventricle."""
        mentions = self.mentions(text, start, end)
        return any(mention.kind == "structure" and not _HEART & {*mention.names} for mention in mentions)

    def shares_places(self, text: str, start: int, end: int) -> bool:
        """Return whether the places of a span are of all its findings: all before them, or all behind."""
        mentions = self.mentions(text, start, end)
        findings = [at for at, mention in enumerate(mentions) if mention.kind in ("name", "state")]
        traits = {mentions[at].trait for at in findings if mentions[at].kind == "state"}
        places = [at for at, mention in enumerate(mentions) if mention.kind == "place"]
        if len(traits) < 2 or not findings:
            return True
        sides = {0 if at < min(findings) else 2 if at > max(findings) else 1 for at in places}
        return sides in (set(), {0}, {2})

    def is_nearer_to_another(
        self,
        text: str,
        span: tuple[int, int],
        sentence: tuple[int, int],
        names: frozenset[str],
        *,
        is_t2: bool,
    ) -> bool:
        """Return whether a pattern stands nearer to the finding of T2, or of contrast, than to its own.

        `Patchy oedema and LGE` has no pattern of the LGE. Perfusion and late enhancement share words.
        """
        mentions = self.mentions(text, *sentence)
        is_of_t2 = {
            at: mention.trait == "signal"
            for at, mention in enumerate(mentions)
            if mention.trait in _OF_SEQUENCES
        }
        if len({*is_of_t2.values()}) < 2:
            return False
        for at, mention in enumerate(mentions):
            if span[0] <= mention.start < span[1] and names & {*mention.names}:
                _, _, nearest = min((abs(place - at), place < at, place) for place in is_of_t2)
                if is_of_t2[nearest] != is_t2:
                    return True
        return False

    def stands_between_walls(self, text: str, start: int, end: int, names: frozenset[str]) -> bool:
        """Return whether levels, layers or patterns stand between two walls: `septum, linear, and apex`.

        Whether the second wall has them as well is not told.
        """
        mentions = self.mentions(text, start, end)
        places = [mention for mention in mentions if mention.kind == "place"]
        kinds = [at for at, mention in enumerate(places) if names & {*mention.names}]
        if not kinds:
            return False
        before = {name for mention in places[: kinds[0]] for name in mention.names if name in WALLS}
        behind = {name for mention in places[kinds[-1] + 1 :] for name in mention.names if name in WALLS}
        is_between = bool(before and behind) and before != behind
        return is_between or _is_around(mentions, names) or self._are_placed_twice(mentions, names)

    def _are_placed_twice(self, mentions: Sequence[Mention], names: frozenset[str]) -> bool:
        """Return whether a wall with a level goes before another: `of the basal septum, and of the apex`."""
        last = max(at for at, mention in enumerate(mentions) if names & {*mention.names})
        if not {*LEVELS} & names:
            return False
        walls = [at for at, mention in enumerate(mentions) if at > last and {*WALLS} & {*mention.names}]
        between = mentions[walls[0] + 1 : walls[-1]] if walls else ()
        return any(mention.text.split()[0] in _PREPOSITIONS for mention in between)

    def _unknown_word(self, mentions: Sequence[Mention]) -> str | None:
        for mention in mentions:
            if mention.kind in _DOUBTS or mention.kind == "number":
                return mention.text
            if mention.text in _HALF_SAID:
                return mention.text
            if mention.kind == "neutral" and _TURNS & {*mention.text.split()}:
                return mention.text
            if mention.kind == "word" and mention.text not in MARKS and (mention.text,) not in self.fillers:
                return mention.text
        return None

    def mentions(self, text: str, start: int, end: int) -> list[Mention]:
        """Return the mentions of a span as it is spelled, but for one wrong letter of a very long word."""
        words = respelled(tokens(text, start, end), self.reader.vocabulary, _LEAST_LETTERS)
        return self.reader.of_tokens(unfolded(words, self.aliases))


def _is_around(mentions: Sequence[Mention], names: frozenset[str]) -> bool:
    """Return whether levels or layers stand before and behind a finding: `mid LGE of the septum and apex`."""
    findings = [at for at, mention in enumerate(mentions) if mention.kind in ("name", "state")]
    kinds = [
        at for at, mention in enumerate(mentions) if mention.kind == "place" and names & {*mention.names}
    ]
    return len(findings) == 1 and min(kinds) < findings[0] < max(kinds)


@functools.lru_cache(maxsize=8)
def vocabulary(catalogue: Catalogue) -> Vocabulary:
    """Build the vocabulary of a catalogue."""
    lexicons = list(catalogue.lexicons.values())
    fillers = frozenset({*grammar().fillers, *(phrase for lexicon in lexicons for phrase in lexicon.fillers)})
    tags: dict[Phrase, Tag] = dict.fromkeys(fillers, Tag("filler", "filler"))
    for lexicon in lexicons:
        tags |= lexicon.tags
    every = reader(replace(lexicons[0], tags=tags))
    aliases = {short: words for short, words in every.aliases.items() if short not in _TWO_MEANINGS}
    return Vocabulary(every, aliases, fillers, {**grammar().tags, **tags})


@functools.lru_cache(maxsize=8)
def unknown_words(text: str, catalogue: Catalogue) -> Mapping[Sentence, str]:
    """Return the sentences that are not understood, each with the word, mark or number that is the reason."""
    return dict(_unknown_words(plain(text), vocabulary(catalogue)))


def _unknown_words(text: str, words: Vocabulary) -> Iterator[tuple[Sentence, str]]:
    before: Sentence | None = None
    scope = _Scope(text, words)
    for sentence in sentences(text):
        above = scope.reason(sentence)
        own = (
            None
            if _is_title(text, sentence.start, sentence.end)
            else words.unknown(text, sentence.start, sentence.end)
        )
        reason = own or above
        if reason is not None:
            yield sentence, reason
            if before is not None and _takes_back(text, sentence, words):
                yield before, reason
        scope.read(sentence, own)
        before = sentence


def _takes_back(text: str, sentence: Sentence, words: Vocabulary) -> bool:
    """Return whether a sentence that is not understood may change what the one before it says.

    `It is an artefact` may; `it is globally hypokinetic` only adds to it.
    """
    pronoun = _POINTS_BACK.match(text, sentence.start, sentence.end)
    if pronoun is None:
        return False
    verb = _IS.match(text, pronoun.end(), sentence.end)
    rest = verb.end() if verb else pronoun.end(), sentence.end
    return words.unknown(text, *rest) is not None or not words.adds_finding(text, *rest)


def _is_title(text: str, start: int, end: int) -> bool:
    """Return whether a span names this examination and says nothing of it: `Stress CMR`, `CMR today`."""
    letters = _LETTERS.findall(text[start:end].lower())
    return bool(letters) and _TITLE.issuperset(letters)


@dataclass(slots=True)
class _Scope:
    """What stands before a sentence and decides of whom, or of when, it is said."""

    text: str
    words: Vocabulary
    of_line: str | None = None  # the reason of a sentence before it that has no finding of ours
    of_lead: str | None = None  # the reason of a word or two right before it: `Poss. LGE`, `No sig. LGE`
    of_block: str | None = None  # the reason of a heading above it, up to an empty line
    end: int = 0

    def reason(self, sentence: Sentence) -> str | None:
        """Return the word of a heading, or of the sentence before, that leaves a sentence open."""
        gap = self.text[self.end : sentence.start]
        self.of_line = None if "\n" in gap else self.of_line
        lead, self.of_lead = None if "\n" in gap else self.of_lead, None
        self.of_block = None if "\n\n" in gap or sentence.opens else self.of_block
        topic = sentence.topic
        has_colon = topic is not None and _LABEL_ENDS.match(self.text, topic.end) is not None
        if topic is not None and (topic.alone or has_colon):
            label = tuple(_LETTERS.findall(self.text[topic.start : topic.end].lower()))
            is_heading = label in grammar().headings or _is_title(self.text, topic.start, topic.end)
            of_topic = None if is_heading else self.words.unknown(self.text, topic.start, topic.end)
            is_title = not self.text[: topic.start].strip() and self.text.count("\n") > 3
            is_right_above = not self.text[topic.end : sentence.start].strip() and not is_title
            names = self.words.names_finding(self.text, topic.start, topic.end)
            if of_topic and (has_colon or (is_right_above and not names)):
                self.of_block = of_topic if topic.alone else self.of_block
                return of_topic
        is_fragment = not self.words.has_verb(self.text, sentence.start, sentence.end)
        return self.of_block or lead or (self.of_line if is_fragment else None)

    def read(self, sentence: Sentence, reason: str | None) -> None:
        """Take over what a sentence says of those behind it."""
        self.end = sentence.end
        span = self.text, sentence.start, sentence.end
        self.of_lead = reason if self._is_lead(sentence) else None
        if reason is not None and self.words.introduces(*span):
            self.of_line = reason
        elif self.words.has_verb(self.text, sentence.start, sentence.end):
            self.of_line = None

    def _is_lead(self, sentence: Sentence) -> bool:
        """Return whether a full stop may be of a short form: of a word or two that name nothing of ours."""
        letters = _LETTERS.findall(self.text[sentence.start : sentence.end])
        is_mark = len(letters) == 1 and (letters[0].isdigit() or len(letters[0]) == 1)
        is_short = 0 < len(letters) <= 2 and not is_mark and self.text[sentence.end : sentence.end + 1] == "."
        return is_short and not self.words.names_finding(self.text, sentence.start, sentence.end)
