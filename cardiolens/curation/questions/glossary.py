"""Glossary of a group: its synonyms of the lexicon's phrases, and its headings of the grammar's sections."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.config.base import Spec, describe
from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.protocol.tasks.lexicon import Phrase
from cardiolens.report_text.grammar import grammar
from cardiolens.study.anatomy import read_yaml


class Glossary(Spec):
    """A file of words, each with the phrase or heading that the reader knows for it."""

    synonyms: Mapping[str, str] = {}
    headings: Mapping[str, str] = {}


def with_glossary(catalogue: Catalogue, path: Path | None) -> Catalogue:
    """Return a catalogue with the words of a file; InputError names an entry that cannot be used."""
    if path is None:
        return catalogue
    try:
        glossary = Glossary.model_validate(read_yaml(path))
    except ValidationError as error:
        raise InputError(f"words={path}: {describe(error)}; legal are synonyms and headings") from None
    sections = {}
    for new, known in glossary.headings.items():
        if _phrase(known) not in grammar().headings:
            raise InputError(
                f"words={path}: heading {new!r} is to mean {known!r}; expected e.g. Findings, LGE, History"
            )
        sections[_phrase(new)] = grammar().headings[_phrase(known)]
    synonyms = {_phrase(new): _phrase(known) for new, known in glossary.synonyms.items()}
    tags = {name: {**grammar().tags, **lexicon.tags} for name, lexicon in catalogue.lexicons.items()}
    meanings = {phrase for of_lexicon in tags.values() for phrase in of_lexicon}
    for phrase, ours in synonyms.items():
        if not phrase or phrase in meanings:
            raise InputError(f"words={path}: {' '.join(phrase)!r} has a meaning already; leave it out")
        if ours not in meanings:
            raise InputError(
                f"words={path}: {' '.join(phrase)!r} is to mean {' '.join(ours)!r}, which no lexicon has; "
                "give one of its phrases, e.g. late gadolinium enhancement"
            )
    lexicons = {
        name: replace(
            lexicon,
            tags={
                **lexicon.tags,
                **{new: tags[name][old] for new, old in synonyms.items() if old in tags[name]},
            },
            headings=sections,
            synonyms=synonyms,
        )
        for name, lexicon in catalogue.lexicons.items()
    }
    record = [catalogue.sha256, sorted(glossary.synonyms.items()), sorted(glossary.headings.items())]
    return replace(catalogue, lexicons=lexicons, sha256=digest_of(record))


def headings_of(catalogue: Catalogue) -> Mapping[Phrase, str]:
    """Return the section that each heading of a group's glossary opens."""
    return next((lexicon.headings for lexicon in catalogue.lexicons.values()), {})


def with_known_words(phrase: str, catalogue: Catalogue) -> str:
    """Return a phrase, and behind it what the synonyms in it mean."""
    synonyms = next((lexicon.synonyms for lexicon in catalogue.lexicons.values()), {})
    spelled = f" {' '.join(_phrase(phrase))} "
    known = [" ".join(known) for new, known in synonyms.items() if f" {' '.join(new)}" in spelled]
    return " ".join([phrase, *known])


def _phrase(text: str) -> Phrase:
    return tuple(text.lower().replace("-", " ").split())
