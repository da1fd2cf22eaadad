"""The common frame of the verbs: words to a SweepSpec or runs, errors to exit codes."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from cardiolens.cluster.connect import be_quiet
from cardiolens.cluster.stopping import EXIT_CODE, StoppedError
from cardiolens.config.compose import (
    CONFIG_NAME,
    UserConfFirst,
    check_names,
    check_own_files,
    hydra_message,
    packaged_conf,
    read_spec,
    spec_of_tree,
    split_seeds,
)
from cardiolens.config.sweep import SweepSpec
from cardiolens.errors import InputError, RunError
from cardiolens.plain import one_line, without_credentials
from cardiolens.record.places import Run
from cardiolens.record.privacy import be_private, follow, set_privacy
from cardiolens.terminal.console import say
from cardiolens.terminal.help import ASKED, help_of, verbs

Verb = Callable[[SweepSpec], int]


def begin() -> None:
    """Set up the process of a verb: its files are the user's own, and its libraries call nobody.

    Where `--help` or `-h` is among the words, print the verb's help and end the process.
    """
    be_private()
    be_quiet()
    program = Path(sys.argv[0])
    name = program.parent.name if program.stem == "__main__" else program.stem
    if ASKED.intersection(sys.argv[1:]) and name in verbs():
        print(help_of(name))
        raise SystemExit(0)


def run_verb(verb: Verb, argv: Sequence[str] | None = None) -> int:
    """Run a verb on the sweep that the command line describes, and return the exit code.

    0: complete; 1: the run could not be completed; 2: an input cannot be used; 75: stopped on request. Words
    that begin with a dash go to Hydra (`-m`, `--cfg=job`, `--hydra-help`).
    """
    begin()
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if any(word.startswith("-") for word in words):
            return _through_hydra(verb, words)
        return _privately(verb, read_spec(words))
    except (InputError, RunError, StoppedError) as error:
        return tell(error)


def _privately(verb: Verb, spec: SweepSpec) -> int:
    if told := set_privacy(spec):
        say(told)
    return verb(spec)


def read_runs(argv: Sequence[str]) -> list[Run]:
    """The runs that `run=outputs/...` or `runs=[outputs/...,outputs/...]` names, else InputError."""
    match [word.partition("=") for word in argv]:
        case [("runs", "=", listed)] if listed.startswith("[") and listed.endswith("]"):
            folders = [folder.strip() for folder in listed[1:-1].split(",") if folder.strip()]
            if len(set(folders)) < max(2, len(folders)):
                raise InputError(f"runs={listed}: give two runs or more, each once")
            return [read_run([f"run={folder}"]) for folder in folders]
        case _:
            return [read_run(argv)]


def read_run(argv: Sequence[str]) -> Run:
    """The existing run that `run=outputs/...` names; InputError for other words."""
    match [word.partition("=") for word in argv]:
        case [("run", "=", folder)] if Path(folder).is_dir():
            follow(Path(folder))
            return Run(Path(folder))
        case [("run", "=", folder)]:
            raise InputError(f"run={folder}: no such folder; give the path that a sweep's last line named")
        case _:
            raise InputError(f"{' '.join(argv) or 'no words'}: give exactly run=outputs/<name of the run>")


def tell(error: InputError | RunError | StoppedError) -> int:
    """Print an error without a traceback, and return its exit code."""
    if isinstance(error, StoppedError):
        print(_plain(f"stopped {error}"), file=sys.stderr)
        return EXIT_CODE
    print(_plain(f"error: {error}"), file=sys.stderr)
    return 2 if isinstance(error, InputError) else 1


def _plain(message: str) -> str:
    return one_line(without_credentials(message))


def _through_hydra(verb: Verb, words: list[str]) -> int:
    import hydra

    Plugins.instance().register(UserConfFirst)
    words = split_seeds(words)
    check_names([word for word in words if not word.startswith("-")])
    check_own_files()
    home, codes = os.getpid(), [0]

    def job(tree: DictConfig) -> None:
        try:
            codes.append(_privately(verb, spec_of_tree(tree)))
        except (InputError, RunError, StoppedError) as error:
            codes.append(tell(error))
        if codes[-1] and os.getpid() != home:  # the exception is all that a launcher's process passes back
            raise RunError(f"a job ended with code {codes[-1]}; its output says why")

    sys.argv = [sys.argv[0], *words]
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises errors instead of printing them
    try:
        hydra.main(config_path=str(packaged_conf()), config_name=CONFIG_NAME, version_base="1.3")(job)()
    except (HydraException, OmegaConfBaseException) as error:
        raise InputError(hydra_message(error)) from None
    return max(codes)
