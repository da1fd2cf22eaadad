"""`python -m cardiolens.head`: start a Ray cluster on this machine for several sweeps, closed to other users.

Plain `ray start --head` lets whoever reaches its ports run programs as its user. Further words are options
of `ray start`, e.g. `--num-gpus=4`; with `--node-ip-address=` other nodes can join, each by this command with
`--address=HEAD:PORT`. `ray stop` ends it.
"""

import os
from collections.abc import Sequence

from cardiolens.base.errors import InputError, RunError
from cardiolens.commands.command import Action, verb
from cardiolens.runtime import guard

_LOOPBACK = "--node-ip-address=127.0.0.1"


def start(words: Sequence[str]) -> int:
    """Start the head, or with `--address=` a node that joins one; return Ray's exit code.

    The token is the environment's, or that of the user's file, which the head makes if it is absent.
    InputError for an option that `ray start` does not know, or without a token to join by; RunError if the
    node does not start.
    """
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_TMPDIR": str(guard.private_folder(os.environ))}
    joins = any(word.startswith("--address") for word in words)
    if not joins and not os.environ.get("RAY_AUTH_TOKEN"):
        guard.make_token_file(guard.token_file(os.environ))
    elif joins and not guard.use_token(os.environ):
        raise InputError(f"{guard.token_file(os.environ)}: no token; copy it from the machine of the head")
    alone = not joins and not any(word.startswith("--node-ip-address") for word in words)

    from click import ClickException
    from ray.scripts.scripts import start as ray_start

    role = [] if joins else ["--head", "--include-dashboard=false"]
    options = ["--disable-usage-stats", *role, *([_LOOPBACK] if alone else [])]
    try:
        with guard.ray_changed(loopback=alone):
            ray_start.main([*options, *words], prog_name="ray start", standalone_mode=False)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except ClickException as error:
        raise InputError(f"{error.format_message()}; give options of `ray start`") from None
    except Exception as error:  # Ray raises nothing more specific
        said = str(error).partition("\n")[0] or type(error).__name__
        raise RunError(f"Ray could not start a node here ({said})") from error
    return 0


main = verb(__name__, __doc__, Action(None, start))
