"""The words that describe a sweep: which files of conf/ they name, and which options they set."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import Any, NamedTuple, get_origin

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.base.phrasing import choices
from cardiolens.config.base import annotation_at, kinds_within
from cardiolens.config.command_words import listed, not_a_word, pairs_of
from cardiolens.config.conf_names import GROUPS, ONE_OF, legal_names, released_options
from cardiolens.config.dataset import JOIN
from cardiolens.config.sweep import SweepSpec

# before models that are named without a file: of the hub, and of a server; a folder is one by its slash
_HUB, _SERVER = "hf:", "http:"
_SERVER_UNKNOWN = "its version, the tokens of a frame, and whether it thinks; see docs/guides/http.md"
_UNKNOWN = "whether it thinks (reasoning_parser) and its sampling; see docs/guides/gpus.md"
_INTERPOLATION = re.compile(r"\$\{[^{}]*\}")
_LISTS = "python -m cardiolens.sweep --help"  # every name

LEFT_OUT = object()
"""The value of an option that a word `~path` takes out of what the files say."""

Option = tuple[str, object]
"""The path of an option, e.g. dataset.studies, and its value."""


class Choice(NamedTuple):
    """What a word chooses of a group of conf/: names of files, and options beside those of the files."""

    names: Sequence[str]
    options: Mapping[str, object] = MappingProxyType({})


def read_sweep_words(words: Sequence[str]) -> tuple[dict[str, Sequence[str]], list[Option]]:
    """Return the names chosen of each group of conf/, and the options in the order in which they count.

    Of two words for one group the last one counts. A `+` before a name has no meaning; `~model.NAME.source`
    leaves an option out.
    """
    chosen: dict[str, Choice] = {}
    options: list[Option] = []
    left_out = [word for word in words if word.startswith("~") and "=" not in word]
    for word, value in pairs_of([word for word in words if word not in left_out]):
        name = word.lstrip("+")
        if name in GROUPS:
            chosen[name] = _CHOICES.get(name, _files)(value)
            _check_names(name, value, chosen[name].names)
        elif name == "protocol":  # several are asked together
            options.append(("dataset.protocol", literal(JOIN.join(listed(value)))))
        else:
            options.append((name, value_of(name, value)))
    of_groups = [
        (path, literal(value)) for choice in chosen.values() for path, value in choice.options.items()
    ]
    options += [(word[1:], LEFT_OUT) for word in left_out]
    return {group: choice.names for group, choice in chosen.items()}, [*of_groups, *options]


def _check_names(group: str, value: str, names: Sequence[str]) -> None:
    """Raise InputError for a name without a file, or for several names where a sweep has one."""
    for name in names:
        if name not in legal_names(group):
            raise InputError(unknown_name(group, name))
    if group in ONE_OF and len(names) != 1:
        legal = ", ".join(legal_names(group))
        raise InputError(f"{group}={value}: a sweep has one {group}; choose from {legal}")


def unknown_name(group: str, name: str) -> str:
    """Return the message for a name that a group lacks."""
    known = choices(name, legal_names(group), _LISTS)
    folder = "; the folder of a release is written with a slash, dataset=./NAME" if group == "dataset" else ""
    return f"{group}={name}: unknown {group}; {known}{folder}"


def value_of(name: str, text: str) -> Any:
    """Read the value of an option as Hydra does; a text or path also as it is written, e.g. store=/a=b,c.

    Hydra's own quotes and escapes count, and so do interpolations.
    """
    try:
        override = OverridesParser.create().parse_override(f"{name}={text}")
        read, is_read = override.value(), not override.is_sweep_override()
    except HydraException:
        read, is_read = None, False
    annotation = annotation_at(SweepSpec, name.split("."))
    kinds = {*kinds_within(annotation)} - {NoneType}
    if kinds and kinds <= {str, Path} and text != "null":
        if get_origin(annotation) is tuple:  # e.g. cluster.sbatch=[--account=mri,--mem=200G]
            return read if is_read else literal(listed(text))
        is_quoted = isinstance(read, str) and ("\\" in text or text[0] in "'\"")
        is_other = not isinstance(read, str) and Path not in kinds  # a number or a list is no text
        if not is_read or not (is_quoted or is_other):
            return text if _INTERPOLATION.search(text) else literal(text)
    if not is_read:
        raise InputError(not_a_word(f"{name}={text}"))
    return read


def literal(value: Any) -> Any:
    """Return a value with its texts so that OmegaConf finds nothing to resolve in them."""
    if isinstance(value, str):
        return value.replace("${", r"\${")
    if isinstance(value, Mapping):
        return {name: literal(entry) for name, entry in value.items()}
    return [literal(entry) for entry in value] if isinstance(value, list) else value


def _files(value: str) -> Choice:
    return Choice(listed(value))


def _models(value: str) -> Choice:
    """Return the files of models, and the options of models without one; InputError for two of one name."""
    models: dict[str, dict[str, Any] | None] = {}
    for entry in listed(value):
        options = _named_model(entry)
        name = entry if options is None else _name(entry)
        if name in models:
            raise InputError(
                f"model={entry}: another model is called {name} as well; ask it in another sweep"
            )
        models[name] = options
        if options is not None:
            say(f"model {name}: {entry}; not known: {_SERVER_UNKNOWN if 'http' in options else _UNKNOWN}")
    files = [name for name, options in models.items() if options is None]
    return Choice(
        files, {f"model.{name}": options for name, options in models.items() if options is not None}
    )


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
        folder = Path(os.path.expanduser(entry))  # which leaves ~nobody as it is
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


def _selectors(value: str) -> Choice:
    """Return the names in `[clinical,random@2027]`, and the seeds of each as an option."""
    seeds: dict[str, list[int]] = {}
    for entry in listed(value):
        name, marked, seed = entry.partition("@")
        if marked and not seed.isdecimal():
            raise InputError(
                f"selector={value}: {seed!r} is not a seed; give a whole number, e.g. {name}@2027"
            )
        seeds.setdefault(name, []).extend([int(seed)] if seed else [])
    return Choice(
        list(seeds), {f"selector.{name}.seeds": numbers for name, numbers in seeds.items() if numbers}
    )


def _dataset(value: str) -> Choice:
    """Return the name of a data set, or the options of the release in a folder, marked by a slash or dot."""
    is_quoted = value[0] in "'\"" and value[0] == value[-1]
    inner = value[1:-1] if is_quoted else value
    if "/" not in inner and not inner.startswith("."):
        return _files(value)
    options = released_options(Path(os.path.expanduser(inner)))
    return Choice(["real"], {f"dataset.{name}": option for name, option in options.items()})


_CHOICES: Mapping[str, Callable[[str], Choice]] = {
    "model": _models,
    "selector": _selectors,
    "dataset": _dataset,
}
"""What reads the value of a group that may stand for more than names of files."""
