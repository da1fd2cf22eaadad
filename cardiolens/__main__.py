"""`python -m cardiolens`: list the verbs in groups; `cardiolens <verb> [name=value ...]` runs one."""

import sys
from importlib import import_module


def main() -> int:
    """Run the verb that the command line names; without one, list them."""
    from cardiolens.base.console import end_quietly_if_unread
    from cardiolens.base.errors import InputError
    from cardiolens.commands import help as helping

    end_quietly_if_unread()
    match sys.argv[1:]:
        case [] | ["-h" | "--help", *_]:
            helping.print_overview()
        case [helping.VERSION, *_]:
            print(helping.version())
        case [name, *words]:
            try:
                module = import_module(f"cardiolens.commands.{helping.known_verb(name)}")
            except InputError as error:
                from cardiolens.commands.command import print_error

                return print_error(error)
            return int(module.main(words))
    return 0


if __name__ == "__main__":
    sys.exit(main())
