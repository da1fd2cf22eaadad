"""Words of a group: what its reports say otherwise than ours, checked against what we know and read."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.config.base import Spec, describe
from cardiolens.curation.questions.house_style_checks import checked_house
from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.protocol.tasks.lexicon import Tag
from cardiolens.protocol.tasks.phrases import HouseStyle, Phrase
from cardiolens.report_text.understanding import vocabulary
from cardiolens.study.protocol_folder import read_yaml

# Roles that a phrase of a group may take over from one of ours.
_TAKEN_OVER = frozenset(["structure", "place", "name", "state", "predicate", "grade"])
_FINDINGS = frozenset(["structure", "place", "name", "state"])


class GroupWords(Spec):
    """A file of words: phrases that change nothing or mean one of ours, and headings and whole sentences."""

    fillers: tuple[str, ...] = ()
    synonyms: Mapping[str, str] = {}
    headings: Mapping[str, str] = {}
    values: Mapping[str, Mapping[str, str]] = {}
    sentences: Mapping[str, str] = {}


def with_words(catalogue: Catalogue, path: Path | None) -> Catalogue:
    """Return a catalogue that knows the words of a file as well; InputError for a contradiction with ours."""
    if path is None:
        return catalogue
    try:
        group = GroupWords.model_validate(read_yaml(path))
    except ValidationError as error:
        raise InputError(
            f"words={path}: {describe(error)}; expected fillers: [...], and {{...}} for the others"
        ) from None
    fillers = frozenset(_phrase(filler, path) for filler in group.fillers)
    synonyms = {_phrase(new, path): _phrase(ours, path) for new, ours in group.synonyms.items()}
    if both := sorted(" ".join(phrase) for phrase in fillers & synonyms.keys()):
        raise InputError(f"words={path}: {both[0]!r} is a filler and a synonym; it can be one of them alone")
    tags = vocabulary(catalogue).tags
    for phrase in fillers:
        _check(phrase, tags, path, may_hold=frozenset({"filler"}))
    for new, ours in synonyms.items():
        _check(new, tags, path, may_hold=_TAKEN_OVER | {"filler"})
        if (tag := tags.get(ours)) is None or tag.kind not in _TAKEN_OVER:
            raise InputError(
                f"words={path}: {' '.join(new)!r} is to mean {' '.join(ours)!r}, which names no structure, "
                "place, finding, value or grade of ours; give a phrase of the lexicon, e.g. late gadolinium "
                "enhancement"
            )
    lexicons = {
        name: replace(lexicon, tags={**lexicon.tags, **_own(synonyms, lexicon.tags, tags)}, fillers=fillers)
        for name, lexicon in catalogue.lexicons.items()
    }
    in_order = [[list(pairs.items()) for pairs in (group.headings, group.values, group.sentences)]]
    record = [catalogue.sha256, sorted(map(list, fillers)), sorted(map(list, synonyms.items())), in_order]
    known = replace(catalogue, lexicons=lexicons, sha256=digest_of(record))
    roles = vocabulary(known)
    findings = frozenset(phrase for phrase, tag in roles.tags.items() if tag.kind in _FINDINGS)
    house = HouseStyle(group.headings, group.values, group.sentences, findings, roles.fillers)
    return replace(known, house=checked_house(house, known, path))


def _phrase(text: str, path: Path) -> Phrase:
    words = tuple(text.lower().replace("-", " ").split())
    if not words or not all(word.isalnum() for word in words):
        raise InputError(
            f"words={path}: {text!r} is no phrase of letters and digits; write words with spaces between them"
        )
    return words


def _check(phrase: Phrase, tags: Mapping[Phrase, Tag], path: Path, may_hold: frozenset[str]) -> None:
    """Raise InputError where a phrase, or a part of it, has a role with us that it may not have here."""
    for part in _parts(phrase):
        kind = tags[part].kind if part in tags else "filler"
        if kind not in may_hold or (part == phrase and kind != "filler"):
            raise InputError(
                f"words={path}: {' '.join(phrase)!r} holds {' '.join(part)!r}, which has another role with "
                f"us: {kind.replace('_', ' ')}; leave it out, or give a phrase without it"
            )


def _parts(phrase: Phrase) -> Iterator[Phrase]:
    for start in range(len(phrase)):
        for end in range(start + 1, len(phrase) + 1):
            yield phrase[start:end]


def _own(
    synonyms: Mapping[Phrase, Phrase], of_lexicon: Mapping[Phrase, Tag], every: Mapping[Phrase, Tag]
) -> dict[Phrase, Tag]:
    """Return the synonyms of a lexicon: those of its own phrases, and of values and grades."""
    own: dict[Phrase, Tag] = {}
    for new, ours in synonyms.items():
        if ours in of_lexicon:
            own[new] = of_lexicon[ours]
        elif every[ours].kind in ("predicate", "grade"):
            own[new] = every[ours]
    return own
