"""Mentions: the phrases of a sentence with their meanings, by longest match in grammar and lexicon."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cardiolens.protocol.tasks.lexicon import Lexicon, Phrase, Tag
from cardiolens.protocol.tasks.segments import LEVELS, WALLS
from cardiolens.report_text.grammar import grammar
from cardiolens.report_text.tokens import Token, respelled, tokens, unfolded

_WORD, _NUMBER, _MEASURE = Tag("word", ""), Tag("number", ""), Tag("measure", "")
_Tree = dict[str, "Tag | _Tree"]  # phrases word by word; under "" the meaning of one that ends here
_GRADES = ("trivial", "mild", "moderate", "severe")


@dataclass(frozen=True, slots=True)
class Mention:
    """A phrase with its meaning; several names if it refers to several structures or places."""

    start: int
    end: int
    kind: str
    names: tuple[str, ...]
    text: str
    trait: str = ""
    measure: Token | None = None
    grades: tuple[tuple[str, str], ...] = ()  # of single ones of several structures

    @property
    def name(self) -> str:
        return self.names[0]


@dataclass(frozen=True, eq=False)
class Reader:
    """Grammar and lexicon of one sequence, prepared for reading."""

    lexicon: Lexicon
    aliases: Mapping[str, Phrase]
    tree: _Tree
    vocabulary: frozenset[str]

    def mentions(self, text: str, start: int, end: int) -> list[Mention]:
        """Return the mentions of a span of text in order."""
        spelled = respelled(tokens(text, start, end), self.vocabulary)
        words = list(unfolded(spelled, self.aliases))
        return _joined(list(_read(words, self)), self.lexicon)


@functools.lru_cache(maxsize=32)
def reader(lexicon: Lexicon) -> Reader:
    """Build the reader of a lexicon; its words take precedence over those of the grammar."""
    tags = {**_foreign(lexicon), **grammar().tags, **lexicon.tags}
    tree: _Tree = {}
    for phrase, tag in tags.items():
        branch = tree
        for word in phrase:
            branch = branch.setdefault(word, {})  # type: ignore[assignment]
        branch[""] = tag
    aliases = {**grammar().aliases, **lexicon.aliases}
    words = {word for phrase in tags for word in phrase} | aliases.keys() | grammar().plain
    return Reader(lexicon, aliases, tree, frozenset(words))


def _foreign(lexicon: Lexicon) -> dict[Phrase, Tag]:
    """Return findings of other sequences, as phrases sharing no word with this one's names and states."""
    lexicon_words = {
        word for phrase, tag in lexicon.tags.items() if tag.kind in ("name", "state") for word in phrase
    }
    return {phrase: Tag("foreign", "") for phrase in lexicon.foreign if lexicon_words.isdisjoint(phrase)}


def _read(words: Sequence[Token], reader: Reader) -> Iterator[Mention]:
    at = 0
    while at < len(words):
        end, tag = _longest(words, at, reader.tree)
        if words[at].text in ("segment", "segments"):
            end, places = _segments(words, at + 1)
            if places:
                yield Mention(words[at].start, words[end - 1].end, "place", places, "segments")
                at = end
                continue
            end, tag = at + 1, _WORD
        first = words[at]
        yield Mention(
            first.start,
            words[end - 1].end,
            tag.kind,
            (tag.name,),
            " ".join(word.text for word in words[at:end]),
            tag.trait,
            first if first.unit or first.high else None,
        )
        at = end


def _longest(words: Sequence[Token], at: int, tree: _Tree) -> tuple[int, Tag]:
    best, tag = at + 1, _MEASURE if words[at].unit else _NUMBER if words[at].high else _WORD
    branch = tree
    for end in range(at, len(words)):
        following = branch.get(words[end].text)
        if not isinstance(following, dict):
            break
        branch = following
        ending = branch.get("")
        if isinstance(ending, Tag):
            best, tag = end + 1, ending
    return best, tag


def _segments(words: Sequence[Token], at: int) -> tuple[int, tuple[str, ...]]:
    """Parse numbers of AHA segments: where the list ends, and its levels and walls."""
    numbers: list[int] = []
    end = at
    while at < len(words):
        text = words[at].text
        if text.isdigit() and 1 <= int(text) <= 17:
            upto = int(text)
            numbers += range(numbers[-1] + 1, upto + 1) if words[at - 1].text == "-" and numbers else [upto]
            end = at + 1
        elif text not in {",", "and", "-", "/", "&", "to", "(", "aha", "nos", "no", "numbers"}:
            break
        at += 1
    place_names = {**LEVELS, **WALLS}
    return end, tuple(name for name, members in place_names.items() if members & set(numbers))


def _joined(mentions: list[Mention], lexicon: Lexicon) -> list[Mention]:
    """Merge mentions: `mild to moderate` into its worse grade, enumerated structures into one."""
    merged: list[Mention] = []
    for mention in (_of_members(one, lexicon) for one in mentions):
        if mention.kind == "grade" and (start := _range(merged)) is not None:
            worse = max(merged[start].name, mention.name, key=_GRADES.index)
            merged[start:] = [replace(merged[start], end=mention.end, names=(worse,))]
        elif mention.kind == "structure" and (start := _enumeration(merged)) is not None:
            merged[start:] = [_enumerated(merged[start:], mention)]
            if _goes_on(merged):
                merged[-3:] = [_enumerated(merged[-3:-1], merged[-1])]
        else:
            merged.append(mention)
    return merged


def _of_members(mention: Mention, lexicon: Lexicon) -> Mention:
    if mention.kind != "structure" or mention.name not in lexicon.groups:
        return mention
    return replace(mention, names=lexicon.groups[mention.name])


def _range(merged: Sequence[Mention]) -> int | None:
    """Return where a range of grades starts that the next grade ends: `mild to moderate`, `mild-moderate`."""
    if merged and merged[-1].kind == "grade":
        return len(merged) - 1
    if len(merged) > 1 and merged[-2].kind == "grade" and merged[-1].kind in ("to", "or"):
        return len(merged) - 2
    return None


def _enumeration(merged: Sequence[Mention]) -> int | None:
    """Return where an enumeration starts that the next structure ends: `mitral and [mild] tricuspid`."""
    at = len(merged) - 1
    while at >= 0 and (merged[at].kind == "grade" or merged[at].text in ("the", "both")):
        at -= 1
    linked = merged[at].kind in ("and", "or") or merged[at].text == "nor" if at > 0 else False
    if linked and merged[at - 1].kind == "structure":
        return at - 1
    return None


def _enumerated(first: Sequence[Mention], last: Mention) -> Mention:
    """Merge enumerated structures; a grade before the last is only its: `severe LV and mild RV`."""
    graded = [mention.name for mention in first if mention.kind == "grade"]
    grades = tuple((name, grade) for name in last.names for grade in graded)
    names = tuple(dict.fromkeys((*first[0].names, *last.names)))
    return replace(first[0], end=last.end, names=names, grades=(*first[0].grades, *last.grades, *grades))


def _goes_on(merged: Sequence[Mention]) -> bool:
    """Return whether a structure and a comma precede an enumeration: `mitral, tricuspid and aortic`."""
    before = [mention.kind for mention in merged[-4:-1]]
    return before[-2:] == ["structure", "comma"] and before[0] not in ("state", "predicate")
