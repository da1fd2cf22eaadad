"""Compose a sweep: the words of a command line, and the files of `conf/` that they name, as a SweepSpec.

Hydra composes the files; the options of the words are set in what it composed.
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException
from yaml import YAMLError

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import BYTE_ORDER_MARK, check_aliases, decode, read_bytes
from cardiolens.config.conf_names import GROUPS, ONE_OF, conf_files, conf_folders, legal_names, packaged_conf
from cardiolens.config.sweep import SweepSpec, parse
from cardiolens.config.sweep_words import LEFT_OUT, literal, read_sweep_words, unknown_name

_MOST_BYTES = 1 << 20  # size limit of a configuration file
_ENTRIES = ("model", "selector", "prompt")  # groups with several entries that have options


class UserConfFirst(SearchPathPlugin):
    """Hydra plugin that searches the user's `conf/` before the packaged one."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        for folder in reversed(conf_folders()[:-1]):
            search_path.prepend("user", f"file://{folder}")


def read_spec(words: Sequence[str], settings: Mapping[str, object] = MappingProxyType({})) -> SweepSpec:
    """Compose and validate a sweep from command-line words, e.g. ['+experiment=demo', 'budget=[8,16]'].

    `settings` are further options by path, with their values as they are.
    """
    spec = parse(composed_sweep(words, settings))
    legal = sorted({*legal_names("prompt"), *(prompt.name for prompt in spec.prompt), "report", "step"})
    for model in spec.model:
        for name in model.max_tokens.keys() - set(legal):
            raise InputError(
                f"model.{model.name}.max_tokens.{name}: no such prompt; choose from {', '.join(legal)}"
            )
    return spec


def composed_sweep(
    words: Sequence[str], settings: Mapping[str, object] = MappingProxyType({})
) -> dict[str, Any]:
    """Compose the configuration of a sweep; its values are not checked yet.

    InputError names what is wrong with the words, or with a file of `conf/`.
    """
    chosen, options = read_sweep_words(words)
    options += [(path, literal(value)) for path, value in settings.items()]
    check_own_files()
    Plugins.instance().register(UserConfFirst)
    OmegaConf.clear_resolver("oc.env")  # values of variables would be written to runs
    try:
        with initialize_config_dir(str(packaged_conf()), version_base="1.3"):
            tree = compose("sweep", overrides=[_chooses(*choice) for choice in chosen.items()])
        OmegaConf.set_struct(tree, False)
        for path, value in options:
            _set(tree, path, value)
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


def _chooses(group: str, names: Sequence[str]) -> str:
    """Write what is chosen of a group for Hydra."""
    if group in ONE_OF:
        return f"{group}={names[0]}"
    return f"{'+' if group == 'experiment' else ''}{group}=[{','.join(names)}]"


def _set(tree: DictConfig, path: str, value: object) -> None:
    """Set an option or leave it out; InputError if its model is not in the sweep, or no file sets it."""
    group, _, rest = path.partition(".")
    name, _, option = rest.partition(".")
    if group in _ENTRIES and option and name not in (entries := tree.get(group) or {}):
        legal = ", ".join(map(str, entries))
        raise InputError(f"{path}: this sweep has no {group} {name}; choose from {legal}")
    if value is not LEFT_OUT:
        try:
            OmegaConf.update(tree, path, value, force_add=True)
        except OmegaConfBaseException:
            raise
        except (ValueError, TypeError):  # of a name in the place of a number
            raise InputError(f"{path}: leads into a list; its entries are numbered from 0") from None
        return
    holder, _, last = path.rpartition(".")
    options = OmegaConf.select(tree, holder) if holder else tree
    if not isinstance(options, DictConfig) or last not in options:
        raise InputError(f"~{path}: no file sets this option; leave the word out")
    del options[last]


def check_own_files() -> None:
    """Raise InputError for a file in the user's `conf/` that is not YAML: Hydra would show a traceback."""
    for folder in conf_folders()[:-1]:
        for path in sorted(path for group in (".", *GROUPS) for path in conf_files(folder / group)):
            try:
                _check_yaml(read_bytes(path, _MOST_BYTES))
            except (YAMLError, OSError, ValueError) as error:
                raise InputError(f"{path}: not YAML ({_one_line(error)}); correct or remove it") from None


def _check_yaml(stored: bytes) -> None:
    """Raise for a file that Hydra cannot read, or that aliases (`*name`) make infinite or huge."""
    text = decode(stored)
    if stored.startswith(BYTE_ORDER_MARK) and text.lstrip().startswith("# @"):
        raise ValueError("a byte order mark hides its first line from Hydra; save it as UTF-8 without one")
    check_aliases(text)
    OmegaConf.create(text)


def _hydra_message(error: Exception) -> str:
    """Return the message of a Hydra error; for an unknown name in a file, list the legal names."""
    message = _one_line(error)
    if absent := re.search(r"Could not (?:load|find) '(\w+)/([^']+)'", message):
        return unknown_name(absent[1], absent[2])
    return message


def _one_line(error: Exception) -> str:
    return " ".join(f"{error} {error.__cause__ or ''}".split())
