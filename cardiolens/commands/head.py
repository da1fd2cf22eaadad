"""`python -m cardiolens.head`: start a Ray cluster on this machine for several sweeps, closed to other users.

Plain `ray start --head` lets whoever reaches its ports run programs as its user. Further words are options
of `ray start`, e.g. `--num-gpus=4`; with `--node-ip-address=` other nodes can join. `ray stop` ends it.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext

from cardiolens.base.errors import InputError
from cardiolens.commands.command import door
from cardiolens.runtime.guard import loopback_kept, make_token_file, no_api_server, private_folder, token_file

_LOOPBACK = "--node-ip-address=127.0.0.1"


def start(words: Sequence[str]) -> int:
    """Start the head with the token of the environment or of the user's file; return Ray's exit code.

    InputError for an option that `ray start` does not know.
    """
    if not os.environ.get("RAY_AUTH_TOKEN"):
        make_token_file(token_file(os.environ))
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_TMPDIR": str(private_folder(os.environ))}
    alone = not any(word.startswith("--node-ip-address") for word in words)

    from click import ClickException
    from ray._private import services
    from ray.scripts.scripts import start as ray_start

    services.start_api_server = no_api_server
    options = ["--disable-usage-stats", "--include-dashboard=false", *([_LOOPBACK] if alone else [])]
    try:
        with loopback_kept() if alone else nullcontext():
            ray_start.main(["--head", *options, *words], prog_name="ray start", standalone_mode=False)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except ClickException as error:
        raise InputError(f"{error.format_message()}; give options of `ray start`") from None
    return 0


def main() -> int:
    """Start the head."""
    return door(__doc__, {}, start)


if __name__ == "__main__":
    sys.exit(main())
