"""Help of the verbs, at any width: an overview, the usage of one verb, and all of its words with defaults.

It is printed before the verb itself is loaded, which takes seconds, so nothing heavy is imported here.
"""

import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field

from cardiolens.base.console import end_quietly_if_unread
from cardiolens.base.errors import InputError
from cardiolens.base.sanitize import one_line
from cardiolens.base.suggest import choices
from cardiolens.config.conf_names import GROUPS, ONE_OF, legal_names, packaged_conf

USAGE, HELP, VERSION = "-h", "--help", "--version"
_INDENT = "  "
_GAP = 2  # columns between the cells of a table
_LEAST_MEANING = 30  # columns of a meaning; where fewer are left, it stands below its word
_WIDTH = 100  # if nothing tells the width
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

    @property
    def is_sweep(self) -> bool:
        """Return whether the words of a sweep are words of this verb."""
        return self.configuration == "sweep"


@cache
def verbs() -> dict[str, VerbHelp]:
    """Return the help of each verb, in the order in which a user meets the verbs."""
    text = files("cardiolens.commands").joinpath("verbs.yaml").read_text("utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return {name: VerbHelp.model_validate(entry) for name, entry in yaml.load(text, loader).items()}


def end_if_answered(verb: str, words: Sequence[str]) -> None:
    """End the process with what the words of a verb ask for, if that is help or the version, or nothing.

    A verb that takes the words of a sweep does nothing without one: a run of the defaults answers nobody.
    """
    if verb not in verbs():
        return
    end_quietly_if_unread()
    if VERSION in words:
        print(version())
    elif HELP in words:
        print(help_of(verb, terminal_width()))
    elif USAGE in words:
        print(usage_of(verb, terminal_width()))
    elif not words and verbs()[verb].is_sweep:
        raise SystemExit(_nothing_to_do(verb))
    else:
        return
    raise SystemExit(0)


def _nothing_to_do(verb: str) -> int:
    print(f"error: no word says what to {verb}; write for example", file=sys.stderr)
    for example in verbs()[verb].examples:
        print(f"{_INDENT}{example}", file=sys.stderr)
    return 2


def version() -> str:
    """Return the line of `--version`."""
    from cardiolens.base.running_version import running_version

    return f"cardiolens {running_version()}"


def terminal_width() -> int:
    """Return the width of the terminal, or COLUMNS where it is set, in columns."""
    return shutil.get_terminal_size((_WIDTH, 24)).columns


def overview(width: int = _WIDTH) -> str:
    """Return a line for each verb."""
    return "\n".join(
        [
            *_filled("python -m cardiolens.<verb> [words], or cardiolens <verb> [words]", width),
            "",
            *_table({name: (verb.does,) for name, verb in verbs().items()}, width),
            "",
            *_filled("A word is name=value. Each verb explains its own: cardiolens sweep --help", width),
            *_filled("To begin: python -m cardiolens.sweep +experiment=demo", width),
            *_filled("Completion of words by Tab: cardiolens completion --help", width),
        ]
    )


def usage_of(name: str, width: int = _WIDTH) -> str:
    """Return the form of a verb's command, what it does, and an example."""
    verb = verbs()[name]
    required = [f"{word}=..." for word, (default, _) in verb.words.items() if default == "required"]
    some = [] if len(required) == len(verb.words) and verb.configuration is None else ["[name=value ...]"]
    form = " ".join(
        word if word.isidentifier() or "=" in word else f"[{word}]" for word in [*required, *some]
    )
    return "\n".join(
        [
            *_filled(f"usage: python -m cardiolens.{name} {form}".rstrip(), width, hanging=7),
            *_filled(f"It {verb.does}.", width),
            *_filled(f"e.g. {verb.examples[0]}", width, hanging=5),
            *_filled(f"All words with their defaults: cardiolens {name} {HELP}", width),
        ]
    )


def help_of(name: str, width: int = _WIDTH) -> str:
    """Return the help of one verb."""
    verb = verbs()[name]
    blocks = ["\n".join(_filled(f"python -m cardiolens.{name} {verb.does}.", width))]
    if verb.words:
        blocks.append(_block("Words, their defaults and meaning:", width, _table(verb.words, width)))
    if verb.configuration is not None:
        if verb.is_sweep:
            names = {form: (", ".join(legal_names(group)),) for group, form in group_forms().items()}
            blocks.append(
                _block("Names, from the files of conf/ and of your own conf/:", width, _table(names, width))
            )
        options = [line for text in _options(verb.configuration) for line in _option(text, width)]
        blocks.append(_block("Options with their defaults:", width, options))
        if verb.is_sweep:
            whole = "The whole configuration of a command: add --cfg=job to it. What it would do: mode=plan"
            blocks.append("\n".join(_filled(whole, width)))
    examples = [line for text in verb.examples for line in _command(text, width)]
    blocks.append(_block("Examples:", width, examples))
    return "\n\n".join(blocks)


def words_of(name: str) -> list[str]:
    """Return the words that a verb takes, each with its `=`, e.g. for completion."""
    verb = verbs()[name]
    words = []
    for entry, (_, meaning) in verb.words.items():
        is_bare = entry.startswith("-") or "stands first" in meaning  # an option of Ray, or an action
        words += [word if is_bare else f"{word}=" for word in entry.split(", ") if word != "..."]
    if verb.configuration is not None:
        top = [line.partition(":")[0] for line in _options(verb.configuration) if line[:1].strip()]
        words += [f"{option}=" for option in top if option]
    if verb.is_sweep:
        words += [form.partition("=")[0] + "=" for form in group_forms().values()]
    return list(dict.fromkeys(words))


def group_forms() -> Mapping[str, str]:
    """Return the form of the word that names entries of each group, e.g. `selector=[...]`."""
    return {group: _FORM.get(group, "{}=[...]").format(group) for group in GROUPS}


def known_verb(name: str) -> str:
    """Return the name if a verb has it, else raise InputError."""
    if name not in verbs():
        raise InputError(f"{one_line(name, 60)}: no such verb; {choices(name, verbs(), 'cardiolens --help')}")
    return name


def _block(title: str, width: int, lines: Iterable[str]) -> str:
    return "\n".join([*_filled(title, width), *lines])


def _filled(text: str, width: int, indent: int = 0, hanging: int = 0) -> list[str]:
    """Lines of a text, of which no word is cut: a word that is longer than the width stands alone."""
    return textwrap.wrap(
        text,
        max(width, hanging + 1),
        initial_indent=" " * indent,
        subsequent_indent=" " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _command(text: str, width: int) -> list[str]:
    """Lines of a command that a shell takes for one, since each but the last ends with a backslash."""
    *lines, last = _filled(text, width - 2, 2, 6)
    return [*(f"{line} \\" for line in lines), last]


def _table(rows: Mapping[str, tuple[str, ...]], width: int) -> Iterator[str]:
    """Lines of a table whose last cells are wrapped; below the others where these leave too little room."""
    cells = [(name, *others) for name, others in rows.items()]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]) - 1)]
    start = len(_INDENT) + sum(widths) + _GAP * len(widths)
    for *labels, meaning in cells:
        if width - start >= _LEAST_MEANING:
            label = "".join(f"{text:<{wide + _GAP}}" for text, wide in zip(labels, widths, strict=True))
            yield from _hung(f"{_INDENT}{label}", meaning, width, start)
            continue
        yield from _filled("  ".join(label for label in labels if label), width, 2, 4)
        yield from _filled(meaning, width, 6, 6)


