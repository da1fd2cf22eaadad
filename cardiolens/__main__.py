"""`python -m cardiolens`: the verbs with a line each; `cardiolens <verb> [words]` does one."""

import runpy
import sys


def main() -> int:
    """Do the verb that the command line names; without one, list them."""
    from cardiolens.base.errors import InputError
    from cardiolens.commands.command import tell
    from cardiolens.commands.help import HELP_WORDS, known_verb, overview

    match sys.argv[1:]:
        case []:
            print(overview())
            return 0
        case [word, *_] if word in HELP_WORDS:
            print(overview())
            return 0
        case [name, *words]:
            try:
                verb = known_verb(name)
            except InputError as error:
                return tell(error)
            sys.argv = [f"cardiolens {verb}", *words]
            runpy.run_module(f"cardiolens.{verb}", run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
