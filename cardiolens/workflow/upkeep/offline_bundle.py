"""Make and verify a bundle: one folder with all that a sweep needs offline, and an index of digests."""

import json
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from cardiolens.base import disk
from cardiolens.base.digest import sha256_of
from cardiolens.base.errors import InputError, RunError
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.config.model import ModelSpec
from cardiolens.config.rights import BUNDLE_INDEX as INDEX
from cardiolens.config.rights import words_of
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.models.identity import Identity, identify, ships
from cardiolens.storage.places import Store
from cardiolens.study.protocol_folder import protocol_folder, shipped

_EXCLUDED_FOLDERS = (
    "completions",
    "models",
)  # folders of a store that a bundle leaves out; the embedded model is built at first use

_PROTOCOL = "dataset.protocol"

_WHY_NOT = {  # whether it is MedThinkVQA, why it is not in a bundle
    True: "the licence of MedThinkVQA's data (CC BY-NC-SA 4.0) forbids shipping it in a bundle",
    False: "data of a benchmark are under their own licences, and in no bundle",
}


@dataclass(frozen=True, slots=True)
class BundleSummary:
    """The size of a bundle, and the command-line words that run its sweep."""

    n_files: int
    n_bytes: int
    words: tuple[str, ...]


def bundle(spec: SweepSpec, out: Path, conf: Path | None, lock: Path | None = None) -> BundleSummary:
    """Copy prepared studies, questions, model files at their revisions, own folders and configuration.

    `conf` is the user's own configuration folder; `lock` a lock file whose wheels are added. The folder gets
    its name when it is whole. InputError if a model is missing, the folder is not empty or lies in one that
    is copied, or the dataset is downloaded; RunError if files cannot be copied.
    """
    if spec.dataset.source is not None:
        raise InputError(
            f"dataset={spec.dataset.name}: {_WHY_NOT[spec.dataset.map == 'medthinkvqa']}; download it "
            "on the other machine, and give dataset.source there"
        )
    if out.exists() and any(out.iterdir()):
        raise InputError(f"out={out}: is not empty; give a new folder")
    own = _own_folders(spec)
    _check_outside(
        out, {"conf": conf, "store": spec.store} | {name: each.source for name, each in own.items()}
    )
    identities = {model.name: identify(model, Store(spec.store).models) for model in spec.model}
    try:
        with disk.draft_folder(out) as folder:
            if lock is not None:
                _gather_wheels(lock, folder)
            if conf is not None:
                disk.copy_tree(conf, folder / "conf")
            _gather_data(spec, own.get(_PROTOCOL), folder)
            for model in spec.model:
                _gather_model(model, identities[model.name], folder)
            for each in own.values():
                disk.copy_tree(each.source, folder / each.place)
            index = {name: {"bytes": size, "sha256": digest} for name, size, digest in _digests(folder)}
            disk.write_text(folder / INDEX, json.dumps(index, indent=1) + "\n")
            _make_private(folder)
    except OSError as error:
        raise RunError(f"out={out}: cannot be written ({error.strerror or error})") from error
    return BundleSummary(
        len(index), sum(int(str(file["bytes"])) for file in index.values()), _words(spec, own)
    )


@dataclass(frozen=True, slots=True)
class _OwnFolder:
    """A folder of the user's own that decides requests or scores, and where a bundle holds it."""

    source: Path
    place: str


def _own_folders(spec: SweepSpec) -> dict[str, _OwnFolder]:
    """The folders of the user's own that a sweep reads beside its data and models, by option."""
    folders = {
        f"selector.{selector.name}.encoder": _OwnFolder(selector.encoder, f"encoders/{selector.name}")
        for selector in spec.selector
        if selector.encoder is not None
    }
    if spec.dataset.protocol not in shipped():
        folders[_PROTOCOL] = _OwnFolder(protocol_folder(spec.dataset.protocol), "protocol")
    if spec.templates is not None:
        folders["templates"] = _OwnFolder(spec.templates, "templates")
    if spec.statistics.bertscore_model is not None:
        folders["statistics.bertscore_model"] = _OwnFolder(spec.statistics.bertscore_model, "bertscore")
    return folders


def _check_outside(out: Path, sources: Mapping[str, Path | None]) -> None:
    """InputError for a bundle inside a folder that it copies: the copy would hold itself."""
    for option, source in sources.items():
        if source is not None and out.resolve().is_relative_to(source.resolve()):
            raise InputError(
                f"out={out}: lies in {option}={source}, which the bundle copies; give a folder outside it"
            )


