"""The words that describe a sweep, written as Hydra reads them."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, get_origin

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Quote, QuotedString, Sweep
from hydra.errors import HydraException

from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.config.base import annotation_at, kinds_within
from cardiolens.config.command_words import joined_hint, listed
from cardiolens.config.conf_names import quoted, released_options
from cardiolens.config.dataset import JOIN
from cardiolens.config.sweep import SweepSpec

# before models that are named without a file: of the hub, and of a server; a folder is one by its slash
_HUB, _SERVER = "hf:", "http:"
_SERVER_UNKNOWN = "its version, the tokens of a frame, and whether it thinks; see docs/guides/http.md"
_UNKNOWN = "whether it thinks (reasoning_parser) and its sampling; see docs/guides/gpus.md"
_INTERPOLATION = re.compile(r"\$\{[^{}]*\}")


def hydra_words(words: Sequence[str]) -> list[str]:
    """Write the words of a sweep for Hydra: those that stand for several options first, texts in quotes.

    Of two words for the models, the selectors, the protocols or the dataset the last one counts.
    """
    expanded: dict[str, list[str]] = {}
    options: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if not equals and not name.startswith("~"):
            raise InputError(f"{not_a_word(word)}{joined_hint(word, words)}")
        if equals and name in _EXPANDED:
            expanded[name] = _EXPANDED[name](value)
        else:
            options.append(_with_quoted_text(word))
    first = [word for expansion in expanded.values() for word in expansion]
    added = tuple(f"{word[2:].partition('=')[0]}." for word in first if word.startswith("++model."))
    return [*first, *(_forced(word) if word.lstrip("+").startswith(added) else word for word in options)]


def _forced(word: str) -> str:
    return f"++{word.lstrip('+')}"


def not_a_word(word: str) -> str:
    """Return the message for a word that Hydra cannot read."""
    return f"{word!r} is not of the form name=value; quote lists in the shell, e.g. 'budget=[8,16]'"


def _with_quoted_text(word: str) -> str:
    """Quote the value of a text or path that Hydra would take for something else, e.g. `store=/a=b,c`.

    Values that Hydra reads as text stay: those with its own quotes or escapes, and interpolations.
    """
    name, _, value = word.partition("=")
    annotation = annotation_at(SweepSpec, name.lstrip("+").split("."))
    kinds = {*kinds_within(annotation)} - {NoneType}
    if value in ("", "null") or name.startswith("~") or not kinds or not kinds <= {str, Path}:
        return word
    read = _read(word)
    if get_origin(annotation) is tuple:  # e.g. cluster.sbatch=[--account=mri,--mem=200G]
        return word if read is not None else f"{name}=[{','.join(map(quoted, listed(value)))}]"
    if isinstance(read, str) and (read == value or "\\" in value or value[0] in "'\""):
        return word
    if not isinstance(read, str | Sweep | None) and Path not in kinds:
        return word  # a number or a list, which a text is not
    if _INTERPOLATION.search(value):
        return f"{name}={QuotedString(value, Quote.single).with_quotes()}"
    return f"{name}={quoted(value)}"


def _read(word: str) -> Any:
    """Return what Hydra reads; None if it cannot."""
    try:
        return OverridesParser.create().parse_override(word).value()
    except HydraException:
        return None


def _models(value: str) -> list[str]:
    """Write each model without a file as options of a model; InputError for two models of one name."""
    options_of = {entry: _named_model(entry) for entry in listed(value)}
    files = [entry for entry, options in options_of.items() if options is None]
    if len(files) == len(options_of):
        return [f"model={value}"]
    added: dict[str, str] = {}
    for entry, options in options_of.items():
        if options is None:
            continue
        name = _name(entry)
        if name in files or name in added:
            raise InputError(
                f"model={entry}: another model is called {name} as well; ask it in another sweep"
            )
        say(f"model {name}: {entry}; not known: {_SERVER_UNKNOWN if 'http' in options else _UNKNOWN}")
        added[name] = _option(f"model.{name}", options)
    return [f"model=[{','.join(files)}]", *added.values()]


def _named_model(entry: str) -> dict[str, Any] | None:
    """Return the options of an entry that names a model itself; None for the name of a file."""
    if entry.startswith(_SERVER):
        model, _, url = entry.removeprefix(_SERVER).partition("@")
        if not model or not url:
            raise InputError(
                f"model={entry}: expected http:MODEL@URL, e.g. http:qwen@http://127.0.0.1:8000/v1"
            )
        return {"engine": "http", "revision": "as served", "http": {"base_url": url, "api_model": model}}
    if entry.startswith(_HUB):
        source = entry.removeprefix(_HUB)
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", source):
            raise InputError(f"model={entry}: expected hf:OWNER/NAME, e.g. hf:Qwen/Qwen2.5-VL-7B-Instruct")
    elif "/" in entry or entry.startswith((".", "~")):
        folder = Path(entry).expanduser()
        if not (folder / "config.json").is_file():
            raise InputError(
                f"model={entry}: holds no config.json; name a folder of weights, or hf:OWNER/NAME"
            )
        source = str(folder.absolute())
    else:
        return None
    return {"source": source}


def _name(entry: str) -> str:
    """Return the name of a model without a file, as files of conf/model are named."""
    last = entry.removeprefix(_SERVER).partition("@")[0] if entry.startswith(_SERVER) else entry
    return re.sub(r"[^a-z0-9]+", "_", last.rstrip("/").rpartition("/")[2].lower()).strip("_")


def _selectors(value: str) -> list[str]:
    """Write `[clinical,random@2027]` as the names, and the seeds of each as an option."""
    if "@" not in value:
        return [f"selector={value}"]
    seeds: dict[str, list[int]] = {}
    for entry in listed(value):
        name, marked, seed = entry.partition("@")
        if marked and not seed.isdecimal():
            raise InputError(
                f"selector={value}: {seed!r} is not a seed; give a whole number, e.g. {name}@2027"
            )
        seeds.setdefault(name, []).extend([int(seed)] if seed else [])
    options = [_option(f"selector.{name}.seeds", numbers) for name, numbers in seeds.items() if numbers]
    return [f"selector=[{','.join(seeds)}]", *options]


def _protocols(value: str) -> list[str]:
    """Write `[a,b]` as the protocols of the dataset, asked together."""
    return [f"dataset.protocol={quoted(JOIN.join(listed(value)))}"]


def _dataset(value: str) -> list[str]:
    """Write the folder of a release as its studies, questions, protocol and identity.

    A slash or dot makes the value a folder and not a name. InputError if it holds no release.
    """
    quote = value[:1] if value[:1] in {"'", '"'} and value[:1] == value[-1:] else ""
    inner = value.removeprefix(quote).removesuffix(quote)
    if "/" not in inner and not inner.startswith("."):
        return [f"dataset={value}"]
    options = released_options(Path(inner).expanduser())
    return ["dataset=real", *(_option(f"dataset.{name}", option) for name, option in options.items())]


_EXPANDED: Mapping[str, Callable[[str], list[str]]] = {
    "model": _models,
    "selector": _selectors,
    "protocol": _protocols,
    "dataset": _dataset,
}
"""What writes the value of a word that stands for several options."""


def _option(path: str, value: object) -> str:
    return f"++{path}={_hydra_text(value)}"


def _hydra_text(value: object) -> str:
    """Return options as Hydra reads them from a word."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}:{_hydra_text(entry)}" for name, entry in value.items()) + "}"
    if isinstance(value, list):
        return f"[{','.join(map(_hydra_text, value))}]"
    return quoted(value) if isinstance(value, str) else str(value)
