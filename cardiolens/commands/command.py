"""The common frame of the verbs: set up the process, choose the action, read its words, report errors."""

import errno
import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

import yaml

from cardiolens.base.console import end_quietly_if_unread
from cardiolens.base.errors import InputError, RunError
from cardiolens.base.sanitize import one_line, without_credentials
from cardiolens.commands.help import end_if_asked
from cardiolens.config.base import Spec
from cardiolens.config.command_words import split_words
from cardiolens.config.compose import composed_sweep, read_spec
from cardiolens.config.sweep import SweepSpec
from cardiolens.runtime.connect import be_quiet
from cardiolens.runtime.stopping import EXIT_CODE, StoppedError
from cardiolens.storage.places import run_of

log = logging.getLogger(__name__)

_SHOW = "--cfg=job"  # the word that prints the configuration

_DISK_REFUSES = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT)
"""Errors where a file of the user's choice is in the way, and not a fault of the code."""


class Action(NamedTuple):
    """One thing that a verb does: the words that it takes, and the function that takes them, read."""

    words: type[Spec] | None  # None: it takes them as they are
    act: Callable[..., int]
    of: str = ""  # what its options are of, in the help; if that is one word, the first word asks for it
    about: Sequence[str] = ()  # first names of words that describe a sweep; `act` takes these, too

    @property
    def names(self) -> set[str]:
        """The first names of its words."""
        fields = self.words.model_fields if self.words else {}
        return {field.alias or name for name, field in fields.items()} | {*self.about}


def verb(module: str, doc: str | None, *actions: Action) -> Callable[..., int]:
    """Return the function that runs a verb on words, by default those of the command line.

    Its exit code is 0: complete; 1: a run could not be completed; 2: an input cannot be used; 75: stopped on
    request; 130: ended by Ctrl-C. If Python runs the module itself, as by `python -m`, the verb runs
    at once.
    """

    def main(argv: Sequence[str] | None = None) -> int:
        words = list(sys.argv[1:] if argv is None else argv)
        begin()
        end_if_asked(doc or "", {action.of: action.words for action in actions if action.words}, words)
        try:
            return _do(actions, words)
        except (InputError, RunError, StoppedError) as error:
            return print_error(error)
        except KeyboardInterrupt:
            print("ended by Ctrl-C; to finish, run the same command again", file=sys.stderr)
            return 130  # as shells have it
        except OSError as error:
            if error.errno not in _DISK_REFUSES or error.filename is None:
                raise
            remedy = "free space there, change its permissions, or name another place"
            return print_error(RunError(f"{error.filename}: {error.strerror}; {remedy}"))

    if module == "__main__":
        sys.exit(main())
    return main


def begin() -> None:
    """Set up the process of a command: files are private to the user, libraries make no calls home."""
    end_quietly_if_unread()
    os.umask(0o077)
    be_quiet()


def _do(actions: Sequence[Action], words: list[str]) -> int:
    """Do the action that the first word asks for; without one, that which takes most of the words."""
    by_name = {action.of: action for action in actions if action.of.isidentifier()}
    nameless = [action for action in actions if action.of not in by_name]
    named_action = by_name.get(words[0]) if words else None
    if named_action is None and not nameless:
        raise InputError(
            f"{words[0] if words else 'no action'}: give one of {', '.join(by_name)}, then name=value"
        )
    names = {word.partition("=")[0] for word in words}
    action = named_action or max(nameless, key=lambda action: len(names & action.names))
    values = words[1:] if named_action else words
    if action.words is None:
        return action.act(values)
    if action.words is SweepSpec:
        return _sweep(action, values)
    spec, sweep_words = split_words(action.words, values, action.about)
    return action.act(spec, sweep_words) if action.about else action.act(spec)


def _sweep(action: Action, words: list[str]) -> int:
    """Do an action with the sweep that its words describe; with the word `--cfg=job` print it instead."""
    if not words:
        raise InputError("no option says what to do; give e.g. +experiment=demo, or ask --help")
    if _SHOW in words:
        configured = composed_sweep([word for word in words if word != _SHOW])
        print(yaml.safe_dump(configured, sort_keys=False, allow_unicode=True), end="")
        return 0
    spec = read_spec(words)
    warn_of_open_folders(spec)
    return action.act(spec)


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
