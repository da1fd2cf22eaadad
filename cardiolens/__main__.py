"""`python -m cardiolens`: list the verbs in groups; `cardiolens <verb> [name=value ...]` runs one."""

import runpy
import sys


def main() -> int:
    """Run the verb that the command line names; without one, list them."""
    from cardiolens.base.console import end_quietly_if_unread
    from cardiolens.base.errors import InputError
    from cardiolens.base.sanitize import one_line, without_credentials
    from cardiolens.commands import help as helping

    end_quietly_if_unread()
    match sys.argv[1:]:
        case [] | ["-h" | "--help", *_]:
            helping.print_overview()
        case [helping.VERSION, *_]:
            print(helping.version())
        case [name, *words]:
            try:
                verb = helping.known_verb(name)
            except InputError as error:
                print(one_line(without_credentials(f"error: {error}")), file=sys.stderr)
                return 2
            sys.argv = [f"cardiolens {verb}", *words]
            runpy.run_module(f"cardiolens.{verb}", run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
