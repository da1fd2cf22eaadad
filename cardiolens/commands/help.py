"""Help of the verbs: an overview with one line per verb; per verb its words, defaults and three examples."""

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field

from cardiolens.base.errors import InputError
from cardiolens.base.sanitize import one_line
from cardiolens.base.suggest import nearest_first
from cardiolens.config.compose import GROUPS, ONE_OF, legal_names, packaged_conf

HELP_WORDS = frozenset({"--help", "-h"})
_INDENT = "  "
_FORM = {
    "experiment": "+{}=",
    **dict.fromkeys(ONE_OF, "{}="),
}  # the form of a word that takes one name; other groups take lists


class VerbHelp(BaseModel):
    """Help of one verb. `words` maps a word to its default and its meaning."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    does: str
    configuration: str | None = None  # a file of conf/ whose entries are words too
    words: dict[str, tuple[str, str]] = {}
    examples: Annotated[list[str], Field(min_length=3, max_length=3)]


@cache
def verbs() -> dict[str, VerbHelp]:
    """Return the help of each verb, in the order in which a user meets the verbs."""
    text = files("cardiolens.commands").joinpath("verbs.yaml").read_text("utf-8")
    return {name: VerbHelp.model_validate(entry) for name, entry in yaml.safe_load(text).items()}


def overview() -> str:
    """Return one line per verb."""
    width = max(map(len, verbs()))
    lines = [f"{_INDENT}{name:<{width}}  {verb.does}" for name, verb in verbs().items()]
    return "\n".join(
        [
            "python -m cardiolens.<verb> [words], or cardiolens <verb> [words]",
            "",
            *lines,
            "",
            "A word is name=value. Each verb explains its own: python -m cardiolens.sweep --help",
            "To begin: python -m cardiolens.sweep +experiment=demo",
        ]
    )


def help_of(name: str) -> str:
    """Return the help of one verb."""
    verb = verbs()[name]
    blocks = [f"python -m cardiolens.{name} {verb.does}."]
    if verb.words:
        blocks.append(_block("Words, their defaults and meaning:", _table(verb.words)))
    if verb.configuration is not None:
        if verb.configuration == "sweep":
            blocks.append(_block("Names, from the files of conf/ and of your own conf/:", _groups()))
        blocks.append(_block("Options with their defaults:", _options(verb.configuration)))
        if verb.configuration == "sweep":
            blocks.append(
                "The whole configuration of a command: add --cfg=job to it. What it would do: mode=plan"
            )
    blocks.append(_block("Examples:", verb.examples))
    return "\n\n".join(blocks)


def known_verb(name: str) -> str:
    """Return the name if a verb has it, else raise InputError."""
    if name not in verbs():
        listed = ", ".join(nearest_first(name, verbs()))
        raise InputError(f"{one_line(name, 60)}: no such verb; choose from {listed}")
    return name


def _block(title: str, lines: Sequence[str]) -> str:
    return "\n".join([title, *(f"{_INDENT}{line}".rstrip() for line in lines)])


def _table(words: dict[str, tuple[str, str]]) -> list[str]:
    width, wide = max(map(len, words)), max(len(default) for default, _ in words.values())
    return [f"{word:<{width}}  {default:<{wide}}  {meaning}" for word, (default, meaning) in words.items()]


def _groups() -> list[str]:
    """Return one line per group of names that a sweep chooses from."""
    return [
        f"{_FORM.get(group, '{}=[...]').format(group)}  {', '.join(legal_names(group))}" for group in GROUPS
    ]


def _options(name: str) -> list[str]:
    """Return the entries of a configuration file with their comments, without Hydra's own entries."""
    text = (packaged_conf() / f"{name}.yaml").read_text("utf-8")
    text = re.sub(r"^(?:hydra|defaults):\n(?:[ \t]+.*\n?|\n)*", "", text, flags=re.MULTILINE)
    return [line for line in text.strip().splitlines() if not line.startswith("#")]
