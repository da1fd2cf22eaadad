"""`python -m cardiolens.completion`: a script by which a shell completes `cardiolens <verb> <words>` by Tab.

The script holds the verbs, their words and the names of conf/ as they are when it is made: a Tab starts no
Python. Names of your own conf/ are in it if it is made in the folder that holds this conf/.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Literal

from cardiolens.base.errors import InputError
from cardiolens.commands.command import begin, tell
from cardiolens.commands.help import group_forms, verbs, words_of
from cardiolens.config.base import Spec
from cardiolens.config.command_words import read_words
from cardiolens.config.conf_names import legal_names

_OPTIONS = "--help --version"


class Words(Spec):
    """The words of the command."""

    shell: Literal["bash", "zsh", "fish"]


def script(shell: str) -> str:
    """Return the script of a shell, which is to be sourced by it."""
    words = {verb: [*words_of(verb), *_OPTIONS.split()] for verb in verbs()}
    names = {form.partition("=")[0]: legal_names(group) for group, form in group_forms().items()}
    return _SCRIPTS[shell](words, names)


def _bash(words: Mapping[str, list[str]], names: Mapping[str, list[str]]) -> str:
    """Return the script for bash, which takes `=` for the end of a word and so replaces what follows it."""
    return f"""# Completion of cardiolens for bash: eval "$(cardiolens completion shell=bash)"
_cardiolens() {{
  local line="${{COMP_LINE:0:COMP_POINT}}" offers current key prefix
  current="${{line##* }}"
  case "$COMP_CWORD" in 1) offers="{" ".join(words)} {_OPTIONS}" ;; *)
    case "${{COMP_WORDS[1]}}" in
{_cases(words, 6)}
    esac ;;
  esac
  key="${{current%%=*}}"
  if [[ "$current" == *=* ]]; then
    offers=""
    case "${{key#+}}" in
{_cases({name.lstrip("+"): listed for name, listed in names.items()}, 6)}
    esac
    current="${{current#*=}}"
  fi
  prefix="${{current%"${{current##*[\\[,]}}"}}"
  mapfile -t COMPREPLY < <(compgen -P "$prefix" -W "$offers" -- "${{current#"$prefix"}}")
  [[ "${{COMPREPLY[*]}}" == *= || "$current" == \\[* ]] && compopt -o nospace
}}
complete -o default -F _cardiolens cardiolens
"""


def _zsh(words: Mapping[str, list[str]], names: Mapping[str, list[str]]) -> str:
    """Return the script for zsh; what stands before `=`, `[` or `,` is put aside with `compset`.

    A list is typed in quotes, since zsh takes a bare `[` for the beginning of a pattern.
    """
    return f"""# Completion of cardiolens for zsh, after compinit: eval "$(cardiolens completion shell=zsh)"
_cardiolens() {{
  local offers key="${{words[CURRENT]%%=*}}"
  key="${{key##*[^a-z_+]}}"
  if (( CURRENT == 2 )); then
    compadd -- {" ".join(words)} {_OPTIONS}
    return
  fi
  if compset -P '*='; then
    case "${{key#+}}" in
{_cases({name.lstrip("+"): listed for name, listed in names.items()}, 6)}
    esac
    compset -P '*[[,]'
    [[ -n "$offers" ]] && compadd -- ${{=offers}} || _files
    return
  fi
  case "${{words[2]}}" in
{_cases(words, 4)}
  esac
  compadd -S '' -- ${{=offers}}
}}
compdef _cardiolens cardiolens
"""


def _fish(words: Mapping[str, list[str]], names: Mapping[str, list[str]]) -> str:
    """Return the script for fish, which replaces whole words: what stands before a name is repeated."""
    return f"""# Completion of cardiolens for fish: cardiolens completion shell=fish | source
function __cardiolens
  set -l before (commandline -opc)
  set -l current (commandline -ct | string trim -l -c "'\\"")
  if test (count $before) -lt 2
    printf '%s\\n' {" ".join(words)} {_OPTIONS}
    return
  end
  set -l offers
  set -l prefix
  if string match -q -- '*=*' $current
    set prefix (string replace -r -- '[^=[,]*$' '' $current)
    switch (string replace -r -- '^[+]?([^=]*)=.*' '$1' $current)
{_switch({name.lstrip("+"): listed for name, listed in names.items()}, 6)}
    end
  else
    switch $before[2]
{_switch(words, 6)}
    end
  end
  for offer in $offers
    printf '%s\\n' "$prefix$offer"
  end
end
complete -c cardiolens -f -n "not string match -q -- '*=*' (commandline -ct)"
complete -c cardiolens -a '(__cardiolens)'
"""


def _cases(offers: Mapping[str, list[str]], indent: int) -> str:
    """Branches of a shell's `case` that set the variable `offers`."""
    return "\n".join(
        f'{" " * indent}{name}) offers="{" ".join(listed)}" ;;' for name, listed in offers.items()
    )


def _switch(offers: Mapping[str, list[str]], indent: int) -> str:
    """Branches of fish's `switch` that set the variable `offers`."""
    return "\n".join(
        f"{' ' * indent}case {name}\n{' ' * indent}  set offers {' '.join(listed)}"
        for name, listed in offers.items()
    )


_SCRIPTS: dict[str, Callable[[Mapping[str, list[str]], Mapping[str, list[str]]], str]] = {
    "bash": _bash,
    "zsh": _zsh,
    "fish": _fish,
}


def main() -> int:
    begin()
    try:
        print(script(read_words(Words, sys.argv[1:]).shell), end="")
        return 0
    except InputError as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
