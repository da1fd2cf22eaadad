"""Models named without a file: `hf:OWNER/NAME` of the hub, a folder of weights, `http:MODEL@URL` of a server.

They have the default options; a line says what is not known of them.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.config.command_words import listed
from cardiolens.config.conf_names import hydra_text

_HUB, _SERVER = "hf:", "http:"


def with_named_models(words: Sequence[str]) -> list[str]:
    """Write each model without a file as options of a model, `++model.<name>={...}`, for Hydra.

    Options of such a model, `model.<name>.max_num_seqs=8`, are added to it. InputError for two models of one
    name.
    """
    written: list[str] = []
    added: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        named = {entry: _options(entry) for entry in listed(value)} if key == "model" and equals else {}
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


def _options(entry: str) -> dict[str, Any] | None:
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
