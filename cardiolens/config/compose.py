"""Compose a sweep from the command line with Hydra; errors name the legal values."""

import re
from collections.abc import Sequence
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

from cardiolens.base.errors import InputError
from cardiolens.base.phrasing import choices
from cardiolens.base.untrusted.bounded_files import BYTE_ORDER_MARK, check_aliases, decode, read_bytes
from cardiolens.config.base import annotation_at, spec_within
from cardiolens.config.conf_names import (
    GROUPS,
    ONE_OF,
    conf_files,
    conf_folders,
    legal_names,
    packaged_conf,
)
from cardiolens.config.sweep import SweepSpec, parse
from cardiolens.config.sweep_words import hydra_words, not_a_word

_LISTS = "python -m cardiolens.sweep --help"  # every name
_MOST_BYTES = 1 << 20  # size limit of a configuration file


class UserConfFirst(SearchPathPlugin):
    """Hydra plugin that searches the user's `conf/` before the packaged one."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        for folder in reversed(conf_folders()[:-1]):
            search_path.prepend("user", f"file://{folder}")


def read_spec(argv: Sequence[str]) -> SweepSpec:
    """Compose and validate a sweep from command-line words, e.g. ['+experiment=demo', 'budget=[8,16]']."""
    spec = parse(composed_sweep(argv))
    legal = sorted({*legal_names("prompt"), *(prompt.name for prompt in spec.prompt), "report", "step"})
    for model in spec.model:
        for name in model.max_tokens.keys() - set(legal):
            raise InputError(
                f"model.{model.name}.max_tokens.{name}: no such prompt; choose from {', '.join(legal)}"
            )
    return spec


def composed_sweep(argv: Sequence[str]) -> dict[str, Any]:
    """Compose the configuration of a sweep; its values are not checked yet.

    InputError names what is wrong with the words, or with a file of `conf/`.
    """
    words = hydra_words(argv)
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


def _hydra_message(error: Exception) -> str:
    """Return the message of a Hydra error on one line; for an unknown name, list the legal names."""
    message = " ".join(f"{error} {error.__cause__ or ''}".split())
    if added := re.search(r"To append to your default list use (\S+)", message):
        return f"{added[1].lstrip('+')}: is not among the defaults; write {added[1]}"
    if unknown := re.match(r"Could not override '([^']+)'", message):
        path, _, option = unknown[1].rpartition(".")
        spec = spec_within(annotation_at(SweepSpec, path.split(".") if path else []))
        if spec is not None and option not in spec.model_fields:
            return f"{unknown[1]}: unknown option; {choices(option, sorted(spec.model_fields))}"
    if absent := re.search(r"Could not (?:load|find) '(\w+)/([^']+)'", message):
        return _unknown_name(absent[1], absent[2])
    return message


def _unknown_name(group: str, name: str) -> str:
    """Return the message for a name that a group lacks."""
    known = choices(name, legal_names(group), _LISTS)
    folder = "; the folder of a release is written with a slash, dataset=./NAME" if group == "dataset" else ""
    return f"{group}={name}: unknown {group}; {known}{folder}"
