"""Compose a sweep from the command line with Hydra; errors name the legal values."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException
from yaml import YAMLError

from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.base.phrasing import choices
from cardiolens.base.untrusted.bounded_files import BYTE_ORDER_MARK, check_aliases, decode, read_bytes
from cardiolens.config.base import options_at
from cardiolens.config.command_words import listed, not_a_word, with_quoted_texts
from cardiolens.config.conf_names import (
    GROUPS,
    ONE_OF,
    conf_files,
    conf_folders,
    expand_release,
    hydra_text,
    is_release,
    legal_names,
    packaged_conf,
)
from cardiolens.config.dataset import JOIN
from cardiolens.config.sweep import SweepSpec, parse

_LISTS = "python -m cardiolens.sweep --help"  # every name
# of models named without a file: of the hub, and of a server; a folder of weights is one by its slash
_HUB, _SERVER = "hf:", "http:"
_MOST_BYTES = 1 << 20  # size limit of a configuration file


class UserConfFirst(SearchPathPlugin):
    """Hydra plugin that searches the user's `conf/` before the packaged one."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        for folder in reversed(conf_folders()[:-1]):
            search_path.prepend("user", f"file://{folder}")


def read_spec(argv: Sequence[str]) -> SweepSpec:
    """Compose and validate a sweep from command-line words, e.g. ['+experiment=demo', 'budget=[8,16]']."""
    return _spec_of(composed_sweep(argv))


def composed_sweep(argv: Sequence[str]) -> dict[str, Any]:
    """Compose the configuration of a sweep; its values are not checked yet.

    InputError names what is wrong with the words, or with a file of `conf/`.
    """
    words = with_quoted_texts(expand_release(_of_dataset(_split_seeds(_with_named_models(argv)))))
    check_own_files()
    for override in map(_parsed, words):
        _check_list(override)
    Plugins.instance().register(UserConfFirst)
    OmegaConf.clear_resolver("oc.env")  # values of variables would be written to runs
    try:
        with initialize_config_dir(str(packaged_conf()), version_base="1.3"):
            tree = compose("sweep", overrides=words)
        content: Any = OmegaConf.to_container(tree, resolve=True, throw_on_missing=True)
    except MissingMandatoryValue as error:
        raise InputError(f"{error.full_key} has no value; give one: {error.full_key}=...") from None
    except RecursionError:
        raise InputError(
            f"{' '.join(words)}: the defaults of a configuration file lead back to it; remove that entry"
        ) from None
    except (HydraException, OmegaConfBaseException) as error:
        raise InputError(_hydra_message(error)) from None
    return {str(name): value for name, value in content.items()}


def _spec_of(tree: Mapping[str, Any]) -> SweepSpec:
    spec = parse(tree)
    legal = sorted({*legal_names("prompt"), *(prompt.name for prompt in spec.prompt), "report", "step"})
    for model in spec.model:
        for name in model.max_tokens.keys() - set(legal):
            raise InputError(
                f"model.{model.name}.max_tokens.{name}: no such prompt; choose from {', '.join(legal)}"
            )
    return spec


def _check_list(override: Override) -> None:
    """Raise InputError for a group of no entry, or of several where a sweep has one."""
    group, value = override.key_or_group, override.value()
    if group in GROUPS and value is None and not override.is_delete():
        raise InputError(_unknown_name(group, "null"))
    if group in ONE_OF and isinstance(value, list):
        legal = ", ".join(legal_names(group))
        raise InputError(f"{override.input_line}: a sweep has one {group}; choose from {legal}")


def check_own_files() -> None:
    """Raise InputError for a file in the user's `conf/` that is not YAML: Hydra would show a traceback."""
    for folder in conf_folders()[:-1]:
        for path in sorted(path for group in (".", *GROUPS) for path in conf_files(folder / group)):
            try:
                _check_yaml(read_bytes(path, _MOST_BYTES))
            except (YAMLError, OSError, ValueError) as error:
                raise InputError(
                    f"{path}: not YAML ({_hydra_message(error)}); correct or remove it"
                ) from None


def _check_yaml(stored: bytes) -> None:
    """Raise for a file that Hydra cannot read, or that aliases (`*name`) make infinite or huge."""
    text = decode(stored)
    if stored.startswith(BYTE_ORDER_MARK) and text.lstrip().startswith("# @"):
        raise ValueError("a byte order mark hides its first line from Hydra; save it as UTF-8 without one")
    check_aliases(text)
    OmegaConf.create(text)


def _parsed(word: str) -> Override:
    try:
        override = OverridesParser.create().parse_override(word)
    except HydraException:
        raise InputError(not_a_word(word)) from None
    if not override.key_or_group:
        raise InputError(not_a_word(word))
    return override


