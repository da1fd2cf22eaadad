"""`python -m cardiolens.plugins`: the parts of other packages that a configuration can name.

Loads each once, and prints a line for it: `ok`, or `FIX` with the reason. Exit code 1 if there is one to fix.
"""

import sys


def main() -> int:
    from cardiolens.base.console import say
    from cardiolens.base.entry_points import GROUPS, installed
    from cardiolens.base.errors import InputError
    from cardiolens.commands.command import begin_without_words, tell

    if code := begin_without_words(sys.argv[1:]):
        return code
    try:
        parts = [plugin for group in GROUPS for plugin in installed(group).values()]
    except InputError as error:
        return tell(error)
    if not parts:
        say("no installed package adds a part; docs/how-to/plugins.md says how one is made")
    problems = [_problem(part.group, part.word) for part in parts]
    for part, problem in zip(parts, problems, strict=True):
        state = "FIX" if problem else "ok"
        say(f"{state:<4} {part.group:<15} {part.word:<36} {problem or part.entry_point.value}")
    return 1 if any(problems) else 0


def _problem(group: str, word: str) -> str:
    """Return why a part cannot be loaded, or ""."""
    from cardiolens.base.entry_points import load
    from cardiolens.base.errors import InputError, RunError

    try:
        load(group, word)
    except (InputError, RunError) as error:
        return str(error)
    return ""


if __name__ == "__main__":
    sys.exit(main())