def _hung(label: str, text: str, width: int, start: int) -> list[str]:
    first, *others = _filled(text, width - start) or [""]
    return [f"{label}{first}".rstrip(), *(" " * start + line for line in others)]


def _options(name: str) -> list[str]:
    """Return the entries of a configuration file with their comments, without Hydra's own entries."""
    text = (packaged_conf() / f"{name}.yaml").read_text("utf-8")
    text = re.sub(r"^(?:hydra|defaults):\n(?:[ \t]+.*\n?|\n)*", "", text, flags=re.MULTILINE)
    return [line for line in text.strip().splitlines() if not line.startswith("#")]


def _option(line: str, width: int) -> list[str]:
    """Lines of one entry of a configuration file; its comment is wrapped, below it where that is too wide."""
    if len(_INDENT) + len(line) <= width:
        return [f"{_INDENT}{line}".rstrip()]
    entry, _, comment = line.partition("  #")
    start = len(line) - len(comment) - 1
    indent = len(line) - len(line.lstrip())
    if width - start < _LEAST_MEANING:
        below = len(_INDENT) + indent + 4
        return [
            *_filled(entry.strip(), width, len(_INDENT) + indent, below),
            *(f"{' ' * below}# {part}" for part in _filled(comment.strip(), width - below - 2)),
        ]
    parts = _filled(comment.strip(), width - start - len(_INDENT) - 2)
    lines = [f"{_INDENT}{entry:<{start}}# {parts[0]}"]
    return [*lines, *(f"{_INDENT}{' ' * start}# {part}" for part in parts[1:])]