def _with_named_models(words: Sequence[str]) -> list[str]:
    """Write each model without a file as options of a model, `++model.<name>={...}`, for Hydra.

    Options of such a model, `model.<name>.max_num_seqs=8`, are added to it. InputError for two models of one
    name.
    """
    written: list[str] = []
    added: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        named = {entry: _named_model(entry) for entry in listed(value)} if key == "model" and equals else {}
        if not any(named.values()):
            written.append(word)
            continue
        files = [entry for entry, options in named.items() if options is None]
        for entry, options in named.items():
            if options is not None:
                name = _name(entry)
                if name in files or name in added:
                    raise InputError(
                        f"model={entry}: another model is called {name} as well; ask it in another sweep"
                    )
                added[name] = f"++model.{name}={hydra_text(options)}"
        written += [f"model=[{','.join(files)}]", *added.values()]
    of_added = tuple(f"model.{name}." for name in added)
    options_of = [word for word in written if added and word.startswith(of_added)]
    return [*(word for word in written if word not in options_of), *(f"++{word}" for word in options_of)]


def _named_model(entry: str) -> dict[str, Any] | None:
    """Return the options of an entry that names a model itself; None for the name of a file."""
    if entry.startswith(_SERVER):
        model, at, url = entry.removeprefix(_SERVER).partition("@")
        if not model or not at or not url:
            raise InputError(
                f"model={entry}: expected http:MODEL@URL, e.g. http:qwen@http://127.0.0.1:8000/v1"
            )
        _say(entry, "its version, the tokens of a frame, and whether it thinks; see docs/guides/http.md")
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
    _say(entry, "whether it thinks (reasoning_parser) and its sampling; see docs/guides/gpus.md")
    return {"source": source}


def _say(entry: str, unknown: str) -> None:
    say(f"model {_name(entry)}: {entry}; not known: {unknown}")


def _name(entry: str) -> str:
    """Return the name of a model without a file, as files of conf/model are named."""
    last = entry.removeprefix(_SERVER).partition("@")[0] if entry.startswith(_SERVER) else entry
    return re.sub(r"[^a-z0-9]+", "_", last.rstrip("/").rpartition("/")[2].lower()).strip("_")


def _split_seeds(words: Sequence[str]) -> list[str]:
    """Rewrite `selector=[clinical,random@2027]` for Hydra: the names, then the seeds of each as an option."""
    rewritten: list[str] = []
    for word in words:
        key, equals, value = word.partition("=")
        if key != "selector" or "@" not in value:
            rewritten.append(word)
            continue
        names: dict[str, list[str]] = {}
        for entry in value.strip("[]").split(","):
            name, marked, seed = entry.strip().partition("@")
            if marked and not seed.isdecimal():
                raise InputError(f"{word}: {seed!r} is not a seed; give a whole number, e.g. {name}@2027")
            names.setdefault(name, []).extend([seed] if seed else [])
        rewritten.append(f"{key}{equals}[{','.join(names)}]")
        rewritten += [
            f"++selector.{name}.seeds=[{','.join(seeds)}]" for name, seeds in names.items() if seeds
        ]
    return rewritten


def _of_dataset(words: Sequence[str]) -> list[str]:
    """Rewrite `protocol=[a,b]` for Hydra: the protocols of the dataset, asked together."""
    rewritten: list[str] = []
    for word in words:
        key, equals, value = word.partition("=")
        names = JOIN.join(name.strip() for name in value.strip("[]").split(","))
        rewritten.append(f"dataset.protocol={names}" if equals and key == "protocol" else word)
    return rewritten


def _hydra_message(error: Exception) -> str:
    """Return the message of a Hydra error on one line; for an unknown name, list the legal names."""
    message = " ".join(f"{error} {error.__cause__ or ''}".split())
    if added := re.search(r"To append to your default list use (\S+)", message):
        return f"{added[1].lstrip('+')}: is not among the defaults; write {added[1]}"
    if unknown := re.match(r"Could not override '([^']+)'", message):
        path, _, option = unknown[1].rpartition(".")
        legal = options_at(SweepSpec, path.split(".") if path else [])
        if legal and option not in legal:
            return f"{unknown[1]}: unknown option; {choices(option, legal)}"
    if absent := re.search(r"Could not (?:load|find) '(\w+)/([^']+)'", message):
        return _unknown_name(absent[1], absent[2])
    return message


def _unknown_name(group: str, name: str) -> str:
    """Return the message for a name that a group lacks; a folder of a release is written with a slash."""
    known = choices(name, legal_names(group), _LISTS)
    if group == "dataset" and is_release(Path(name)):
        known = f"for the release in this folder, write dataset=./{name}"
    elif group == "dataset" and is_release(Path.cwd()):
        known += "; for the release that this folder is, write dataset=./"
    return f"{group}={name}: unknown {group}; {known}"