def _gather_wheels(lock: Path, folder: Path) -> None:
    """Download the wheels of a lock file, verified by hash, and build the wheel of its checkout."""
    pip = [sys.executable, "-m", "pip"]
    root = lock.resolve().parent.parent
    commands = [
        [*pip, "download", "--no-deps", "--require-hashes", "-r", str(lock), "-d", str(folder / "wheels")],
        [*pip, "wheel", "--no-deps", "-w", str(folder / "wheels"), str(root)],
    ]
    for command in commands:
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        if process.returncode:
            raise RunError(
                f"pip failed ({' '.join(command[2:5])}): {process.stderr.strip().splitlines()[-1]}"
            )


def differences(folder: Path) -> Iterator[str]:
    """Yield one line per missing or changed file of a bundle; InputError if its index cannot be read."""
    try:
        index: Mapping[str, Mapping[str, object]] = read_json(folder / INDEX)
    except (OSError, ValueError) as error:
        raise InputError(f"verify={folder}: is not a bundle ({error})") from None
    digests = {name: digest for name, _, digest in _digests(folder)}
    for name, file in index.items():
        if name not in digests:
            yield f"{name}: is missing"
        elif digests[name] != file["sha256"]:
            yield f"{name}: differs from the bundled file"


def _gather_data(spec: SweepSpec, protocol: _OwnFolder | None, folder: Path) -> None:
    elsewhere = shutil.ignore_patterns(*_EXCLUDED_FOLDERS, "*.tmp")
    disk.copy_tree(spec.store, folder / "store", ignore=elsewhere)
    disk.copy_file(spec.dataset.questions, folder / "questions.jsonl")
    fields = {"name", "protocol", "window_pct", "windows", "allow_unverified", "public_hearts"}
    fields |= set() if spec.dataset.release is None else {"release"}
    dataset = spec.dataset.model_dump(mode="json", include=fields)
    dataset |= {"studies": "store", "questions": "questions.jsonl", "prepared_only": True}
    if protocol is not None:
        dataset["protocol"] = protocol.place
    _write_option(folder / "conf" / "dataset" / "bundled.yaml", dataset)


def _gather_model(model: ModelSpec, identity: Identity, folder: Path) -> None:
    """Copy the files of a model: a local folder as it is, a hub model in cache layout to keep its key."""
    if named := [path[0] for path in model.told if path[0] in ("source", "revision")]:
        raise InputError(
            f"model.{model.name}.{named[0]}: comes from an environment variable, and a bundle names its "
            "files by it; give it on the command line"
        )
    options = model.model_dump(mode="json", exclude_unset=True, exclude={"name"})
    if model.engine == "person":
        options["source"] = f"readings/{model.name}/{Path(model.source).name}"
        (folder / "readings" / model.name).mkdir(parents=True)
        disk.copy_file(Path(model.source), folder / options["source"])  # its name is part of the key
    adapter, files = identity.adapter, identity.folder
    if adapter is not None and files is not None and not adapter.is_relative_to(files.resolve()):
        options["adapter"] = f"adapters/{model.name}"
        disk.copy_tree(adapter, folder / options["adapter"])
    if identity.folder is not None and not ships(model.source):
        if Path(model.source).expanduser().is_dir():
            options["source"] = f"./models/{model.name}"
            disk.copy_tree(identity.folder, folder / options["source"])
        else:
            options["revision"] = identity.folder.name
            snapshots = folder / "hf" / "hub" / f"models--{model.source.replace('/', '--')}" / "snapshots"
            disk.copy_tree(identity.folder, snapshots / identity.folder.name)
    _write_option(folder / "conf" / "model" / f"{model.name}.yaml", {model.name: options})


def _make_private(folder: Path) -> None:
    """Remove group and other permissions, which copies inherit from their sources."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode & ~(stat.S_ISGID | stat.S_IRWXG | stat.S_IRWXO))


def _write_option(path: Path, content: Mapping[str, object]) -> None:
    disk.write_text(path, yaml.safe_dump(dict(content), sort_keys=False))


def _words(spec: SweepSpec, own: Mapping[str, _OwnFolder]) -> tuple[str, ...]:
    """Return the words that replace dataset, store, models and own folders of the original command."""
    models = ",".join(model.name for model in spec.model)
    folders = [f"{option}={each.place}" for option, each in own.items() if option != _PROTOCOL]
    given = words_of(spec)  # which the `conf/` of a bundle cannot give
    return ("dataset=bundled", "store=store", f"model=[{models}]", *folders, *given)


def _digests(folder: Path) -> Iterator[tuple[str, int, str]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != INDEX:
            yield path.relative_to(folder).as_posix(), path.stat().st_size, sha256_of(path)
