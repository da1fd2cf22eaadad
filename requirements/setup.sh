#!/usr/bin/env bash
# Makes .venv from the locks and installs the project into it: `requirements/setup.sh`, with `dev` for tests and checks.
# What is there already is not installed again: a stamp in .venv holds the digest of the files it was made from.
set -euo pipefail
cd "$(dirname "$0")/.."

torch_index=https://download.pytorch.org/whl/cpu
oldest=11 newest=14 # of Python 3

die() {
  echo "error: $*" >&2
  exit 1
}

suits() { "$1" -c "import sys; sys.exit(not (3, $oldest) <= sys.version_info[:2] <= (3, $newest))" 2>/dev/null; }

find_python() {
  local name found=""
  for name in python3 $(seq -f 'python3.%g' "$newest" -1 "$oldest"); do
    suits "$name" || continue
    "$name" -c 'import ensurepip, venv' 2>/dev/null && echo "$name" && return
    found=${found:-$("$name" -c 'import sys; print("python3.%d" % sys.version_info[1])')}
  done
  [ -z "$found" ] || die "$found has no venv module; install it with: sudo apt-get install $found-venv"
  die "no Python 3.$oldest to 3.$newest here (python3 is $(python3 -V 2>&1 || true)); install one of them with its venv module"
}

step() { # step NAME FILE... : true where NAME has to be done, because one of the files has changed
  stamp=.venv/stamps/$1
  digest=$(cat "${@:2}" | sha256sum)
  [ "$(cat "$stamp" 2>/dev/null)" != "$digest" ]
}

done_with_step() {
  mkdir -p .venv/stamps
  echo "$digest" >"$stamp"
}

pip_install() {
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input --no-deps "$@"
}

from_lock() { pip_install --no-build-isolation --require-hashes -r "requirements/$1.txt"; }

install_torch() {
  local torch=requirements/torch-cpu.txt
  pip_install -r "$torch" 2>/dev/null && return
  pip_install --index-url "$torch_index" -r "$torch" && return
  die "the CPU build of torch ($(grep == "$torch")) is neither where pip is configured to look nor at $torch_index;" \
    "download its wheel on a machine that reaches that address and name its folder: PIP_FIND_LINKS=/that/folder make setup"
}

# In the order in which they have to come: what builds, torch, the rest, the project.
suits .venv/bin/python || {
  python=$(find_python)
  rm -rf .venv
  echo "setup: making .venv with $("$python" -V)"
  "$python" -m venv .venv
}
if step build requirements/build.txt; then
  from_lock build
  done_with_step
fi
if step torch requirements/torch-cpu.txt; then
  echo "setup: installing torch, CPU build"
  install_torch
  done_with_step
fi
if step cpu requirements/cpu.txt; then
  echo "setup: installing the $(grep -c == requirements/cpu.txt) packages of requirements/cpu.txt (about 3 GB on disk, some minutes)"
  from_lock cpu
  done_with_step
fi
if [ "${1:-}" = dev ] && step dev requirements/dev.txt; then
  echo "setup: installing what tests and checks need"
  from_lock dev
  done_with_step
fi
if step project pyproject.toml; then
  pip_install --no-build-isolation --editable .
  done_with_step
fi
