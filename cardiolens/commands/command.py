"""The common frame of the verbs: set up the process, words to a SweepSpec, errors to exit codes."""

import errno
import logging
import os
import sys
from collections.abc import Callable, Sequence

import yaml

from cardiolens.base.console import end_quietly_if_unread
from cardiolens.base.errors import InputError, RunError
from cardiolens.base.sanitize import one_line, without_credentials
from cardiolens.commands.help import HELP, Options, end_if_asked
from cardiolens.config.compose import composed_sweep, read_spec
from cardiolens.config.sweep import SweepSpec
from cardiolens.runtime.connect import be_quiet
from cardiolens.runtime.stopping import EXIT_CODE, StoppedError
from cardiolens.storage.places import run_of

log = logging.getLogger(__name__)

Verb = Callable[[SweepSpec], int]
_SHOW = "--cfg=job"  # the word that prints the configuration

_DISK_REFUSES = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT)
"""Errors where a file of the user's choice is in the way, and not a fault of the code."""


def begin(doc: str | None = None, options: Options | None = None) -> None:
    """Set up the process of a verb: files are private to the user, libraries make no calls home.

    With the verb's docstring and options, end the process if a word asks for help.
    """
    end_quietly_if_unread()
    if doc is not None:
        end_if_asked(doc, options or {}, sys.argv[1:])
    os.umask(0o077)
    be_quiet()


def begin_job(argv: Sequence[str], description: str | None) -> None:
    """Set up the process of a script, as `begin`; print what it does and end if a word asks for help."""
    if not {*HELP}.isdisjoint(argv):
        print(description)
        raise SystemExit(0)
    begin()


def door(
    doc: str | None,
    options: Options,
    verb: Callable[[list[str]], int],
    argv: Sequence[str] | None = None,
) -> int:
    """Run a verb on the words of the command line, and return the exit code."""
    begin(doc, options)
    try:
        return verb(list(sys.argv[1:] if argv is None else argv))
    except (InputError, RunError, StoppedError) as error:
        return print_error(error)


def run_verb(verb: Verb, argv: Sequence[str] | None = None, *, doc: str | None = None) -> int:
    """Run a verb on the sweep that the command line describes, and return the exit code.

    0: complete; 1: the run could not be completed; 2: an input cannot be used; 75: stopped on request. With
    the word `--cfg=job` the configuration is printed instead.
    """

    def act(words: list[str]) -> int:
        if doc is not None and not words:
            raise InputError("no option says what to do; give e.g. +experiment=demo, or ask --help")
        if _SHOW in words:
            configured = composed_sweep([word for word in words if word != _SHOW])
            print(yaml.safe_dump(configured, sort_keys=False, allow_unicode=True), end="")
            return 0
        return _run(verb, read_spec(words))

    return door(doc, {"": SweepSpec}, act, argv)


def _run(verb: Verb, spec: SweepSpec) -> int:
    """Run the verb; RunError where the disk refuses a file."""
    try:
        warn_of_open_folders(spec)
        return verb(spec)
    except OSError as error:
        if error.errno not in _DISK_REFUSES or error.filename is None:
            raise
        remedy = "free space there, change its permissions, or name another place"
        raise RunError(f"{error.filename}: {error.strerror}; {remedy}") from error


def warn_of_open_folders(spec: SweepSpec) -> None:
    """Name a store or run of this sweep that others on the machine can read."""
    for folder in (spec.store, run_of(spec).root):
        if folder.is_dir() and folder.stat().st_mode & 0o077:
            log.warning("%s: others on this machine can read it; run chmod -R go= %s", folder, folder)


def print_error(error: InputError | RunError | StoppedError) -> int:
    """Print an error on one line, without a traceback, and return its exit code."""
    is_stop = isinstance(error, StoppedError)
    message = f"stopped {error}" if is_stop else f"error: {error}"
    print(one_line(without_credentials(message)), file=sys.stderr)
    if is_stop:
        return EXIT_CODE
    return 2 if isinstance(error, InputError) else 1
