"""Environment variables in a configuration: refused, unless the user names each on the command line.

A file of `conf/` may come from somebody else, and what it says is sent to servers and written to runs. So no
resolver of OmegaConf may read the environment, files or code, except `${oc.env:NAME}` in a field of a model
with `allow_env=[NAME]` among the words. A value that comes from a variable is used, and never written: the
text `${oc.env:NAME}` stands in its place in every document, as the name does with `api_key_env`.
"""

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from omegaconf import OmegaConf
from omegaconf.basecontainer import BaseContainer

from cardiolens.base.errors import InputError
from cardiolens.base.sanitize import one_line
from cardiolens.config.base import Spec
from cardiolens.config.sweep import SweepSpec

ENV: Final = "oc.env"
_BEGIN, _IS, _END = "\ue0e0", "\ue0e1", "\ue0e2"  # around a value of the environment, while Hydra composes
_MARKED = re.compile(f"{_BEGIN}([A-Za-z_][A-Za-z0-9_]*){_IS}([^{_END}]*){_END}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_TEXT = re.compile(r"\$\{oc\.env:([A-Za-z_][A-Za-z0-9_]{0,63})\}")
_NO_DEFAULT: Final = object()
# They read the configuration and the clock alone. `oc.create` and `oc.decode` parse what they are given.
_HARMLESS = frozenset(
    {"oc.select", "oc.deprecated", "oc.dict.keys", "oc.dict.values", "now", "python_version"}
)
_PARSING = frozenset({"oc.create", "oc.decode"})


class RefusedError(Exception):
    """A resolver that a configuration may not use; OmegaConf hands it on within an error of its own."""


@contextmanager
def guarded(allowed: Collection[str], *, of_hydra: bool = False) -> Iterator[None]:
    """Refuse every resolver that reads more than the configuration, except `allowed` variables.

    `of_hydra` is for Hydra's own part of a command: `${hydra:...}` works in its configuration, and an allowed
    variable is its text, which Hydra may print. Later users of OmegaConf in this process
    find its resolvers as they were.
    """
    resolvers: dict[str, Any] = BaseContainer._resolvers
    kept = dict(resolvers)
    replaced = kept.keys() - _HARMLESS - ({"hydra"} if of_hydra else set())
    try:
        for name in replaced - _PARSING - {ENV}:
            OmegaConf.register_new_resolver(name, _refusal(name), replace=True)
        for name in replaced & _PARSING:
            resolvers[name] = _unless_marked(name, kept[name])
        OmegaConf.register_new_resolver(ENV, _marking(allowed, of_hydra), replace=True)
        yield
    finally:
        resolvers.update({name: kept[name] for name in replaced})


def refusal_within(error: BaseException | None) -> tuple[str, str] | None:
    """Return the field of a refused resolver and the reason from an error; None if it is another error."""
    where = ""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        where = getattr(error, "full_key", None) or where
        if isinstance(error, RefusedError):
            return where or "the configuration", str(error)
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None


def allowed_names(values: Sequence[object]) -> tuple[str, ...]:
    """Return the variables that `allow_env` names; InputError for what is no name of one."""
    for value in values:
        if not _NAME.fullmatch(str(value)):
            raise InputError(
                f"allow_env: {one_line(str(value), 40)!r} is no name of an environment variable; give names, "
                "e.g. allow_env=[MY_SERVER], never a value"
            )
    return tuple(map(str, values))


def unmarked(content: Mapping[str, Any]) -> tuple[dict[str, Any], dict[tuple[str, ...], str], dict[str, str]]:
    """Take the marks out of a resolved configuration.

    Returns the configuration with its values; by path, the text of each field that has a value of the
    environment; and those values with what stands for each. InputError for such a field outside of a model.
    """
    told: dict[tuple[str, ...], str] = {}
    hidden: dict[str, str] = {}

    def plain(tree: Any, path: tuple[str, ...]) -> Any:
        if isinstance(tree, Mapping):
            return {name: plain(value, (*path, str(name))) for name, value in tree.items()}
        if isinstance(tree, list):
            return [plain(value, (*path, str(number))) for number, value in enumerate(tree)]
        if not isinstance(tree, str) or _BEGIN not in tree:
            return tree
        if path[0] != "model" or len(path) < 3:
            name = _MARKED.findall(tree)[0][0]
            raise InputError(
                f"{'.'.join(path)}: reads the environment variable {name}, which only fields of models "
                f'may do; let the shell fill it in on the command line: {".".join(path)}="${name}"'
            )
        hidden.update({value: f"${{{ENV}:{name}}}" for name, value in _MARKED.findall(tree)})
        told[path] = _MARKED.sub(rf"${{{ENV}:\1}}", tree)
        return _MARKED.sub(r"\2", tree)

    return plain(content, ()), told, hidden


def tell(spec: SweepSpec, told: Mapping[tuple[str, ...], str], hidden: Mapping[str, str]) -> None:
    """Have the texts written in place of the values, in every document made of the sweep or of a model."""
    for path, text in told.items():
        owner: Spec = next(model for model in spec.model if model.name == path[1])
        below = path[2:]
        while isinstance(inner := getattr(owner, below[0], None), Spec):
            owner, below = inner, below[1:]
        value: Any = getattr(owner, below[0], None)
        for name in below[1:]:
            value = value[int(name)] if isinstance(value, list | tuple) else value[name]
        if not isinstance(value, str):
            raise InputError(
                f"{'.'.join(path)}: takes no text, and {text} would be written as its value; give it on the "
                "command line"
            )
        if below in (("source",), ("adapter",)) and (value[:1] in ("/", ".", "~") or Path(value).exists()):
            raise InputError(
                f"{'.'.join(path)}: is a path, which records of the store name; let the shell fill it in: "
                f'{".".join(path)}="$NAME"'
            )
        own = {value: shown for value, shown in hidden.items() if shown in text}
        if below == ("base_url",):  # messages of others name the host alone
            host = urlsplit(value).hostname
            own |= {part: text for part in (value, host) if part and part not in ("localhost", "127.0.0.1")}
        owner.tell(below, text, own)


def restored(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Put marked values of its allowed variables into a configuration that was written without them."""
    allowed = set(tree.get("allow_env", ()))

    def value_of(found: re.Match[str]) -> str:
        return _marked(found[1], _value(found[1])) if found[1] in allowed else found[0]

    def filled(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: filled(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [filled(inner) for inner in value]
        return _TEXT.sub(value_of, value) if isinstance(value, str) else value

    try:
        models = {entry["name"]: filled({**entry}) for entry in tree["model"]}
    except RefusedError as error:
        raise InputError(f"allow_env: {error}") from None
    return {**tree, "model": models}


def masked(message: str) -> str:
    """A message of OmegaConf without values of the environment."""
    return _MARKED.sub(rf"${{{ENV}:\1}}", message)


def _marking(allowed: Collection[str], of_hydra: bool) -> Callable[..., object]:
    def read(name: object, default: object = _NO_DEFAULT) -> object:
        if not isinstance(name, str) or name not in allowed:
            shown = name if isinstance(name, str) and _NAME.fullmatch(name) else "NAME"
            raise RefusedError(
                f"reads the environment variable {shown}, which no file or word may; if you trust it with "
                f"that variable, name it on the command line: allow_env=[{shown}]"
            )
        if of_hydra:  # `--cfg=job --resolve` prints it
            return f"${{{ENV}:{name}}}"
        if default is not _NO_DEFAULT and name not in os.environ:
            return default
        return _marked(name, _value(name))

    return read


def _value(name: str) -> str:
    value = os.environ.get(name)
    if not value or any(mark in value for mark in (_BEGIN, _IS, _END)):
        raise RefusedError(
            f"reads the environment variable {name}, which is not set, empty or of unusual characters; set "
            "it here and on every node of the cluster"
        )
    return value


def _marked(name: str, value: str) -> str:
    return f"{_BEGIN}{name}{_IS}{value}{_END}"


def _unless_marked(name: str, original: Callable[..., object]) -> Callable[..., object]:
    """A resolver that parses its argument, for all arguments but values of the environment."""

    def parse(config: Any, parent: Any, node: Any, args: tuple[Any, ...], words: tuple[str, ...]) -> object:
        if any(_BEGIN in str(arg) for arg in args):
            raise RefusedError(f"lets {name} parse the value of an environment variable; leave {name} out")
        return original(config, parent, node, args, words)

    return parse


def _refusal(name: str) -> Callable[..., object]:
    def refuse(*_: object) -> object:
        raise RefusedError(f"uses the resolver {name}, which a configuration may not; write the value itself")

    return refuse
